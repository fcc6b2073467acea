"""What a stack of layers can be told. An encoder-decoder has two stacks, and so two configurations."""

import math
from dataclasses import dataclass
from functools import partial

import torch.nn.functional as F
from torch import nn

NORMS = {"layer": nn.LayerNorm, "rms": nn.RMSNorm}
POSITIONS = ("learned", "sinusoidal", "sinusoidal_concatenated", "rotary", "none")
ACTIVATIONS = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "silu": F.silu,
}


@dataclass(frozen=True, kw_only=True)
class Config:
    """The shape of one stack of layers, and of the embedding under it.

    The defaults are those of the first transformer (Vaswani et al., 2017,
    https://arxiv.org/abs/1706.03762), but for `norm_first`, which makes training steadier (chapter 08), and
    without its dropout.

    Raises:
        ValueError: a value that is out of range or does not fit the others.
    """

    d_model: int  # Width: numbers per token between the layers.
    num_layers: int  # Depth.
    num_heads: int  # Attention heads of a layer; each has d_model / num_heads numbers.
    feed_forward_width: int  # Numbers per token inside the feed-forward network, mostly 4 * d_model.
    vocab_size: int | None = None  # Entries of the vocabulary. None: a stack alone, which takes vectors.
    max_length: int | None = None  # Context: the most tokens of a sequence. None: likewise.
    num_key_value_heads: int | None = None  # Fewer than num_heads: neighboring queries share them.
    cross_attention: bool = False  # Whether the layers also attend to what an encoder made.
    # "learned", "sinusoidal", "sinusoidal_concatenated" (all sines, then all cosines: Marian), "rotary"
    # (inside attention) or "none".
    positions: str = "sinusoidal"
    rotary_base: float = 10_000.0  # Larger: rotary positions turn more slowly, for longer contexts.
    num_token_types: int = 0  # BERT tells the first of two texts from the second with 2 of them; 0: none.
    scale_embedding: bool | None = None  # Tokens times the root of d_model. None: with sinusoidal positions,
    # which are about as long as that root: they drown tokens that start small.
    embedding_norm: bool = False  # A norm between embedding and first layer, as BERT and BART have it.
    norm: str = "layer"  # "layer": LayerNorm; "rms": without mean and bias.
    norm_first: bool = True  # Before each sublayer, and once more at the end; else after each.
    norm_epsilon: float = 1e-5  # Added to the variance under the root.
    activation: str = "relu"  # Of the feed-forward network: "relu", "gelu", "gelu_tanh" or "silu".
    gated: bool = False  # Multiply the activation by a second projection; with "silu" that is SwiGLU.
    bias: bool = True  # Whether the projections of attention and feed-forward network have one.
    tie_weights: bool = True  # The language-model head uses the embedding's matrix.
    dropout: float = 0.0  # In training: share of the outputs of embedding and sublayers that is dropped.
    attention_dropout: float = 0.0  # In training: share of the attention weights that is dropped.

    def __post_init__(self) -> None:
        sizes = ["d_model", "num_layers", "num_heads", "feed_forward_width"]
        sizes += [name for name in ("vocab_size", "max_length") if getattr(self, name) is not None]
        for name in sizes:
            if type(getattr(self, name)) is not int or getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)!r} has to be a whole number, at least 1")
        groups = self.num_key_value_heads
        shared = isinstance(groups, int) and groups >= 1 and self.num_heads % groups == 0
        rules = {
            "num_heads": (self.d_model % self.num_heads == 0, f"a divisor of d_model={self.d_model}"),
            "num_key_value_heads": (groups is None or shared, f"a divisor of num_heads={self.num_heads}"),
            "num_token_types": (
                type(self.num_token_types) is int and self.num_token_types >= 0,
                "at least 0",
            ),
            "cross_attention": (isinstance(self.cross_attention, bool), "True or False"),
            "positions": (self.positions in POSITIONS, f"one of {', '.join(POSITIONS)}"),
            "norm": (self.norm in NORMS, f"one of {', '.join(NORMS)}"),
            "activation": (self.activation in ACTIVATIONS, f"one of {', '.join(ACTIVATIONS)}"),
            "rotary_base": (1 < self.rotary_base < math.inf, "above 1"),
            "norm_epsilon": (0 <= self.norm_epsilon < 1, "at least 0 and small"),
            "dropout": (0 <= self.dropout < 1, "a share, from 0 to below 1"),
            "attention_dropout": (0 <= self.attention_dropout < 1, "a share, from 0 to below 1"),
        }
        for name, (is_good, rule) in rules.items():
            if not is_good:
                raise ValueError(f"{name}={getattr(self, name)!r} has to be {rule}")
        if self.positions == "rotary" and self.head_dim % 2:
            raise ValueError(
                f"rotary positions turn pairs of numbers: head_dim={self.head_dim} has to be even"
            )
        if self.positions.startswith("sinusoidal") and self.vocab_size is not None and self.d_model % 2:
            raise ValueError(
                f"sinusoidal positions are pairs of numbers: d_model={self.d_model} has to be even"
            )

    @property
    def scales_embedding(self) -> bool:
        """Whether tokens are multiplied by the root of d_model."""
        if self.scale_embedding is None:
            return self.positions.startswith("sinusoidal")
        return self.scale_embedding

    @property
    def head_dim(self) -> int:
        """Numbers per token in one head."""
        return self.d_model // self.num_heads
