"""The commands of `tools/book.py`, once the packages are installed. Each returns an exit code."""

import functools
import http.server
import os
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import address
import environment
import execute
import processes
import questions
import seeds as counting
import skeleton
from paths import BUILD, HTML, NOTEBOOKS, ROOT, notebooks
from website import downloads, formulas, render, vendor


class Failure(Exception):
    """A step failed; the message is for the terminal."""


def book(options: Namespace) -> int:
    """Execute what changed, render the site, and print where it is."""
    try:
        execute.execute_changed(requirements(options), only=options.only, say=_say)
        render.render(say=_say)
    except (
        execute.NotebookFailed,
        render.RenderFailed,
        formulas.FormulaFailed,
        vendor.NpmFailed,
        address.AddressError,
        execute.UnknownNotebook,
    ) as failed:
        raise Failure(str(failed)) from failed
    _say(f"\nthe site: {(HTML / 'index.html').relative_to(ROOT)}  (open it, or: python tools/book.py serve)")
    return 0


def pdf(options: Namespace) -> int:
    """Build the book, then one PDF of it."""
    from paper.printing import make_pdf  # here, because `make book` does not install its packages

    return _in_one_file(options, "pdf", make_pdf)


def epub(options: Namespace) -> int:
    """Build the book, then one EPUB of it."""
    from paper.epub import make_epub

    return _in_one_file(options, "epub", make_epub)


def _in_one_file(options: Namespace, kind: str, make: Callable) -> int:
    """Build the book, then one file of it, unless that file is up to date."""
    from paper import contents

    book(options)
    target = downloads.file_of(kind)
    stamp, wanted = BUILD / f"made_{kind}", render.STAMP.read_text(encoding="utf-8")
    if target.exists() and stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        _say(f"{kind}: nothing changed, nothing made")
    else:
        stamp.unlink(missing_ok=True)
        try:
            make(target, contents.parts(), say=_say)
        except contents.NoBrowser as failed:
            raise Failure(str(failed)) from failed
        stamp.write_text(wanted, encoding="utf-8")
    downloads.write(HTML / "_static")  # The menu of the site has it from now on.
    _say(f"\nthe {kind.upper()}: {target.relative_to(ROOT)}")
    return 0


def test(options: Namespace) -> int:
    """Check everything, fast checks first."""
    lint(options)
    os.environ["BOOK_REQUIREMENTS"] = str(requirements(options))
    _pytest("unit tests", "not slow and not site and not full")
    book(options)
    _pytest("slow tests and the site in a browser", "(slow or site) and not full")
    return 0


def test_full(options: Namespace) -> int:
    """Also run slow checks: second executions, full resources, every page in every way."""
    os.environ["BOOK_VISITS"] = "all"
    test(options)
    _pytest("second executions and full resources", "full", at_a_time=1)
    return 0


def test_colab(options: Namespace) -> int:
    """Run every notebook from its set-up cell, on Colab's versions."""
    import colab  # here, because it imports what runs notebooks

    try:
        colab.run_all(say=_say)
    except colab.ColabFailed as failed:
        raise Failure(str(failed)) from failed
    return 0


def lint(options: Namespace) -> int:
    """Check style, types, spelling, and that notebooks have no outputs and stamps are up to date."""
    _step("ruff", "ruff", "check", "--quiet", ".")
    _step("ruff format", "ruff", "format", "--check", "--quiet", ".")
    _step("pyrefly", "pyrefly", "check", "--summary=none", "--python-interpreter-path", sys.executable)
    _step("codespell", "codespell_lib", *_tracked_texts())
    _step("nbstripout", "nbstripout", "--verify", "--keep-id", *map(str, notebooks()))
    try:
        unstamped = address.stamp(check_only=True)
    except (address.AddressError, questions.QuestionsError) as problem:
        raise Failure(str(problem)) from problem
    if unstamped:
        raise Failure(
            f"outdated address, version, list or questions in {', '.join(unstamped)}: "
            "run python tools/book.py stamp"
        )
    return 0


def serve(options: Namespace) -> int:
    """Serve the rendered site locally until interrupted."""
    if not (HTML / "index.html").exists():
        raise Failure("there is no site yet: run python tools/book.py book first")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=HTML)
    try:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 8000), handler)
    except OSError as error:
        raise Failure(f"port 8000 is not available ({error.strerror}): stop what uses it") from error
    with server:
        _say("http://127.0.0.1:8000  (stop with Ctrl-C)")
        server.serve_forever()


def bench(options: Namespace) -> int:
    """Compare speed with other implementations, and write benchmarks/results.md."""
    return processes.call([sys.executable, str(ROOT / "benchmarks" / "run.py")], cwd=ROOT, env=_environment())


def seeds(options: Namespace) -> int:
    """Execute the notebooks at other seeds; the counts go to benchmarks/seeds.csv."""
    try:
        problems = counting.count(requirements(options), options.only, say=_say)
    except (counting.NotPublished, execute.NotebookFailed, execute.UnknownNotebook) as failed:
        raise Failure(str(failed)) from failed
    _say(f"\nthe table: {counting.TABLE.relative_to(ROOT)}")
    if problems:
        raise Failure("\n".join(problems))
    return 0


def lab(options: Namespace) -> int:
    """Open the notebooks in JupyterLab until interrupted."""
    return processes.call([sys.executable, "-m", "jupyterlab", str(NOTEBOOKS)], cwd=ROOT, env=_environment())


def new(options: Namespace) -> int:
    """Write the skeleton of a chapter, and print what is left to do."""
    try:
        _say("\n".join(skeleton.make(options.name)))
    except (skeleton.SkeletonError, address.AddressError) as failed:
        raise Failure(str(failed)) from failed
    return 0


def requirements(options: Namespace) -> Path:
    """Return the pins in use: part of the key that decides what is executed again."""
    return environment.NEWEST_REQUIREMENTS if options.newest else environment.REQUIREMENTS


def _pytest(name: str, marks: str, at_a_time: int | None = None) -> None:
    """Run the tests with some marks, one process per core, each with its share of threads.

    With more threads than cores, waiting threads would take most of the time.
    """
    count = at_a_time or execute.num_cores()
    threads = str(max(1, execute.num_cores() // count))
    arguments = ("-m", marks, "--numprocesses", str(count), "tests")
    _step(name, "pytest", *arguments, OMP_NUM_THREADS=threads)


def _step(name: str, module: str, *arguments: str, **variables: str) -> None:
    _say(f"{name}")
    environment = {**_environment(), **variables}
    code = processes.call([sys.executable, "-m", module, *arguments], cwd=ROOT, env=environment)
    if code != 0:
        raise Failure(f"{name} ended with exit code {code}")


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}


def _tracked_texts() -> list[str]:
    try:
        listed = subprocess.run(
            ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, encoding="utf-8"
        ).stdout.split()
    except FileNotFoundError:  # no git here: check everything
        listed = []
    return [name for name in listed if name.endswith((".md", ".py", ".ipynb", ".yml", ".toml", ".cff"))] or [
        "."
    ]


def _say(text: str) -> None:
    print(text, flush=True)
