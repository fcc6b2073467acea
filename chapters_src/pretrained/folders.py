"""Checkpoint folders: a configuration, and weights in one safetensors file or in several."""

import json
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from transformers import AutoConfig

from chapters_src.pretrained.pouring import from_library
from chapters_src.pretrained.shapes import BUILDERS


def from_folder(folder: str | Path) -> nn.Module:
    """Make the model of ours from a checkpoint folder, as `save_pretrained` writes it.

    Args:
        folder: holds `config.json` and either `model.safetensors` or several files with an index. The folder
            that `resources.checkpoint("encoder")` names is one.

    Returns:
        As for `from_library`.

    Raises:
        FileNotFoundError: there is no such folder, or a file is missing.
        ValueError: a file is damaged, or as for `from_library`.
    """
    folder = Path(folder)
    settings = _read_json(folder / "config.json")
    if settings.get("model_type") not in BUILDERS:
        raise ValueError(
            f"{folder / 'config.json'} has model_type={settings.get('model_type')!r}: known are "
            f"{', '.join(BUILDERS)}"
        )
    return from_library(AutoConfig.from_pretrained(folder), _read_tensors(folder))


def _read_json(path: Path) -> dict:
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"{path.parent} is not a folder; for a model of the Hub, name the folder that "
            "huggingface_hub.snapshot_download returns"
        )
    if not path.is_file():
        raise FileNotFoundError(
            f"{path.parent} has no {path.name}: is this a checkpoint's folder, and complete?"
        )
    try:
        content = json.loads(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path} is damaged ({error}): get the file again") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} is damaged (a JSON object is needed): get the file again")
    return content


def _read_tensors(folder: Path) -> dict[str, Tensor]:
    files = ["model.safetensors"]
    index = folder / "model.safetensors.index.json"
    if not (folder / files[0]).is_file() and index.is_file():
        file_of = _read_json(index).get("weight_map")
        if not isinstance(file_of, dict) or not file_of:
            raise ValueError(f"{index} is damaged (it has no weight_map): get the file again")
        files = sorted(set(file_of.values()))
    tensors: dict[str, Tensor] = {}
    for file in files:
        if not (folder / file).is_file():
            raise FileNotFoundError(
                f"{folder} has no {file}. Weights in another format: load them with the library, and give "
                "`from_library` the model's config and state_dict()"
            )
        try:
            tensors |= load_file(folder / file)
        except SafetensorError as error:
            raise ValueError(f"{folder / file} is damaged ({error}): get the file again") from error
    return tensors
