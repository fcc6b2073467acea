r"""From what a launcher (`accelerate launch`, `torchrun`) sets to the `Accelerator` of one run.

Whatever a launcher can request is either done or refused with an error that says so; nothing is ignored.
Without a launcher there is one process, on the device that Accelerate finds. With one:

    accelerate launch --multi_gpu --mixed_precision bf16 script.py
    ACCELERATE_USE_CPU=true torchrun --nproc-per-node 2 script.py
    accelerate launch --use_fsdp --fsdp_version 2 --fsdp_cpu_ram_efficient_loading false \
        --fsdp_auto_wrap_policy TRANSFORMER_BASED_WRAP \
        --fsdp_transformer_layer_cls_to_wrap TransformerLayer script.py

Without the wrap policy, FSDP gathers the whole model at once instead of layer by layer. Accelerate passes
`--gradient_accumulation_steps` on to the script only for DeepSpeed; for all other engines set the environment
variable `ACCELERATE_GRADIENT_ACCUMULATION_STEPS`.
"""

import contextlib
import os
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator, DistributedType, PartialState
from accelerate.state import AcceleratorState, GradientState
from accelerate.utils import (
    DistributedDataParallelKwargs,
    GradientAccumulationPlugin,
    broadcast_object_list,
    extract_model_from_parallel,
    gather_object,
)
from torch import nn

from chapters_src.training.settings import PRECISIONS, Settings

_ENGINES = (DistributedType.NO, DistributedType.MULTI_CPU, DistributedType.MULTI_GPU, DistributedType.FSDP)
_ACCUMULATION = "ACCELERATE_GRADIENT_ACCUMULATION_STEPS"
# What Accelerate leaves on a model. Because of the last one, the next run would not prepare it again.
_MARKS = ("forward", "_original_forward", "_is_accelerate_prepared")


@contextlib.contextmanager
def accelerator_for(settings: Settings) -> Iterator[Accelerator]:
    """Make the `Accelerator` of one run.

    Accelerate keeps one global state per process. The run gets its own; the previous state is restored
    afterwards.

    Raises:
        ValueError: the launcher requests something that is not supported, or contradicts the settings.
    """
    before = [(state, dict(state._shared_state)) for state in (AcceleratorState, GradientState)]
    for state, _ in before:
        state._reset_state()  # As the library's Trainer does.
    if PartialState._shared_state.get("distributed_type") == DistributedType.FSDP:
        # Left by an earlier run. Accelerate chooses FSDP only while the type is still the general one.
        PartialState._shared_state["distributed_type"] = DistributedType.MULTI_GPU
    try:
        _check_environment(settings)
        accelerator = Accelerator(
            mixed_precision=settings.mixed_precision,
            # The loop counts accumulated batches itself, because the last step of an epoch may have fewer.
            gradient_accumulation_plugin=GradientAccumulationPlugin(num_steps=1),
            kwargs_handlers=[DistributedDataParallelKwargs(find_unused_parameters=True)],
        )
        _check_engine(accelerator)
        yield accelerator
    finally:
        for state, content in before:
            state._shared_state.clear()
            state._shared_state.update(content)


def accumulation_steps(settings: Settings | None) -> int:
    """Return how many batches each process accumulates in one step, by the settings or the launcher."""
    own = settings.accumulation_steps if settings else None
    return own or int(os.environ.get(_ACCUMULATION, "1"))


def batches_per_step(settings: Settings | None = None) -> int:
    """Return how many batches of a loader make one step: accumulated batches times processes.

    A script divides its global batch by this number, so that the same training runs on any number of
    processes. Without settings, the launcher alone decides on the accumulation.
    """
    return accumulation_steps(settings) * PartialState().num_processes


def _check_environment(settings: Settings) -> None:
    for engine in ("DEEPSPEED", "MEGATRON_LM"):
        if _is_on(f"ACCELERATE_USE_{engine}"):
            raise ValueError(f"the launcher requests {engine}, which is not supported: use DDP or FSDP2")
    launched = os.environ.get("ACCELERATE_MIXED_PRECISION")
    if launched not in (None, *PRECISIONS):
        raise ValueError(f"the launcher requests mixed precision {launched!r}; supported are {PRECISIONS}")
    if launched and settings.mixed_precision not in (None, launched):
        raise ValueError(
            f"the settings have mixed_precision={settings.mixed_precision!r}, the launcher has {launched!r}: "
            f"launch with --mixed_precision {settings.mixed_precision}, or leave it out of the settings"
        )
    launched = os.environ.get(_ACCUMULATION)
    if launched is None and "ACCELERATE_MIXED_PRECISION" in os.environ:  # `accelerate launch` sets it.
        _check_launch_command()
    if launched is not None and not (launched.isdigit() and int(launched) > 0):
        raise ValueError(f"{_ACCUMULATION}={launched!r} has to be a whole number, at least 1")
    if launched and settings.accumulation_steps not in (None, int(launched)):
        raise ValueError(
            f"the settings have accumulation_steps={settings.accumulation_steps}, "
            f"the launcher has {launched}: leave one of them out"
        )


