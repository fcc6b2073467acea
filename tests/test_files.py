"""Files and folders are whole or not there: after exceptions, full disks and kills, beside other writers."""

import errno
import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from chapters_src import pretrained, resources
from chapters_src import word_vectors as wv
from chapters_src.files import atomic_write, locked, write_text
from chapters_src.tokenization import CharacterTokenizer
from chapters_src.transformer import Config, Encoder, LanguageModel
from paths import ROOT
from recipes.output import kept, write_record

posix = pytest.mark.skipif(sys.platform == "win32", reason="kills or limits a process in the way of POSIX")


def python(code, *arguments):
    """Start a Python process that can import the package."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def write(path, kind, content):
    """Write a file, or a folder with two of them, and look from outside when one is written."""
    former = path.read_text() if path.is_file() else path.exists()
    with atomic_write(path) as unfinished:
        if kind == "folder":
            unfinished.mkdir()
            (unfinished / "a").write_text(content)
            unfinished /= "b"
        unfinished.write_text(content)
        assert (path.read_text() if path.is_file() else path.exists()) == former
        if content == "half":
            raise KeyboardInterrupt


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_is_written_appears_whole_and_after_an_exception_not_at_all(kind, tmp_path):
    path = tmp_path / "new" / "result.txt"
    with pytest.raises(KeyboardInterrupt):
        write(path, kind, "half")
    assert list(path.parent.iterdir()) == []
    write(path, kind, "all")
    assert (path if kind == "file" else path / "a").read_text() == "all"
    with pytest.raises(KeyboardInterrupt):
        write(path, kind, "half")
    assert list(path.parent.iterdir()) == [path]
    assert "half" not in [each.read_text() for each in path.parent.rglob("*") if each.is_file()]


def test_a_file_is_replaced_and_a_folder_that_holds_something_is_not(tmp_path):
    for text in ("first", "second: größer\r\n\n"):
        write_text(tmp_path / "file", text)
        assert (tmp_path / "file").read_bytes() == text.encode("utf-8")
    write(tmp_path / "folder", "folder", "first")
    with pytest.raises(OSError):
        write(tmp_path / "folder", "folder", "second")
    assert (tmp_path / "folder" / "a").read_text() == "first"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


@posix
def test_others_may_read_what_is_written(tmp_path):
    before = os.umask(0o022)
    try:
        write(tmp_path / "file", "file", "all"), write(tmp_path / "folder", "folder", "all")
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o644
    assert (tmp_path / "folder").stat().st_mode & 0o777 == 0o755


@posix
def test_on_a_full_disk_the_former_file_stays(tmp_path):
    """No file may grow beyond a hundred bytes."""
    import resource

    write_text(tmp_path / "file", "as it was")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(OSError) as caught:
            write_text(tmp_path / "file", "x" * 1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert caught.value.errno == errno.EFBIG
    assert list(tmp_path.iterdir()) == [tmp_path / "file"] and (tmp_path / "file").read_text() == "as it was"


KILLED = """
    import os, signal, sys
    from pathlib import Path
    from chapters_src.files import atomic_write, locked

    with locked(sys.argv[1]), atomic_write(sys.argv[1]) as unfinished:
        unfinished.write_text("half")
        os.kill(os.getpid(), signal.SIGKILL)
"""


@posix
def test_killed_in_the_middle_the_former_file_stays_and_the_next_under_the_lock_clears_up(tmp_path):
    path = tmp_path / "file[1]"
    write_text(path, "as it was")
    assert python(KILLED, path).wait() == -signal.SIGKILL
    assert path.read_text() == "as it was"
    [left] = [each for each in tmp_path.iterdir() if ".partial" in each.name]
    with atomic_write(tmp_path / "file[1]-2") as others, locked(path):  # It has died with its process.
        assert not left.exists() and others.parent.exists()
        others.write_text("all")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file[1]", "file[1]-2", "file[1].lock"]


WRITING = """
    import sys
    from chapters_src.files import write_text

    for _ in range(100):
        write_text(sys.argv[1], sys.argv[2] * 100_000)
"""


def test_while_two_processes_write_a_third_always_reads_a_whole_file(tmp_path):
    path = tmp_path / "file"
    write_text(path, "c" * 100_000)
    processes = [python(WRITING, path, letter) for letter in "ab"]
    seen = set()
    while any(process.poll() is None for process in processes):
        text = path.read_text()
        assert text == text[0] * 100_000
        seen.add(text[0])
    assert [process.returncode for process in processes] == [0, 0]
    assert seen >= {"a", "b"} and list(tmp_path.iterdir()) == [path]


COUNTING = """
    import sys
    from pathlib import Path
    from chapters_src.files import locked, write_text

    for _ in range(50):
        with locked(sys.argv[1]):
            write_text(sys.argv[1], str(int(Path(sys.argv[1]).read_text()) + 1))
"""


def test_whoever_holds_the_lock_is_alone(tmp_path):
    write_text(tmp_path / "count", "0")
    processes = [python(COUNTING, tmp_path / "count") for _ in range(2)]
    assert [process.wait() for process in processes] == [0, 0]
    assert (tmp_path / "count").read_text() == "100"


# Who writes this way --------------------------------------------------------------------------------------

SMALL = Config(vocab_size=9, max_length=4, d_model=4, num_layers=1, num_heads=1, feed_forward_width=4)
GPT2 = replace(SMALL, positions="learned", activation="gelu_tanh")


def save_on_encoder(path):
    encoder = Encoder(replace(SMALL, positions="learned", norm_first=False))
    model = pretrained.on_encoder(encoder, replace(encoder.config, cross_attention=True))
    pretrained.save_on_encoder(model, encoder, path)


def save_low_rank(path):
    model = LanguageModel(GPT2)
    pretrained.add_low_rank(model, rank=1, alpha=1)
    pretrained.save_low_rank(model, path, model_type="llama", base="base")


USERS = {
    "a tokenizer": lambda path: CharacterTokenizer.train(["ab"]).save(path),
    "word vectors": lambda path: wv.write_vectors(path, wv.WordVectors(["a"], np.ones((1, 2)))),
    "a model": lambda path: pretrained.save(LanguageModel(SMALL), path),
    "a model for the library": lambda path: pretrained.export(LanguageModel(GPT2), path),
    "a model on an encoder": save_on_encoder,
    "low-rank updates": save_low_rank,
    "the cache": lambda path: resources.cached(path.name, {}, lambda folder: (folder / "a").touch()),
    "a record": lambda path: write_record(path, "what", "script", []),
    "results of a run": lambda path: kept(path, dict),
}


@pytest.mark.parametrize("user", USERS)
def test_each_who_writes_writes_atomically(user, tmp_path, monkeypatch):
    monkeypatch.setenv("BOOK_CACHE", str(tmp_path))

    def fail(unfinished, path):
        assert list(Path(unfinished).parent.iterdir()) and not Path(path).exists()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises((OSError, resources.ResourceError), match=os.strerror(errno.ENOSPC)):
        USERS[user](tmp_path / "result")
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".lock"]
    monkeypatch.undo()
    monkeypatch.setenv("BOOK_CACHE", str(tmp_path))
    USERS[user](tmp_path / "result")
    assert (tmp_path / "result").exists()
