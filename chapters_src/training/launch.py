"""What a launcher (`accelerate launch`, `torchrun`) sets, and the `Accelerator` that a run makes of it.

Everything that a launcher can ask for is done or refused with an error that says so; nothing is passed over.
Without a launcher there is one process, and the device is the one that Accelerate finds. With one:

    accelerate launch --multi_gpu --mixed_precision bf16 script.py
    accelerate launch --use_fsdp --fsdp_version 2 --fsdp_cpu_ram_efficient_loading false script.py
    ACCELERATE_USE_CPU=true torchrun --nproc-per-node 2 script.py
"""

import contextlib
import os
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator, DistributedType, PartialState
from accelerate.state import AcceleratorState, GradientState
from accelerate.utils import (
    DistributedDataParallelKwargs,
    GradientAccumulationPlugin,
    broadcast_object_list,
    gather_object,
)
from torch import nn

from chapters_src.training.settings import PRECISIONS, Settings

_KINDS = (DistributedType.NO, DistributedType.MULTI_CPU, DistributedType.MULTI_GPU, DistributedType.FSDP)
# What Accelerate leaves in a model: by the last one it would take it for prepared in the next run.
_MARKS = ("forward", "_original_forward", "_is_accelerate_prepared")


@contextlib.contextmanager
def accelerator_for(settings: Settings) -> Iterator[Accelerator]:
    """Make the `Accelerator` of one run.

    Accelerate keeps one state in each process; a run has its own, and afterwards the former is back.

    Args:
        settings: what it says about precision has to agree with what the launcher says.

    Yields:
        The accelerator.

    Raises:
        ValueError: the launcher asks for something that would not happen, or that the settings contradict.
    """
    before = [(state, dict(state._shared_state)) for state in (AcceleratorState, GradientState)]
    for state, _ in before:
        state._reset_state()  # As the library's Trainer does.
    if PartialState._shared_state.get("distributed_type") == DistributedType.FSDP:
        # A former run's. Accelerate decides for FSDP only where it finds several cards, and nothing decided.
        PartialState._shared_state["distributed_type"] = DistributedType.MULTI_GPU
    try:
        _check_environment(settings)
        accelerator = Accelerator(
            mixed_precision=settings.mixed_precision,
            # The loop counts accumulated batches itself, because an epoch may end with fewer.
            gradient_accumulation_plugin=GradientAccumulationPlugin(num_steps=1),
            kwargs_handlers=[DistributedDataParallelKwargs(find_unused_parameters=True)],
        )
        _check_engine(accelerator)
        yield accelerator
    finally:
        for state, content in before:
            state._shared_state.clear()
            state._shared_state.update(content)


def accumulation_steps(settings: Settings) -> int:
    """Give the number of batches that each process puts into a step: the settings', else the launcher's."""
    return settings.accumulation_steps or int(os.environ.get("ACCELERATE_GRADIENT_ACCUMULATION_STEPS", "1"))


def _check_environment(settings: Settings) -> None:
    for engine in ("DEEPSPEED", "MEGATRON_LM"):
        if _is_on(f"ACCELERATE_USE_{engine}"):
            raise ValueError(f"the launcher asks for {engine}, which is unknown here: use DDP or FSDP2")
    launched = os.environ.get("ACCELERATE_MIXED_PRECISION")
    if launched not in (None, *PRECISIONS):
        raise ValueError(f"the launcher asks for mixed precision {launched!r}; possible are {PRECISIONS}")
    if launched and settings.mixed_precision not in (None, launched):
        raise ValueError(
            f"the settings have mixed_precision={settings.mixed_precision!r}, the launcher has {launched!r}: "
            f"launch with --mixed_precision {settings.mixed_precision}, or leave it out of the settings"
        )
    launched = os.environ.get("ACCELERATE_GRADIENT_ACCUMULATION_STEPS")
    if launched and settings.accumulation_steps not in (None, int(launched)):
        raise ValueError(
            f"the settings have accumulation_steps={settings.accumulation_steps}, "
            f"the launcher has {launched}: leave one of them out"
        )


def _check_engine(accelerator: Accelerator) -> None:
    kind, device = accelerator.distributed_type, accelerator.device
    started = int(os.environ.get("WORLD_SIZE", "1"))
    if started != accelerator.num_processes:
        raise ValueError(
            f"the launcher has started {started} processes, but Accelerate sees {accelerator.num_processes}, "
            "so that each would train for itself: on processors set ACCELERATE_USE_CPU=true for the "
            "launcher, and call `setup` or `Accelerator()` before all else"
        )
    # Of processes on processors `accelerate launch --num_processes` starts only one, unless MPI does it.
    is_told_of_others = {"ACCELERATE_MIXED_PRECISION", "MASTER_ADDR"} <= os.environ.keys()
    if is_told_of_others and "WORLD_SIZE" not in os.environ and accelerator.num_processes == 1:
        raise ValueError("the launcher was asked for several processes and has started one: use `torchrun`")
    if _is_on("ACCELERATE_USE_FSDP") and kind != DistributedType.FSDP:
        raise ValueError(
            f"the launcher asks for FSDP, but Accelerate would not shard {accelerator.num_processes} "
            f"process(es) on {device.type}: launch two or more on graphics cards, or leave FSDP out"
        )
    if kind == DistributedType.FSDP and not accelerator.is_fsdp2:
        raise ValueError("the launcher asks for the first version of FSDP: set fsdp_version to 2")
    if kind not in _KINDS:
        raise ValueError(f"the launcher asks for {kind.value}, which is unknown here: use DDP or FSDP2")
    if accelerator.parallelism_config and accelerator.parallelism_config.non_data_parallel_size > 1:
        raise ValueError(
            "the launcher asks for tensor, context or sequence parallelism, which is unknown here: "
            "set the sizes to 1"
        )
    if accelerator.mixed_precision == "fp16" and device.type == "cpu":
        raise ValueError("mixed precision 'fp16' needs a graphics card, and this is a processor: use 'bf16'")


