"""The layers that are stacked, and the parts they are made of.

Shapes: B sequences, T tokens, S tokens of the encoder, D = d_model.
"""

from torch import Tensor, nn

from chapters_src.attention import KeyValueCache, MultiHeadAttention, RotaryPositions
from chapters_src.transformer.configuration import ACTIVATIONS, NORMS, Config


def make_norm(config: Config) -> nn.Module:
    """Make the normalisation that a configuration names.

    LayerNorm: Ba et al. (2016), https://arxiv.org/abs/1607.06450. RMSNorm: Zhang & Sennrich (2019),
    https://arxiv.org/abs/1910.07467.
    """
    return NORMS[config.norm](config.d_model, eps=config.norm_epsilon)


def make_attention(config: Config, rotary: bool) -> MultiHeadAttention:
    """Make the attention of a layer, with rotary positions if they are asked for and configured."""
    turns = rotary and config.positions == "rotary"
    return MultiHeadAttention(
        config.d_model,
        config.num_heads,
        num_key_value_heads=config.num_key_value_heads,
        bias=config.bias,
        dropout=config.attention_dropout,
        rotary=RotaryPositions(config.head_dim, config.rotary_base) if turns else None,
    )


class FeedForward(nn.Module):
    """The same small network for every token by itself: equation 2 of Vaswani et al. (2017).

    Gated, it is a GLU variant of Shazeer (2020), equation 6, https://arxiv.org/abs/2002.05202.

    Args:
        config: its width, activation, gate and bias count here.
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


class Residual(nn.Module):
    """What surrounds each part of a layer: a norm, dropout, and the path past the part.

    `norm_first` (pre-norm): x + part(norm(x)). Otherwise (post-norm): norm(x + part(x)). Xiong et al. (2020),
    https://arxiv.org/abs/2002.04745, compare the two.
    """

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.norm_first = config.norm_first
        self.norm = make_norm(config)
        self.dropout = nn.Dropout(config.dropout)

    def before(self, hidden_states: Tensor) -> Tensor:
        """Give what the part sees."""
        return self.norm(hidden_states) if self.norm_first else hidden_states

    def after(self, hidden_states: Tensor, change: Tensor) -> Tensor:
        """Add what the part made to what came in."""
        total = hidden_states + self.dropout(change)
        return total if self.norm_first else self.norm(total)


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward part. With a causal mask this is also the layer of a GPT.

    Vaswani et al. (2017), section 3.1.
    """

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.attention = make_attention(config, rotary=True)
        self.attention_residual = Residual(config)
        self.feed_forward = FeedForward(config)
        self.feed_forward_residual = Residual(config)

    def forward(
        self,
        hidden_states: Tensor,
        mask: Tensor | None,
        *,
        positions: Tensor | None = None,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """Mix the tokens, then change each by itself.

        Args:
            hidden_states: (B, T, D).
            mask: boolean, True for "may attend", a shape that broadcasts to (B, H, T, S); None: all may.
            positions: for rotary positions, (B, T) or (1, T).
            cache: of this layer's self-attention.

        Returns:
            (B, T, D).
        """
        hidden_states = _attend(self, hidden_states, mask, positions, cache)
        residual = self.feed_forward_residual
        return residual.after(hidden_states, self.feed_forward(residual.before(hidden_states)))


class DecoderLayer(nn.Module):
    """Masked self-attention, attention to what the encoder made, then the feed-forward part.

    Vaswani et al. (2017), section 3.1.
    """

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.attention = make_attention(config, rotary=True)
        self.attention_residual = Residual(config)
        self.cross_attention = make_attention(config, rotary=False)
        self.cross_attention_residual = Residual(config)
        self.feed_forward = FeedForward(config)
        self.feed_forward_residual = Residual(config)

    def forward(
        self,
        hidden_states: Tensor,
        mask: Tensor | None,
        memory: Tensor,
        memory_mask: Tensor | None,
        *,
        positions: Tensor | None = None,
        cache: KeyValueCache | None = None,
        cross_cache: KeyValueCache | None = None,
    ) -> Tensor:
        """Mix the tokens, collect from the encoder, then change each token by itself.

        Args:
            hidden_states: (B, T, D).
            mask: among the decoder's own tokens: boolean, True for "may attend", a shape that broadcasts to
                (B, H, T, T with those in the cache); None: all may.
            memory: what the encoder made, (B, S, D).
            memory_mask: likewise, broadcasts to (B, H, T, S).
            positions: for rotary positions, (B, T) or (1, T).
            cache: of this layer's self-attention.
            cross_cache: of this layer's attention to the encoder.

        Returns:
            (B, T, D).
        """
        hidden_states = _attend(self, hidden_states, mask, positions, cache)
        residual = self.cross_attention_residual
        collected = self.cross_attention(
            residual.before(hidden_states), memory_mask, memory=memory, cache=cross_cache
        )
        hidden_states = residual.after(hidden_states, collected)
        residual = self.feed_forward_residual
        return residual.after(hidden_states, self.feed_forward(residual.before(hidden_states)))


def _attend(
    layer: EncoderLayer | DecoderLayer,
    hidden_states: Tensor,
    mask: Tensor | None,
    positions: Tensor | None,
    cache: KeyValueCache | None,
) -> Tensor:
    residual, attention = layer.attention_residual, layer.attention
    turning = positions if attention.rotary is not None else None
    change = attention(residual.before(hidden_states), mask, positions=turning, cache=cache)
    return residual.after(hidden_states, change)
