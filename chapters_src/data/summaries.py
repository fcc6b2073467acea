"""Real documents with real summaries: the body of a docstring and its summary line.

By convention (PEP 257) a docstring begins with a one-line summary, followed by a blank line and the details.
So the installed scientific packages hold thousands of short texts, each summarized by its author. Chapter 14
summarizes them.

The card beside this file, `summaries.md`, describes the pairs, their license and their limits.
"""

import hashlib
import inspect
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from chapters_src import resources
from chapters_src.data import docstrings
from chapters_src.data.docstrings import SPLITS, runs
from chapters_src.tokenization import sentences
from chapters_src.tokenization.sentences import split_sentences

PACKAGES = (*docstrings.PACKAGES, "accelerate", "huggingface_hub", "keras", "peft")
FILTERS = (
    "body of fewer than two sentences or 25 words",
    "summary of fewer than 5 or more than 20 words",
    "fewer than half of the summary's content words in the body",
    "summary stands in the body",
    "the same summary or the same body before",
    "held out, and shares a run of 13 words with another split",
)

_SIGNATURE = re.compile(r"[\w.]+\(.*\)(?: *->.*)?", re.DOTALL)
_BLANK_LINES = re.compile(r"\n\s*\n")
_WORD = re.compile(r"[a-z0-9]+")
# A sentence that occurs in more docstrings of a package is boilerplate, like "Read more in the guide".
_REPEATED = 8
_FUNCTION_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        a all an and any are as at be been by can each for from given has have if in into is it its no not of
        on one or over per return returned returns than that the then this to use used uses using via when
        which with
        """,
    )
)


class Pair(NamedTuple):
    """A text and its summary."""

    body: str  # Paragraphs of prose, a blank line between them.
    summary: str  # One sentence.
    package: str  # Name to import, such as "sklearn".
    module: str  # Dotted name of the module whose source holds it.


class Pairs(NamedTuple):
    """The pairs of all packages, and how many were filtered out."""

    splits: dict[str, list[Pair]]  # By split (see `SPLITS`), sorted by package, module and position.
    candidates: int  # Docstrings that begin with a one-sentence paragraph and have prose below it.
    dropped: dict[str, int]  # How many of them each of the `FILTERS` dropped, in order.


def pairs(packages: Sequence[str] = PACKAGES) -> Pairs:
    """Load the pairs of installed packages, named as one imports them, by split, and what was dropped.

    The first call for a package parses its source; later calls read the cache. The same installed versions
    and the same rules give the same pairs. Pairs are split by module (`docstrings.split_of`), and a held-out
    pair shares no run of 13 words with the texts of training modules. So a language model trained on the
    training split of the docstrings has never seen a test pair.

    Raises:
        resources.ResourceError: a package is not installed, or the cache folder cannot be written.
        TypeError: `packages` is a string.
    """
    harvests = docstrings.of_each(packages, _harvest)
    training_texts = (
        paragraph.text
        for paragraph in docstrings.paragraphs(packages, docstrings.KINDS)
        if docstrings.split_of(paragraph.module) == "train"
    )
    return _filtered([pair for harvest in harvests for pair in harvest], training_texts)


def pair_of(docstring: str) -> tuple[str, list[str]] | None:
    """Extract summary and body from one docstring, as it stands in the source.

    They are the first paragraph, if it is one sentence (a missing period is added), and the paragraphs of
    prose below it, without inline markup. A signature above the first paragraph, as in compiled functions, is
    skipped. None if there is no such sentence, or no prose below it.
    """
    first, _, rest = _cut(inspect.cleandoc(docstring))
    if _SIGNATURE.fullmatch(first):
        first, _, rest = _cut(rest)
    summary = docstrings.prose(first) or (docstrings.prose(f"{first}.") if first[-1:].isalnum() else [])
    if len(summary) != 1 or len(split_sentences(summary[0])) != 1:
        return None
    body = docstrings.prose(rest)
    return (summary[0], body) if body else None


def _cut(text: str) -> tuple[str, str, str]:
    """Cut a text at its first blank line."""
    gap = _BLANK_LINES.search(text)
    return (text[: gap.start()], gap[0], text[gap.end() :]) if gap else (text, "", "")


def _harvest(package: str) -> list[Pair]:
    """Harvest one package, through the cache."""
    rules = Path(sentences.__file__).read_bytes() + Path(__file__).read_bytes()
    key = docstrings.cache_key(package) | {"pairs": hashlib.sha256(rules).hexdigest()}

    def build(entry: Path) -> None:
        (entry / "pairs.json").write_text(json.dumps(_pairs_of(package)), encoding="utf-8")

    entry = resources.cached("summaries", key, build)
    return [Pair(*pair) for pair in json.loads((entry / "pairs.json").read_text(encoding="utf-8"))]


def _pairs_of(package: str) -> list[Pair]:
    """Return all candidates of a package, without sentences that occur in many of its docstrings."""
    found = [
        (*pair, module)
        for module, docstring in docstrings.each_docstring(package)
        if not _is_test(module) and (pair := pair_of(docstring))
    ]
    counts = Counter(sentence for _, body, _ in found for sentence in set(split_sentences("\n\n".join(body))))
    pairs = []
    for summary, body, module in found:
        kept = (
            " ".join(sentence for sentence in split_sentences(paragraph) if counts[sentence] <= _REPEATED)
            for paragraph in body
        )
        pairs.append(Pair("\n\n".join(filter(None, kept)), summary, package, module))
    return pairs


def _is_test(module: str) -> bool:
    name = module.rpartition(".")[2]
    return name.startswith("test_") or name.endswith("_test")


def _filtered(candidates: Sequence[Pair], training_texts: Iterable[str]) -> Pairs:
    """Drop pairs that are not summaries or not new, and split the rest."""
    dropped = dict.fromkeys(FILTERS, 0)
    splits: dict[str, list[Pair]] = {split: [] for split in SPLITS}
    seen: set[str] = set()
    for pair in candidates:
        problem = _problem(pair)
        if problem is None:
            texts = {" ".join(_words(text)) for text in (pair.summary, pair.body)}
            problem = FILTERS[4] if texts & seen else None
            seen |= texts
        if problem is None:
            splits[docstrings.split_of(pair.module)].append(pair)
        else:
            dropped[problem] += 1
    before = {run for text in training_texts for run in runs(text)}
    before.update(run for pair in splits["train"] for run in runs(f"{pair.summary} {pair.body}"))
    for split in SPLITS[1:]:
        kept = [pair for pair in splits[split] if before.isdisjoint(runs(f"{pair.summary} {pair.body}"))]
        dropped[FILTERS[5]] += len(splits[split]) - len(kept)
        before.update(run for pair in kept for run in runs(f"{pair.summary} {pair.body}"))
        splits[split] = kept
    return Pairs(splits, len(candidates), dropped)


def _problem(pair: Pair) -> str | None:
    """Return the first filter that a pair fails by itself."""
    body, summary = _words(pair.body), _words(pair.summary)
    if len(body) < 25 or len(split_sentences(pair.body)) < 2:
        return FILTERS[0]
    if not 5 <= len(pair.summary.split()) <= 20:
        return FILTERS[1]
    if overlap(pair) < 0.5:
        return FILTERS[2]
    if f" {' '.join(summary)} " in f" {' '.join(body)} ":
        return FILTERS[3]
    return None


def overlap(pair: Pair) -> float:
    """Return the share of a summary's content words that occur in the body, in some form, from 0 to 1.

    Words are compared by their first five letters, so that "array" and "arrays" agree; function words, and
    "return" and "use", do not count. 0 without content words.
    """
    in_body = {word[:5] for word in _words(pair.body)}
    content = [word for word in _words(pair.summary) if word not in _FUNCTION_WORDS]
    return sum(word[:5] in in_body for word in content) / max(len(content), 1)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())
