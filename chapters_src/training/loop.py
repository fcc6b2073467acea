"""The training loop. One step: gradients of one or several batches, clipping, an update of the weights.

The loss of a step is the mean over all its items (examples or tokens), however they are spread over batches
and processes. So the items of a step are counted first, and the *sum* of each batch's losses is divided by
that count before its gradient is taken. (The mean of the means of unequal batches is something else.)

The loop defines what a step is; Accelerate carries it out: where the model is, in which precision it
computes, how processes exchange gradients (DDP), and how they shard the weights themselves (FSDP2). So the
same script runs on a laptop and on several computers with GPUs, started by `accelerate launch`.
"""

import contextlib
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator, PartialState
from accelerate.utils import broadcast_object_list, send_to_device, set_seed
from torch import nn
from torch.utils.data import DataLoader
from tqdm.auto import tqdm

from chapters_src.training.batches import IGNORED
from chapters_src.training.checkpoints import RunCheckpoints, exclusive
from chapters_src.training.conditions import (
    as_stored,
    check_same_in_all_processes,
    model_options,
    optimizer_options,
    run_conditions,
)
from chapters_src.training.history import History, Recorder
from chapters_src.training.launch import (
    accelerator_for,
    full_tensor,
    prepared,
    preserved_rng_state,
    unsharded,
    unwrap,
)
from chapters_src.training.order import Step, check_loader, steps_of
from chapters_src.training.settings import Settings, learning_rate_at

ComputeLoss = Callable[[nn.Module, Any], torch.Tensor]
CountItems = Callable[[Any], int]
Evaluate = Callable[[nn.Module], Mapping[str, float]]
MakeOptimizers = Callable[[nn.Module], Sequence[torch.optim.Optimizer]]


def count_labels(batch: Mapping[str, torch.Tensor]) -> int:
    """Count the losses that `compute_loss` adds up: the "labels" of a batch that are not -100.

    Raises:
        ValueError: the batch has no "labels".
    """
    try:
        return int((batch["labels"] != IGNORED).sum())
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(
            'the batches have no "labels": pass a function count_items that counts one'
        ) from error


