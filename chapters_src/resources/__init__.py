"""Locate the models and data of this book: each name has two sources.

`embedded`, the default, is what pip has installed: no network, no login. `full`, chosen by the environment
variable `BOOK_RESOURCES=full`, is the Hub. A notebook passes `resources.checkpoint("encoder")` to an ordinary
library call, so the same cell runs small on a laptop and large on a GPU.

    registry.toml --registry--> names, sources, hashes --embedded, fetched--> a verified folder

Nothing but locating, verifying and caching happens here. Every chapter uses it, and the first line that a
chapter prints says which resources were chosen.
"""

import os
from collections.abc import Mapping

from . import embedded, fetched, registry
from .cache import ResourceError, cache_folder, cached, is_cached
from .registry import CHECKPOINTS, DATA_SETS, HubFiles, WebFiles

__all__ = [
    "CHECKPOINTS", "DATA_SETS", "HubFiles", "ResourceError", "WebFiles", "cache_folder", "cached",
    "checkpoint", "choice", "data_set", "is_cached",
]  # fmt: skip


def choice() -> str:
    """Return which resources are chosen: the variable `BOOK_RESOURCES`, or "embedded".

    Raises:
        ResourceError: the variable is neither "embedded" nor "full".
    """
    value = os.environ.get("BOOK_RESOURCES", "embedded")
    if value not in ("embedded", "full"):
        raise ResourceError(
            f"BOOK_RESOURCES is {value!r}; it can be 'embedded' (the default) or 'full' (the Hub)."
        )
    return value


def checkpoint(name: str) -> str:
    """Locate a model of this book, such as "encoder", for `from_pretrained`.

    It is the path of a local folder whose files have been verified. With full resources it is in the cache of
    huggingface_hub.

    Raises:
        ResourceError: the name is unknown, or the model is not available.
    """
    return _located("checkpoint", name, CHECKPOINTS)


def data_set(name: str) -> str:
    """Locate the files of a data set, for `load_dataset` or for the data set's module in this package.

    Args, and what is returned and raised: as for `checkpoint`.
    """
    return _located("data set of files", name, DATA_SETS)


def _located(what: str, name: str, sources: Mapping[str, registry.Source]) -> str:
    if name not in sources:
        generated = ", ".join(f"{data} (made by {call})" for data, call in registry.GENERATED.items())
        raise ResourceError(
            f"No {what} is called {name!r}. Checkpoints: {', '.join(CHECKPOINTS)}. Data sets: "
            f"{', '.join(DATA_SETS)}; {generated}."
        )
    full = sources[name].full
    if choice() == "embedded" or full is None:
        return str(embedded.locate(name, sources[name]))
    return str(fetched.from_hub(full) if isinstance(full, HubFiles) else fetched.from_web(name, full))
