"""Checkpoint folders: a configuration, and weights in one or several safetensors files."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, load_model, save_model
from torch import Tensor, nn
from transformers import AutoConfig

from chapters_src.files import atomic_write
from chapters_src.pretrained.configurations import BUILDERS
from chapters_src.pretrained.conversion import from_library, to_library
from chapters_src.transformer import Config, Decoder, Encoder, EncoderDecoder, LanguageModel

WEIGHTS = "model.safetensors"
_OWN_KINDS = {kind.__name__: kind for kind in (Encoder, Decoder, LanguageModel)}


def load(folder: str | Path) -> nn.Module:
    """Load a model from a checkpoint folder, in float32 and evaluation mode.

    The folder was written by `save`, or by `save_pretrained` of the Transformers library, with `config.json`
    and either `model.safetensors` or several files with an index. `resources.checkpoint("encoder")` is of the
    second kind; then the model is our equivalent, as in `from_library`.

    Raises:
        FileNotFoundError: the folder or a file does not exist.
        ValueError: a file is damaged, or as for `from_library`.
    """
    folder = Path(folder)
    settings = read_json(folder / "config.json")
    if "architecture" in settings:
        return _load_own(folder, settings)
    if settings.get("model_type") not in BUILDERS:
        raise ValueError(
            f"{folder / 'config.json'} has model_type={settings.get('model_type')!r}, which is not one of "
            f"{', '.join(BUILDERS)}"
        )
    return from_library(AutoConfig.from_pretrained(folder), _weights_of_library(folder))


def save(model: Encoder | Decoder | LanguageModel | EncoderDecoder, folder: str | Path) -> None:
    """Save the configuration and the weights of one of our models. Tied weights are written once.

    Writing is atomic. The data type is kept: `save(model.half(), folder)` writes 16 bits per number.

    Raises:
        TypeError: it is not one of our models.
        FileExistsError: the folder exists.
        OSError: the folder cannot be written.
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
        raise TypeError(f"{type(model).__name__} is not one of {', '.join(_OWN_KINDS)} and EncoderDecoder")

    with new_folder(folder) as place:
        (place / "config.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
        save_model(model, str(place / WEIGHTS))


def export(model: Encoder | LanguageModel, folder: str | Path, **token_ids: int | None) -> None:
    """Save one of our models as a checkpoint of the Transformers library.

    `AutoModel.from_pretrained(folder)` loads it, or `AutoModelForCausalLM` for a language model, and
    `generate()` and pipelines work on it; save the tokenizer there separately. An encoder has no pooler: if
    the library creates one, it is random. Writing is atomic.

    Args:
        model: an encoder like BERT, or a language model like GPT-2 or Llama.
        folder: must not exist yet.
        **token_ids: `bos_token_id`, `eos_token_id` (without it, `generate()` stops only at its maximum
            length) and `pad_token_id`, as for `to_library`.

    Raises:
        TypeError: it is another kind of model, or an id is not an integer.
        ValueError: the library does not support a setting.
        FileExistsError: the folder exists.
        OSError: the folder cannot be written.
    """
    theirs = to_library(model, **token_ids)
    with new_folder(folder) as place:
        theirs.save_pretrained(place)


@contextmanager
def new_folder(folder: str | Path) -> Iterator[Path]:
    """Write a folder atomically, and none that is there already; yield an empty one to write into.

    Raises:
        FileExistsError: the folder exists.
    """
    if Path(folder).exists():
        raise FileExistsError(f"{folder} exists already: choose another folder, or remove it")
    with atomic_write(folder) as place:
        place.mkdir()
        yield place


def _load_own(folder: Path, settings: dict) -> nn.Module:
    kind = settings.pop("architecture")
    try:
        if kind == "EncoderDecoder":
            stacks = [Config(**settings.pop(name)) for name in ("encoder", "decoder")]
            model = EncoderDecoder(*stacks, **settings)
        elif kind in _OWN_KINDS:
            model = _OWN_KINDS[kind](Config(**settings["config"]))
        else:
            raise ValueError(
                f"architecture={kind!r} is not one of {', '.join(_OWN_KINDS)} and EncoderDecoder"
            )
    except (TypeError, KeyError, ValueError) as error:
        raise ValueError(f"{folder / 'config.json'} does not describe one of our models: {error}") from error
    if not (folder / WEIGHTS).is_file():
        raise FileNotFoundError(f"{folder} has no {WEIGHTS}: is it a complete checkpoint folder?")
    try:
        load_model(model, str(folder / WEIGHTS))
    except (SafetensorError, RuntimeError) as error:
        raise ValueError(f"{folder / WEIGHTS} is damaged or belongs to another model ({error})") from error
    return model.eval()


def read_json(path: Path) -> dict:
    """Read a JSON object from a checkpoint folder.

    Raises:
        FileNotFoundError: the folder or the file does not exist.
        ValueError: the file does not contain a JSON object.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"{path.parent} is not a folder; for a model on the Hub, pass the folder that "
            "huggingface_hub.snapshot_download returns"
        )
    if not path.is_file():
        raise FileNotFoundError(f"{path.parent} has no {path.name}: is it a complete checkpoint folder?")
    try:
        content = json.loads(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path} is damaged ({error}): download the file again") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} is damaged (it is not a JSON object): download the file again")
    return content


def _weights_of_library(folder: Path) -> dict[str, Tensor]:
    files = [WEIGHTS]
    index = folder / f"{WEIGHTS}.index.json"
    if not (folder / files[0]).is_file() and index.is_file():
        files = _files_of(index)
    tensors: dict[str, Tensor] = {}
    for file in files:
        if not (folder / file).is_file():
            raise FileNotFoundError(
                f"{folder} has no {file}. For weights in another format: load them with the library, and "
                "pass the model's config and state_dict() to `from_library`"
            )
        tensors |= read_tensors(folder / file)
    return tensors


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read a file of weights.

    Raises:
        FileNotFoundError: the file does not exist.
        ValueError: it is damaged.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path.parent} has no {path.name}: is it a complete checkpoint folder?")
    try:
        return load_file(path)
    except SafetensorError as error:
        raise ValueError(f"{path} is damaged ({error}): download the file again") from error


def _files_of(index: Path) -> list[str]:
    """Return the files of an index. Only bare names are allowed, so that none is outside of its folder."""
    file_of = read_json(index).get("weight_map")
    if not isinstance(file_of, dict) or not file_of:
        raise ValueError(f"{index} is damaged (it has no weight_map): download the file again")
    for file in file_of.values():
        is_bare = isinstance(file, str) and Path(file).name == file and "\\" not in file
        if not is_bare or not file.endswith(".safetensors"):
            raise ValueError(
                f"{index} names {file!r}, but only bare names of safetensors files are allowed; do not trust "
                "this checkpoint"
            )
    return sorted(set(file_of.values()))