def _check_launch_command() -> None:
    """Refuse `accelerate launch --gradient_accumulation_steps`, which is not passed on to the script."""
    try:  # The launcher is the parent process. Only Linux tells its command line.
        command = Path(f"/proc/{os.getppid()}/cmdline").read_text(encoding="utf-8").split("\0")[:-1]
    except (OSError, UnicodeDecodeError):
        return
    names = ("launch", "accelerate-launch", "accelerate.commands.launch")
    starts = [i for i, word in enumerate(command) if Path(word).name in names]
    if not starts or "accelerate" not in "".join(command[: starts[0] + 1]):
        return
    if "accumulation" not in "".join(command):
        return
    from accelerate.commands.launch import launch_command_parser  # It takes a second.

    # Only the launcher's own parser can tell its options from those of the script.
    options, _ = launch_command_parser().parse_known_args(command[starts[0] + 1 :])
    if options.gradient_accumulation_steps not in (None, 1):
        raise ValueError(
            f"`accelerate launch` does not pass --gradient_accumulation_steps on to the script: set "
            f"{_ACCUMULATION}={options.gradient_accumulation_steps} in the environment instead"
        )


def _check_engine(accelerator: Accelerator) -> None:
    engine, device = accelerator.distributed_type, accelerator.device
    started = int(os.environ.get("WORLD_SIZE", "1"))
    if started != accelerator.num_processes:
        raise ValueError(
            f"the launcher has started {started} processes, but Accelerate sees {accelerator.num_processes}, "
            "so each would train on its own: on CPUs set ACCELERATE_USE_CPU=true for the launcher, and call "
            "`setup` or `Accelerator()` before anything else"
        )
    # `accelerate launch --cpu --num_processes 2` starts one process, unless MPI starts the others.
    is_told_of_others = {"ACCELERATE_MIXED_PRECISION", "MASTER_ADDR"} <= os.environ.keys()
    if is_told_of_others and "WORLD_SIZE" not in os.environ and accelerator.num_processes == 1:
        raise ValueError("the launcher was told to start several processes and started one: use `torchrun`")
    if _is_on("ACCELERATE_USE_FSDP") and engine != DistributedType.FSDP:
        raise ValueError(
            f"the launcher requests FSDP, but Accelerate does not shard {accelerator.num_processes} "
            f"process(es) on {device.type}: launch two or more on GPUs, or leave FSDP out"
        )
    if engine == DistributedType.FSDP and not accelerator.is_fsdp2:
        raise ValueError("the launcher requests the first version of FSDP: set fsdp_version to 2")
    if engine not in _ENGINES:
        raise ValueError(f"the launcher requests {engine.value}, which is not supported: use DDP or FSDP2")
    if accelerator.parallelism_config and accelerator.parallelism_config.non_data_parallel_size > 1:
        raise ValueError(
            "the launcher requests tensor, context or sequence parallelism, which is not supported: "
            "set these sizes to 1"
        )
    if accelerator.mixed_precision == "fp16" and device.type == "cpu":
        raise ValueError("mixed precision 'fp16' needs a GPU, and this is a CPU: use 'bf16'")


def _is_on(name: str) -> bool:
    return os.environ.get(name, "").lower() in ("1", "true", "yes", "on")


