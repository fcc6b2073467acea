"""Small models of several tests: wide enough to be wrong, small enough to be quick."""

import torch
from torch import nn

from chapters_src.transformer import Config, Decoder, Encoder, EncoderDecoder, LanguageModel

VOCAB_SIZE = 23
POSITIONS = ["learned", "sinusoidal", "sinusoidal_concatenated", "rotary", "none"]
# The kinds of model that the book knows, besides the first transformer.
KINDS = {
    "first": {"norm_first": False, "scale_embedding": True},
    "gpt2": {"positions": "learned", "activation": "gelu_tanh"},
    "bert": {"positions": "learned", "activation": "gelu", "norm_first": False, "embedding_norm": True},
    "llama": {
        "positions": "rotary", "norm": "rms", "activation": "silu", "gated": True, "bias": False,
        "num_key_value_heads": 2, "tie_weights": False,
    },
    "gemma3": {
        "positions": "rotary", "norm": "rms", "activation": "gelu_tanh", "gated": True, "bias": False,
        "num_key_value_heads": 1, "head_width": 6, "query_key_norm": True, "norm_output": True,
        "scale_embedding": True, "sliding_window": 3, "sliding_layers": (0,), "sliding_rotary_base": 100.0,
    },
}  # fmt: skip


def small_config(**changes):
    sizes = {"vocab_size": VOCAB_SIZE, "d_model": 16, "num_layers": 2, "num_heads": 4}
    return Config(**(sizes | {"feed_forward_width": 24, "max_length": 20} | changes))


def build(kind, *arguments, seed=0, dtype=torch.float64, **options):
    """Make a model in evaluation mode, every number of which counts: no zeros, no ones."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = kind(*arguments, **options)
        for parameter in model.parameters():
            if parameter.requires_grad:
                nn.init.normal_(parameter, std=0.4)
    return model.to(dtype).eval()


def without_windows(changes):
    """The same without sliding layers, which an encoder cannot have."""
    return {name: value for name, value in changes.items() if not name.startswith("sliding")}


def encoder(**changes):
    return build(Encoder, small_config(**without_windows(changes)))


def language_model(**changes):
    return build(LanguageModel, small_config(**changes))


def decoder(**changes):
    return build(Decoder, small_config(**changes))


def translator(share_embedding=False, head_bias=False, **changes):
    options = {"share_embedding": share_embedding, "head_bias": head_bias}
    crossing = small_config(cross_attention=True, **changes)
    return build(EncoderDecoder, small_config(**without_windows(changes)), crossing, **options)


def random_ids(*shape, seed=0):
    return torch.randint(VOCAB_SIZE, shape, generator=torch.Generator().manual_seed(seed))


def random_states(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def padded(rows, side="right"):
    """Put sequences of different lengths into one batch: ids and attention mask."""
    longest = max(len(row) for row in rows)
    ids, attention_mask = (torch.zeros(len(rows), longest, dtype=torch.int64) for _ in range(2))
    for i, row in enumerate(rows):
        place = slice(0, len(row)) if side == "right" else slice(longest - len(row), longest)
        ids[i, place], attention_mask[i, place] = row, 1
    return ids, attention_mask


def copy_weights(ours, theirs):
    """Put our numbers into PyTorch's layer. Its names: linear1 goes up, linear2 goes down."""
    pairs = {theirs.linear1: ours.feed_forward.up, theirs.linear2: ours.feed_forward.down}
    norms = [ours.attention_norm, ours.feed_forward_norm]
    projections = {theirs.self_attn: [ours.attention.query_key_value]}
    pairs[theirs.self_attn.out_proj] = ours.attention.output
    if ours.cross_attention is not None:
        cross = ours.cross_attention
        projections[theirs.multihead_attn] = [cross.query, cross.key_value]
        pairs[theirs.multihead_attn.out_proj] = cross.output
        norms.insert(1, ours.cross_attention_norm)
    for number, norm in enumerate(norms, start=1):
        pairs[getattr(theirs, f"norm{number}")] = norm
    for there, here in projections.items():
        there.in_proj_weight.data.copy_(torch.cat([part.weight for part in here]))
        there.in_proj_bias.data.copy_(torch.cat([part.bias for part in here]))
    for there, here in pairs.items():
        there.weight.data.copy_(here.weight)
        there.bias.data.copy_(here.bias)
