"""What export, eight bits and compiling are worth (chapter 15).

    python -m benchmarks.shipping

writes the record `shipping`, which chapter 15 shows. Its figures are a dictionary with "compiling", a list
with a dictionary for each piece of work: "what"; "as it is, ms" and "compiled, ms", medians of turns;
"ratio", their median and its 95% interval in words, above 1 where compiling pays; and "first call, s", the
seconds of the first compiled call, in which the compiler runs. One thread, a C++ compiler, PyTorch's default
backend.

`results` gives the lines of `results.md`, which need no compiler: the exported classifier, whole and in eight
bits, beside PyTorch, and the language model in eight bits, by the layer of chapter 15's page, beside itself
in float32.
"""

import ast
import copy
import logging
import os
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import onnxruntime
import torch
from onnxruntime.quantization import quantize_dynamic
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import AutoModelForSequenceClassification

from benchmarks.measure import Result, taking_turns
from chapters_src import pretrained, records, resources
from chapters_src.decoding import greedy
from recipes.output import write_record

TOKENS, NEW_TOKENS = 24, 48  # Of a message; written by the language model.
NOTEBOOKS = Path(__file__).parents[1] / "notebooks"


class Logits(nn.Module):
    """A classifier of the library that gives a tensor."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Compute the logits of (B, T) ids."""
        return self.model(ids, attention_mask).logits


def main() -> None:
    """Measure what compiling is worth, and write the record."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as empty:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = empty  # So that the first call does compile.
        rows = [compiled(what, *made) for what, made in works().items()]
    write_record(
        records.FOLDER / "shipping.json",
        "What `torch.compile` gains on a processor, and how long the first call takes.",
        "benchmarks/shipping.py",
        {"compiling": rows},
    )


def works() -> dict[str, tuple[nn.Module, Callable[[nn.Module], object], int]]:
    """Return pieces of work: a model, what is done with it, and how often it is measured."""
    model, message, many = classifier(), a_batch(1), a_batch(32)
    language_model = pretrained.load(resources.checkpoint("language-model"))
    blocks = torch.randint(0, 6_000, (2, 257), generator=torch.Generator().manual_seed(0))

    def training_step(module: nn.Module) -> Tensor:
        logits = module(blocks[:, :-1], None)
        loss = F.cross_entropy(logits.flatten(0, 1), blocks[:, 1:].flatten())
        loss.backward()
        return loss

    return {
        "the classifier, one message": (model, no_gradient(message), 60),
        "the classifier, 32 messages": (model, no_gradient(many), 10),
        "chapter 12's model, forward and backward, 2 x 256 tokens": (
            language_model.train(),
            training_step,
            6,
        ),
    }


def no_gradient(inputs: tuple[Tensor, ...]) -> Callable[[nn.Module], Tensor]:
    """Return a call of a model on these inputs."""

    @torch.inference_mode()
    def run(module: nn.Module) -> Tensor:
        return module(*inputs)

    return run


def compiled(what: str, model: nn.Module, work: Callable[[nn.Module], object], turns: int) -> dict[str, Any]:
    """Compile a model and measure the same work with and without.

    Args:
        what: the work, in words.
        model: it is not changed.
        work: takes the model.
        turns: number of measurements of each.

    Returns:
        A row of the record.
    """
    quick = torch.compile(model)
    begin = time.perf_counter()
    work(quick)
    first = time.perf_counter() - begin
    result = taking_turns(what, lambda: work(quick), "as it is", lambda: work(model), turns)
    ratio, low, high = result.interval
    return {
        "what": what,
        "as it is, ms": round(1000 * result.theirs, 1),
        "compiled, ms": round(1000 * result.ours, 1),
        "ratio": f"{ratio:.2f} ({low:.2f} to {high:.2f})",
        "first call, s": round(first),
    }


def results() -> list[Result]:
    """Compare the exports with PyTorch, and eight bits with 32.

    Returns:
        One result for each line of the table.
    """
    torch.set_num_threads(1)
    message, model = a_batch(1), classifier()
    run = no_gradient(message)
    with tempfile.TemporaryDirectory() as folder:
        whole, small = exported(model, Path(folder))
        feeds = {"ids": message[0].numpy(), "attention_mask": message[1].numpy()}
        np.testing.assert_allclose(whole.run(None, feeds)[0], run(model).numpy(), atol=1e-4)
        what = f"classifier, one message of {TOKENS} tokens"
        lines = [
            taking_turns(
                f"{what}: ONNX Runtime", lambda: whole.run(None, feeds), "PyTorch", lambda: run(model), 100
            ),
            taking_turns(
                f"{what}: ONNX Runtime, int8 per channel",
                lambda: small.run(None, feeds),
                "ONNX Runtime, float32",
                lambda: whole.run(None, feeds),
                100,
            ),
        ]
    language_model = pretrained.load(resources.checkpoint("language-model")).eval()
    [in_eight_bits] = of_the_page("in_eight_bits", needs=("Int8Linear",))
    eight, prompt = in_eight_bits(language_model), [list(range(1, 17))]
    lines.append(
        taking_turns(
            f"chapter 12's model, greedy search, {NEW_TOKENS} tokens: int8",
            lambda: greedy(eight, prompt, max_new_tokens=NEW_TOKENS),
            "float32",
            lambda: greedy(language_model, prompt, max_new_tokens=NEW_TOKENS),
            15,
        )
    )
    return lines


def classifier() -> nn.Module:
    """Return a classifier of the library on the book's encoder."""
    checkpoint = resources.checkpoint("sentiment-classifier")
    return Logits(AutoModelForSequenceClassification.from_pretrained(checkpoint)).eval()


