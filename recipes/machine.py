"""What recipes need to know of the computer: versions and hardware, precision, the share of a process."""

import os
import platform
from importlib import metadata

import torch

from chapters_src.training import batches_per_step, best_precision


def versions() -> str:
    """Return the versions of the libraries that train and tokenize."""
    packages = ("torch", "transformers", "tokenizers")
    named = ", ".join(f"{name} {metadata.version(name)}" for name in packages)
    return f"{named}, Python {platform.python_version()}"


def hardware() -> str:
    """Return the name of the GPU, or the kind of CPU and the number of threads that PyTorch uses."""
    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    name = torch.cpu.get_capabilities().get("cpu_name", platform.machine())
    return f"{name} processor, {torch.get_num_threads()} thread(s)"


def precision(device: torch.device) -> str | None:
    """Choose the mixed precision, unless the launcher does: bf16 also on CPUs that support it in hardware.

    `best_precision`, which the chapters use, leaves CPUs in 32 bits, so that a page shows the same numbers on
    all of them. A recipe reports the numbers of one run, and 16 bits halve its time.
    """
    if "ACCELERATE_MIXED_PRECISION" in os.environ:
        return None
    capabilities = torch.cpu.get_capabilities()
    if device.type == "cpu" and (capabilities.get("avx512_bf16") or capabilities.get("amx_bf16")):
        return "bf16"
    return best_precision(device)


def tokens_per_process(tokens: int) -> int:
    """Divide the token budget of a step by the number of batches that make it.

    Args:
        tokens: at most, in one step of all processes and accumulated batches.

    Returns:
        The budget of one batch.
    """
    return tokens // batches_per_step()


def rows_per_process(rows: int, option: str) -> int:
    """Divide the rows of a step by the number of batches that make it.

    Args:
        rows: in one step of all processes and accumulated batches.
        option: its name, for the error.

    Returns:
        The rows of one batch.

    Raises:
        ValueError: they cannot be divided equally.
    """
    parts = batches_per_step()
    if rows % parts:
        raise ValueError(
            f"{option} {rows} is the batch of a whole step and cannot be divided equally by {parts} "
            "(processes times accumulated batches): use a multiple of it"
        )
    return rows // parts
