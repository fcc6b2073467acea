"""Embedded resources: what pip packages and this book's own folders hold, verified, without a network."""

import hashlib
import shutil
import sys
import warnings
from collections.abc import Mapping
from importlib import metadata, util
from pathlib import Path

from .cache import ResourceError, cache_folder, cached, sha256
from .fetched import fetch_instead
from .registry import CHECKPOINTS, Source

DATA_FOLDER = Path(__file__).parent.parent / "data"
WEIGHTS_FOLDER = Path(__file__).parent.parent / "weights"
REINSTALL = "python -m pip install --force-reinstall --no-deps"


def locate(name: str, source: Source) -> Path:
    """Return the folder of a model or data set, its files verified.

    Raises:
        ResourceError: it has no embedded form, or a file is missing or not what it should be.
    """
    return _KINDS[source.embedded](name, source)


def shipped(name: str, source: Source) -> Path:
    """Locate weights that one of the recipes trained."""
    folder = WEIGHTS_FOLDER / name
    way_out = (
        "It is part of this book's package: install the package again, or restore it from the repository."
    )
    _compare(folder, source.sha256, way_out)
    return folder


def encoder(name: str, source: Source) -> Path:
    """Locate all-MiniLM-L6-v2 in its package, else in our cache, else on the Hub: always the same bytes."""
    package = util.find_spec(source.package["module"])  # Not imported: it would import sentence-transformers.
    if package is None or not package.submodule_search_locations:
        key = {"repository": source.package["repository"], "sha256": source.sha256}
        return cached(name, key, lambda folder: _fetch_encoder(source, folder))
    folder = Path(package.submodule_search_locations[0]) / "model"
    _compare(folder, source.sha256, f"Reinstall the package: {REINSTALL} {source.package['name']}")
    return folder


def _fetch_encoder(source: Source, folder: Path) -> None:
    where = f"{source.package['repository']}/resolve/{source.package['revision']}"
    fetch_instead(
        "The encoder (all-MiniLM-L6-v2)", source.package["name"], where, source.sha256, folder, " --no-deps"
    )


def on_encoder(name: str, source: Source) -> Path:
    """Merge what one of the recipes trained into the encoder: a complete model, with its tokenizer."""
    of_encoder = CHECKPOINTS["encoder"]
    update, body = shipped(name, source), encoder("encoder", of_encoder)
    versions = {library: metadata.version(library) for library in ("peft", "torch", "transformers")}
    key = {"encoder": of_encoder.sha256, "update": source.sha256, "versions": versions}
    return cached(name, key, lambda folder: merge(body, update, folder))


def merge(body: Path, update: Path, folder: Path) -> None:
    """Merge an update (an adapter of PEFT) into the encoder in `body`, and save the whole model."""
    import torch  # Here, because setup() first says whether the libraries may be online.
    import transformers
    from peft import PeftModel

    config = transformers.AutoConfig.from_pretrained(update)
    kind = getattr(transformers, config.architectures[0])
    logging = transformers.utils.logging
    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()  # Otherwise the library warns that the encoder has no such head.
    try:
        # The library first initializes the head at random, which must not change a notebook's own draws.
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings(action="ignore"):
            model = PeftModel.from_pretrained(kind.from_pretrained(body, config=config), update)
            model.merge_and_unload().save_pretrained(folder)
    finally:
        logging.set_verbosity(verbosity)
    for file in CHECKPOINTS["encoder"].sha256.keys() - {"config.json", "model.safetensors"}:
        shutil.copy(body / file, folder)


def gemma(name: str, source: Source) -> Path:
    """Locate Gemma 3 270M in our cache; before, convert it, from its packages or the same file on the Hub."""
    try:
        versions = {library: metadata.version(library) for library in ("gguf", "tokenizers")}
    except metadata.PackageNotFoundError as error:
        raise ResourceError(
            f"Gemma needs the package {error.name} to be unpacked: python -m pip install {error.name}"
        ) from None
    package = source.package
    key = {"sha256": package["sha256"], "format": package["format"], "versions": versions}
    return cached(name, key, lambda folder: _convert_gemma(package, folder))


def _convert_gemma(package: Mapping, folder: Path) -> None:
    from .. import gemma_conversion  # Here, because other chapters do not need it.

    print(f"Converting Gemma 3 270M into {cache_folder()}, once: half a minute, 550 MB", file=sys.stderr)
    parts = gemma_parts(package)
    gemma_conversion.convert(joined(parts, package) if parts else _fetched_gemma(package, folder), folder)


def gemma_parts(package: Mapping) -> list[Path]:
    """Return the files of the four packages, none of which is imported; nothing unless all are installed."""
    found = []
    for number, module in enumerate(package["parts"]):
        installed = util.find_spec(module)
        if installed is None or not installed.submodule_search_locations:
            return []
        folder = Path(installed.submodule_search_locations[0])
        found.append(folder / "data" / f"{package['file']}.part{number:02}")
    return found


def joined(parts: list[Path], package: Mapping) -> bytes:
    """Return the bytes of the one file that the parts make, verified."""
    missing = [str(part) for part in parts if not part.is_file()]
    data = b"" if missing else b"".join(part.read_bytes() for part in parts)
    found = f"no {', '.join(missing)}" if missing else hashlib.sha256(data).hexdigest()
    if found != package["sha256"]:
        names = " ".join(f"{package['name']}-part{i + 1}=={package['version']}" for i in range(len(parts)))
        raise ResourceError(
            f"The parts of {package['file']}, the first of them {parts[0]}, are not what they should be: "
            f"their joint sha256 should be {package['sha256']}, found: {found}. "
            f"Reinstall the packages: {REINSTALL} {names}"
        )
    return data


def _fetched_gemma(package: Mapping, folder: Path) -> bytes:
    where = f"{package['repository']}/resolve/main"
    wanted = f"{package['name']}=={package['version']}"
    fetch_instead("Gemma 3 270M", wanted, where, {package["file"]: package["sha256"]}, folder)
    data = (folder / package["file"]).read_bytes()
    (folder / package["file"]).unlink()
    return data


def data(name: str, source: Source) -> Path:
    """Locate the files of a data set that are part of this package."""
    folder = DATA_FOLDER / name.replace("-", "_")  # named as its module
    missing = [file for file in source.needed if not (folder / file).is_file()]
    if missing:
        raise ResourceError(
            f"The data set {name} is not available: {folder} has no {', '.join(missing)}. The files are "
            "part of this book's package: install the package again, or restore them from the repository."
        )
    return folder


def nowhere(name: str, source: Source) -> Path:
    """Say that there is no embedded form."""
    raise ResourceError(
        f"{name} has no embedded form, because of its size or its license. Choose full resources "
        "(BOOK_RESOURCES=full), which come from the network."
    )


def _compare(folder: Path, hashes: Mapping[str, str], way_out: str) -> None:
    for file, expected in hashes.items():
        found = sha256(folder / file) if (folder / file).is_file() else "no such file"
        if found != expected:
            raise ResourceError(
                f"{folder / file} is not what it should be: its sha256 should be {expected}, found: {found}. "
                f"{way_out}"
            )


_KINDS = {
    "package": encoder,
    "packages": gemma,
    "shipped": shipped,
    "on encoder": on_encoder,
    "data": data,
    "nowhere": nowhere,
}