@contextlib.contextmanager
def prepared(
    accelerator: Accelerator, model: nn.Module, optimizers: Sequence[torch.optim.Optimizer]
) -> Iterator[tuple[nn.Module, list[torch.optim.Optimizer]]]:
    """Let Accelerate move, wrap, shard and compile a model as the launcher says, and finally unwrap it.

    The model may be compiled. Yielded are the model to train, and the optimizers. It stays on the
    accelerator's device, and under FSDP sharded. However the run ends, it is then in evaluation mode and has
    no gradients.

    Raises:
        ValueError: under FSDP, if the processes start from different weights or tied parameters have been
            separated; under FSDP or in fp16, if there are several optimizers.
    """
    if accelerator.is_fsdp2 and len(optimizers) > 1:
        raise ValueError(
            f"{len(optimizers)} optimizers: under FSDP Accelerate saves only one; combine them into one"
        )
    if accelerator.mixed_precision == "fp16" and len(optimizers) > 1:
        raise ValueError(
            f"{len(optimizers)} optimizers: in 'fp16' Accelerate would change the scale of the gradients "
            "between their steps; use 'bf16', or one optimizer"
        )
    _check_initial_weights(accelerator, model)
    bare = unwrap(model)
    if accelerator.is_fsdp2 and is_sharded(bare):
        # By an earlier run, which has also renamed the classes that Accelerate would look for.
        accelerator.state.fsdp_plugin.transformer_cls_names_to_wrap = []
    tied = ties(bare)
    # The bare model of a compiled one carries the marks, but not the forward that they belong to.
    marked = [vars(module) for module in (model, bare)]
    before = [{name: content[name] for name in _MARKS if name in content} for content in marked]
    if "_original_forward" in before[1]:  # An accelerator of the caller has set a precision.
        vars(model)["forward"] = before[1]["_original_forward"]
    for name in _MARKS[1:]:
        vars(bare).pop(name, None)
    try:
        wrapped, *wrapped_optimizers = accelerator.prepare(model, *optimizers)
        if lost := tied - ties(unwrap(wrapped)):
            raise ValueError(
                f"sharding has separated tied parameters: {sorted(map(sorted, lost))}. "
                "Set fsdp_cpu_ram_efficient_loading to false"
            )
        yield wrapped, wrapped_optimizers
    finally:
        model.eval()
        model.zero_grad()
        for content, marks in zip(marked, before, strict=True):
            for name in _MARKS:
                content.pop(name, None)
            content.update(marks)


def unwrap(model: nn.Module) -> nn.Module:
    """Remove the wrappers of DDP and `torch.compile`, whichever is outside, and so the prefixes of names."""
    while (inner := extract_model_from_parallel(model, keep_torch_compile=False)) is not model:
        model = inner
    return model


@contextlib.contextmanager
def unsharded(accelerator: Accelerator, model: nn.Module) -> Iterator[None]:
    """Let FSDP keep the full model in each process for a while, so that its parts can be called as well.

    The model is without wrappers. Without FSDP nothing happens.
    """
    sharded = []
    if accelerator.is_fsdp2:
        from torch.distributed.fsdp import FSDPModule  # The import takes a second, and few runs need it.

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


def is_sharded(model: nn.Module) -> bool:
    """Tell whether FSDP has left only a part of the weights in each process."""
    return any(hasattr(parameter, "full_tensor") for parameter in model.parameters())


def full_state_dict(model: nn.Module) -> dict[str, torch.Tensor]:
    """Return the full weights of a model that FSDP may have sharded. All processes call it after `train`.

    They are on the CPU, under the names of the bare model (it may be compiled), in the main process; an empty
    dict in the others.
    """
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict

    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    weights = get_model_state_dict(unwrap(model), options=options)
    return {name: value for name, value in weights.items() if isinstance(value, torch.Tensor)}


def _check_initial_weights(accelerator: Accelerator, model: nn.Module) -> None:
    """Check that all processes shard the same weights. Unlike DDP, FSDP does not copy the main one's."""
    if accelerator.is_fsdp2 and not accelerator.state.fsdp_plugin.cpu_ram_efficient_loading:
        norm = full_tensor(nn.utils.get_total_norm([parameter.detach() for parameter in model.parameters()]))
        norms = gather_object([norm.item()])
        if len(set(norms)) > 1:
            raise ValueError(
                f"under FSDP all processes have to start from the same weights; their norms are {norms}: "
                "set the same seed in each process before making the model"
            )


def ties(model: nn.Module) -> set[frozenset[str]]:
    """Find the names of parameters with several, such as an output matrix that is the embedding."""
    names: dict[int, set[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), set()).add(name)
    return {frozenset(several) for several in names.values() if len(several) > 1}


def full_tensor(tensor: torch.Tensor) -> torch.Tensor:
    """Return the full tensor, in all processes, where FSDP has left a part of it in each."""
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def run_on_all_ranks(action: Callable[[], Any], *, main_only: bool = False) -> Any:
    """Run a function in every process. An error in one is raised in all, so that none waits for it.

    With `main_only` it runs in the main process only, and all get its result.
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
def preserved_rng_state() -> Iterator[None]:
    """Restore the global random generators of Python, NumPy and PyTorch at the end."""
    states = random.getstate(), np.random.get_state()
    cards = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    with torch.random.fork_rng(cards):
        try:
            yield
        finally:
            random.setstate(states[0])
            np.random.set_state(states[1])
