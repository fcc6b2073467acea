"""Find an installed Chromium browser: on the PATH, or in the usual places of each system."""

import os
import shutil
import sys
from collections.abc import Mapping

# Options. Without the last four, Chromium contacts its vendor's servers at every start.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
COMMANDS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
    "msedge",
)
MACOS = ("Chromium", "Google Chrome", "Microsoft Edge")
WINDOWS = (
    r"Chromium\Application\chrome.exe",
    r"Google\Chrome\Application\chrome.exe",
    r"Microsoft\Edge\Application\msedge.exe",
)


def find_browser() -> str | None:
    """Return the path of an installed browser, or None."""
    return next(filter(None, map(shutil.which, candidates(sys.platform, os.environ))), None)


def candidates(platform: str, variables: Mapping[str, str]) -> list[str]:
    """List commands and files that may be a browser, the best first.

    Args:
        platform: a value of `sys.platform`.
        variables: environment variables, which locate programs on Windows.

    Returns:
        Candidates for `shutil.which`.
    """
    if platform == "darwin":
        folders = ("/Applications", f"{variables.get('HOME', '')}/Applications")
        files = [f"{folder}/{name}.app/Contents/MacOS/{name}" for name in MACOS for folder in folders]
    elif platform == "win32":
        names = ("PROGRAMFILES", "PROGRAMFILES(X86)", "LOCALAPPDATA")
        folders = [variables[name] for name in names if variables.get(name)]
        files = [rf"{folder}\{program}" for program in WINDOWS for folder in folders]
    else:
        files = []
    return [*COMMANDS, *files]
