"""Conversion of weights between the Transformers library and this package."""

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from transformers import BertModel, GPT2LMHeadModel, LlamaForCausalLM, PretrainedConfig, PreTrainedModel

from chapters_src.pretrained.configurations import BUILDERS, library_config
from chapters_src.pretrained.names import LEFT_OUT, NAMES, PREFIXES
from chapters_src.transformer import Encoder, EncoderDecoder, LanguageModel

# Our names of an embedding that both stacks share; the library may call it `shared`.
_SHARED = {"encoder.embedding.tokens.weight", "decoder.embedding.tokens.weight"}

_CLASSES = {"bert": BertModel, "gpt2": GPT2LMHeadModel, "llama": LlamaForCausalLM}


class _WithoutDraws(TorchFunctionMode):
    """Skip the random initialization of weights that are replaced: for a large model it takes seconds."""

    def __torch_function__(
        self, func: Callable, types: object, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        if func in (nn.init.normal_, nn.init.kaiming_uniform_, nn.init.uniform_):
            return args[0] if args else (kwargs or {})["tensor"]
        return func(*args, **(kwargs or {}))


def from_library(config: PretrainedConfig, tensors: Mapping[str, Tensor]) -> nn.Module:
    """Return our equivalent of a model of the Transformers library.

    The weights are copied to float32, and no random numbers are drawn. Dropout of hidden states and attention
    weights is as in the library; other kinds of dropout, which a few models have, are not supported.

    Args:
        config: the library's configuration; `model_type` is a key of `NAMES`.
        tensors: the weights, as returned by `state_dict()` of the base model or of the model with its
            language-model head. Those that `LEFT_OUT` lists are ignored.

    Returns:
        An `Encoder` (BERT, DistilBERT), a `LanguageModel` (GPT-2, Llama, Qwen 3, the text model of Gemma 3)
        or an `EncoderDecoder` (BART, Marian), in evaluation mode.

    Raises:
        ValueError: the model type or a setting is not supported; or tensors are missing, left over, of
            another shape, or not of a floating-point type. The message names each.
    """
    if config.model_type not in BUILDERS:
        raise ValueError(f"model_type={config.model_type!r} is not one of {', '.join(BUILDERS)}")
    with _WithoutDraws():
        model = BUILDERS[config.model_type](config)
    _copy(model, config, _by_bare_name(config, tensors))
    return model.eval()


def to_library(
    model: Encoder | LanguageModel,
    *,
    bos_token_id: int | None = None,
    eos_token_id: int | None = None,
    pad_token_id: int | None = None,
) -> PreTrainedModel:
    """Return the library's equivalent of one of our models.

    Args:
        model: an encoder like BERT, or a language model like GPT-2 or Llama.
        bos_token_id: the id that begins a text, which our models do not store; None: there is none.
        eos_token_id: the id that ends a text, where `generate()` stops.
        pad_token_id: the id for padding.

    Returns:
        A `BertModel`, `GPT2LMHeadModel` or `LlamaForCausalLM` with copies of the weights, in the same data
        type and in evaluation mode. The `BertModel` has no pooler.

    Raises:
        TypeError: it is another kind of model, or an id is not an integer.
        ValueError: the library does not support a setting.
    """
    config = library_config(model)
    token_ids = {"bos_token_id": bos_token_id, "eos_token_id": eos_token_id, "pad_token_id": pad_token_id}
    for name, token_id in token_ids.items():
        setattr(config, name, None if token_id is None else operator.index(token_id))
    options = {"add_pooling_layer": False} if config.model_type == "bert" else {}
    theirs = _CLASSES[config.model_type](config, **options).to(next(model.parameters()).dtype)
    tensors = _by_bare_name(config, theirs.state_dict())  # Views of their parameters.
    with torch.no_grad():
        for _, place, names in _places(model, config.model_type):
            for name in names:
                if name in tensors:
                    _in_our_form(config.model_type, name, tensors[name]).copy_(place)
        if config.model_type == "bert" and model.config.num_token_types == 0:
            theirs.embeddings.token_type_embeddings.weight.zero_()
    return theirs.eval()


def _by_bare_name(config: PretrainedConfig, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Remove the prefix from names, and rename gamma and beta, which older BERT files have in norms."""
    bare: dict[str, Tensor] = {}
    for full, tensor in tensors.items():
        name = full.removeprefix(PREFIXES[config.model_type])
        if config.model_type == "bert":
            name = re.sub(r"LayerNorm\.gamma$", "LayerNorm.weight", name)
            name = re.sub(r"LayerNorm\.beta$", "LayerNorm.bias", name)
        if name in bare:
            raise ValueError(f"two tensors for {name}, the second is {full}: remove one of them")
        bare[name] = tensor
    return bare


def _copy(model: nn.Module, config: PretrainedConfig, tensors: dict[str, Tensor]) -> None:
    """Copy the tensors into the model, or raise a ValueError that names all problems."""
    tensors = _computed(model) | tensors
    used, problems = set(), []
    for ours, place, names in _places(model, config.model_type):
        present = [name for name in names if name in tensors]
        used.update(present)
        if not present:
            problems.append(f"missing: {' or '.join(names)}, for our {ours} {tuple(place.shape)}")
        for name in present:
            changed = _in_our_form(config.model_type, name, tensors[name])
            if changed.shape != place.shape:
                problems.append(
                    f"misshapen: {name} {tuple(tensors[name].shape)} gives {tuple(changed.shape)} for our "
                    f"{ours}, where {tuple(place.shape)} is needed"
                )
            elif not changed.is_floating_point():
                problems.append(f"not floating point: {name} {tuple(changed.shape)} is {changed.dtype}")
            elif name == present[0]:
                place.detach().copy_(changed)
            elif not torch.equal(place.detach(), changed.to(place)):
                problems.append(f"tied, so they should be equal, but are not: {present[0]} and {name}")
    problems += _other_sinusoids(model, config.model_type, tensors)
    known = LEFT_OUT[config.model_type]
    for name in tensors.keys() - used:
        if not any(fnmatchcase(name, pattern) for pattern in known):
            problems.append(f"left over: {name} {tuple(tensors[name].shape)}")
    if problems:
        raise ValueError(
            f"these weights do not match the configuration of the {config.model_type} model:\n  "
            + "\n  ".join(sorted(problems))
        )


def _other_sinusoids(model: nn.Module, model_type: str, tensors: Mapping[str, Tensor]) -> list[str]:
    """Return the problems of position tables that are not the sinusoids we compute."""
    if model_type != "marian" or not isinstance(model, EncoderDecoder):
        return []
    problems = []
    for side, stack in (("encoder", model.encoder), ("decoder", model.decoder)):
        name, ours = f"{side}.embed_positions.weight", stack.embedding.sinusoids
        theirs = tensors.get(name)
        if ours is None or theirs is None:
            continue
        if theirs.shape != ours.shape:
            problems.append(f"misshapen: {name} {tuple(theirs.shape)}, where {tuple(ours.shape)} is needed")
        elif not torch.allclose(theirs.to(ours), ours, atol=0.01):  # Half precision has 3 digits.
            problems.append(f"not sinusoidal, so not supported: {name}")
    return problems


def _computed(model: nn.Module) -> dict[str, Tensor]:
    """Return the tensors that the library creates if a file does not have them."""
    if not isinstance(model, EncoderDecoder):
        return {}
    return {"final_logits_bias": torch.zeros(1, model.head.projection.out_features)}


def _places(model: nn.Module, model_type: str) -> Iterator[tuple[str, Tensor, list[str]]]:
    """Yield all weights of the model: our name, the tensor to copy to, and the library's possible names."""
    names_of: dict[Tensor, list[str]] = {}  # Tied weights are one tensor with several names.
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names_of.setdefault(parameter, []).append(name)
    for parameter, ours in names_of.items():
        theirs = [_theirs(NAMES[model_type], name) for name in ours]
        # One tensor of ours, several of theirs: query, key and value, or key and value.
        if len(theirs[0]) > 1:
            attention: Any = model.get_submodule(ours[0].rsplit(".", 2)[0])  # Of ours, of either kind.
            rows = attention.num_key_value_heads * attention.head_dim
            parts = [parameter.size(0) - 2 * rows, rows, rows][-len(theirs[0]) :]
            for place, name in zip(parameter.split(parts), theirs[0], strict=True):
                yield ours[0], place, [name]
        else:
            shared = ["shared.weight"] if _SHARED.issubset(ours) else []
            yield ours[0], parameter, [name for names in theirs for name in names] + shared


def _theirs(names: Mapping[str, str | tuple[str, ...]], ours: str) -> list[str]:
    """Return the library's names for one of our tensors, listed by itself or by its module."""
    layer = re.search(r"\.(\d+)\.", ours)
    general = re.sub(r"\.\d+\.", ".*.", ours)
    module, kind = general.rsplit(".", 1)
    theirs, ending = (names[general], "") if general in names else (names[module], f".{kind}")
    several = (theirs,) if isinstance(theirs, str) else theirs
    return [name.replace("*", layer[1] if layer else "") + ending for name in several]


def _in_our_form(model_type: str, name: str, tensor: Tensor) -> Tensor:
    """Return a tensor of the library in our layout: a view of it, except for Gemma's norms."""
    if model_type == "gpt2" and name.startswith("h.") and tensor.ndim == 2:
        return tensor.t()  # GPT-2's matrices are (inputs, outputs); nn.Linear has (outputs, inputs).
    if model_type == "bart" and name.endswith("embed_positions.weight") and tensor.ndim == 2:
        return tensor[2:]  # BART counts positions from 2; the first two rows are not used.
    if model_type == "gemma3_text" and name.endswith("norm.weight"):
        return tensor.float() + 1  # Gemma's norms multiply by 1 + weight.
    if name == "final_logits_bias":
        return tensor.squeeze(0)  # (1, vocab_size)
    return tensor
