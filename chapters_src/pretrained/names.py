"""Names of our parameters and those of the Transformers library, for each model type."""

from collections.abc import Iterable, Mapping


def _each(pattern: str, parts: Iterable[str]) -> tuple[str, ...]:
    return tuple(pattern.format(part) for part in parts)


_BERT = {
    "embedding.tokens": "embeddings.word_embeddings",
    "embedding.positions": "embeddings.position_embeddings",
    "embedding.types": "embeddings.token_type_embeddings",
    "embedding.norm": "embeddings.LayerNorm",
    "stack.layers.*.attention.query_key_value": _each(
        "encoder.layer.*.attention.self.{}", ("query", "key", "value")
    ),
    "stack.layers.*.attention.output": "encoder.layer.*.attention.output.dense",
    "stack.layers.*.attention_norm": "encoder.layer.*.attention.output.LayerNorm",
    "stack.layers.*.feed_forward.up": "encoder.layer.*.intermediate.dense",
    "stack.layers.*.feed_forward.down": "encoder.layer.*.output.dense",
    "stack.layers.*.feed_forward_norm": "encoder.layer.*.output.LayerNorm",
}

_DISTILBERT = {
    "embedding.tokens": "embeddings.word_embeddings",
    "embedding.positions": "embeddings.position_embeddings",
    "embedding.norm": "embeddings.LayerNorm",
    "stack.layers.*.attention.query_key_value": _each("transformer.layer.*.attention.{}_lin", "qkv"),
    "stack.layers.*.attention.output": "transformer.layer.*.attention.out_lin",
    "stack.layers.*.attention_norm": "transformer.layer.*.sa_layer_norm",
    "stack.layers.*.feed_forward.up": "transformer.layer.*.ffn.lin1",
    "stack.layers.*.feed_forward.down": "transformer.layer.*.ffn.lin2",
    "stack.layers.*.feed_forward_norm": "transformer.layer.*.output_layer_norm",
}

_GPT2 = {
    "decoder.embedding.tokens": "wte",
    "decoder.embedding.positions": "wpe",
    "decoder.stack.layers.*.attention_norm": "h.*.ln_1",
    "decoder.stack.layers.*.attention.query_key_value": "h.*.attn.c_attn",
    "decoder.stack.layers.*.attention.output": "h.*.attn.c_proj",
    "decoder.stack.layers.*.feed_forward_norm": "h.*.ln_2",
    "decoder.stack.layers.*.feed_forward.up": "h.*.mlp.c_fc",
    "decoder.stack.layers.*.feed_forward.down": "h.*.mlp.c_proj",
    "decoder.stack.norm": "ln_f",
    "head.projection": "lm_head",
}

_LLAMA = {
    "decoder.embedding.tokens": "embed_tokens",
    "decoder.stack.layers.*.attention_norm": "layers.*.input_layernorm",
    "decoder.stack.layers.*.attention.query_key_value": _each("layers.*.self_attn.{}_proj", "qkv"),
    "decoder.stack.layers.*.attention.output": "layers.*.self_attn.o_proj",
    "decoder.stack.layers.*.feed_forward_norm": "layers.*.post_attention_layernorm",
    "decoder.stack.layers.*.feed_forward.gate": "layers.*.mlp.gate_proj",
    "decoder.stack.layers.*.feed_forward.up": "layers.*.mlp.up_proj",
    "decoder.stack.layers.*.feed_forward.down": "layers.*.mlp.down_proj",
    "decoder.stack.norm": "norm",
    "head.projection": "lm_head",
}

_QWEN3 = _LLAMA | {
    "decoder.stack.layers.*.attention.query_norm": "layers.*.self_attn.q_norm",
    "decoder.stack.layers.*.attention.key_norm": "layers.*.self_attn.k_norm",
}

_GEMMA3 = _QWEN3 | {
    "decoder.stack.layers.*.attention_output_norm": "layers.*.post_attention_layernorm",
    "decoder.stack.layers.*.feed_forward_norm": "layers.*.pre_feedforward_layernorm",
    "decoder.stack.layers.*.feed_forward_output_norm": "layers.*.post_feedforward_layernorm",
}

_BART_STACK = {
    "embedding.tokens": "embed_tokens",
    "embedding.positions": "embed_positions",
    "embedding.norm": "layernorm_embedding",
    "stack.layers.*.attention.query_key_value": _each("layers.*.self_attn.{}_proj", "qkv"),
    "stack.layers.*.attention.output": "layers.*.self_attn.out_proj",
    "stack.layers.*.attention_norm": "layers.*.self_attn_layer_norm",
    "stack.layers.*.cross_attention.query": "layers.*.encoder_attn.q_proj",
    "stack.layers.*.cross_attention.key_value": _each("layers.*.encoder_attn.{}_proj", "kv"),
    "stack.layers.*.cross_attention.output": "layers.*.encoder_attn.out_proj",
    "stack.layers.*.cross_attention_norm": "layers.*.encoder_attn_layer_norm",
    "stack.layers.*.feed_forward.up": "layers.*.fc1",
    "stack.layers.*.feed_forward.down": "layers.*.fc2",
    "stack.layers.*.feed_forward_norm": "layers.*.final_layer_norm",
}
_BART = {
    f"{side}.{ours}": f"{side}.{theirs}" if isinstance(theirs, str) else _each(f"{side}.{{}}", theirs)
    for side in ("encoder", "decoder")
    for ours, theirs in _BART_STACK.items()
} | {"head.projection.weight": "lm_head.weight", "head.projection.bias": "final_logits_bias"}

# Our module -> the library's module, for `weight` and `bias`; * stands for the number of a layer. Where there
# are several names, our matrix stacks theirs: query, key and value, or key and value. Entries that a model
# does not have are ignored.
NAMES: dict[str, Mapping[str, str | tuple[str, ...]]] = {
    "bert": _BERT,
    "distilbert": _DISTILBERT,
    "gpt2": _GPT2,
    "llama": _LLAMA,
    "qwen3": _QWEN3,
    "gemma3_text": _GEMMA3,
    "bart": _BART,
    "marian": _BART,
}

# The base model's name inside a model with a head, which names may begin with.
PREFIXES = {
    "bert": "bert.",
    "distilbert": "distilbert.",
    "gpt2": "transformer.",
    "llama": "model.",
    "qwen3": "model.",
    "gemma3_text": "model.",
    "bart": "model.",
    "marian": "model.",
}

# Tensors of the library that ours do not need.
LEFT_OUT = {
    "bert": (
        "pooler.*",  # A layer on [CLS], trained to predict whether one sentence follows the other.
        "cls.*",  # The heads of BERT's pretraining: masked tokens, next sentence.
        "embeddings.position_ids",  # 0, 1, 2, ...
    ),
    "distilbert": ("vocab_*", "embeddings.position_ids"),  # The head of its pretraining: masked tokens.
    "gpt2": ("h.*.attn.bias", "h.*.attn.masked_bias"),  # The causal mask, in older files.
    "llama": ("layers.*.self_attn.rotary_emb.inv_freq",),  # Computed from the configuration.
    "qwen3": (),
    "gemma3_text": (),
    "bart": (
        "encoder.version",
        "decoder.version",
        "shared.weight",
    ),  # `shared` is used if both stacks share it.
    "marian": ("shared.weight", "*.embed_positions.weight"),  # Sinusoids: compared with ours, not copied.
}
