"""Transformer layers, their parts, and stacks of layers.

They map vectors to vectors and need no vocabulary, so they process image patches as well as embedded tokens.

Shapes: B sequences, T tokens, S tokens of the memory, D = d_model.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from chapters_src.attention import (
    CrossAttention,
    KeyValueCache,
    Mask,
    MultiHeadAttention,
    causal_mask,
    padding_mask,
    rotary_angles,
    sliding_window_mask,
)
from chapters_src.transformer.configuration import ACTIVATIONS, NORMS, Config

Angles = tuple[Tensor, Tensor]


@dataclass(frozen=True, eq=False)
class Memory:
    """The encoder's output for a batch and its padding, for a decoder to attend to."""

    hidden_states: Tensor  # (B, S, D)
    attention_mask: Tensor | None  # 1 for a token, 0 for padding, (B, S); None: there is no padding.

    @property
    def mask(self) -> Tensor | None:
        """What may be attended to: boolean, (B, 1, 1, S); None: everything."""
        return None if self.attention_mask is None else padding_mask(self.attention_mask)


def make_norm(config: Config, width: int | None = None) -> nn.Module:
    """Return the normalization that a configuration names, of vectors of d_model or another width.

    LayerNorm: Ba et al. (2016), https://arxiv.org/abs/1607.06450. RMSNorm: Zhang & Sennrich (2019),
    https://arxiv.org/abs/1910.07467.
    """
    return NORMS[config.norm](config.d_model if width is None else width, eps=config.norm_epsilon)


