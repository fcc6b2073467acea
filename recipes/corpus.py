"""The corpus of both language models, with the same held-out prose whatever they are trained on."""

from collections.abc import Sequence

from chapters_src.data import docstrings
from chapters_src.data.docstrings import Paragraph


def paragraphs(packages: Sequence[str], kinds: Sequence[str]) -> dict[str, list[Paragraph]]:
    """Return the paragraphs of each split, as the docstrings' own split has them.

    Only prose is held out, whatever kinds are trained on, so that runs on different kinds can be compared.
    Held-out text that shares a run of words with training text of any kind is left out.
    """
    prose = {paragraph.text for paragraph in docstrings.paragraphs(packages)}
    wanted = prose | {paragraph.text for paragraph in docstrings.paragraphs(packages, kinds)}
    splits = docstrings.split(docstrings.paragraphs(packages, docstrings.KINDS))
    return {
        split: [p for p in found if p.text in (wanted if split == "train" else prose)]
        for split, found in splits.items()
    }
