"""Measure speed beside peers and limits, all in one run, and write `results.md`.

Run it as `make bench` or `python benchmarks/run.py`, on a computer that does nothing else. Each topic is
a module of this folder with a function `results()`. With the beginning of a topic's title as argument only
that one is measured, and the others stay as they were: `python benchmarks/run.py Feature`.
"""

import os
import platform
import sys
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

from benchmarks import feature_extraction, tokenization, transformer  # noqa: E402
from benchmarks.measure import Result  # noqa: E402

TOPICS = {
    "Tokenization (chapter 03)": tokenization.results,
    "Feature extraction (chapter 04)": feature_extraction.results,
    "Transformer (chapter 08)": transformer.results,
}
PACKAGES = ("tokenizers", "regex", "torch", "transformers")


def main() -> None:
    """Measure the topics, then write the page in one step."""
    chosen = sys.argv[1] if len(sys.argv) > 1 else ""
    sections = [
        section(title, results()) if title.startswith(chosen) else former(title)
        for title, results in TOPICS.items()
    ]
    page = "\n".join(["# Speed", "", introduction(), *sections])
    temporary = FOLDER / "results.md.tmp"
    temporary.write_text(page, encoding="utf-8")
    os.replace(temporary, FOLDER / "results.md")
    print(page)


def former(title: str) -> str:
    """Give a section of the page as it is."""
    page = (FOLDER / "results.md").read_text(encoding="utf-8")
    return f"## {title}\n" + page.split(f"## {title}\n")[1].split("\n## ")[0].rstrip() + "\n"


def introduction() -> str:
    """Say under which conditions the times were taken."""
    versions = ", ".join(f"{package} {metadata.version(package)}" for package in PACKAGES)
    return f"""\
Written by `python benchmarks/run.py`: seconds of processor time, one thread, both sides of a line measured in
the same run. The ratio says how many times as long the other way takes: above 1, ours is faster. A time only
counts once both ways were seen to give the same result (but for the training of Unigram, where the two
learn different pieces). The Tokenizers library does more at once: it also notes where in the
text each word stands.

The lines about transformers are seconds on the wall with two threads, both sides in turns, and the median of
each. There, memory is what tensors take at most in a training step, beyond the weights, what the optimizer
keeps and the batch. From run to run these ratios move by some hundredths. The two encoders spend nearly all
of their time in the same matrix products, so they are level; one projection for all heads saves time because
a few large products are quicker than many small ones.

Python {platform.python_version()}, {versions}; a computer with {os.cpu_count()} cores.
"""


def section(title: str, results: list[Result]) -> str:
    """Write the results of one topic as a table."""
    head = [f"## {title}", "", "| what | ours | compared with | theirs | ratio |", "|---|---:|---|---:|---:|"]
    return "\n".join([*head, *map(line, results), ""])


def line(result: Result) -> str:
    """Write one result as a line of the table."""
    ratio = f"{result.ratio:.0f}" if result.ratio >= 10 else f"{result.ratio:.2f}"
    ours, theirs = (f"{amount:.3g}\N{NO-BREAK SPACE}{result.unit}" for amount in (result.ours, result.theirs))
    cells = (result.what, ours, result.compared_with, theirs, ratio)
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