def train(
    model: nn.Module,
    batches: DataLoader,
    compute_loss: ComputeLoss,
    settings: Settings,
    *,
    count_items: CountItems = count_labels,
    evaluate: Evaluate | None = None,
    make_optimizers: MakeOptimizers | None = None,
    checkpoint_folder: str | Path | None = None,
) -> History:
    """Train a model.

    The global random generators are seeded for the run and restored afterwards.

    Args:
        model: its parameters with `requires_grad` are trained, in place. It may be compiled. It comes back in
            evaluation mode and without gradients, also after an error, on the device where it was trained.
            Under FSDP it stays sharded, and `full_state_dict` returns its weights.
        batches: of data with a length, or of an `IterableDataset`, which has to yield the same each time it
            is iterated over, and needs `max_steps`. With `shuffle=True` the order is different in each epoch
            and follows from `settings.seed`; a custom sampler has to draw from the global generators. All
            processes get the same data and train on their share of its batches. Workers persist over the
            epochs of data with a length if the loader says so; those of a stream restart with each pass.
        compute_loss: takes the model and a batch on its device, returns the *sum* of the losses of the
            batch's items, with its graph. It has to call the model itself, not a part of it.
        settings: everything else.
        count_items: takes a batch as the loader yields it, returns the number of its items.
        evaluate: takes the model, in evaluation mode and without gradients, returns metrics. It may also call
            parts of the model; under FSDP each process holds the full model meanwhile. What it draws from the
            global generators does not change the training. All processes call it; the main one's result
            counts.
        make_optimizers: takes the model, returns optimizers for its parameters, such as Muon for the matrices
            and AdamW for the rest; each trained parameter has to be in one of them. In fp16 and under FSDP
            only one optimizer is possible. The schedule scales the initial learning rate of each group.
            By default AdamW, with the learning rate, betas and weight decay of the settings.
        checkpoint_folder: where the run keeps its checkpoints, on a disk that all processes share. Only one
            run at a time can use it. If it holds a checkpoint, the run resumes from it; on a CPU it ends with
            the same bits as one without interruption, unless worker processes of the loader draw random
            numbers for data with a length: in the rest of an epoch these are other numbers. A finished run
            returns at once. The number of processes, the length of the run and all intervals may be changed
            in between; a change to anything else that determines the training is an error.

    Returns:
        What happened, from the first step on.

    Raises:
        ValueError: nothing to train or to train on; arguments that contradict each other or the launcher;
            optimizers that leave a parameter out or share one; processes with different data or options.
        FloatingPointError: a loss or a gradient is not finite. With `log_every=1` the weights are those of
            the step before; otherwise resume from the last checkpoint.
        CheckpointError: a checkpoint cannot be written, or belongs to another run, or another run is using
            the folder.
    """
    _check(model, batches, settings, evaluate, checkpoint_folder)
    folder = None if checkpoint_folder is None else Path(checkpoint_folder)
    with accelerator_for(settings) as accelerator, preserved_rng_state(), exclusive(folder):
        set_seed(settings.seed, device_specific=True)  # Different dropout per rank.
        optimizers = make_optimizers(model) if make_optimizers else [_adamw(model, settings, accelerator)]
        _check_optimizers(model, optimizers)
        base_rates = [[group["lr"] for group in optimizer.param_groups] for optimizer in optimizers]
        steps = steps_of(batches, settings)
        conditions: dict[str, Any] = {}
        if folder is not None or accelerator.num_processes > 1:
            # The options of the default optimizer are in the settings.
            options = model_options(model) | (optimizer_options(optimizers) if make_optimizers else {})
            conditions = as_stored(run_conditions(accelerator, settings, steps.fingerprint()) | options)
            check_same_in_all_processes(conditions)
        log_every = settings.log_every or (1 if accelerator.device.type == "cpu" else 10)
        with prepared(accelerator, model, optimizers) as (wrapped, optimizers):
            checkpoints = RunCheckpoints(folder, accelerator, wrapped, steps, conditions)
            history = checkpoints.load()
            recorder = Recorder(history, accelerator)
            wrapped.train()
            wrapped.zero_grad()
            for step, batches_of_step in _progress(len(history.steps), steps.total_steps, steps):
                learning_rate = learning_rate_at(step, steps.total_steps, settings)
                _set_learning_rates(optimizers, base_rates, learning_rate / settings.learning_rate)
                loss_sum, num_items = _take_gradients(
                    accelerator, wrapped, batches_of_step, compute_loss, count_items
                )
                norm = accelerator.clip_grad_norm_(wrapped.parameters(), settings.max_grad_norm)
                recorder.add(learning_rate, loss_sum, full_tensor(norm), num_items)
                done = step + 1
                evaluates = _is_due(done, settings.evaluate_every, steps.total_steps)
                saves = _is_due(done, settings.checkpoint_every, steps.total_steps)
                if evaluates or saves or done % log_every == 0:
                    recorder.read()  # Raises, before an update, if a number is not finite.
                for optimizer in optimizers:
                    optimizer.step()
                    optimizer.zero_grad()
                if evaluates and evaluate is not None:
                    metrics = _evaluate(accelerator, wrapped, evaluate)
                    history.evaluations.append({"step": done, **metrics})
                if saves:
                    checkpoints.save(history)
    return history


def _take_gradients(
    accelerator: Accelerator,
    model: nn.Module,
    batches: Step,
    compute_loss: ComputeLoss,
    count_items: CountItems,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute the gradient of a step's mean loss into the parameters.

    Returns the sum of this process's losses, and the number of items of all processes. Both stay on the
    device.
    """
    counts = [weight * int(count_items(batch)) for batch, weight in batches]
    if min(counts) < 0:
        raise ValueError(f"count_items returned {min(counts)}: it has to be 0 or more")
    num_items = accelerator.reduce(torch.tensor(sum(counts), device=accelerator.device), "sum")
    # Accelerate averages over the processes, so their number is multiplied in.
    scale = accelerator.num_processes / num_items.clamp(min=1)
    loss_sum = torch.zeros((), device=accelerator.device)
    for number, (batch, weight) in enumerate(batches, start=1):
        is_last = number == len(batches)  # Processes exchange gradients in the last backward pass only.
        with contextlib.nullcontext() if is_last else accelerator.no_sync(model):
            loss = compute_loss(model, send_to_device(batch, accelerator.device, non_blocking=True))
            if not isinstance(loss, torch.Tensor) or loss.ndim != 0:
                shape = tuple(loss.shape) if isinstance(loss, torch.Tensor) else type(loss).__name__
                raise ValueError(
                    f"compute_loss returned {shape}: it has to be one sum of losses, of shape ()"
                )
            accelerator.backward(weight * scale * loss)
        loss_sum += weight * loss.detach()
    return loss_sum, num_items


def _adamw(model: nn.Module, settings: Settings, accelerator: Accelerator) -> torch.optim.Optimizer:
    """Make AdamW with weight decay on matrices but not on vectors, which are biases and gains of norms."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [
        {"params": [p for p in trained if p.ndim >= 2], "weight_decay": settings.weight_decay},
        {"params": [p for p in trained if p.ndim < 2], "weight_decay": 0.0},
    ]
    fused = accelerator.device.type in ("cpu", "cuda")  # One pass over the weights instead of several.
    return torch.optim.AdamW(groups, settings.learning_rate, settings.betas, fused=fused)


