"""The command line of the book: `python tools/book.py COMMAND`. Needs only Python >= 3.11.

Every command that needs packages first makes sure that `.venv` holds the pinned ones, then goes on inside it;
`test-colab` does the same with `.venv-colab` and Colab's versions.
"""

from __future__ import annotations  # so that an older Python reaches the message of `main`

import argparse
import os
import subprocess
import sys
from pathlib import Path

COMMANDS = {
    "book": "install what is missing, execute the notebooks whose inputs changed, render the site",
    "test": "the book, and everything that is checked: style, unit tests, notebooks, the site in a browser",
    "test-colab": "run every notebook as in Colab: its versions, from the set-up cell (3 GB to download)",
    "serve": "serve the rendered site on this computer",
    "lint": "check style and spelling only",
    "bench": "measure speed beside peers and write benchmarks/results.md",
    "pins": "compile requirements.txt from the ranges in pyproject.toml",
    "stamp": "write the address, the version and the list of notebooks wherever they stand",
    "set-address": "take the repository's address from the git remote origin, then stamp",
    "check-release": "say whether the book as it is may be published, and what is missing",
    "clean": "remove .venv and everything that was built",
    "help": "list the commands",
}


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    if sys.version_info < (3, 11):  # noqa: UP036
        print(f"The book needs Python 3.11 or newer, and this is {sys.version.split()[0]}.", file=sys.stderr)
        return 2
    options = parser().parse_args(arguments)
    if options.command == "help":
        print("\n".join(f"  {name:15}{text}" for name, text in COMMANDS.items()))
        return 0
    import address  # not at the top: an older Python must reach the message above
    import environment

    if options.command in ("stamp", "set-address", "check-release"):
        return address.run(options.command)
    if options.command == "clean":
        return environment.clean()
    if options.command == "pins":
        return environment.compile_pins(environment.ROOT / "requirements.txt")
    if options.here:
        python = sys.executable
    elif options.command == "test-colab":
        python = environment.ensure_colab()
    else:
        python = environment.ensure(newest=options.newest)
    if python is None:
        return 1
    if Path(python) != Path(sys.executable):
        command = [python, __file__, options.command, "--here", *(["--newest"] if options.newest else [])]
        return subprocess.call(command, env={**os.environ, "PYTHONPATH": ""})
    return inside(options)


def parser() -> argparse.ArgumentParser:
    """The commands and the two options."""
    result = argparse.ArgumentParser(prog="python tools/book.py", description=__doc__.splitlines()[0])
    result.add_argument("command", nargs="?", choices=COMMANDS, default="help", metavar="COMMAND")
    result.add_argument("--here", action="store_true", help="use the Python that runs this, install nothing")
    result.add_argument(
        "--newest", action="store_true", help="the newest versions that pyproject.toml allows, not the pins"
    )
    return result


def inside(options: argparse.Namespace) -> int:
    """Run a command in an environment that has the packages."""
    import commands

    try:
        return getattr(commands, options.command.replace("-", "_"))(newest=options.newest)
    except commands.Failure as failure:
        print(f"\nfailed: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nstopped; what was finished is kept", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
