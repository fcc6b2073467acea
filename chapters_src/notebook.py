"""What the first cell of every chapter calls, and how a chapter states a result.

`device, SEED = setup("03")` makes a run repeatable and says on one line what it runs with. `claim(condition,
sentence)` is how this book says "this beats that": the sentence is printed because its condition was computed
and held, not because somebody typed it. Every chapter uses both, from chapter 01 on.
"""

import os
import random
import re
import sys
import warnings
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from chapters_src import resources

if TYPE_CHECKING:
    import torch

# The results of this book depend on the versions of these. Packages that only draw them are left out.
_RESULTS_DEPEND_ON = (
    "accelerate",
    "datasets",
    "gensim",
    "numpy",
    "pandas",
    "onnx",
    "onnxruntime",
    "onnxscript",
    "peft",
    "regex",
    "rouge-score",
    "sacrebleu",
    "scikit-learn",
    "scipy",
    "tokenizers",
    "torch",
    "transformers",
    "umap-learn",
)
_MEASURED_HERE = "measured on this computer"  # Why a claim about time may come out otherwise.
_SEEDS_PER_BOOK = 1000  # Notebooks add less than this to SEED, so no two books share a seed.
_LAST_BOOK = 2_000_000  # Then every seed is below 2**31, which is what the libraries accept.


class ClaimFailed(AssertionError):
    """A claim did not hold where it has to, as `claim` says."""


def setup(chapter: str, threads: int = 1) -> "tuple[torch.device, int]":
    """Prepare a notebook: offline with embedded resources, seeds, threads, the plot style, a banner.

    Call it in the first cell, before anything imports numpy, transformers or datasets. PyTorch and what uses
    OpenMP get a fixed number of threads, because how a sum is split among threads changes its last digits: so
    a page shows the same numbers on any number of cores, whatever else the machine is doing. The linear
    algebra of NumPy and SciPy, and with it scikit-learn's, gets one: its matrices here are small, and more
    threads mostly wait.

    The environment variable `BOOK_SEED` is the number of the book, 0 for the published one. It seeds the
    generators of `random`, NumPy and PyTorch; every other generator and every training of a notebook takes
    the returned seed, or that plus a small number. So another `BOOK_SEED` repeats the book with other draws.

    Args:
        chapter: number of the chapter as in its file name, such as "03", or the title of another page.
        threads: of all libraries; a chapter that trains the encoder for more than a minute takes 2. With
            smaller models the second thread mostly waits.

    Returns:
        device: what to compute on, which is what the environment variable `BOOK_DEVICE` names ("cpu", "cuda"
            or "mps"). Without it the graphics card if PyTorch finds one, else the processor; always the
            processor where a page of the book is made, and where a launcher such as `accelerate launch
            --cpu` asks for it. Where a launcher has started several processes, each gets a graphics card of
            its own.
        seed: 1000 times `BOOK_SEED`, so 0 in the published book.

    Raises:
        RuntimeError: embedded resources are chosen, but huggingface_hub is imported already and would use
            the network; or PyTorch does not find the device that `BOOK_DEVICE` names.
        resources.ResourceError: `BOOK_RESOURCES` has an unknown value.
        ValueError: `BOOK_DEVICE` has an unknown value, or `BOOK_SEED` is no whole number from 0 to 2,000,000.
    """
    seed = _SEEDS_PER_BOOK * _book_seed()
    _set_environment(threads)
    import numpy as np
    import torch
    from threadpoolctl import threadpool_limits

    from chapters_src import plots  # Here, because with it comes NumPy, which then makes its threads.

    threadpool_limits(1, user_api="blas")  # What is loaded; what comes later reads the environment.
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.set_num_threads(threads)
    plots.use_style(site=_makes_a_page())
    device = _device()
    title = f"Chapter {chapter}" if chapter.isdigit() else chapter
    versions = (f"{package} {metadata.version(package)}" for package in ("torch", "transformers"))
    count = "1 thread" if threads == 1 else f"{threads} threads"
    other_book = [f"BOOK_SEED {_book_seed()}"] if seed else []
    print(title, f"{resources.choice()} resources", device, count, *other_book, *versions, sep=" · ")
    return device, seed


def _book_seed() -> int:
    """Return which book to draw: 0 is the published one."""
    chosen = os.environ.get("BOOK_SEED") or "0"
    if not re.fullmatch("[0-9]{1,7}", chosen) or int(chosen) > _LAST_BOOK:
        raise ValueError(
            f"BOOK_SEED is {chosen!r}; it can be a whole number from 0 (the published book) to {_LAST_BOOK}, "
            "or not set."
        )
    return int(chosen)


def _device() -> "torch.device":
    """Choose the device, and let Accelerate and Keras, which look for one on their own, choose the same."""
    import torch

    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    chosen = os.environ.get("BOOK_DEVICE")
    if not chosen:
        stays_off = _makes_a_page() or os.environ.get("ACCELERATE_USE_CPU", "").lower() in ("1", "true")
        chosen = "cuda" if there["cuda"] and not stays_off else "cpu"
    if chosen not in there:
        raise ValueError(f"BOOK_DEVICE is {chosen!r}; it can be {', '.join(map(repr, there))}, or not set.")
    if not there[chosen]:
        found = ", ".join(name for name, is_there in there.items() if is_there)
        raise RuntimeError(
            f"BOOK_DEVICE is {chosen!r}, and PyTorch {torch.__version__} does not find such a device, only: "
            f"{found}. Set BOOK_DEVICE to one of these, or install a PyTorch that is made for the device."
        )
    os.environ["BOOK_DEVICE"] = os.environ["KERAS_TORCH_DEVICE"] = chosen  # `claim` reads the first
    os.environ["ACCELERATE_USE_CPU"] = "true" if chosen == "cpu" else "false"
    place = os.environ.get("LOCAL_RANK")  # Set by launchers: the number of this process on this computer.
    return torch.device(chosen, int(place)) if chosen == "cuda" and place else torch.device(chosen)


