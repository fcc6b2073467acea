"""Browsers are found where each system installs them."""

import sys
from pathlib import Path

import pytest

import browsers


@pytest.mark.parametrize(
    ("platform", "variables", "wanted"),
    [
        ("linux", {}, "chromium"),
        ("darwin", {"HOME": "/Users/a"}, "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"),
        ("darwin", {"HOME": "/Users/a"}, "/Users/a/Applications/Chromium.app/Contents/MacOS/Chromium"),
        ("win32", {"PROGRAMFILES": r"C:\P"}, r"C:\P\Google\Chrome\Application\chrome.exe"),
        ("win32", {"PROGRAMFILES(X86)": r"C:\P86"}, r"C:\P86\Microsoft\Edge\Application\msedge.exe"),
        ("win32", {"LOCALAPPDATA": r"C:\Users\a"}, r"C:\Users\a\Chromium\Application\chrome.exe"),
    ],
)
def test_the_usual_places(platform, variables, wanted):
    found = browsers.candidates(platform, variables)
    assert wanted in found
    assert len(found) == len(set(found)) and "" not in found
    assert found[: len(browsers.COMMANDS)] == list(browsers.COMMANDS), "what is on the PATH comes first"


def test_no_place_is_made_up_of_a_variable_that_is_not_set():
    assert browsers.candidates("win32", {"LOCALAPPDATA": ""}) == list(browsers.COMMANDS)


def test_a_program_is_found_in_its_place_and_on_the_path(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(browsers, "MACOS", ("Nothing",))
    assert browsers.find_browser() is None
    program = tmp_path / "Applications" / "Kettle.app" / "Contents" / "MacOS" / "Kettle"
    program.parent.mkdir(parents=True)
    program.write_text("", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setattr(browsers, "MACOS", ("Kettle",))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Path(browsers.find_browser()) == program
    (tmp_path / "msedge").write_text("", encoding="utf-8")
    (tmp_path / "msedge").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert Path(browsers.find_browser()) == tmp_path / "msedge"
