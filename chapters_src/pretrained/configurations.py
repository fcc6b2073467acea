"""Conversion of configurations between the Transformers library and this package.

A setting that one side has and the other does not support raises an error that names it.
"""

from collections.abc import Callable, Mapping
from typing import Any

from torch import nn
from transformers import BertConfig, GPT2Config, LlamaConfig, PretrainedConfig

from chapters_src.transformer import Config, Encoder, EncoderDecoder, LanguageModel

_ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "silu": "silu",
    "swish": "silu",
}
# Settings of Qwen 3 and Gemma 3, which are converted in one direction only.
_NOT_EXPORTED = {"query_key_norm": False, "sliding_layers": ((),), "norm_output": False}
_LIBRARY_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_tanh": "gelu_new", "silu": "silu"}


# Our setting -> the library's.
_COMMON = {
    "vocab_size": "vocab_size",
    "d_model": "hidden_size",
    "num_layers": "num_hidden_layers",
    "num_heads": "num_attention_heads",
    "feed_forward_width": "intermediate_size",
    "max_length": "max_position_embeddings",
    "activation": "hidden_act",
}
_BERT = _COMMON | {
    "num_token_types": "type_vocab_size",
    "norm_epsilon": "layer_norm_eps",
    "dropout": "hidden_dropout_prob",
    "attention_dropout": "attention_probs_dropout_prob",
}
_DISTILBERT = {
    "vocab_size": "vocab_size",
    "d_model": "dim",
    "num_layers": "n_layers",
    "num_heads": "n_heads",
    "feed_forward_width": "hidden_dim",
    "max_length": "max_position_embeddings",
    "activation": "activation",
    "dropout": "dropout",
    "attention_dropout": "attention_dropout",
}
_GPT2 = {
    "vocab_size": "vocab_size",
    "d_model": "n_embd",
    "num_layers": "n_layer",
    "num_heads": "n_head",
    "feed_forward_width": "n_inner",
    "max_length": "n_positions",
    "norm_epsilon": "layer_norm_epsilon",
    "activation": "activation_function",
    "tie_weights": "tie_word_embeddings",
    "dropout": "resid_pdrop",
    "attention_dropout": "attn_pdrop",
}
_LLAMA = _COMMON | {
    "num_key_value_heads": "num_key_value_heads",
    "norm_epsilon": "rms_norm_eps",
    "bias": "attention_bias",
    "tie_weights": "tie_word_embeddings",
    "attention_dropout": "attention_dropout",
}


def _ours(config: PretrainedConfig, names: Mapping[str, str], **others: Any) -> Config:
    """Return our configuration: the settings that only have another name, and the others."""
    found = {ours: getattr(config, theirs) for ours, theirs in names.items()}
    return Config(**found | {"activation": _activation(config, names["activation"])} | others)