def _set_learning_rates(
    optimizers: Sequence[torch.optim.Optimizer], base_rates: list[list[float]], factor: float
) -> None:
    for optimizer, rates in zip(optimizers, base_rates, strict=True):
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate * factor


def _is_due(step: int, every: int, total_steps: int) -> bool:
    return step == total_steps or (every > 0 and step % every == 0)


def _evaluate(accelerator: Accelerator, wrapped: nn.Module, evaluate: Evaluate) -> dict[str, float]:
    model = unwrap(wrapped)
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with preserved_rng_state(), torch.no_grad(), unsharded(accelerator, model):
            metrics = {name: float(value) for name, value in evaluate(model).items()}
    finally:
        for module, training in modes:
            module.training = training
    if "step" in metrics:
        raise ValueError("a metric is named 'step', which is the number of the step: rename it")
    return broadcast_object_list([metrics])[0]


def _progress(first_step: int, total_steps: int, steps: Iterable[Step]) -> Iterable[tuple[int, Step]]:
    """Yield each step with its number, and show a progress bar in a terminal or a notebook."""
    numbers: Iterable[int] = range(first_step, total_steps)
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    is_watched = sys.stderr.isatty() or getattr(shell, "kernel", None) is not None
    if is_watched and os.environ.get("BOOK_BUILD") != "1" and PartialState().is_main_process:
        numbers = tqdm(numbers, "training", total_steps, initial=first_step, unit="step")
    return zip(numbers, steps)  # noqa: B905  The steps are endless.


# Checks ---------------------------------------------------------------------------------------------------


def _check(
    model: nn.Module,
    batches: DataLoader,
    settings: Settings,
    evaluate: Evaluate | None,
    checkpoint_folder: str | Path | None,
) -> None:
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ValueError("no parameter of the model has requires_grad, so there is nothing to train")
    untrainable = [name for name, parameter in model.named_parameters() if parameter.is_inference()]
    if untrainable:  # PyTorch would silently leave them unchanged.
        raise ValueError(
            f"parameters made under torch.inference_mode() get no gradient: {', '.join(untrainable[:3])}. "
            "Make them outside of it"
        )
    if settings.evaluate_every and evaluate is None:
        raise ValueError(f"evaluate_every={settings.evaluate_every}, but evaluate is None: pass a function")
    if settings.checkpoint_every and checkpoint_folder is None:
        raise ValueError(
            f"checkpoint_every={settings.checkpoint_every}, but checkpoint_folder is None: pass a folder"
        )
    check_loader(batches, settings)


def _check_optimizers(model: nn.Module, optimizers: Sequence[torch.optim.Optimizer]) -> None:
    """Check that each trained parameter is in exactly one optimizer, and that all are the model's."""
    names = {parameter: name for name, parameter in model.named_parameters()}
    groups = [group for optimizer in optimizers for group in optimizer.param_groups]
    given = Counter(parameter for group in groups for parameter in group["params"])
    left_out = [name for parameter, name in names.items() if parameter.requires_grad and not given[parameter]]
    repeated = [names.get(parameter, "?") for parameter, times in given.items() if times > 1]
    foreign = [str(tuple(parameter.shape)) for parameter in given if parameter not in names]
    for problem, found, way_out in (
        ("are missing", left_out, "add them, or set their requires_grad to False"),
        ("occur more than once", repeated, "leave each in one optimizer only"),
        ("are not the model's (their shapes)", foreign, "use parameters of the model that is passed in"),
    ):
        if found:
            few = ", ".join(found[:5]) + (f" and {len(found) - 5} more" if len(found) > 5 else "")
            raise ValueError(
                f"in the optimizers of make_optimizers some parameters {problem}: {few}; {way_out}"
            )
