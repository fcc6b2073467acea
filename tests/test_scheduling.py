"""How slow tests are shared among processes: those of a page of the site stay together, see `conftest`."""

import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

VISITS = """
import os
from pathlib import Path

import pytest

pages = pytest.mark.parametrize("page", [f"notebooks/{i:02d}.html" for i in range(8)])


@pages
@pytest.mark.slow
def test_one_thing(page):
    with Path(os.environ["LOG"]).open("a") as log:
        print(page, os.environ["PYTEST_XDIST_WORKER"], file=log)


@pages
@pytest.mark.slow
def test_another(page):
    test_one_thing(page)
"""


def test_the_tests_of_a_page_are_run_by_one_process(tmp_path):
    conftest = Path(__file__).with_name("conftest.py").read_text(encoding="utf-8")
    (tmp_path / "conftest.py").write_text(conftest, encoding="utf-8")
    (tmp_path / "test_visits.py").write_text(VISITS, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = slow\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-m", "slow", "-n", "2", "-p", "no:cacheprovider"]
    variables = {**os.environ, "LOG": str(tmp_path / "log"), "PYTEST_ADDOPTS": ""}
    subprocess.run([*command, str(tmp_path)], cwd=tmp_path, env=variables, check=True, capture_output=True)
    processes = defaultdict(list)
    for page, process in map(str.split, (tmp_path / "log").read_text(encoding="utf-8").splitlines()):
        processes[page].append(process)
    assert len(processes) == 8 and all(len(of) == 2 and len({*of}) == 1 for of in processes.values())
    assert len({process for of in processes.values() for process in of}) == 2
