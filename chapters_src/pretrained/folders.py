"""Checkpoint folders: a configuration, and weights in one safetensors file or in several."""

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, load_model, save_model
from torch import Tensor, nn
from transformers import AutoConfig

from chapters_src.pretrained.configurations import BUILDERS
from chapters_src.pretrained.conversion import from_library, to_library
from chapters_src.transformer import Config, Decoder, Encoder, EncoderDecoder, LanguageModel

WEIGHTS = "model.safetensors"
_OWN_KINDS = {kind.__name__: kind for kind in (Encoder, Decoder, LanguageModel)}


def load(folder: str | Path) -> nn.Module:
    """Make the model of ours that a checkpoint folder holds, in float32 and evaluation mode.

    Args:
        folder: one that `save` wrote; or one that the Transformers library's `save_pretrained` wrote, with
            `config.json` and either `model.safetensors` or several files with an index. The folder that
            `resources.checkpoint("encoder")` names is of the second kind.

    Returns:
        The model that was saved, or for a folder of the library as for `from_library`.

    Raises:
        FileNotFoundError: there is no such folder, or a file is missing.
        ValueError: a file is damaged, or as for `from_library`.
    """
    folder = Path(folder)
    settings = read_json(folder / "config.json")
    if "architecture" in settings:
        return _load_own(folder, settings)
    if settings.get("model_type") not in BUILDERS:
        raise ValueError(
            f"{folder / 'config.json'} has model_type={settings.get('model_type')!r}: known are "
            f"{', '.join(BUILDERS)}"
        )
    return from_library(AutoConfig.from_pretrained(folder), _read_tensors(folder))


def save(model: Encoder | Decoder | LanguageModel | EncoderDecoder, folder: str | Path) -> None:
    """Write a model of ours: its configuration, and its weights, tied ones once.

    The folder appears whole or not at all. The numbers keep their type: `save(model.half(), folder)` writes
    16 bits each.

    Args:
        model: one of ours.
        folder: must not be there yet.

    Raises:
        TypeError: another model.
        FileExistsError: there is something at that place.
        OSError: it cannot be written.
    """
    if isinstance(model, EncoderDecoder):
        settings = {
            "architecture": "EncoderDecoder",
            "encoder": asdict(model.encoder.config),
            "decoder": asdict(model.decoder.config),
            "share_embedding": model.share_embedding,
            "head_bias": model.head.projection.bias is not None,
        }
    elif type(model).__name__ in _OWN_KINDS:
        settings = {"architecture": type(model).__name__, "config": asdict(model.config)}
    else:
        raise TypeError(f"{type(model).__name__}: known are {', '.join(_OWN_KINDS)} and EncoderDecoder")

    def write(place: Path) -> None:
        (place / "config.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
        save_model(model, str(place / WEIGHTS))

    whole_or_not_at_all(Path(folder), write)


def export(model: Encoder | LanguageModel, folder: str | Path, **token_ids: int | None) -> None:
    """Write a model of ours as an ordinary checkpoint of the Transformers library.

    `AutoModel.from_pretrained(folder)` loads it, or `AutoModelForCausalLM` with the head, so that
    `generate()` and pipelines work on it; the tokenizer is saved there separately. An encoder has no pooler:
    where the library makes one, it is random. The folder appears whole or not at all.

    Args:
        model: an encoder of BERT's kind, or a language model of GPT-2's or Llama's.
        folder: must not be there yet.
        **token_ids: `bos_token_id`, `eos_token_id` (without it `generate()` does not stop by itself) and
            `pad_token_id`, as for `to_library`.

    Raises:
        TypeError: another model.
        ValueError: settings that the library's models do not have.
        FileExistsError: there is something at that place.
        OSError: it cannot be written.
    """
    theirs = to_library(model, **token_ids)
    whole_or_not_at_all(Path(folder), theirs.save_pretrained)


def whole_or_not_at_all(folder: Path, write: Callable[[Path], object]) -> None:
    """Write into a folder beside the place, then move it there."""
    if folder.exists():
        raise FileExistsError(f"{folder} is there already: name another folder, or remove it")
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        partial.chmod(0o755)  # A temporary folder is its maker's alone.
        write(partial)
        os.replace(partial, folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _load_own(folder: Path, settings: dict) -> nn.Module:
    kind = settings.pop("architecture")
    try:
        if kind == "EncoderDecoder":
            stacks = [Config(**settings.pop(name)) for name in ("encoder", "decoder")]
            model = EncoderDecoder(*stacks, **settings)
        elif kind in _OWN_KINDS:
            model = _OWN_KINDS[kind](Config(**settings["config"]))
        else:
            raise ValueError(f"architecture={kind!r}: known are {', '.join(_OWN_KINDS)} and EncoderDecoder")
    except (TypeError, KeyError, ValueError) as error:
        raise ValueError(f"{folder / 'config.json'} describes no model of ours: {error}") from error
    if not (folder / WEIGHTS).is_file():
        raise FileNotFoundError(f"{folder} has no {WEIGHTS}: is this a checkpoint's folder, and complete?")
    try:
        load_model(model, str(folder / WEIGHTS))
    except (SafetensorError, RuntimeError) as error:
        raise ValueError(f"{folder / WEIGHTS} is damaged or of another model ({error})") from error
    return model.eval()


def read_json(path: Path) -> dict:
    """Read an object of a checkpoint's folder, and say what is wrong if there is none."""
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
    files = [WEIGHTS]
    index = folder / f"{WEIGHTS}.index.json"
    if not (folder / files[0]).is_file() and index.is_file():
        files = _files_of(index)
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


def _files_of(index: Path) -> list[str]:
    """Name the files of an index: bare names, so that an index cannot lead out of its folder."""
    file_of = read_json(index).get("weight_map")
    if not isinstance(file_of, dict) or not file_of:
        raise ValueError(f"{index} is damaged (it has no weight_map): get the file again")
    for file in file_of.values():
        is_bare = isinstance(file, str) and Path(file).name == file and "\\" not in file
        if not is_bare or not file.endswith(".safetensors"):
            raise ValueError(
                f"{index} names {file!r}: bare names of safetensors files in the same folder are needed; do "
                "not trust this checkpoint"
            )
    return sorted(set(file_of.values()))
