"""What several processes do together. In one process all of it does nothing, or only what it is given."""

import itertools
from collections.abc import Callable
from typing import Any

import torch
from accelerate import PartialState
from accelerate.utils import broadcast, broadcast_object_list, reduce
from torch import nn


def start_alike(model: nn.Module, device: torch.device) -> None:
    """Move the model to the device of this process, and give it the weights of the main one."""
    model.to(device)
    with torch.no_grad():
        for tensor in itertools.chain(model.parameters(), model.buffers()):
            tensor.copy_(broadcast(tensor.detach().clone()))


def sum_gradients(parameters: list[nn.Parameter]) -> None:
    """Sum gradients over the processes. What no process has used keeps no gradient, and so its value."""
    uses = torch.tensor([float(p.grad is not None) for p in parameters], device=parameters[0].device)
    for parameter, is_used in zip(parameters, reduce(uses, "sum").tolist(), strict=True):
        if is_used:
            own = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            parameter.grad = reduce(own, "sum")


def on_main_process(action: Callable[[], Any]) -> Any:
    """Do something on the main process; all get its result, or raise its error."""
    outcome: list[Any] = [None, None]
    if PartialState().is_main_process:
        try:
            outcome[0] = action()
        except Exception as error:
            outcome[1] = error
    result, error = broadcast_object_list(outcome)
    if error is not None:
        raise error
    return result
