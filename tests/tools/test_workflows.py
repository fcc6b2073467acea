"""The workflows of the code host, as far as they can be checked without it."""

import re
from pathlib import Path

import pytest
import yaml

import address
import book
from paths import ROOT

GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
FILES = [*WORKFLOWS, *sorted((GITHUB / "actions").rglob("*.yml"))]
every_workflow = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
every_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(GITHUB).as_posix())
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")


def read(path: Path) -> dict:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def used(path: Path) -> list[str]:
    """What a file uses, with the comment behind it."""
    return re.findall(r"(?m)^\s*(?:- )?uses: *(.+?) *$", path.read_text(encoding="utf-8"))


def steps(path: Path) -> list[dict]:
    content = read(path)
    jobs = [content["runs"]] if "runs" in content else content["jobs"].values()
    return [step for job in jobs for step in job["steps"]]


def test_there_are_workflows():
    assert {"test", "weekly", "publish"} <= {path.stem for path in WORKFLOWS}


@every_file
def test_actions_are_pinned_by_commit_and_say_their_version(path):
    actions = used(path)
    assert len(actions) == sum("uses" in step for step in steps(path)), "the pattern finds every one"
    for action in actions:
        if action.startswith("./"):
            assert (ROOT / action / "action.yml").is_file(), action
        else:
            assert PINNED.fullmatch(action), action


def test_an_action_is_the_same_everywhere():
    pins: dict[str, set[str]] = {}
    for action in [action for path in FILES for action in used(path) if not action.startswith("./")]:
        pins.setdefault(action.split("@")[0], set()).add(action)
    assert [sorted(found) for found in pins.values() if len(found) > 1] == []


@every_workflow
def test_a_workflow_may_do_little_and_not_for_ever(path):
    workflow = read(path)
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        assert 0 < job["timeout-minutes"] <= 350, name
        writes = {what for what, right in job.get("permissions", {}).items() if right == "write"}
        assert writes <= {"pages", "id-token", "contents"}, name
        if "contents" in writes:  # could change the repository: so it runs nothing but the host's own program
            assert not any("uses" in step for step in job["steps"]), name
            commands = [line.strip() for step in job["steps"] for line in step["run"].splitlines()]
            assert commands and all(line.startswith("gh ") for line in commands), name
        for step in job["steps"]:
            if "actions/checkout" in step.get("uses", ""):
                assert step["with"]["persist-credentials"] is False, name


@every_workflow
def test_the_commands_of_a_workflow_exist(path):
    runs = "\n".join(step.get("run", "") for step in steps(path))
    called = re.findall(r"tools/book\.py ([\w-]+)", runs) + re.findall(r"\.ci/run ([\w-]+)", runs)
    assert set(called) <= book.COMMANDS.keys()
    if called or ".ci/run" in runs:
        assert read(path)["env"]["UV_TORCH_BACKEND"] == "cpu", "else it downloads the libraries of a GPU"
    for name in re.findall(r"(?:bash|python) ([\w./-]+)", runs):
        assert (ROOT / name).is_file(), name


def test_publishing_refuses_before_it_builds_and_takes_nothing_from_caches():
    """Caches can be filled by other workflows; what is published is downloaded anew."""
    path = GITHUB / "workflows" / "publish.yml"
    build = read(path)["jobs"]["build"]["steps"]
    runs = [step.get("run", "") for step in build]
    assert runs.index("python tools/book.py check-release") < runs.index("bash .ci/run")
    assert read(path)["jobs"]["deploy"]["needs"] == "build"
    assert not any("cache" in action or action.startswith("./") for action in used(path))


def test_a_release_gets_the_book_as_pdf_and_as_epub():
    workflow = read(GITHUB / "workflows" / "publish.yml")
    build, attach = workflow["jobs"]["build"]["steps"], workflow["jobs"]["attach"]
    runs = [step.get("run", "") for step in build]
    for kind in ("pdf", "epub"):
        assert runs.index("bash .ci/run") < runs.index(f"python tools/book.py {kind}")
    kept = next(step["with"] for step in build if "upload-artifact" in step.get("uses", ""))
    assert kept["path"].split() == [f"build/{address.NAME}-*.{kind}" for kind in ("pdf", "epub")]
    assert attach["needs"] == "build"
    assert f"--name {kept['name']} " in attach["steps"][0]["run"]


def test_every_week_everything_runs_that_a_change_leaves_out():
    runs = [step.get("run", "") for step in steps(GITHUB / "workflows" / "weekly.yml")]
    assert {
        "bash .ci/run test-full",
        "bash .ci/run test ARGS=--newest",
        "python tools/book.py test-colab",
    } <= {*runs}
    assert runs.index("python tools/book.py book") < runs.index("python tools/book.py seeds")
    assert any("pip-audit" in run for run in runs)


def test_updates_are_looked_for_where_there_is_something_to_update():
    manifests = {
        "github-actions": {path.parent for path in FILES} - {GITHUB / "workflows"} | {ROOT},
        "pip": {
            path.parent for path in [*ROOT.glob("requirements*.txt"), *ROOT.glob("tools/requirements*.txt")]
        },
        "npm": {path.parent for path in (ROOT / "tools").rglob("package.json")},
    }
    found = {}
    for update in read(GITHUB / "dependabot.yml")["updates"]:
        folders = update.get("directories", [update.get("directory")])
        found[update["package-ecosystem"]] = {ROOT / folder.strip("/") for folder in folders}
    assert found == manifests
