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


def _bert(config: PretrainedConfig) -> Encoder:
    _only(config, is_decoder=False, add_cross_attention=False, position_embedding_type="absolute")
    return Encoder(
        Config(
            vocab_size=config.vocab_size,
            d_model=config.hidden_size,
            num_layers=config.num_hidden_layers,
            num_heads=config.num_attention_heads,
            feed_forward_width=config.intermediate_size,
            max_length=config.max_position_embeddings,
            positions="learned",
            num_token_types=config.type_vocab_size,
            embedding_norm=True,
            norm_first=False,
            norm_epsilon=config.layer_norm_eps,
            activation=_activation(config, "hidden_act"),
            dropout=config.hidden_dropout_prob,
            attention_dropout=config.attention_probs_dropout_prob,
        )
    )


def _distilbert(config: PretrainedConfig) -> Encoder:
    return Encoder(
        Config(
            vocab_size=config.vocab_size,
            d_model=config.dim,
            num_layers=config.n_layers,
            num_heads=config.n_heads,
            feed_forward_width=config.hidden_dim,
            max_length=config.max_position_embeddings,
            positions="learned",
            embedding_norm=True,
            norm_first=False,
            norm_epsilon=1e-12,  # The library has no setting for it.
            activation=_activation(config, "activation"),
            dropout=config.dropout,
            attention_dropout=config.attention_dropout,
        )
    )


def _gpt2(config: PretrainedConfig) -> LanguageModel:
    _only(config, add_cross_attention=False, scale_attn_weights=True, scale_attn_by_inverse_layer_idx=False)
    return LanguageModel(
        Config(
            vocab_size=config.vocab_size,
            d_model=config.n_embd,
            num_layers=config.n_layer,
            num_heads=config.n_head,
            feed_forward_width=config.n_inner or 4 * config.n_embd,
            max_length=config.n_positions,
            positions="learned",
            norm_first=True,
            norm_epsilon=config.layer_norm_epsilon,
            activation=_activation(config, "activation_function"),
            tie_weights=config.tie_word_embeddings,
            dropout=config.resid_pdrop,
            attention_dropout=config.attn_pdrop,
        )
    )


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
        base = _rotary_base(config, config.rope_parameters["sliding_attention"])
        windows["sliding_rotary_base"] = base
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
        Config(
            vocab_size=config.vocab_size,
            d_model=config.hidden_size,
            num_layers=config.num_hidden_layers,
            num_heads=config.num_attention_heads,
            num_key_value_heads=config.num_key_value_heads,
            head_width=None if usual else config.head_dim,
            feed_forward_width=config.intermediate_size,
            max_length=config.max_position_embeddings,
            positions="rotary",
            norm="rms",
            norm_first=True,
            norm_epsilon=config.rms_norm_eps,
            activation=_activation(config, activation),
            gated=True,
            bias=config.attention_bias,
            tie_weights=config.tie_word_embeddings,
            attention_dropout=config.attention_dropout,
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
    return Config(
        vocab_size=vocab_size,
        d_model=config.d_model,
        num_layers=getattr(config, f"{side}_layers"),
        num_heads=getattr(config, f"{side}_attention_heads"),
        feed_forward_width=getattr(config, f"{side}_ffn_dim"),
        max_length=config.max_position_embeddings,
        cross_attention=side == "decoder",
        positions="learned" if is_bart else "sinusoidal_concatenated",
        scale_embedding=config.scale_embedding,
        embedding_norm=is_bart,
        norm_first=False,
        activation=_activation(config, "activation_function"),
        tie_weights=config.tie_word_embeddings,
        dropout=config.dropout,
        attention_dropout=config.attention_dropout,
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
    """Return the configuration of the equivalent model of the library.

    Args:
        model: an encoder like BERT, or a language model like GPT-2 or Llama.

    Returns:
        A `BertConfig`, `GPT2Config` or `LlamaConfig`.

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
    return BertConfig(
        vocab_size=config.vocab_size,
        hidden_size=config.d_model,
        num_hidden_layers=config.num_layers,
        num_attention_heads=config.num_heads,
        intermediate_size=config.feed_forward_width,
        max_position_embeddings=config.max_length,
        type_vocab_size=max(
            config.num_token_types, 1
        ),  # BERT always has token types: one, of zeros, is like none.
        layer_norm_eps=config.norm_epsilon,
        hidden_act=_LIBRARY_ACTIVATIONS[config.activation],
        hidden_dropout_prob=config.dropout,
        attention_probs_dropout_prob=config.attention_dropout,
    )


def _to_gpt2(config: Config) -> GPT2Config:
    _has_only(
        "GPT-2", config, positions="learned", norm="layer", norm_first=True, embedding_norm=False,
        gated=False, bias=True, scale_embedding=(None, False), num_key_value_heads=(None, config.num_heads),
        num_token_types=0, head_width=(None, config.d_model // config.num_heads), **_NOT_EXPORTED,
    )  # fmt: skip
    return GPT2Config(
        vocab_size=config.vocab_size,
        n_embd=config.d_model,
        n_layer=config.num_layers,
        n_head=config.num_heads,
        n_inner=config.feed_forward_width,
        n_positions=config.max_length,
        layer_norm_epsilon=config.norm_epsilon,
        activation_function=_LIBRARY_ACTIVATIONS[config.activation],
        tie_word_embeddings=config.tie_weights,
        resid_pdrop=config.dropout,
        embd_pdrop=config.dropout,
        attn_pdrop=config.attention_dropout,
        bos_token_id=None,
        eos_token_id=None,
    )


def _to_llama(config: Config) -> LlamaConfig:
    _has_only(
        "Llama", config, positions="rotary", norm="rms", norm_first=True, embedding_norm=False, gated=True,
        scale_embedding=(None, False), num_token_types=0, dropout=0.0, **_NOT_EXPORTED,
    )  # fmt: skip
    return LlamaConfig(
        vocab_size=config.vocab_size,
        hidden_size=config.d_model,
        num_hidden_layers=config.num_layers,
        num_attention_heads=config.num_heads,
        num_key_value_heads=config.num_key_value_heads,
        head_dim=config.head_dim,
        intermediate_size=config.feed_forward_width,
        max_position_embeddings=config.max_length,
        rope_parameters={"rope_type": "default", "rope_theta": config.rotary_base},
        rms_norm_eps=config.norm_epsilon,
        hidden_act=_LIBRARY_ACTIVATIONS[config.activation],
        attention_bias=config.bias,
        mlp_bias=config.bias,
        tie_word_embeddings=config.tie_weights,
        attention_dropout=config.attention_dropout,
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
