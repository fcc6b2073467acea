"""Where the Transformers library keeps what our modules keep: a table for each kind of model."""


def _projections(attention: str) -> tuple[str, str, str]:
    """Name the three matrices that one of ours holds, in the order of its rows: query, key, value."""
    return f"{attention}.q_proj", f"{attention}.k_proj", f"{attention}.v_proj"


_BERT = {
    "embedding.tokens": "embeddings.word_embeddings",
    "embedding.positions": "embeddings.position_embeddings",
    "embedding.types": "embeddings.token_type_embeddings",
    "embedding.norm": "embeddings.LayerNorm",
    "layers.*.attention.projection": (
        "encoder.layer.*.attention.self.query",
        "encoder.layer.*.attention.self.key",
        "encoder.layer.*.attention.self.value",
    ),
    "layers.*.attention.output": "encoder.layer.*.attention.output.dense",
    "layers.*.attention_residual.norm": "encoder.layer.*.attention.output.LayerNorm",
    "layers.*.feed_forward.up": "encoder.layer.*.intermediate.dense",
    "layers.*.feed_forward.down": "encoder.layer.*.output.dense",
    "layers.*.feed_forward_residual.norm": "encoder.layer.*.output.LayerNorm",
}

_DISTILBERT = {
    "embedding.tokens": "embeddings.word_embeddings",
    "embedding.positions": "embeddings.position_embeddings",
    "embedding.norm": "embeddings.LayerNorm",
    "layers.*.attention.projection": (
        "transformer.layer.*.attention.q_lin",
        "transformer.layer.*.attention.k_lin",
        "transformer.layer.*.attention.v_lin",
    ),
    "layers.*.attention.output": "transformer.layer.*.attention.out_lin",
    "layers.*.attention_residual.norm": "transformer.layer.*.sa_layer_norm",
    "layers.*.feed_forward.up": "transformer.layer.*.ffn.lin1",
    "layers.*.feed_forward.down": "transformer.layer.*.ffn.lin2",
    "layers.*.feed_forward_residual.norm": "transformer.layer.*.output_layer_norm",
}

_GPT2 = {
    "decoder.embedding.tokens": "wte",
    "decoder.embedding.positions": "wpe",
    "decoder.layers.*.attention_residual.norm": "h.*.ln_1",
    "decoder.layers.*.attention.projection": "h.*.attn.c_attn",
    "decoder.layers.*.attention.output": "h.*.attn.c_proj",
    "decoder.layers.*.feed_forward_residual.norm": "h.*.ln_2",
    "decoder.layers.*.feed_forward.up": "h.*.mlp.c_fc",
    "decoder.layers.*.feed_forward.down": "h.*.mlp.c_proj",
    "decoder.norm": "ln_f",
    "head.vocabulary": "lm_head",
}

_LLAMA = {
    "decoder.embedding.tokens": "embed_tokens",
    "decoder.layers.*.attention_residual.norm": "layers.*.input_layernorm",
    "decoder.layers.*.attention.projection": _projections("layers.*.self_attn"),
    "decoder.layers.*.attention.output": "layers.*.self_attn.o_proj",
    "decoder.layers.*.feed_forward_residual.norm": "layers.*.post_attention_layernorm",
    "decoder.layers.*.feed_forward.gate": "layers.*.mlp.gate_proj",
    "decoder.layers.*.feed_forward.up": "layers.*.mlp.up_proj",
    "decoder.layers.*.feed_forward.down": "layers.*.mlp.down_proj",
    "decoder.norm": "norm",
    "head.vocabulary": "lm_head",
}

_BART = {
    "encoder.embedding.tokens": "encoder.embed_tokens",
    "encoder.embedding.positions": "encoder.embed_positions",
    "encoder.embedding.norm": "encoder.layernorm_embedding",
    "encoder.layers.*.attention.projection": _projections("encoder.layers.*.self_attn"),
    "encoder.layers.*.attention.output": "encoder.layers.*.self_attn.out_proj",
    "encoder.layers.*.attention_residual.norm": "encoder.layers.*.self_attn_layer_norm",
    "encoder.layers.*.feed_forward.up": "encoder.layers.*.fc1",
    "encoder.layers.*.feed_forward.down": "encoder.layers.*.fc2",
    "encoder.layers.*.feed_forward_residual.norm": "encoder.layers.*.final_layer_norm",
    "decoder.embedding.tokens": "decoder.embed_tokens",
    "decoder.embedding.positions": "decoder.embed_positions",
    "decoder.embedding.norm": "decoder.layernorm_embedding",
    "decoder.layers.*.attention.projection": _projections("decoder.layers.*.self_attn"),
    "decoder.layers.*.attention.output": "decoder.layers.*.self_attn.out_proj",
    "decoder.layers.*.attention_residual.norm": "decoder.layers.*.self_attn_layer_norm",
    "decoder.layers.*.cross_attention.projection": _projections("decoder.layers.*.encoder_attn"),
    "decoder.layers.*.cross_attention.output": "decoder.layers.*.encoder_attn.out_proj",
    "decoder.layers.*.cross_attention_residual.norm": "decoder.layers.*.encoder_attn_layer_norm",
    "decoder.layers.*.feed_forward.up": "decoder.layers.*.fc1",
    "decoder.layers.*.feed_forward.down": "decoder.layers.*.fc2",
    "decoder.layers.*.feed_forward_residual.norm": "decoder.layers.*.final_layer_norm",
    "head.vocabulary.weight": "lm_head.weight",
    "head.vocabulary.bias": "final_logits_bias",
}

# Our part -> the library's, whose `weight` and `bias` are meant; * stands for the number of a layer. Three
# names are three matrices that ours holds one below the other. What a model does not have is not looked up.
NAMES: dict[str, dict[str, str | tuple[str, ...]]] = {
    "bert": _BERT,
    "distilbert": _DISTILBERT,
    "gpt2": _GPT2,
    "llama": _LLAMA,
    "bart": _BART,
    "marian": _BART,
}

# The body's name inside a model with a head; it may be there or not.
PREFIXES = {
    "bert": "bert.",
    "distilbert": "distilbert.",
    "gpt2": "transformer.",
    "llama": "model.",
    "bart": "model.",
    "marian": "model.",
}

# Known, and left out on purpose.
LEFT_OUT = {
    "bert": (
        "pooler.*",  # A layer over [CLS], trained to tell whether two sentences follow each other.
        "cls.*",  # The heads of BERT's own training: masked tokens, next sentence.
        "embeddings.position_ids",  # 0, 1, 2, ...
    ),
    "distilbert": ("vocab_*", "embeddings.position_ids"),  # The head of its own training: masked tokens.
    "gpt2": ("h.*.attn.bias", "h.*.attn.masked_bias"),  # The causal mask, in older files.
    "llama": ("layers.*.self_attn.rotary_emb.inv_freq",),  # A function of the configuration.
    "bart": ("encoder.version", "decoder.version", "shared.weight"),  # `shared` is used if it is shared.
    "marian": ("shared.weight",),
}
