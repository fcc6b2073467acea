"""The names of the book's models and data sets, read from `registry.toml`: sources and hashes."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple


class HubFiles(NamedTuple):
    """Some files of one repository on the Hub."""

    repository: str  # Such as "distilbert/distilbert-base-uncased".
    kind: str  # "model" or "dataset", as the Hub calls them.
    files: tuple[str, ...]  # Everything that a chapter needs, without pickled weights.
    revision: str | None = None  # Not the newest one: where only a pull request has such files.


class WebFiles(NamedTuple):
    """Some files that are not on the Hub."""

    addresses: Mapping[str, str]  # The address of each file.
    catalog: str | None = None  # Address of the list of hashes that gensim publishes for its files.


class Source(NamedTuple):
    """The two sources of a model or data set."""

    embedded: str  # Where the files are without a network: a kind, which `registry.toml` explains.
    full: HubFiles | WebFiles | None  # None: there is no other; the embedded one serves for both choices.
    sha256: Mapping[str, str]  # Of each embedded file, where this book or a package ships it.
    package: Mapping[str, Any]  # The pip package or packages that hold it.
    needed: tuple[str, ...]  # Files that must be there.


def _source(entry: Mapping[str, Any], kind: str) -> Source:
    full = None
    if "hub" in entry:
        full = HubFiles(entry["hub"], kind, tuple(entry["files"]), entry.get("revision"))
    elif "web" in entry:
        full = WebFiles(entry["web"], entry.get("catalog"))
    hashes, package = entry.get("sha256", {}), entry.get("package", {})
    return Source(entry["embedded"], full, hashes, package, tuple(entry.get("needed", ())))


_ENTRIES = tomllib.loads((Path(__file__).parent / "registry.toml").read_text(encoding="utf-8"))
CHECKPOINTS = {name: _source(entry, "model") for name, entry in _ENTRIES["checkpoints"].items()}
DATA_SETS = {name: _source(entry, "dataset") for name, entry in _ENTRIES["data_sets"].items()}
GENERATED = _ENTRIES["generated"]
