"""What determines a training, so that a run is resumed only as the run that it was.

Numbers of processes, the length of the run and the intervals of checkpoints, evaluations and logging are left
out on purpose: a run may be resumed with others.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

import torch
from accelerate import Accelerator, PartialState
from accelerate.utils import gather_object
from torch import nn

from chapters_src.training.launch import unwrap
from chapters_src.training.settings import Settings

_MAY_CHANGE = {
    "num_epochs",
    "max_steps",
    "accumulation_steps",  # It counts in the size of a step.
    "mixed_precision",  # The launcher may have set it.
    "log_every",
    "evaluate_every",
    "checkpoint_every",
}
_SAME_RESULT = {"training", "gradient_checkpointing"}  # Attributes of modules that are no options.
_SAME_UPDATE = {"params", "fused", "foreach", "capturable", "differentiable"}  # Ways to compute one update.
_SHOWN = 6  # Differences in a message.

Conditions = dict[str, Any]


def model_options(model: nn.Module) -> Conditions:
    """Collect the options of a model that its weights do not show, such as the dropout of each layer.

    These are all public numbers that are attributes of its modules, and the fields of their dataclasses.
    """
    found: Conditions = {}
    for path, module in unwrap(model).named_modules():
        owner = f"{path or 'the model'} ({type(module).__name__})"
        for name, value in vars(module).items():
            if name.startswith("_") or name in _SAME_RESULT:
                continue
            if isinstance(value, bool | int | float):
                found[f"{name} of {owner}"] = value
            elif is_dataclass(value) and not isinstance(value, type):
                fields = asdict(value).items()
                found |= {f"{field} in {name} of {owner}": _plain(content) for field, content in fields}
    return found


def optimizer_options(optimizers: Sequence[torch.optim.Optimizer]) -> Conditions:
    """Collect the options of optimizers, and the number of parameters in each group.

    The schedule must not have changed their learning rates yet.
    """
    found: Conditions = {}
    for number, optimizer in enumerate(optimizers, start=1):
        for i, group in enumerate(optimizer.param_groups):
            owner = f"{type(optimizer).__name__} (optimizer {number}, group {i})"
            found[f"number of parameters of {owner}"] = len(group["params"])
            options = group.items()
            found |= {f"{name} of {owner}": _plain(v) for name, v in options if name not in _SAME_UPDATE}
    return found


def run_conditions(accelerator: Accelerator, settings: Settings, data: Mapping[str, object]) -> Conditions:
    """Collect everything else: settings, engine, and the fingerprint of the data and their batches."""
    sharding = None
    if accelerator.is_fsdp2:
        sharding = f"FSDP2, {accelerator.state.fsdp_plugin.state_dict_type.name}"
    return {
        **{name: value for name, value in asdict(settings).items() if name not in _MAY_CHANGE},
        "mixed_precision": accelerator.mixed_precision,
        "sharding": sharding,
        **data,
    }


def as_stored(conditions: Conditions) -> Conditions:
    """Return conditions as they come back from a JSON file, where tuples are lists."""
    return json.loads(json.dumps(conditions))


def differences(then: Mapping[str, object], now: Mapping[str, object]) -> str:
    """Describe how the stored conditions of two runs differ; empty if they do not."""
    found = [
        f"{name} was {then.get(name)!r} and is {now.get(name)!r}"
        for name in {**then, **now}
        if then.get(name) != now.get(name)
    ]
    more = [f"and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
    return "; ".join([*found[:_SHOWN], *more])


def check_same_in_all_processes(conditions: Conditions) -> None:
    """Check that all processes are about to do the same training on the same data. All of them call it.

    Raises:
        ValueError: the stored conditions of some process differ from the main one's.
    """
    everyone = gather_object([conditions])
    for rank, other in enumerate(everyone[: PartialState().num_processes]):
        unequal = [name for name in {**everyone[0], **other} if everyone[0].get(name) != other.get(name)]
        if unequal:
            pairs = [f"{name} {everyone[0].get(name)!r} and {other.get(name)!r}" for name in unequal[:_SHOWN]]
            raise ValueError(
                f"the main process and process {rank} would train on different data or with different "
                f"options: {'; '.join(pairs)}. All processes need the same data; each then trains on its "
                "share. For streams that differ on purpose set split_stream=False"
            )


def _plain(value: object) -> object:
    """Return a value that JSON can store and that is equal in another process."""
    if isinstance(value, torch.Tensor):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return getattr(value, "__qualname__", type(value).__qualname__)
