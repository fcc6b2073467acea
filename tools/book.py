"""The command line of the book: `python tools/book.py COMMAND`. Needs only Python >= 3.11.

Every command that needs packages first makes sure that `.venv` holds the pinned ones, then goes on inside it;
`test-colab` does the same with `.venv-colab` and Colab's versions.
"""

from __future__ import annotations  # so that an older Python reaches the message of `main`

import argparse
import os
import sys

COMMANDS = {
    "book": "install what is missing, execute the notebooks whose inputs changed, render the site",
    "pdf": "the book, and from it one PDF",
    "epub": "the book, and from it one EPUB",
    "test": "the book, and everything that is checked: style, unit tests, notebooks, the site in a browser",
    "test-full": "the same; also every notebook twice and with full resources, every page over HTTP too",
    "test-colab": "run every notebook as in Colab: its versions, from the set-up cell (3 GB to download)",
    "serve": "serve the rendered site on this computer",
    "lab": "open the notebooks in JupyterLab",
    "new": "make the skeleton of a chapter: python tools/book.py new 12_language_model",
    "lint": "check style, types and spelling only",
    "bench": "measure speed beside peers and write benchmarks/results.md",
    "seeds": "execute the notebooks at three other seeds and write benchmarks/seeds.csv",
    "pins": "compile requirements.txt from the ranges in pyproject.toml",
    "stamp": "write the address, the version and the list of notebooks wherever they stand",
    "set-address": "take the repository's address from the git remote origin, then stamp",
    "check-release": "say whether the book as it is may be published, and what is missing",
    "clean": "remove the environments and everything that was built",
    "help": "list the commands",
}
# What each command needs of the extras in pyproject.toml; those that are not named need "book".
WITH_TEST = ("pdf", "epub", "test", "test-full", "lint", "bench")
EXTRAS = {"lab": ["book", "lab"]} | {command: ["book", "test"] for command in WITH_TEST}
UNDER_LOCK = "BOOK_UNDER_LOCK"  # tells the inner Python that the outer one holds the lock
ENDLESS = ("serve", "lab")  # these change nothing, and must not keep others from working


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    if sys.version_info < (3, 11):  # noqa: UP036
        print(f"The book needs Python 3.11 or newer, and this is {sys.version.split()[0]}.", file=sys.stderr)
        return 2
    for stream in (sys.stdout, sys.stderr):  # a console of Windows may have no check mark
        stream.reconfigure(errors="backslashreplace") if hasattr(stream, "reconfigure") else None
    options = parsed(arguments)
    if options.command == "help":
        print("\n".join(f"  {name:15}{text}" for name, text in COMMANDS.items()))
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
                return go_on(python, given, **{UNDER_LOCK: "1"})
        return go_on(python, given)
    except environment.InstallFailed as failure:
        print(f"\nfailed: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nstopped; what was finished is kept", file=sys.stderr)
        return 130


def parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    result = argparse.ArgumentParser(prog="python tools/book.py", description=__doc__.splitlines()[0])
    result.add_argument("command", nargs="?", choices=COMMANDS, default="help", metavar="COMMAND")
    result.add_argument("name", nargs="?", help="of the new chapter, such as 12_language_model")
    result.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="CHAPTER",
        help="with book or seeds: execute such as 05",
    )
    result.add_argument("--here", action="store_true", help="use the Python that runs this, install nothing")
    result.add_argument(
        "--newest", action="store_true", help="the newest versions that pyproject.toml allows, not the pins"
    )
    return result


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    """The command and its options, which have to belong to it."""
    result = parser()
    options = result.parse_args(arguments)
    if options.name and options.command != "new":
        result.error(f"{options.command} takes no name: {options.name!r}")
    if options.only and options.command not in ("book", "seeds"):
        result.error("--only goes with book and seeds")
    return options


def go_on(python: str, arguments: list[str], **variables: str) -> int:
    """Run the same command in the environment that was prepared for it."""
    import processes

    known = {**os.environ, "PYTHONPATH": "", "PYTHONUTF8": "1", **variables}
    return processes.call([python, __file__, *arguments, "--here"], env=known)


def prepare(options: argparse.Namespace) -> str | None:
    """Give a command what it needs: the Python to go on with, or None where nothing is left to do."""
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
