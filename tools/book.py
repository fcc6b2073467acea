"""The command line of the book: `python tools/book.py COMMAND`. Needs only Python >= 3.11.

Commands that need packages first install the pinned versions into `.venv`, then run again inside it;
`test-colab` does the same with `.venv-colab` and Colab's versions.
"""

from __future__ import annotations  # so that an older Python reaches the message of `main`

import argparse
import os
import sys

COMMANDS = {
    "book": "install what is missing, execute the notebooks whose inputs changed, render the site",
    "pdf": "build the book, then one PDF of it",
    "epub": "build the book, then one EPUB of it",
    "test": "build the book and check everything: style, unit tests, notebooks, the site in a browser",
    "test-full": "the same, plus every notebook twice and with full resources, every page over HTTP too",
    "test-colab": "run every notebook as in Colab: its versions, from the set-up cell (3 GB to download)",
    "serve": "serve the rendered site on this computer",
    "lab": "open the notebooks in JupyterLab",
    "new": "make the skeleton of a chapter: python tools/book.py new 12_language_model",
    "lint": "check style, types and spelling only",
    "bench": "compare speed with other implementations and write benchmarks/results.md",
    "seeds": "execute the notebooks at three other seeds and write benchmarks/seeds.csv",
    "pins": "compile requirements.txt from the ranges in pyproject.toml",
    "stamp": "update the address, the version, the list of notebooks and the five questions everywhere",
    "set-address": "take the repository's address from the git remote origin, then stamp",
    "check-release": "check whether the book is ready to publish, and list what is missing",
    "clean": "remove the environments and all build outputs",
    "help": "list the commands",
}
# The extras in pyproject.toml that each command needs; commands not listed need "book".
WITH_TEST = ("pdf", "epub", "test", "test-full", "lint", "bench")
EXTRAS = {"lab": ["book", "lab"]} | {command: ["book", "test"] for command in WITH_TEST}
UNDER_LOCK = "BOOK_UNDER_LOCK"  # tells the inner Python that the outer one holds the lock
ENDLESS = ("serve", "lab")  # these change nothing, and must not block other commands


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    if sys.version_info < (3, 11):  # noqa: UP036
        print(f"The book needs Python 3.11 or newer; this is {sys.version.split()[0]}.", file=sys.stderr)
        return 2
    for stream in (sys.stdout, sys.stderr):  # a Windows console may lack the check mark
        stream.reconfigure(errors="backslashreplace") if hasattr(stream, "reconfigure") else None
    options = parsed(arguments)
    if options.command == "help":
        print(listed())
        return 0
    import address  # not at the top: an older Python must reach the message above
    import environment
    import processes

    if options.command in ("stamp", "set-address", "check-release"):
        return address.run(options.command)
    processes.end_like_an_interrupt()
    try:
        if options.here and options.command not in ("clean", "pins"):
            return inside(options)
        given = sys.argv[1:] if arguments is None else arguments
        with processes.alone(environment.LOCK, say=print):
            python = prepare(options)
            if python is None:
                return 0
            if options.command not in ENDLESS:
                return rerun(python, given, **{UNDER_LOCK: "1"})
        return rerun(python, given)
    except environment.InstallFailed as failure:
        print(f"\nfailed: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nstopped; finished work is kept", file=sys.stderr)
        return 130


def parser() -> argparse.ArgumentParser:
    """Return the parser of commands and options."""
    result = argparse.ArgumentParser(
        prog="python tools/book.py",
        description=__doc__.splitlines()[0],
        epilog=f"commands:\n{listed()}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    result.add_argument(
        "command", nargs="?", choices=COMMANDS, default="help", metavar="COMMAND", help="see below"
    )
    result.add_argument("name", nargs="?", help="with new: of the chapter, such as 12_language_model")
    result.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="CHAPTER",
        help="with book or seeds: execute only what begins so, such as 05; may be given again",
    )
    result.add_argument("--here", action="store_true", help="use the Python that runs this, install nothing")
    result.add_argument(
        "--newest", action="store_true", help="the newest versions that pyproject.toml allows, not the pins"
    )
    return result


def listed() -> str:
    """List the commands, a line for each."""
    return "\n".join(f"  {name:15}{text}" for name, text in COMMANDS.items())


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    """Parse the command and its options, and check that they belong together."""
    result = parser()
    options = result.parse_args(arguments)
    if options.command == "new" and not options.name:
        result.error("new takes the chapter's number and name: python tools/book.py new 17_some_name")
    if options.name and options.command != "new":
        result.error(f"{options.command} takes no name: {options.name!r}")
    if options.only and options.command not in ("book", "seeds"):
        result.error("--only works with book and seeds")
    return options


def rerun(python: str, arguments: list[str], **variables: str) -> int:
    """Run the same command again in the prepared environment."""
    import processes

    known = {**os.environ, "PYTHONPATH": "", "PYTHONUTF8": "1", **variables}
    return processes.call([python, __file__, *arguments, "--here"], env=known)


def prepare(options: argparse.Namespace) -> str | None:
    """Prepare a command, and return the Python to run it with, or None if nothing is left to do."""
    import environment

    if options.command == "clean":
        return environment.clean()
    if options.command == "pins":
        return environment.compile_pins(environment.REQUIREMENTS)
    if options.command == "test-colab":
        return environment.ensure_colab()
    return environment.ensure(EXTRAS.get(options.command, ["book"]), newest=options.newest)


def inside(options: argparse.Namespace) -> int:
    """Run a command in an environment that has the packages."""
    import commands
    import environment
    import processes

    command = getattr(commands, options.command.replace("-", "_"))
    try:
        if options.command in ENDLESS or os.environ.pop(UNDER_LOCK, None):
            return command(options)
        with processes.alone(environment.LOCK, say=print):
            return command(options)
    except commands.Failure as failure:
        print(f"\nfailed: {failure}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
