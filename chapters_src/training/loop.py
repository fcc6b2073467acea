"""The training loop. One step: gradients of one or several batches, clipping, AdamW.

The loss of a step is the mean over all its items (examples, or tokens), however they are spread over batches
and processes. So each batch contributes the *sum* of its losses, and what is divided is the gradient, once,
when the number of items is known. (The mean of the means of unequal batches would be something else.)

It runs in one process, or in several that `accelerate launch` starts; these sum their gradients once a step.
"""

import math
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator, PartialState
from accelerate.utils import gather_object, reduce, send_to_device
from torch import nn
from torch.utils.data import DataLoader, IterableDataset
from tqdm.auto import tqdm

from chapters_src.training import checkpoints
from chapters_src.training.history import History
from chapters_src.training.order import batches_of_steps
from chapters_src.training.processes import on_main_process, start_alike, sum_gradients
from chapters_src.training.settings import Settings, learning_rate_at
from chapters_src.training.state import (
    generator_states,
    kept_generators,
    pack,
    seed_generators,
    set_generator_states,
    unpack,
)

ComputeLoss = Callable[[nn.Module, Any], tuple[torch.Tensor, int]]
Evaluate = Callable[[nn.Module], Mapping[str, float]]


def train(
    model: nn.Module,
    batches: DataLoader,
    compute_loss: ComputeLoss,
    settings: Settings,
    *,
    evaluate: Evaluate | None = None,
    checkpoint_folder: str | Path | None = None,
) -> History:
    """Train a model.

    The global random generators are seeded for the run, and afterwards as they were before. The model is
    trained where it is; with several processes each moves it to its own device.

    Args:
        model: its parameters with `requires_grad` are trained, in place; it comes back in evaluation mode.
        batches: of a data set with a length. With `shuffle=True` the order is another one in each epoch, and
            follows from `settings.seed`; a sampler of one's own has to draw from PyTorch's global generator.
        compute_loss: takes the model and a batch on its device, gives the sum of the losses of the batch's
            items, with its graph, and the number of items.
        settings: everything else.
        evaluate: takes the model, in evaluation mode and under `torch.inference_mode`, gives metrics. What it
            draws from the global generators does not change the training. Only the main process calls it.
        checkpoint_folder: where the run keeps its checkpoints. If one is there, the run goes on from it, and
            ends with the same weights as one without interruption. A finished run returns at once.

    Returns:
        What happened, from the first step on.

    Raises:
        ValueError: nothing to train or to train with, or arguments that contradict each other.
        FloatingPointError: a loss or a gradient is not finite. The weights are those of the step before.
        CheckpointError: a checkpoint cannot be written, or is one of another run.
    """
    _check(model, batches, settings, evaluate, checkpoint_folder)
    processes = Accelerator()  # Reads what `accelerate launch` says; alone, there is one process.
    if processes.num_processes > 1:
        start_alike(model, processes.device)
    optimizer = torch.optim.AdamW(_parameter_groups(model, settings.weight_decay), settings.learning_rate)
    batches_per_step = settings.accumulation_steps * processes.num_processes
    total_steps = settings.max_steps or settings.num_epochs * math.ceil(len(batches) / batches_per_step)
    conditions = _conditions(batches, settings)
    history = History()
    with kept_generators():
        seed_generators((settings.seed + processes.process_index) % 2**32)
        if checkpoint_folder is not None:
            history = _resume(Path(checkpoint_folder), model, optimizer, conditions)
        model.train()
        first_step = len(history.steps)
        per_step = batches_of_steps(batches, settings.seed, batches_per_step, first_step)
        for step in _progress(first_step, total_steps):
            learning_rate = learning_rate_at(step, total_steps, settings)
            loss, gradient_norm, num_items = _take_step(
                model, optimizer, next(per_step), compute_loss, settings, learning_rate, step + 1
            )
            num_items += history.steps[-1]["items"] if history.steps else 0
            record = {"step": step + 1, "loss": loss, "learning_rate": learning_rate}
            history.steps.append({**record, "gradient_norm": gradient_norm, "items": num_items})
            if evaluate is not None and _is_due(step + 1, settings.evaluate_every, total_steps):
                history.evaluations.append({"step": step + 1, **_evaluate(model, evaluate)})
            if checkpoint_folder is not None and _is_due(step + 1, settings.checkpoint_every, total_steps):
                _save(Path(checkpoint_folder), model, optimizer, history, conditions)
    optimizer.zero_grad()
    model.eval()
    return history