def _theirs(config: Config, names: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings that only have another name in the library."""
    found = {theirs: getattr(config, ours) for ours, theirs in names.items()}
    return found | {names["activation"]: _LIBRARY_ACTIVATIONS[config.activation]}


def _bert(config: PretrainedConfig) -> Encoder:
    _only(config, is_decoder=False, add_cross_attention=False, position_embedding_type="absolute")
    return Encoder(_ours(config, _BERT, positions="learned", embedding_norm=True, norm_first=False))


def _distilbert(config: PretrainedConfig) -> Encoder:
    others = {"positions": "learned", "embedding_norm": True, "norm_first": False}
    return Encoder(_ours(config, _DISTILBERT, norm_epsilon=1e-12, **others))  # The library's, without a name.


def _gpt2(config: PretrainedConfig) -> LanguageModel:
    _only(config, add_cross_attention=False, scale_attn_weights=True, scale_attn_by_inverse_layer_idx=False)
    width = config.n_inner or 4 * config.n_embd
    return LanguageModel(_ours(config, _GPT2, feed_forward_width=width, positions="learned", norm_first=True))


def _llama(config: PretrainedConfig) -> LanguageModel:
    _only(config, mlp_bias=config.attention_bias)  # Ours has biases in both or neither.
    return _like_llama(config, rotary_base=_rotary_base(config, config.rope_parameters))


def _qwen3(config: PretrainedConfig) -> LanguageModel:
    _only(config, attention_bias=False)
    base = _rotary_base(config, config.rope_parameters)
    return _like_llama(config, rotary_base=base, query_key_norm=True, **_windows(config))


def _gemma3(config: PretrainedConfig) -> LanguageModel:
    _only(
        config,
        attention_bias=False,
        query_pre_attn_scalar=config.head_dim,  # Scores are divided by the root of it.
        attn_logit_softcapping=None,
        final_logit_softcapping=None,
        use_bidirectional_attention=(False, None),
    )
    windows = _windows(config)
    if windows:
        windows["sliding_rotary_base"] = _rotary_base(config, config.rope_parameters["sliding_attention"])
    return _like_llama(
        config,
        activation="hidden_activation",
        rotary_base=_rotary_base(config, config.rope_parameters["full_attention"]),
        query_key_norm=True,
        norm_output=True,
        scale_embedding=True,
        **windows,
    )


def _like_llama(
    config: PretrainedConfig, *, activation: str = "hidden_act", **settings: Any
) -> LanguageModel:
    """Return a model with what Llama and its relatives have in common, and the settings given."""
    usual = config.head_dim * config.num_attention_heads == config.hidden_size
    return LanguageModel(
        _ours(
            config,
            _LLAMA | {"activation": activation},
            head_width=None if usual else config.head_dim,
            positions="rotary",
            norm="rms",
            norm_first=True,
            gated=True,
            **settings,
        )
    )


def _rotary_base(config: PretrainedConfig, rope: Mapping[str, Any]) -> float:
    if rope.get("rope_type", "default") != "default" or rope.get("partial_rotary_factor", 1.0) != 1.0:
        raise ValueError(
            f"{config.model_type} with rope_parameters={rope}: only rope_type='default' over whole heads is "
            "supported"
        )
    return rope["rope_theta"]


def _windows(config: PretrainedConfig) -> dict[str, Any]:
    """Return our settings of the layers that the library calls sliding."""
    sliding = tuple(i for i, kind in enumerate(config.layer_types) if kind == "sliding_attention")
    others = set(config.layer_types) - {"sliding_attention", "full_attention"}
    if others:
        raise ValueError(f"{config.model_type} with layer_types {', '.join(sorted(others))}: not supported")
    return {"sliding_window": config.sliding_window, "sliding_layers": sliding} if sliding else {}


def _bart(config: PretrainedConfig) -> EncoderDecoder:
    encoder, decoder = (_bart_stack(config, side, config.vocab_size) for side in ("encoder", "decoder"))
    return EncoderDecoder(encoder, decoder, share_embedding=config.tie_word_embeddings, head_bias=True)


def _marian(config: PretrainedConfig) -> EncoderDecoder:
    share = config.share_encoder_decoder_embeddings
    target_vocab_size = config.vocab_size if share else config.decoder_vocab_size
    return EncoderDecoder(
        _bart_stack(config, "encoder", config.vocab_size),
        _bart_stack(config, "decoder", target_vocab_size),
        share_embedding=share and config.tie_word_embeddings,
        head_bias=True,
    )


def _bart_stack(config: PretrainedConfig, side: str, vocab_size: int) -> Config:
    _only(config, is_encoder_decoder=True)
    is_bart = config.model_type == "bart"
    names = {
        "d_model": "d_model",
        "num_layers": f"{side}_layers",
        "num_heads": f"{side}_attention_heads",
        "feed_forward_width": f"{side}_ffn_dim",
        "max_length": "max_position_embeddings",
        "scale_embedding": "scale_embedding",
        "activation": "activation_function",
        "tie_weights": "tie_word_embeddings",
        "dropout": "dropout",
        "attention_dropout": "attention_dropout",
    }
    return _ours(
        config,
        names,
        vocab_size=vocab_size,
        cross_attention=side == "decoder",
        positions="learned" if is_bart else "sinusoidal_concatenated",
        embedding_norm=is_bart,
        norm_first=False,
    )


BUILDERS: dict[str, Callable[[PretrainedConfig], nn.Module]] = {
    "bert": _bert,
    "distilbert": _distilbert,
    "gpt2": _gpt2,
    "llama": _llama,
    "qwen3": _qwen3,
    "gemma3_text": _gemma3,
    "bart": _bart,
    "marian": _marian,
}


def library_config(model: Encoder | LanguageModel) -> PretrainedConfig:
    """Return the configuration of the equivalent model of the library: of BERT, GPT-2 or Llama.

    Raises:
        TypeError: it is another kind of model.
        ValueError: none of these supports a setting; the message names it.
    """
    if not isinstance(model, Encoder | LanguageModel):
        raise TypeError(f"{type(model).__name__}: only an Encoder or a LanguageModel can be exported")
    config = model.config
    if isinstance(model, Encoder):
        return _to_bert(config)
    return _to_llama(config) if config.positions == "rotary" else _to_gpt2(config)


def _to_bert(config: Config) -> BertConfig:
    _has_only(
        "BERT", config, positions="learned", norm="layer", norm_first=False, embedding_norm=True,
        gated=False, bias=True, scale_embedding=(None, False), num_key_value_heads=(None, config.num_heads),
        head_width=(None, config.d_model // config.num_heads), **_NOT_EXPORTED,
    )  # fmt: skip
    # BERT always has token types: one, of zeros, is like none.
    return BertConfig(**_theirs(config, _BERT) | {"type_vocab_size": max(config.num_token_types, 1)})


def _to_gpt2(config: Config) -> GPT2Config:
    _has_only(
        "GPT-2", config, positions="learned", norm="layer", norm_first=True, embedding_norm=False,
        gated=False, bias=True, scale_embedding=(None, False), num_key_value_heads=(None, config.num_heads),
        num_token_types=0, head_width=(None, config.d_model // config.num_heads), **_NOT_EXPORTED,
    )  # fmt: skip
    return GPT2Config(
        **_theirs(config, _GPT2), embd_pdrop=config.dropout, bos_token_id=None, eos_token_id=None
    )


def _to_llama(config: Config) -> LlamaConfig:
    _has_only(
        "Llama", config, positions="rotary", norm="rms", norm_first=True, embedding_norm=False, gated=True,
        scale_embedding=(None, False), num_token_types=0, dropout=0.0, **_NOT_EXPORTED,
    )  # fmt: skip
    return LlamaConfig(
        **_theirs(config, _LLAMA),
        head_dim=config.head_dim,
        rope_parameters={"rope_type": "default", "rope_theta": config.rotary_base},
        mlp_bias=config.bias,
        bos_token_id=None,
        eos_token_id=None,
    )


def _has_only(kind: str, config: Config, **known: object) -> None:
    """Raise a ValueError for settings of ours that the library's model does not support."""
    for name, value in known.items():
        allowed = value if isinstance(value, tuple) else (value,)
        if getattr(config, name) not in allowed:
            raise ValueError(
                f"{name}={getattr(config, name)!r} cannot be exported: {kind} needs {name}={allowed[-1]!r}"
            )


def _only(config: PretrainedConfig, **known: object) -> None:
    """Raise a ValueError for settings of the library that ours does not support."""
    for name, value in known.items():
        allowed = value if isinstance(value, tuple) else (value,)
        if getattr(config, name, allowed[0]) not in allowed:
            raise ValueError(
                f"{config.model_type} with {name}={getattr(config, name)!r}: only {allowed[0]!r} is supported"
            )


def _activation(config: PretrainedConfig, name: str) -> str:
    activation = getattr(config, name)
    if activation not in _ACTIVATIONS:
        raise ValueError(
            f"{config.model_type} with {name}={activation!r}: only {', '.join(_ACTIVATIONS)} are supported"
        )
    return _ACTIVATIONS[activation]
