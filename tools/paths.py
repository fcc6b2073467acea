"""Where everything lies, the same for every tool."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
PACKAGE = ROOT / "chapters_src"
BUILD = ROOT / "build"
WORK = BUILD / "running"  # notebooks while they run
EXECUTED = BUILD / "executed"  # notebooks that ran without an error, each with its record
SITE_SOURCE = BUILD / "site_source"  # what Jupyter Book reads
HTML = BUILD / "html"  # what readers open
NPM = BUILD / "npm"  # node_modules of the site


def notebooks() -> list[Path]:
    """The notebooks of the book, in the order of their names."""
    return sorted(NOTEBOOKS.glob("*.ipynb"))