def _take_step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    batches: Iterable[Any],
    compute_loss: ComputeLoss,
    settings: Settings,
    learning_rate: float,
    step: int,
) -> tuple[float, float, int]:
    """Update the weights once. Returns the mean loss, the norm of its gradient, and the number of items."""
    device = next(model.parameters()).device
    bf16 = settings.mixed_precision == "bf16"
    optimizer.zero_grad()
    loss_sum, num_items = 0.0, 0
    for batch in batches:
        with torch.autocast(device.type, torch.bfloat16, enabled=bf16):
            loss, items = compute_loss(model, send_to_device(batch, device))
        if loss.ndim != 0 or items < 0:
            raise ValueError(f"compute_loss gave {tuple(loss.shape)} and {items}: not one sum and a count")
        loss.backward()
        loss_sum, num_items = loss_sum + loss.item(), num_items + int(items)
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    if PartialState().num_processes > 1:
        sum_gradients(parameters)
        sums = torch.tensor([loss_sum, num_items], dtype=torch.float64, device=device)
        loss_sum, num_items = reduce(sums, "sum").tolist()
    if num_items == 0:
        raise ValueError(
            f"step {step}: compute_loss counted no items in its batches, so there is no mean loss"
        )
    for parameter in parameters:
        if parameter.grad is not None:
            parameter.grad /= num_items
    loss_mean = loss_sum / num_items
    norm = float(nn.utils.clip_grad_norm_(parameters, settings.max_grad_norm))
    if not (math.isfinite(loss_mean) and math.isfinite(norm)):
        raise FloatingPointError(
            f"step {step}: the loss is {loss_mean}, the norm of its gradient {norm}. The weights are those "
            f"of the step before. Look at the batch, or lower the learning rate (now {learning_rate:.3g})."
        )
    for group in optimizer.param_groups:
        group["lr"] = learning_rate
    optimizer.step()
    return loss_mean, norm, int(num_items)


def _parameter_groups(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Let matrices decay, but not vectors: those are biases, and the gains of norms."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return [
        {"params": [parameter for parameter in trained if parameter.ndim >= 2], "weight_decay": weight_decay},
        {"params": [parameter for parameter in trained if parameter.ndim < 2], "weight_decay": 0.0},
    ]


def _is_due(step: int, every: int, total_steps: int) -> bool:
    return step == total_steps or (every > 0 and step % every == 0)


def _evaluate(model: nn.Module, evaluate: Evaluate) -> dict[str, float]:
    def action() -> dict[str, float]:
        modes = [(module, module.training) for module in model.modules()]
        model.eval()
        with kept_generators(), torch.inference_mode():
            metrics = {name: float(value) for name, value in evaluate(model).items()}
        for module, training in modes:
            module.training = training
        return metrics

    metrics = on_main_process(action)
    if "step" in metrics:
        raise ValueError("a metric is called 'step', which is the name of the number of the step: rename it")
    return metrics


def _progress(first_step: int, total_steps: int) -> Iterable[int]:
    """Count the steps, with a bar where somebody may be watching."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    is_watched = sys.stderr.isatty() or getattr(shell, "kernel", None) is not None
    if not is_watched or os.environ.get("BOOK_BUILD") == "1" or not PartialState().is_main_process:
        return range(first_step, total_steps)
    return tqdm(range(first_step, total_steps), "training", total_steps, initial=first_step, unit="step")


# Checkpoints ----------------------------------------------------------------------------------------------


def _conditions(batches: DataLoader, settings: Settings) -> dict[str, object]:
    """Collect what has to be the same for a run to go on."""
    data = {"examples": len(batches.dataset), "batches": len(batches)}
    return {**asdict(settings), **data, "processes": PartialState().num_processes}


def _resume(
    folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer, conditions: dict[str, object]
) -> History:
    path = on_main_process(lambda: checkpoints.newest(folder))
    if path is None:
        return History()
    history, generators = unpack(path, model, optimizer, conditions)
    set_generator_states(generators[PartialState().process_index])
    if PartialState().is_main_process and os.environ.get("BOOK_BUILD") != "1":
        print(f"Going on from {path}", file=sys.stderr)
    return history


def _save(
    folder: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    history: History,
    conditions: dict[str, object],
) -> None:
    generators = gather_object([generator_states()])
    step = len(history.steps)
    on_main_process(
        lambda: checkpoints.save(folder, step, pack(model, optimizer, history, conditions, generators))
    )


# Checks ---------------------------------------------------------------------------------------------------


def _check(
    model: nn.Module,
    batches: DataLoader,
    settings: Settings,
    evaluate: Evaluate | None,
    checkpoint_folder: str | Path | None,
) -> None:
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ValueError("no parameter of the model has requires_grad: there is nothing to train")
    made_in_vain = [name for name, parameter in model.named_parameters() if parameter.is_inference()]
    if made_in_vain:  # PyTorch would leave them as they are, without a word.
        raise ValueError(
            f"made under torch.inference_mode(), which no gradient reaches: {', '.join(made_in_vain[:3])}. "
            "Make these parameters outside of it"
        )
    if settings.evaluate_every and evaluate is None:
        raise ValueError(f"evaluate_every={settings.evaluate_every}, but no function evaluate is given")
    if settings.checkpoint_every and checkpoint_folder is None:
        raise ValueError(f"checkpoint_every={settings.checkpoint_every}, but no checkpoint_folder is given")
    if isinstance(batches.dataset, IterableDataset) or batches.batch_sampler is None:
        raise ValueError(
            "batches need a data set with a length and a batch_size, so that their order is known"
        )
    if len(batches) == 0:
        raise ValueError(f"the loader has no batches (its data set has {len(batches.dataset)} examples)")
    samplers = (batches.sampler, batches.batch_sampler, getattr(batches.batch_sampler, "sampler", None))
    if any(getattr(part, "generator", None) is not None for part in (batches, *samplers)):
        raise ValueError(
            "the loader has a generator of its own, so the order would depend on what was drawn before: "
            "leave it out, and choose the order by the seed of the settings"
        )
