"""The training loop. One step: gradients of one or several batches, clipping, an update of the weights.

The loss of a step is the mean over all its items (examples, or tokens), however they are spread over batches
and processes. So the items of a step are counted first, and the *sum* of each batch's losses is divided by
that count before its gradient is taken. (The mean of the means of unequal batches would be something else.)

The loop says what a step is. How it is done belongs to Accelerate: where the model is, in which precision it
computes, how processes exchange gradients (DDP), and how they share out the weights themselves (FSDP2). So
the same script runs on a laptop, and on several machines with graphics cards that `accelerate launch` starts.
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
from torch.utils.data import DataLoader, IterableDataset
from tqdm.auto import tqdm

from chapters_src.training.batches import IGNORED
from chapters_src.training.checkpoints import RunCheckpoints
from chapters_src.training.history import History, Recorder
from chapters_src.training.launch import (
    accelerator_for,
    accumulation_steps,
    full_tensor,
    prepared,
    preserved_rng_state,
    unsharded,
    unwrap,
)
from chapters_src.training.order import Step, steps_of
from chapters_src.training.settings import Settings, learning_rate_at

ComputeLoss = Callable[[nn.Module, Any], torch.Tensor]
CountItems = Callable[[Any], int]
Evaluate = Callable[[nn.Module], Mapping[str, float]]
MakeOptimizers = Callable[[nn.Module], Sequence[torch.optim.Optimizer]]


def count_labels(batch: Mapping[str, torch.Tensor]) -> int:
    """Count the items of a batch: its "labels" that are not -100.

    Args:
        batch: as the loader gives it.

    Returns:
        How many losses `compute_loss` will add up.

    Raises:
        ValueError: the batch has no "labels".
    """
    try:
        return int((batch["labels"] != IGNORED).sum())
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError('the batches have no "labels": say with count_items how to count a batch') from error


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

    The global random generators are seeded for the run, and afterwards as they were before.

    Args:
        model: its parameters with `requires_grad` are trained, in place. It comes back in evaluation mode and
            without gradients, after an error as well, on the device where it was trained; under FSDP it
            stays sharded.
        batches: of data with a length, or of an `IterableDataset`, which has to give the same each time it is
            gone through, and needs `max_steps`. With `shuffle=True` the order is another one in each epoch,
            and follows from `settings.seed`; a sampler of one's own has to draw from global generators.
        compute_loss: takes the model and a batch on its device, gives the *sum* of the losses of the batch's
            items, with its graph. It has to call the model itself, not a part of it.
        settings: everything else.
        count_items: takes a batch as the loader gives it, and gives the number of its items.
        evaluate: takes the model, in evaluation mode and without gradients, gives metrics. It may call parts
            of the model, too; under FSDP each process holds all of it meanwhile. What it draws from the
            global generators does not change the training. All processes call it; the main one's counts.
        make_optimizers: takes the model, gives optimizers for its parameters, such as Muon for the matrices
            and AdamW for the rest; each parameter that is trained has to be in one of them. In fp16 and under
            FSDP there may be one only. The schedule scales the learning rate that each group begins with.
            Without it: AdamW, with the learning rate, betas and weight decay of the settings.
        checkpoint_folder: where the run keeps its checkpoints. If one is there, the run goes on from it; on a
            processor it ends with the same bits as one without interruption, unless worker processes of the
            loader draw at random for data with a length: in the rest of an epoch they draw anew. A finished
            run returns at once.

    Returns:
        What happened, from the first step on.

    Raises:
        ValueError: nothing to train or to train with, arguments that contradict each other or the launcher,
            optimizers that leave a parameter out or share one.
        FloatingPointError: a loss or a gradient is not finite. With `log_every=1` the weights are those of
            the step before; else the last checkpoint is the place to go on from.
        CheckpointError: a checkpoint cannot be written, or is one of another run.
    """
    _check(model, batches, settings, evaluate, checkpoint_folder)
    with accelerator_for(settings) as accelerator, preserved_rng_state():
        set_seed(settings.seed, device_specific=True)  # Another dropout in each process.
        optimizers = make_optimizers(model) if make_optimizers else [_adamw(model, settings, accelerator)]
        _check_optimizers(model, optimizers)
        base_rates = [[group["lr"] for group in optimizer.param_groups] for optimizer in optimizers]
        steps = steps_of(batches, settings.seed, accumulation_steps(settings), settings.split_stream)
        total_steps = settings.max_steps or settings.num_epochs * steps.per_epoch
        log_every = settings.log_every or (1 if accelerator.device.type == "cpu" else 10)
        with prepared(accelerator, model, optimizers) as (wrapped, optimizers):
            checkpoints = RunCheckpoints(checkpoint_folder, accelerator, wrapped, steps, settings)
            history = checkpoints.load()
            recorder = Recorder(history, accelerator)
            wrapped.train()
            wrapped.zero_grad()
            for step, batches_of_step in _progress(len(history.steps), total_steps, steps):
                learning_rate = learning_rate_at(step, total_steps, settings)
                _set_learning_rates(optimizers, base_rates, learning_rate / settings.learning_rate)
                loss_sum, num_items = _take_gradients(
                    accelerator, wrapped, batches_of_step, compute_loss, count_items
                )
                norm = accelerator.clip_grad_norm_(wrapped.parameters(), settings.max_grad_norm)
                recorder.note(learning_rate, loss_sum, full_tensor(norm), num_items)
                done = step + 1
                evaluates = evaluate is not None and _is_due(done, settings.evaluate_every, total_steps)
                saves = _is_due(done, settings.checkpoint_every, total_steps)
                if evaluates or saves or done % log_every == 0:
                    recorder.read()  # Raises, before an update, if a number is not finite.
                for optimizer in optimizers:
                    optimizer.step()
                    optimizer.zero_grad()
                if evaluates:
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
    """Leave the gradient of a step's mean loss in the parameters.

    Returns the sum of the losses of this process, and the number of items of all. Both stay on the device.
    """
    counts = [weight * int(count_items(batch)) for batch, weight in batches]
    if min(counts) < 0:
        raise ValueError(f"count_items gave {min(counts)}")
    num_items = accelerator.reduce(torch.tensor(sum(counts), device=accelerator.device), "sum")
    # Accelerate takes the mean over the processes, so that their number has to be multiplied in.
    scale = accelerator.num_processes / num_items.clamp(min=1)
    loss_sum = torch.zeros((), device=accelerator.device)
    for number, (batch, weight) in enumerate(batches, start=1):
        is_last = number == len(batches)  # Processes exchange gradients in the last backward pass only.
        with contextlib.nullcontext() if is_last else accelerator.no_sync(model):
            loss = compute_loss(model, send_to_device(batch, accelerator.device, non_blocking=True))
            if not isinstance(loss, torch.Tensor) or loss.ndim != 0:
                shape = tuple(loss.shape) if isinstance(loss, torch.Tensor) else type(loss).__name__
                raise ValueError(f"compute_loss gave {shape}: not one sum of losses, a tensor of shape ()")
            accelerator.backward(weight * scale * loss)
        loss_sum += weight * loss.detach()
    return loss_sum, num_items


