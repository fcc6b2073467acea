"""What the cards of all recipes tell about the run: the versions and the hardware."""

import platform
from importlib import metadata

import torch


def versions() -> str:
    """Name the versions of what trains and tokenizes."""
    packages = ("torch", "transformers", "tokenizers")
    named = ", ".join(f"{name} {metadata.version(name)}" for name in packages)
    return f"{named}, Python {platform.python_version()}"


def hardware() -> str:
    """Name the graphics card, or the kind of processor and the threads that PyTorch used."""
    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    return f"{platform.machine()} processor, {torch.get_num_threads()} thread(s)"
