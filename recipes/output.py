"""What all recipes write: records, the results of their runs, and the facts of a card."""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from accelerate import Accelerator, PartialState
from torch import nn

from chapters_src import records
from chapters_src.data import docstrings
from chapters_src.files import write_text
from chapters_src.training import History, full_state_dict
from chapters_src.training.launch import is_sharded
from recipes.machine import hardware, versions

Model = TypeVar("Model", bound=nn.Module)


def parser_for(summary: str) -> argparse.ArgumentParser:
    """Make a parser with the options that all recipes share."""
    parser = argparse.ArgumentParser(description=summary)
    parser.add_argument("--output", type=Path, required=True, help="folder to write; must not exist yet")
    parser.add_argument("--smoke", action="store_true", help="run everything on a small scale, in seconds")
    parser.add_argument("--seed", type=int, default=0)
    return parser


def parser_of_runs(summary: str, record: str) -> argparse.ArgumentParser:
    """Make a parser with the options that recipes share whose runs are kept one by one, beside a record."""
    parser = argparse.ArgumentParser(description=summary)
    parser.add_argument("--output", type=Path, required=True, help="folder of the runs; may exist")
    parser.add_argument("--record", type=Path, default=records.FOLDER / f"{record}.json")
    parser.add_argument("--smoke", action="store_true", help="run everything on a small scale, in seconds")
    return parser


def options_of_runs(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the options. A smoke run writes its record to the folder of its runs."""
    options = parser.parse_args(arguments)
    if options.smoke:
        options.record = options.output / "record.json"
    return options


def options_from(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the options; exit with an error if the output already exists."""
    options = parser.parse_args(arguments)
    if options.output.exists():
        parser.error(f"{options.output} already exists: name another folder, or remove it")
    Accelerator()  # It has to see first what a launcher has started.
    return options


def gathered(model: Model, make: Callable[[], Model]) -> Model | None:
    """Return the trained model on the CPU of the main process, even if FSDP has sharded it.

    All processes call it, because each may hold a part of the weights.

    Args:
        model: after training.
        make: makes a model of the same shape, for the weights of a sharded one.

    Returns:
        The model in the main process, None in the others.
    """
    is_main = PartialState().is_main_process
    if not is_sharded(model):
        return model.cpu() if is_main else None
    weights = full_state_dict(model)
    if not is_main:
        return None
    full = make()
    full.load_state_dict(weights)
    return full.eval()


def kept(path: Path, make: Callable[[], Any]) -> Any:
    """Make the results of a run, or read what a finished one has left.

    Args:
        path: of the JSON file, which is whole or not there.
        make: makes its content.
    """
    if not path.is_file():
        write_text(path, json.dumps(make(), ensure_ascii=False))
    return json.loads(path.read_text(encoding="utf-8"))


def write_record(path: Path, what: str, script: str, figures: object) -> None:
    """Write what a run measured, for `chapters_src.records`; the file is whole or not there.

    Args:
        path: of the JSON file, usually in `chapters_src/records`.
        what: was measured, in a sentence.
        script: that did it, for example "recipes/transfer.py".
        figures: what came out, as lists, dictionaries, strings and numbers.
    """
    content = {
        "what": what,
        "script": script,
        "versions": versions(),
        "hardware": hardware(),
        "figures": figures,
    }
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def listed(facts: Mapping[str, str], *, smoke: bool) -> str:
    """Return the facts of a card as a Markdown list."""
    warning = {"a smoke run": "these numbers mean nothing"} if smoke else {}
    return "\n".join(f"- {name}: {value}" for name, value in {**facts, **warning}.items())


def harvested(packages: Sequence[str]) -> str:
    """Return the names and versions of the packages whose docstrings were read."""
    keys = [docstrings.cache_key(package) for package in packages]
    return ", ".join(f"{key['package']} {key['version']}" for key in keys)


def time_taken(seconds: float) -> str:
    """Describe how long the training took, and on what hardware."""
    processes = PartialState().num_processes
    return f"{seconds / 60:.1f} minutes since the last start, {processes} process(es) on {hardware()}"


def log_of(options: argparse.Namespace, history: History, figures: Mapping) -> dict:
    """Return the data for a plot of the run: the mean loss of each hundredth of it, and all scores."""
    every = max(1, len(history.steps) // 100)
    parts = [history.steps[i : i + every] for i in range(0, len(history.steps), every)]
    return {
        "options": {k: str(v) for k, v in vars(options).items() if k != "output"},
        "steps": [part[-1]["step"] for part in parts],
        "tokens": [part[-1]["items"] for part in parts],
        "loss": [float(np.mean([step["loss"] for step in part])) for part in parts],
        "evaluations": history.evaluations,
        "figures": figures,
    }