def _adamw(model: nn.Module, settings: Settings, accelerator: Accelerator) -> torch.optim.Optimizer:
    """Let matrices decay, but not vectors: those are biases, and the gains of norms."""
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
        raise ValueError("a metric is called 'step', which is the name of the number of the step: rename it")
    return broadcast_object_list([metrics])[0]


def _progress(first_step: int, total_steps: int, steps: Iterable[Step]) -> Iterable[tuple[int, Step]]:
    """Count the steps, with a bar where somebody may be watching."""
    numbers: Iterable[int] = range(first_step, total_steps)
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    is_watched = sys.stderr.isatty() or getattr(shell, "kernel", None) is not None
    if is_watched and os.environ.get("BOOK_BUILD") != "1" and PartialState().is_main_process:
        numbers = tqdm(numbers, "training", total_steps, initial=first_step, unit="step")
    return zip(numbers, steps)  # noqa: B905  The steps have no end.


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
    if isinstance(batches.dataset, IterableDataset):
        if not settings.max_steps:
            raise ValueError("a stream has no length, so that its epochs cannot be counted: give max_steps")
        return
    if not settings.split_stream:
        raise ValueError("split_stream=False is for streams; these data have a length, and are shared out")
    if batches.batch_sampler is None:
        raise ValueError("batches need a batch_size, so that their order is known")
    if len(batches) == 0:
        raise ValueError(f"the loader has no batches (its data set has {len(batches.dataset)} examples)")
    samplers = (batches.sampler, batches.batch_sampler, getattr(batches.batch_sampler, "sampler", None))
    if any(getattr(part, "generator", None) is not None for part in (batches, *samplers)):
        raise ValueError(
            "the loader has a generator of its own, so the order would depend on what was drawn before: "
            "leave it out, and choose the order by the seed of the settings"
        )


def _check_optimizers(model: nn.Module, optimizers: Sequence[torch.optim.Optimizer]) -> None:
    """See to it that each parameter to be trained is in one optimizer, once, and that all are the model's."""
    names = {parameter: name for name, parameter in model.named_parameters()}
    groups = [group for optimizer in optimizers for group in optimizer.param_groups]
    given = Counter(parameter for group in groups for parameter in group["params"])
    left_out = [name for parameter, name in names.items() if parameter.requires_grad and not given[parameter]]
    repeated = [names.get(parameter, "?") for parameter, times in given.items() if times > 1]
    foreign = [str(tuple(parameter.shape)) for parameter in given if parameter not in names]
    for problem, found, way_out in (
        ("are left out", left_out, "hand them over, or set their requires_grad to False"),
        ("are there more than once", repeated, "leave each in one optimizer only"),
        ("are not the model's (their shapes)", foreign, "take parameters of the model that it is given"),
    ):
        if found:
            few = ", ".join(found[:5]) + (f" and {len(found) - 5} more" if len(found) > 5 else "")
            raise ValueError(f"in the optimizers of make_optimizers some {problem}: {few}; {way_out}")
