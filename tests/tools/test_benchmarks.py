"""Which topics `benchmarks/run.py` measures, and what it writes. What it measures takes minutes."""

import os
import sys
from importlib import import_module

import pytest

from chapters_src.evaluation import Interval

FORMER = "# Speed\n\nMeasured elsewhere.\n\n## One (chapter 01)\nold One\n\n## Two (chapter 02)\nold Two\n"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """The command, with two topics that take no time and a page of its own."""
    monkeypatch.setattr(os, "environ", os.environ.copy())  # its import sets variables and a path
    monkeypatch.setattr(sys, "path", [*sys.path])
    run = import_module("benchmarks.run")
    monkeypatch.setattr(run, "FOLDER", tmp_path)
    results = {
        title: lambda what=title[:3]: [run.Result(f"new {what}", 1, "x", 3)]
        for title in ("One (chapter 01)", "Two (chapter 02)")
    }
    monkeypatch.setattr(run, "TOPICS", results)
    (tmp_path / "results.md").write_text(FORMER, encoding="utf-8")
    return run


def page(run) -> str:
    assert [path.name for path in run.FOLDER.iterdir()] == ["results.md"]
    return (run.FOLDER / "results.md").read_text(encoding="utf-8")


def test_without_arguments_all_topics_are_measured(run):
    assert run.main([]) == 0
    assert "| new One |" in page(run) and "| new Two |" in page(run)
    assert "old One" not in page(run) and "old Two" not in page(run)


@pytest.mark.parametrize("arguments", [["Two"], ["Two", "(chapter"]])
def test_of_the_other_topics_the_former_results_stay(run, arguments):
    assert run.main(arguments) == 0
    assert "## One (chapter 01)\nold One\n" in page(run)
    assert "| new Two |" in page(run) and "old Two" not in page(run)


@pytest.mark.parametrize("arguments", [["two"], ["Three"], ["One", "Two"]])
def test_an_unknown_topic_is_an_error_that_lists_the_topics(run, arguments, capsys):
    assert run.main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and repr(" ".join(arguments)) in captured.err
    assert captured.err.endswith("Topics: One (chapter 01), Two (chapter 02).\n")
    assert page(run) == FORMER


def test_of_work_in_turns_the_ratio_is_what_the_interval_is_about(run):
    """The ratio of two medians can lie outside of the interval of the median ratio."""
    ratios = run.Result("new", 1, "old", 3, interval=Interval(2.5, 2.0, 2.9))
    assert run.line(ratios).endswith("| 2.50 (2.00 to 2.90) |")
    assert run.line(run.Result("new", 1, "old", 3)).endswith("| 3.00 |")