class FeedForward(nn.Module):
    """Apply the same small network to every token: equation 2 of Vaswani et al. (2017).

    With a gate, it is a GLU variant: Shazeer (2020), equation 6, https://arxiv.org/abs/2002.05202.
    """

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.activation = ACTIVATIONS[config.activation]
        self.gate = None
        if config.gated:
            self.gate = nn.Linear(config.d_model, config.feed_forward_width, bias=config.bias)
        self.up = nn.Linear(config.d_model, config.feed_forward_width, bias=config.bias)
        self.down = nn.Linear(config.feed_forward_width, config.d_model, bias=config.bias)

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Compute (..., D) -> (..., D)."""
        wide = self.up(hidden_states)  # (..., feed_forward_width)
        if self.gate is None:
            return self.down(self.activation(wide))
        return self.down(self.activation(self.gate(hidden_states)) * wide)


class TransformerLayer(nn.Module):
    """Self-attention, optional cross-attention, and the feed-forward network.

    Vaswani et al. (2017), section 3.1. With a causal mask it is a decoder layer, without one an encoder
    layer. Xiong et al. (2020), https://arxiv.org/abs/2002.04745, compare the two positions of the norms
    (`norm_first`). Gemma 2 and 3 have both (`norm_output`): Gemma Team (2024), section 2,
    https://arxiv.org/abs/2408.00118.
    """

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.norm_first = config.norm_first
        settings: dict[str, Any] = {
            "d_model": config.d_model,
            "num_heads": config.num_heads,
            "num_key_value_heads": config.num_key_value_heads,
            "head_dim": config.head_dim,
            "bias": config.bias,
            "dropout": config.attention_dropout,
        }
        query_key_norm = partial(make_norm, config) if config.query_key_norm else None
        self.attention = MultiHeadAttention(**settings, query_key_norm=query_key_norm)
        self.attention_norm = make_norm(config)
        self.attention_output_norm = _output_norm(config)
        self.cross_attention = None
        if config.cross_attention:
            self.cross_attention = CrossAttention(**settings)
            self.cross_attention_norm = make_norm(config)
            self.cross_attention_output_norm = _output_norm(config)
        self.feed_forward = FeedForward(config)
        self.feed_forward_norm = make_norm(config)
        self.feed_forward_output_norm = _output_norm(config)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self,
        hidden_states: Tensor,
        mask: Mask,
        *,
        angles: Angles | None = None,
        memory: Memory | None = None,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """Apply the sublayers, each with its residual: (B, T, D) -> (B, T, D).

        `mask` is for self-attention: None, "causal", or boolean, broadcast to (B, H, T, T + cached tokens).
        `angles` are for rotary positions. The cache serves both kinds of attention.

        Raises:
            ValueError: the memory is missing or not expected, or shapes do not match.
        """
        if (memory is None) != (self.cross_attention is None):
            problem = "missing" if memory is None else "not expected"
            raise ValueError(f"memory is {problem}: cross_attention={self.cross_attention is not None}")
        x, drop = hidden_states, self.dropout if self.dropout.training else _identity
        read = () if memory is None else (memory.hidden_states, memory.mask)
        if self.norm_first:  # pre-norm: x + sublayer(norm(x)), perhaps x + output_norm(sublayer(norm(x)))
            update = self.attention(self.attention_norm(x), mask, angles=angles, cache=cache)
            x = x + drop(self.attention_output_norm(update))
            if self.cross_attention is not None:
                update = self.cross_attention(self.cross_attention_norm(x), *read, cache=cache)
                x = x + drop(self.cross_attention_output_norm(update))
            return x + drop(self.feed_forward_output_norm(self.feed_forward(self.feed_forward_norm(x))))
        # post-norm: norm(x + sublayer(x))
        x = self.attention_norm(x + drop(self.attention(x, mask, angles=angles, cache=cache)))
        if self.cross_attention is not None:
            x = self.cross_attention_norm(x + drop(self.cross_attention(x, *read, cache=cache)))
        return self.feed_forward_norm(x + drop(self.feed_forward(x)))


def _output_norm(config: Config) -> nn.Module:
    return make_norm(config) if config.norm_output else nn.Identity()


def _identity(x: Tensor) -> Tensor:
    """Replace dropout in evaluation mode, where calling the module takes time without any effect."""
    return x


class TransformerStack(nn.Module):
    """A stack of layers, followed by a norm if `norm_first`. It needs no `vocab_size` and no `max_length`.

    Matrices are initialized from N(0, 0.02²) and biases with 0. The projections that add to the residual
    stream start smaller in deeper stacks: Radford et al., GPT-2 (2019), section 2.3.
    """

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.layers = nn.ModuleList(TransformerLayer(config) for _ in range(config.num_layers))
        self.norm = make_norm(config) if config.norm_first else nn.Identity()
        self._initialize()

    def _initialize(self) -> None:
        sublayers = (3 if self.config.cross_attention else 2) * self.config.num_layers
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear):
                is_last = name.endswith((".output", ".down"))
                nn.init.normal_(module.weight, std=0.02 / math.sqrt(sublayers) if is_last else 0.02)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def forward(
        self,
        hidden_states: Tensor,
        mask: Mask,
        *,
        positions: Tensor | None = None,
        angles: Sequence[Angles] | None = None,
        memory: Memory | None = None,
        caches: Sequence[KeyValueCache] | None = None,
    ) -> Tensor:
        """Apply all layers: (B, T, D) -> (B, T, D).

        Args:
            hidden_states: (B, T, D).
            mask: as for `TransformerLayer`, for all tokens; sliding layers narrow it to their window.
            positions: integers, (B, T) or (1, T), required for rotary positions. Other kinds are part of
                `hidden_states` already.
            angles: precomputed by the method `angles`, instead of `positions`.
            memory: for cross-attention.
            caches: one per layer, as `make_caches` returns them.

        Raises:
            ValueError: positions or a memory are missing, a memory is not expected, or shapes do not match.
        """
        if self.config.positions == "rotary" and angles is None:
            if positions is None or positions.ndim != 2 or positions.size(1) != hidden_states.size(1):
                given = None if positions is None else tuple(positions.shape)
                raise ValueError(
                    f"positions={given}: rotary positions need one per token, ({hidden_states.size(0)}, "
                    f"{hidden_states.size(1)}) or (1, {hidden_states.size(1)})"
                )
            angles = self.angles(positions, hidden_states.dtype)
        num_cached = None if caches is None else caches[0].length
        sliding_mask = self._sliding_mask(mask, hidden_states.size(1), num_cached, hidden_states.device)
        for i, layer in enumerate(self.layers):
            is_sliding = i in self.config.sliding_layers
            hidden_states = layer(
                hidden_states,
                sliding_mask if is_sliding else mask,
                angles=None if angles is None else angles[-1 if is_sliding else 0],
                memory=memory,
                cache=None if caches is None else caches[i],
            )
        return self.norm(hidden_states)

    def angles(self, positions: Tensor, dtype: torch.dtype) -> list[Angles] | None:
        """Return the angles of rotary positions, which layers share; None if positions are not rotary.

        `positions` are integers, (B, T) or (1, T). Cosines and sines are (B or 1, 1, T, head_dim): first for
        all layers, then, if the sliding ones have a base of their own, for these.
        """
        if self.config.positions != "rotary":
            return None
        bases = [self.config.rotary_base]
        if self.config.sliding_rotary_base is not None:
            bases.append(self.config.sliding_rotary_base)
        angles = [rotary_angles(positions, self.config.head_dim, base) for base in bases]
        return [(cos.to(dtype), sin.to(dtype)) for cos, sin in angles]

    def make_caches(self, batch_size: int, capacity: int, like: Tensor) -> list[KeyValueCache]:
        """Return an empty cache for each layer; that of a sliding layer holds little more than its window."""
        heads = self.config.num_key_value_heads or self.config.num_heads
        return [
            KeyValueCache(
                batch_size,
                heads,
                capacity,
                self.config.head_dim,
                like,
                self.config.sliding_window if i in self.config.sliding_layers else None,
            )
            for i in range(self.config.num_layers)
        ]

    def _sliding_mask(self, mask: Mask, num_new: int, num_cached: int | None, device: torch.device) -> Mask:
        """Narrow a mask to the window of sliding layers, and to the tokens that their caches return."""
        window, num_keys = self.config.sliding_window, num_new + (num_cached or 0)
        if window is None or num_keys <= window:
            return mask
        if num_new == 1 and num_cached is not None:  # The cache returns the window, no more.
            return mask[..., -window:] if isinstance(mask, Tensor) else None
        within = sliding_window_mask(num_new, num_keys, window, device)
        if isinstance(mask, str):
            mask = causal_mask(num_new, device=device)
        if mask is not None:
            within = within & mask
        return within if num_cached is None else within[..., -(window - 1 + num_new) :]
