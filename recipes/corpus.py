"""The corpus of both language models: whatever is trained on, the same prose is held out."""

from collections.abc import Sequence

from chapters_src.data import docstrings
from chapters_src.data.docstrings import Paragraph


def paragraphs(packages: Sequence[str], kinds: Sequence[str]) -> dict[str, list[Paragraph]]:
    """Give the paragraphs of each split, as the docstrings' own split has them.

    Held out is prose only, whatever kinds are trained on, so that runs on other kinds can be compared. What
    shares a run of words with training text of any kind is left out.
    """
    prose = {paragraph.text for paragraph in docstrings.load(packages)}
    wanted = prose | {paragraph.text for paragraph in docstrings.load(packages, kinds)}
    splits = docstrings.split(docstrings.load(packages, docstrings.KINDS))
    return {
        split: [p for p in found if p.text in (wanted if split == "train" else prose)]
        for split, found in splits.items()
    }
