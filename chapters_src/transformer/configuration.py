"""The configuration of a stack of layers. An encoder-decoder has two stacks, and so two configurations."""

import math
from dataclasses import dataclass, fields
from functools import partial

import torch.nn.functional as F
from torch import nn

from chapters_src.transformer.checks import as_boolean, as_integer

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
    """The architecture of one stack of layers and of its embedding.

    The defaults are those of the original transformer (Vaswani et al., 2017,
    https://arxiv.org/abs/1706.03762), except for `norm_first`, which makes training more stable (chapter 08),
    and dropout, which is off.

    Raises:
        ValueError: a value is out of range, has the wrong type, or does not fit the others.
    """

    d_model: int  # Width: numbers per token between the layers.
    num_layers: int  # Depth.
    num_heads: int  # Attention heads per layer.
    feed_forward_width: int  # Numbers per token inside the feed-forward network, mostly 4 * d_model.
    vocab_size: int | None = None  # Entries of the vocabulary; None for a stack without an embedding.
    max_length: int | None = None  # Context: maximum number of tokens in a sequence; None as above.
    num_key_value_heads: int | None = None  # If less than num_heads, neighboring queries share them.
    head_width: int | None = None  # Numbers per token in one head; None: d_model / num_heads.
    query_key_norm: bool = False  # Whether each query and each key is normalized, as in Qwen 3 and Gemma 3.
    # A window of tokens, itself included, to which a token attends in some layers, and their numbers, from 0.
    sliding_window: int | None = None
    sliding_layers: tuple[int, ...] = ()
    cross_attention: bool = False  # Whether the layers also attend to an encoder's output.
    # "learned", "sinusoidal", "sinusoidal_concatenated" (all sines, then all cosines, as in Marian), "rotary"
    # (inside attention) or "none".
    positions: str = "sinusoidal"
    rotary_base: float = 10_000.0  # Larger values rotate more slowly, for longer contexts.
    sliding_rotary_base: float | None = None  # Of the sliding layers; None: rotary_base.
    num_token_types: int = 0  # 2 in BERT, to distinguish the first text from the second; 0 for no types.
    # Whether to multiply token embeddings by the square root of d_model. None: if positions are sinusoidal.
    # Their vectors are about that long, and would outweigh tokens that are initialized small.
    scale_embedding: bool | None = None
    embedding_norm: bool = False  # Whether a norm follows the embedding, as in BERT and BART.
    norm: str = "layer"  # "layer" for LayerNorm; "rms" for RMSNorm, which has no mean and no bias.
    norm_first: bool = True  # Norm before each sublayer and once after the last one; else after each.
    norm_output: bool = False  # With norm_first: a second norm after each sublayer, as in Gemma 2 and 3.
    norm_epsilon: float = 1e-5  # Added to the variance before taking the root.
    activation: str = "relu"  # Of the feed-forward network: "relu", "gelu", "gelu_tanh" or "silu".
    gated: bool = False  # Whether to multiply the activation by a second projection (SwiGLU with "silu").
    bias: bool = True  # Whether the projections of attention and feed-forward network have biases.
    tie_weights: bool = True  # Whether the language-model head uses the embedding's matrix.
    dropout: float = 0.0  # Probability of dropping an output of the embedding or a sublayer in training.
    attention_dropout: float = 0.0  # Probability of dropping an attention weight in training.

    def __post_init__(self) -> None:
        self._check_types()
        groups = self.num_key_value_heads
        shared = groups is None or self.num_heads % groups == 0
        rules = {
            "num_heads": (
                self.head_width is not None or self.d_model % self.num_heads == 0,
                f"a divisor of d_model={self.d_model}, unless head_width is given",
            ),
            "num_key_value_heads": (shared, f"a divisor of num_heads={self.num_heads}"),
            "positions": (self.positions in POSITIONS, f"one of {', '.join(POSITIONS)}"),
            "norm": (self.norm in NORMS, f"one of {', '.join(NORMS)}"),
            "activation": (self.activation in ACTIVATIONS, f"one of {', '.join(ACTIVATIONS)}"),
            "rotary_base": (1 < self.rotary_base < math.inf, "greater than 1"),
            "sliding_rotary_base": (
                1 < (2 if self.sliding_rotary_base is None else self.sliding_rotary_base) < math.inf,
                "greater than 1, or None",
            ),
            "sliding_layers": (
                sorted(set(self.sliding_layers) & set(range(self.num_layers))) == list(self.sliding_layers),
                f"numbers of layers, ascending, from 0 to {self.num_layers - 1}",
            ),
            "sliding_window": (
                (self.sliding_window is None) == (not self.sliding_layers),
                "given if, and only if, there are sliding_layers",
            ),
            "norm_output": (self.norm_first or not self.norm_output, "False, unless norm_first is True"),
            "norm_epsilon": (0 <= self.norm_epsilon < 1, "at least 0 and less than 1"),
            "dropout": (0 <= self.dropout < 1, "at least 0 and less than 1"),
            "attention_dropout": (0 <= self.attention_dropout < 1, "at least 0 and less than 1"),
        }
        for name, (is_good, rule) in rules.items():
            if not is_good:
                raise ValueError(f"{name}={getattr(self, name)!r} has to be {rule}")
        if self.positions == "rotary" and self.head_dim % 2:
            raise ValueError(f"rotary positions rotate pairs: head_dim={self.head_dim} has to be even")
        if self.positions.startswith("sinusoidal") and self.vocab_size is not None and self.d_model % 2:
            raise ValueError(f"sinusoidal positions come in pairs: d_model={self.d_model} has to be even")

    def _check_types(self) -> None:
        """Check integers and booleans, and convert those of NumPy, which JSON cannot store."""
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None and field.type in (int | None, bool | None):
                continue
            if field.type in (int, int | None):
                value = as_integer(field.name, value, 0 if field.name == "num_token_types" else 1)
            elif field.type in (bool, bool | None):
                value = as_boolean(field.name, value)
            elif field.name == "sliding_layers":
                if not isinstance(value, tuple | list):  # JSON turns a tuple into a list.
                    raise ValueError(f"sliding_layers={value!r} has to be a tuple of numbers of layers")
                value = tuple(as_integer("a number in sliding_layers", i, 0) for i in value)
            object.__setattr__(self, field.name, value)

    @property
    def scales_embedding(self) -> bool:
        """Whether token embeddings are multiplied by the square root of d_model."""
        if self.scale_embedding is None:
            return self.positions.startswith("sinusoidal")
        return self.scale_embedding

    @property
    def head_dim(self) -> int:
        """Numbers per token in one head."""
        return self.d_model // self.num_heads if self.head_width is None else self.head_width