def _set_environment(threads: int) -> None:
    """Set what the libraries read once, at their import."""
    embedded = resources.choice() == "embedded"
    constants = sys.modules.get("huggingface_hub.constants")
    if embedded and constants is not None and not constants.HF_HUB_OFFLINE:
        raise RuntimeError(
            "setup() came after the import of huggingface_hub (by transformers, datasets or the notebook): "
            "too late to keep it off the network. Restart the kernel and run the notebook from the top."
        )
    if embedded:
        os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    os.environ["OMP_NUM_THREADS"] = str(threads)  # OpenMP's and Arrow's
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    os.environ["NUMBA_NUM_THREADS"] = str(threads)  # UMAP's; it would also give PyTorch as many as cores
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # A thread that waits leaves its core to others.
    warnings.filterwarnings("ignore", message="IProgress not found")  # tqdm without ipywidgets: a plain bar
    if _makes_a_page():  # A progress bar would stay on it.
        os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
        os.environ["HF_DATASETS_DISABLE_PROGRESS_BARS"] = "1"
        os.environ["TRANSFORMERS_VERBOSITY"] = "error"  # Also: no bars of the Trainer, no reports of loading.


def _makes_a_page() -> bool:
    """Whether this notebook is executed for the site."""
    return os.environ.get("BOOK_BUILD") == "1"


def claim(condition: object, sentence: str, *, timing: bool = False) -> None:
    """State a result: print the sentence if its condition holds.

    A false claim stops the run where it has to hold: with embedded resources and the versions that
    `requirements.txt` pins, on a processor, in the published book (`BOOK_SEED` is 0). Elsewhere it prints
    that here it came out otherwise, and why it may. What depends on measured time may come out otherwise on
    any computer, so a false claim about it stops the run only where the book is tested: in CI, which sets the
    environment variable `CI`.

    Args:
        condition: True or False; also NumPy's boolean, or a boolean array or tensor without dimensions.
        sentence: what the condition says, in words, such as "fine-tuning beats frozen features".
        timing: the condition depends on measured time. Such a claim stands in a cell with the tag `timing`.

    Raises:
        ClaimFailed: the condition is false, with embedded resources and the pinned versions on a processor,
            in the published book; for a claim about measured time: and in CI.
        TypeError: the condition is not one truth value.
        ValueError: the sentence is empty.
    """
    if not isinstance(sentence, str) or not sentence.strip():
        raise ValueError(f"a claim needs a sentence that says what holds, not {sentence!r}")
    if _truth(condition):
        print(f"✓ {sentence}")
    elif reason := _why_results_may_differ(timing):
        print(f"✗ here it came out otherwise ({reason}): {sentence}")
    else:
        raise ClaimFailed(f"this did not hold: {sentence}")


def _truth(condition: object) -> bool:
    kind, shape = str(getattr(condition, "dtype", "")), getattr(condition, "shape", None)
    if isinstance(condition, bool) or (kind in ("bool", "torch.bool") and shape == ()):
        return bool(condition)
    what = repr(condition) if shape is None else f"of {kind} with shape {tuple(shape)}"
    raise TypeError(
        f"a claim needs one True or False, not {type(condition).__name__} {what}: "
        "write a comparison, and reduce several truth values with .all() or .any()"
    )


def _why_results_may_differ(timing: bool) -> str:
    """Say in a few words why results may differ from the book's; empty where they must not."""
    if timing and os.environ.get("CI", "").lower() in ("", "0", "false", "no"):
        return _MEASURED_HERE
    if number := _book_seed():
        return f"BOOK_SEED is {number}, the book has 0"
    if resources.choice() == "full":
        return "full resources"
    if (device := os.environ.get("BOOK_DEVICE", "cpu")) != "cpu":
        return f"computed on {device}, the book on a processor"
    pins = _pinned_versions(Path(__file__).parent)
    if not pins:
        return "no requirements.txt to compare versions with"
    differences = (_difference(package, pins.get(package, "no pin")) for package in _RESULTS_DEPEND_ON)
    return ", ".join(filter(None, differences))


def _difference(package: str, pinned: str) -> str:
    try:
        installed = _without_build(metadata.version(package))
    except metadata.PackageNotFoundError:
        return f"{package} is missing"
    return "" if installed == pinned else f"{package} {installed}, the book has {pinned}"


def _pinned_versions(package_folder: Path) -> dict[str, str]:
    """Read the pins: requirements.txt lies inside an installed package, and beside it in a clone."""
    for folder in (package_folder, package_folder.parent):
        if (folder / "requirements.txt").is_file():
            text = (folder / "requirements.txt").read_text(encoding="utf-8")
            pins = re.findall(r"^([\w.-]+)(?:\[.*?\])?==([^\s;\\]+)", text, re.MULTILINE)
            return {re.sub(r"[-_.]+", "-", name).lower(): _without_build(version) for name, version in pins}
    return {}


def _without_build(version: str) -> str:
    return version.split("+")[0]  # "2.13.0+cpu" -> "2.13.0"