def _is_on(name: str) -> bool:
    return os.environ.get(name, "").lower() in ("1", "true", "yes", "on")


@contextlib.contextmanager
def prepared(
    accelerator: Accelerator, model: nn.Module, optimizers: Sequence[torch.optim.Optimizer]
) -> Iterator[tuple[nn.Module, list[torch.optim.Optimizer]]]:
    """Let Accelerate move, wrap, shard and compile, as the launcher says; afterwards take the wrapping off.

    However the run ends, the model is then in evaluation mode, and has no gradients.

    Args:
        accelerator: of the run.
        model: is moved to the accelerator's device, and stays there; under FSDP it stays sharded, too.
        optimizers: of its parameters.

    Yields:
        The model that the training calls, and the optimizers.

    Raises:
        ValueError: FSDP would mix the weights of processes that begin with other ones, or has separated
            parameters that were tied, or there are several optimizers under it or in fp16.
    """
    if accelerator.is_fsdp2 and len(optimizers) > 1:
        raise ValueError(f"{len(optimizers)} optimizers: under FSDP Accelerate can store one only")
    if accelerator.mixed_precision == "fp16" and len(optimizers) > 1:
        raise ValueError(
            f"{len(optimizers)} optimizers: in 'fp16' Accelerate would change the scale of the gradients "
            "between one and the next; use 'bf16', or one optimizer"
        )
    _check_start(accelerator, model)
    tied = ties(model)
    before = {name: vars(model).pop(name) for name in _MARKS if name in vars(model)}
    if "forward" in before:
        model.forward = before["forward"]
    try:
        wrapped, *optimizers = accelerator.prepare(model, *optimizers)
        if lost := tied - ties(accelerator.unwrap_model(wrapped, keep_torch_compile=False)):
            raise ValueError(
                f"sharding has separated parameters that were one: {sorted(map(sorted, lost))}. "
                "Set fsdp_cpu_ram_efficient_loading to false"
            )
        yield wrapped, optimizers
    finally:
        model.eval()
        model.zero_grad()
        for name in _MARKS:
            vars(model).pop(name, None)
        vars(model).update(before)


@contextlib.contextmanager
def unsharded(accelerator: Accelerator, model: nn.Module) -> Iterator[None]:
    """Let FSDP leave the whole model in each process for a while, so that parts of it can be called, too.

    Args:
        accelerator: of the run.
        model: without a wrapping; without FSDP nothing happens.
    """
    sharded = []
    if accelerator.is_fsdp2:
        from torch.distributed.fsdp import FSDPModule  # It takes a second, which few need.

        sharded = [module for module in model.modules() if isinstance(module, FSDPModule)]
    try:
        for module in sharded:
            module.set_reshard_after_forward(False, recurse=False)
            module.unshard()
        yield
    finally:
        for module in sharded:
            module.reshard()
            module.set_reshard_after_forward(
                accelerator.state.fsdp_plugin.reshard_after_forward, recurse=False
            )


def _check_start(accelerator: Accelerator, model: nn.Module) -> None:
    """See to it that FSDP does not shard other weights in each process (DDP gives all the main one's)."""
    if accelerator.is_fsdp2 and not accelerator.state.fsdp_plugin.cpu_ram_efficient_loading:
        norm = whole(nn.utils.get_total_norm([parameter.detach() for parameter in model.parameters()]))
        norms = gather_object([norm.item()])
        if len(set(norms)) > 1:
            raise ValueError(
                f"under FSDP all processes have to begin with the same weights; their lengths are {norms}: "
                "make the model after the same seed in each"
            )


def ties(model: nn.Module) -> set[frozenset[str]]:
    """Find the parameters that have several names, such as a head's matrix that is the embedding's.

    Args:
        model: any.

    Returns:
        For each such parameter its names.
    """
    names: dict[int, set[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), set()).add(name)
    return {frozenset(several) for several in names.values() if len(several) > 1}


def whole(number: torch.Tensor) -> torch.Tensor:
    """Give a number of which FSDP has left a part in each process.

    Args:
        number: such as the norm of a gradient, of shape ().

    Returns:
        The number, the same in all processes.
    """
    return number.full_tensor() if hasattr(number, "full_tensor") else number


def together(action: Callable[[], Any], *, main_only: bool = False) -> Any:
    """Do something in every process. An error in one is raised in all, so that none waits for it.

    Args:
        action: takes no arguments.
        main_only: only the main process does it, and all get its result.

    Returns:
        The result of this process, or the main one's.
    """
    result, error = None, None
    if not main_only or PartialState().is_main_process:
        try:
            result = action()
        except Exception as caught:
            error = caught
    errors = [error for error in gather_object([error]) if error is not None]
    if errors:
        raise error or errors[0]
    return broadcast_object_list([result])[0] if main_only else result


@contextlib.contextmanager
def kept_generators() -> Iterator[None]:
    """Leave the global generators of Python, NumPy and PyTorch at the end as they were at the beginning."""
    states = random.getstate(), np.random.get_state()
    cards = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    with torch.random.fork_rng(cards):
        try:
            yield
        finally:
            random.setstate(states[0])
            np.random.set_state(states[1])
