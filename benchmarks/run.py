"""Compare speed with other implementations and with limits, and write `results.md`.

Run it as `make bench` or `python benchmarks/run.py`, on an otherwise idle computer. Each topic is a module of
this folder with a function `results()`. Given a prefix of a topic's title, only that topic is measured, and
the others stay as they were: `python benchmarks/run.py Feature`. Any other argument is an error (exit code
2), and nothing is measured or written.
"""

import os
import platform
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "RAYON_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
os.environ.update(ONE_THREAD)  # read when the libraries are imported, so before the imports below
sys.path.insert(0, str(FOLDER.parent))

from benchmarks import (  # noqa: E402
    decoding,
    feature_extraction,
    gemma,
    shipping,
    tokenization,
    training,
    transformer,
)
from benchmarks.measure import Result  # noqa: E402
from chapters_src.files import write_text  # noqa: E402

TOPICS = {
    "Tokenization (chapter 03)": tokenization.results,
    "Feature extraction (chapter 04)": feature_extraction.results,
    "Transformer (chapter 08)": transformer.results,
    "Decoding (chapter 13)": decoding.results,
    "Gemma 3 (chapter 08)": gemma.results,
    "Training (chapter 15)": training.results,
    "Shipping (chapter 15)": shipping.results,
}
PACKAGES = ("tokenizers", "regex", "torch", "transformers", "onnxruntime")


def main(arguments: Sequence[str]) -> int:
    """Measure the topics, then write the page atomically.

    Args:
        arguments: nothing, or a prefix of one topic's title.

    Returns:
        The exit code: 0, or 2 if the arguments match no topic.
    """
    wanted = " ".join(arguments)
    chosen = [title for title in TOPICS if title.startswith(wanted)]
    if not chosen:
        print(f"No topic begins with {wanted!r}. Topics: {', '.join(TOPICS)}.", file=sys.stderr)
        return 2
    sections = [
        section(title, results()) if title in chosen else former(title) for title, results in TOPICS.items()
    ]
    page = "\n".join(["# Speed", "", introduction(), *sections])
    write_text(FOLDER / "results.md", page)
    print(page)
    return 0


def former(title: str) -> str:
    """Return a section of the current page."""
    page = (FOLDER / "results.md").read_text(encoding="utf-8")
    return f"## {title}\n" + page.split(f"## {title}\n")[1].split("\n## ")[0].rstrip() + "\n"


def introduction() -> str:
    """Return the paragraph about the conditions of the measurements."""
    versions = ", ".join(f"{package} {metadata.version(package)}" for package in PACKAGES)
    return f"""\
Written by `python benchmarks/run.py`: seconds of processor time, one thread, both sides of a line measured in
the same run. The ratio says how many times as long the other way takes: above 1, ours is faster. A time only
counts once both ways were seen to give the same result (but for the training of Unigram, where the two
learn different pieces). The Tokenizers library does more at once: it also notes where in the
text each word stands.

The lines about transformers and decoding are seconds on the wall, both sides in turns (transformers with
two threads), and the median of each. In parentheses stands where the median ratio lies with 95%
(bootstrap over the turns). Memory is what tensors take at most in a training step, beyond the weights,
what the optimizer keeps and the batch. The two encoders spend nearly all of their time in the same matrix
products, so they are level, and compiling gains the little that is left; one projection for all heads saves
time because a few large products are quicker than many small ones. In decoding, the larger the model and
the batch, the more of the time is the same matrix products again.

Python {platform.python_version()}, {versions}; a computer with {os.cpu_count()} cores.
"""


def section(title: str, results: list[Result]) -> str:
    """Write the results of one topic as a table."""
    head = [f"## {title}", "", "| what | ours | compared with | theirs | ratio |", "|---|---:|---|---:|---:|"]
    return "\n".join([*head, *map(line, results), ""])


def line(result: Result) -> str:
    """Write one result as a line of the table."""
    ratio = f"{result.ratio:.0f}" if result.ratio >= 10 else f"{result.ratio:.2f}"
    if result.interval is not None:
        ratio += f" ({result.interval.low:.2f} to {result.interval.high:.2f})"
    ours, theirs = (f"{amount:.3g}\N{NO-BREAK SPACE}{result.unit}" for amount in (result.ours, result.theirs))
    cells = (result.what, ours, result.compared_with, theirs, ratio)
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
