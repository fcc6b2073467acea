"""Render the site with Jupyter Book from the executed notebooks, warnings as errors.

Nothing is executed here. The input of Jupyter Book is assembled in `build/site_source`: the pages of `book/`,
the executed notebooks, source pages of the package, and tables from the build (versions, running times).
"""

import hashlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

import nbformat
import yaml

import address
import inputs
from execute import record
from paths import BUILD, EXECUTED, HTML, PACKAGE, ROOT, SITE_SOURCE, notebooks
from website import (
    back_links,
    claims,
    downloads,
    front,
    guesses,
    language_model,
    lean,
    search_index,
    source_pages,
    vendor,
)
from website.reading_time import exercise_minutes, minutes, total

EXTENSION = ROOT / "tools" / "website" / "sphinx_extension"
JUPYTER_BOOK = "from jupyter_book.cli.main import main; main()"  # it has no `python -m` form
STAMP = BUILD / "rendered"
# Links to recipes and cards, which have no page on the site: plain text there.
FILE_LINK = re.compile(r"\[([^\]]*)\]\(\.\./(?:(?:recipes|benchmarks)/\w+\.py|chapters_src/\w+/\w+\.md)\)")
# Dead links while the repository has no address: to Colab, in a separate paragraph; others.
COLAB_PARAGRAPH = re.compile(rf"(?m)^\[[^]\n]*\]\({re.escape(address.COLAB)}OWNER/[^)\n]*\)\n+")
DEAD_LINK = re.compile(rf"\[([^]\n]*)\]\({re.escape(address.PLACEHOLDER)}[^)\n]*\)")
RUNNING_TIME = "**Running time**"
TIME_MARK = "[measured at every build](../book/colophon.md#running-times)"


class RenderFailed(Exception):
    """Jupyter Book printed an error or a warning."""


def render(say: Callable = print) -> bool:
    """Render the site into `build/html`, unless it is up to date.

    Returns:
        Whether anything was rendered.

    Raises:
        RenderFailed: on any warning or error of Jupyter Book; the existing site then stays as it was.
    """
    wanted = _inputs_key()
    if STAMP.exists() and STAMP.read_text(encoding="utf-8") == wanted and (HTML / "index.html").exists():
        say("site: nothing changed, nothing rendered")
        return False
    say("site: rendering")
    STAMP.unlink(missing_ok=True)
    lay_out(SITE_SOURCE)
    output = BUILD / "jupyter_book"
    shutil.rmtree(output, ignore_errors=True)
    command = [sys.executable, "-X", "utf8", "-c", JUPYTER_BOOK, "build", "-W", "--keep-going", "--all"]
    command += ["--path-output", str(output), str(SITE_SOURCE)]
    run = subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8"
    )
    if run.returncode != 0:
        say(run.stdout)
        raise RenderFailed(
            f"jupyter-book ended with exit code {run.returncode}: its warnings count as errors"
        )
    rendered = output / "_build" / "html"
    lean.make_lean(rendered)
    search_index.write_index(rendered)
    former = HTML.with_name("html_former")
    shutil.rmtree(former, ignore_errors=True)
    if HTML.exists():
        HTML.replace(former)
    rendered.replace(HTML)
    shutil.rmtree(former, ignore_errors=True)
    STAMP.write_text(wanted, encoding="utf-8")
    return True