def a_batch(size: int) -> tuple[Tensor, Tensor]:
    """Return ids and attention mask of messages without padding, (size, TOKENS) each."""
    ids = torch.randint(2_000, 20_000, (size, TOKENS), generator=torch.Generator().manual_seed(0))
    return ids, torch.ones_like(ids)


def exported(
    model: nn.Module, folder: Path
) -> tuple[onnxruntime.InferenceSession, onnxruntime.InferenceSession]:
    """Export a classifier; return sessions of one thread with float32 and with int8 per channel."""
    logging.disable(logging.WARNING)
    with warnings.catch_warnings(action="ignore"):
        any_size = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
        torch.onnx.export(
            model,
            a_batch(2),
            folder / "float32.onnx",
            input_names=["ids", "attention_mask"],
            dynamic_shapes={"ids": any_size, "attention_mask": any_size},
            dynamo=True,
            external_data=False,
            verbose=False,
        )
        quantize_dynamic(folder / "float32.onnx", folder / "int8.onnx", per_channel=True, reduce_range=True)
    logging.disable(logging.NOTSET)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    whole, small = (
        onnxruntime.InferenceSession(folder / f"{name}.onnx", options, providers=["CPUExecutionProvider"])
        for name in ("float32", "int8")
    )
    return whole, small


def of_the_page(*names: str, needs: tuple[str, ...] = ()) -> list[Any]:
    """Return functions and classes as chapter 15's notebook defines them.

    Args:
        *names: what is returned.
        needs: further definitions that these use.

    Returns:
        The values, in the order of the names.

    Raises:
        KeyError: the notebook does not define a name.
    """
    notebook = nbformat.read(next(NOTEBOOKS.glob("15_*.ipynb")), 4)
    known: dict[str, Any] = {"torch": torch, "nn": nn, "copy": copy}
    for cell in notebook.cells:
        for node in ast.parse(cell.source).body if cell.cell_type == "code" else ():
            if getattr(node, "name", None) in (*names, *needs):
                exec(compile(ast.Module([node], []), "chapter 15", "exec"), known)
    return [known[name] for name in names]


if __name__ == "__main__":
    main()