def lay_out(target: Path) -> None:
    """Assemble the input of Jupyter Book in a new folder."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(ROOT / "book", target / "book")
    for page in (target / "book").glob("*.md"):
        page.write_text(as_on_site(page.read_text(encoding="utf-8")), encoding="utf-8")
    back_links.write(target / "book")
    shutil.copytree(EXTENSION, target / "sphinx_extension", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copyfile(ROOT / "_toc.yml", target / "_toc.yml")
    (target / "_config.yml").write_text(configuration(), encoding="utf-8")
    (target / "benchmarks").mkdir()
    shutil.copyfile(ROOT / "benchmarks" / "results.md", target / "benchmarks" / "results.md")
    (target / "notebooks").mkdir()
    for notebook in notebooks():
        _copy_executed(notebook, target / "notebooks" / notebook.name)
    write_tables(target / "generated")
    (target / "generated" / "claims.md").write_text(claims.index(), encoding="utf-8")
    front.write(target / "generated", target / "book" / "_static")
    downloads.write(target / "book" / "_static")
    modules = source_pages.write_source_pages(PACKAGE, target / "source")
    modules += source_pages.write_scripts_page(language_model.SCRIPTS, target / "source")
    (target / "generated" / "modules.md").write_text(modules, encoding="utf-8")
    vendor.copy_into(target / "copied" / "_static" / "vendor")
    language_model.write(target / "copied" / "_static" / "language_model")


def as_on_site(text: str) -> str:
    """Convert a text for the site.

    Links to modules lead to their source pages; links to recipes and cards, which have no page, become plain
    text. While the repository has no address, links to it become plain text, and links to Colab are removed.
    """
    if not address.has_address():
        text = DEAD_LINK.sub(r"\1", COLAB_PARAGRAPH.sub("", text))
    text = FILE_LINK.sub(r"\1", text)
    return source_pages.link_to_pages(text)


def configuration() -> str:
    """Return `_config.yml` for the site.

    With an address, it has the site's URL and the place of reports; without one, it has no buttons for Colab
    and the repository.
    """
    settings = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    if address.has_address():
        settings["html"]["baseurl"] = address.site_address()
        settings["sphinx"]["config"]["feedback_address"] = f"{address.address()[0]}/issues/new"
    else:
        del settings["repository"], settings["launch_buttons"]
        settings["html"]["use_repository_button"] = False
    return yaml.safe_dump(settings, sort_keys=False)


def write_tables(folder: Path) -> None:
    """Write the tables of the colophon: versions with licenses, and running times."""
    folder.mkdir(parents=True)
    rows = [f"| {name} | {version} | {license} |" for name, version, license in _direct_dependencies()]
    table = "| package | version | license |\n|---|---|---|\n" + "\n".join(rows) + "\n"
    (folder / "versions.md").write_text(table, encoding="utf-8")
    times = [(notebook, record(notebook)) for notebook in notebooks()]
    rows = [f"| [{_title(n)}](../notebooks/{n.name}) | {_taken(known)} |" for n, known in times]
    head = "| notebook | on the clock | processor | memory |\n|---|---:|---:|---:|\n"
    table = head + "\n".join(rows) + "\n"
    (folder / "running_times.md").write_text(table, encoding="utf-8")


def _taken(known: dict | None) -> str:
    """Return three table cells: the time and memory of an execution."""
    if known is None:
        return "not executed | | "
    memory = known["memory"] / (1 << 30)
    return f"{known['seconds']:.0f} s | {known['processor_seconds']:.0f} s | {memory:.1f} GiB"


def _copy_executed(notebook: Path, target: Path) -> None:
    """An executed notebook as the site shows it: links to modules, its times and its guesses filled in.

    One that was never executed, because `book --only` left it alone, is shown without outputs.
    """
    done = EXECUTED / notebook.name
    executed = nbformat.read(done if done.exists() else notebook, 4)
    known = record(notebook)
    time = f"{known['seconds']:.0f} s" if known else "not executed yet"
    exercises = exercise_minutes(executed)
    to_solve = f"**Exercises**: {total([exercises])}. " if exercises else ""
    to_read = f"**Reading time**: {total([minutes(executed)])}. {to_solve}{RUNNING_TIME}"
    for cell in executed.cells:
        if cell.cell_type == "markdown":
            text = as_on_site(cell.source).replace(RUNNING_TIME, to_read)
            cell.source = text.replace(TIME_MARK, f"{time}, {TIME_MARK}")
    back_links.with_references(executed, back_links.of_the_book())
    guesses.with_guesses(executed, notebook.stem)
    nbformat.write(executed, target)


def _title(notebook: Path) -> str:
    first = nbformat.read(notebook, 4).cells[0].source
    return re.search(r"^# (.+)$", first, re.M)[1]


def _direct_dependencies() -> Iterator[tuple[str, str, str]]:
    """Yield name, version and license of each package that pyproject.toml lists for building the book."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    names = {
        re.match(r"[\w.-]+", requirement)[0] for requirement in [*project["dependencies"], *extras["book"]]
    }
    for name in sorted(names):
        about = metadata.metadata(name)
        yield name, about["Version"], _license(about)


def _license(about: metadata.PackageMetadata) -> str:
    """Return a package's license: an SPDX expression, else a license field with a name, else classifiers."""
    field = (about.get("License") or "").strip()
    classifiers = [
        c.split(" :: ")[-1] for c in about.get_all("Classifier") or [] if c.startswith("License ::")
    ]
    name = field if len(field) < 60 and "Copyright" not in field else ""
    return about.get("License-Expression") or name or ", ".join(classifiers) or "see the package"


def _inputs_key() -> str:
    """Return the hash of all inputs of the site, including the tools."""
    digest = hashlib.sha256()
    folders = (ROOT / "book", ROOT / "benchmarks", ROOT / "tools", PACKAGE, EXECUTED)
    files = [path for folder in folders for path in inputs.visible_files(folder)]
    for path in [ROOT / "_config.yml", ROOT / "_toc.yml", ROOT / "pyproject.toml", *files]:
        digest.update(f"{path.relative_to(ROOT)}\0{inputs.digest(path)}\n".encode())
    for notebook in notebooks():  # Not only the executed copies: links and checks are counted in these.
        cells = nbformat.read(notebook, 4).cells
        shown = [[cell.cell_type, cell.source, cell.metadata] for cell in cells]
        digest.update(json.dumps([notebook.name, shown], sort_keys=True).encode())
    return digest.hexdigest()
