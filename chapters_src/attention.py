"""Attention: every query takes an average of values, weighted by how well its key fits.

Chapters 06 and 07 build it step by step, from a loop over single vectors to heads, masks and shared keys;
chapter 08 turns queries and keys by their positions and puts attention into layers, and chapter 13 decodes
with its cache.

A mask says who may attend to whom. It is boolean, and True means "may attend". Masks broadcast, so that they
combine with `&`: `padding_mask(attention_mask) & causal_mask(length)`. No function here fills in a mask that
was left out: who wants none writes None.

Shapes: B sequences in a batch, H heads, G heads of keys and values (H unless queries share them), T queries,
S keys, D numbers in a head (`head_dim`).
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def causal_mask(num_queries: int, num_keys: int | None = None, device: torch.device | None = None) -> Tensor:
    """Let each token attend to itself and to what is on its left.

    With more keys than queries the queries are the last tokens, as when one continues from a cache.
    Vaswani et al., Attention Is All You Need (2017), section 3.2.3, https://arxiv.org/abs/1706.03762.

    Args:
        num_queries: T.
        num_keys: S; as many as queries if it is not given.
        device: where to make it.

    Returns:
        Boolean, (T, S).

    Raises:
        ValueError: there are fewer keys than queries, or no queries.
    """
    num_keys = num_queries if num_keys is None else num_keys
    if not 1 <= num_queries <= num_keys:
        raise ValueError(
            f"{num_queries} queries and {num_keys} keys: the queries are the last tokens of the keys, so at "
            "least one query is needed and no more queries than keys"
        )
    everything = torch.ones(num_queries, num_keys, dtype=torch.bool, device=device)
    return everything.tril(diagonal=num_keys - num_queries)


def padding_mask(attention_mask: Tensor) -> Tensor:
    """Let every token attend to the tokens of its sequence, and not to padding.

    Args:
        attention_mask: 1 or True for a token, 0 or False for padding, (B, S), as tokenizers give it.

    Returns:
        Boolean, (B, 1, 1, S): the same for all heads and all queries.

    Raises:
        ValueError: `attention_mask` has another number of dimensions, or other values.
    """
    if attention_mask.ndim != 2:
        raise ValueError(f"attention_mask {tuple(attention_mask.shape)}: (batch, length) is needed")
    if attention_mask.dtype != torch.bool and not ((attention_mask == 0) | (attention_mask == 1)).all():
        raise ValueError(
            f"attention_mask holds values from {attention_mask.min()} to {attention_mask.max()}: 1 for a "
            "token and 0 for padding are needed; an additive mask becomes one by `mask == 0`"
        )
    return attention_mask.bool()[:, None, None, :]


def attention_weights(query: Tensor, key: Tensor, mask: Tensor | None) -> Tensor:
    """Compute how much each query takes from each key: softmax(Q Kᵀ / √d_k), equation 1 without V.

    Vaswani et al. (2017), https://arxiv.org/abs/1706.03762.

    Args:
        query: (..., T, D), mostly (B, H, T, D).
        key: (..., S, D).
        mask: boolean, True for "may attend", a shape that broadcasts to (..., T, S); None: all may.

    Returns:
        (..., T, S). Each row adds up to one, but for that of a query that may attend to nothing: all zeros.

    Raises:
        ValueError: the widths differ, the mask is not boolean, or its shape does not fit.
    """
    _check(query, key, mask)
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))  # (..., T, D) x (..., D, S)
    if mask is None:
        return scores.softmax(dim=-1)
    # Minus infinity would make a row without any key NaN. The lowest number makes it uniform, and the second
    # fill turns that into zeros; in any other row exp(lowest - highest) is exactly 0 either way.
    lowest = torch.finfo(scores.dtype).min
    return scores.masked_fill(~mask, lowest).softmax(dim=-1).masked_fill(~mask, 0.0)


def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
    """Average the values with the attention weights: softmax(Q Kᵀ / √d_k) V, equation 1.

    Vaswani et al. (2017), https://arxiv.org/abs/1706.03762. All T x S weights are in memory at once;
    PyTorch's function of this name gives the same without them, and `MultiHeadAttention` calls that one.

    Args:
        query: (..., T, D), mostly (B, H, T, D).
        key: (..., S, D).
        value: (..., S, any width).
        mask: boolean, True for "may attend", a shape that broadcasts to (..., T, S); None: all may.

    Returns:
        (..., T, width of the values). A query that may attend to nothing gets zeros.

    Raises:
        ValueError: shapes do not fit, or the mask is not boolean.
    """
    if key.shape[:-1] != value.shape[:-1]:
        raise ValueError(f"key {tuple(key.shape)} and value {tuple(value.shape)}: each key needs one value")
    return attention_weights(query, key, mask) @ value  # (..., T, S) x (..., S, D)


class RotaryPositions(nn.Module):
    """Turn queries and keys by angles that grow with their position; their products then tell the distance.

    Su et al., RoFormer (2021), equation 34, https://arxiv.org/abs/2104.09864; number i is paired with number
    i + D/2, as models of Llama's kind have it, where the paper pairs neighbours.

    Args:
        head_dim: D, even.
        base: the angle of pair i grows by base^(-2i/D) radians per position.

    Raises:
        ValueError: head_dim is odd or not positive.
    """

    def __init__(self, head_dim: int, base: float = 10_000.0) -> None:
        super().__init__()
        if head_dim < 2 or head_dim % 2:
            raise ValueError(
                f"head_dim={head_dim}: rotary positions turn pairs of numbers, so it has to be even"
            )
        self.head_dim, self.base = head_dim, base

    def forward(self, heads: Tensor, positions: Tensor) -> Tensor:
        """Turn each vector by the angles of its position.

        Args:
            heads: queries or keys, (B, H, T, D).
            positions: whole numbers, (B, T), or (1, T) for all sequences.

        Returns:
            (B, H, T, D), lengths unchanged.
        """
        # Computed here and not stored: a model in half precision would round them, and distances with them.
        pairs = torch.arange(0, self.head_dim, 2, device=positions.device)
        frequencies = self.base ** (-pairs.float() / self.head_dim)  # (D/2,)
        angles = positions[:, None, :, None] * frequencies  # (B, 1, T, D/2)
        cos, sin = angles.cos().to(heads.dtype), angles.sin().to(heads.dtype)
        first, second = heads.chunk(2, dim=-1)
        return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


class KeyValueCache:
    """The keys and values that one attention module has computed so far, so that it need not do so again."""

    def __init__(self) -> None:
        self.key: Tensor | None = None  # (B, G, S, D)
        self.value: Tensor | None = None

    @property
    def length(self) -> int:
        """How many tokens are in it."""
        return 0 if self.key is None else self.key.size(2)

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Put new tokens at the end, and give all of them.

        Args:
            key: of the new tokens, (B, G, T, D).
            value: likewise.

        Returns:
            The keys and the values of all tokens so far, each (B, G, S, D).

        Raises:
            ValueError: the new tokens are of another number of sequences.
        """
        if self.key is not None and self.value is not None:
            if key.size(0) != self.key.size(0):
                raise ValueError(
                    f"the cache holds {self.key.size(0)} sequences and {key.size(0)} came: start with a new "
                    "cache, or select the rows that go on"
                )
            key, value = torch.cat([self.key, key], dim=2), torch.cat([self.value, value], dim=2)
        self.key, self.value = key, value
        return key, value

    def select(self, rows: Tensor) -> None:
        """Keep these sequences of the batch, in this order; one may be named several times (beam search).

        Args:
            rows: whole numbers, any number of them.
        """
        if self.key is not None and self.value is not None:
            self.key, self.value = self.key[rows], self.value[rows]

    def crop(self, length: int) -> None:
        """Forget all but the first `length` tokens.

        Raises:
            ValueError: there are not so many.
        """
        if not 0 <= length <= self.length:
            raise ValueError(f"cannot keep {length} tokens: the cache holds {self.length}")
        if self.key is not None and self.value is not None:
            self.key, self.value = self.key[:, :, :length], self.value[:, :, :length]


class MultiHeadAttention(nn.Module):
    """Several attentions side by side, each in a subspace of its own: section 3.2.2 of Vaswani et al. (2017).

    One projection makes the queries, keys and values of all heads (`projection`; its rows are in this order).
    With fewer heads of keys and values than heads, neighbouring queries share them: grouped-query attention,
    Ainslie et al. (2023), https://arxiv.org/abs/2305.13245.

    Args:
        d_model: width of what comes in and goes out.
        num_heads: H; divides d_model, and head_dim = d_model / H.
        num_key_value_heads: G, divides H; H if it is not given.
        bias: whether the two projections have one.
        dropout: share of the attention weights that is dropped in training.
        rotary: turns queries and keys by their positions; None: positions are not seen here.

    Raises:
        ValueError: a number that does not divide, or a rotary part for another head_dim.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        num_key_value_heads: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
        rotary: RotaryPositions | None = None,
    ) -> None:
        super().__init__()
        groups = num_heads if num_key_value_heads is None else num_key_value_heads
        if num_heads < 1 or groups < 1 or d_model % num_heads or num_heads % groups:
            raise ValueError(
                f"d_model={d_model}, num_heads={num_heads}, num_key_value_heads={groups}: the heads have to "
                "divide d_model, and the heads of keys and values have to divide the heads"
            )
        self.num_heads, self.num_key_value_heads, self.head_dim = num_heads, groups, d_model // num_heads
        if rotary is not None and rotary.head_dim != self.head_dim:
            raise ValueError(
                f"rotary positions for head_dim={rotary.head_dim}, but this module has "
                f"head_dim={self.head_dim}"
            )
        self.projection = nn.Linear(d_model, (num_heads + 2 * groups) * self.head_dim, bias=bias)
        self.output = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = dropout
        self.rotary = rotary
        self._record: list[Tensor] | None = None

    def forward(
        self,
        hidden_states: Tensor,
        mask: Tensor | None,
        *,
        memory: Tensor | None = None,
        positions: Tensor | None = None,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """Let each token collect from the tokens that it may attend to.

        Args:
            hidden_states: what asks, (B, T, d_model).
            mask: boolean, True for "may attend", a shape that broadcasts to (B, H, T, S); None: all may.
            memory: what is asked, (B, S, d_model); if it is not given, hidden_states (self-attention).
            positions: for rotary positions, of the T tokens, (B, T) or (1, T). They tell distances within
                one sequence, so there are none between it and a memory.
            cache: with it, S counts the tokens in it too. The keys and values of a memory are computed the
                first time and reused.

        Returns:
            (B, T, d_model).

        Raises:
            ValueError: shapes do not fit, the mask is not boolean, or positions are missing or not wanted.
        """
        self._check_inputs(hidden_states, memory, positions)
        if memory is None:
            query, key, value = self._own_heads(hidden_states, positions, cache)
        else:
            query, key, value = self._cross_heads(hidden_states, memory, cache)
        shared_by = self.num_heads // self.num_key_value_heads
        if shared_by > 1:
            key, value = (each.repeat_interleave(shared_by, dim=1) for each in (key, value))  # G -> H
        _check(query, key, mask)
        if self._record is not None:
            self._record.append(attention_weights(query.detach(), key.detach(), mask))
        mask = None if mask is None else torch.atleast_2d(mask)  # PyTorch's function wants at least (T, S)
        dropout = self.dropout if self.training else 0.0
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout)
        return self.output(mixed.transpose(1, 2).flatten(2))  # (B, H, T, D) -> (B, T, H * D)

    def _own_heads(
        self, hidden_states: Tensor, positions: Tensor | None, cache: KeyValueCache | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Make queries, keys and values of the same states, in one multiplication."""
        groups = self.num_key_value_heads
        heads = self._split(self.projection(hidden_states))  # (B, H + 2 * G, T, D)
        compared, value = heads.split([self.num_heads + groups, groups], dim=1)
        if self.rotary is not None:
            compared = self.rotary(compared, positions)
        query, key = compared.split([self.num_heads, groups], dim=1)
        if cache is not None:
            key, value = cache.append(key, value)
        return query, key, value

    def _cross_heads(
        self, hidden_states: Tensor, memory: Tensor, cache: KeyValueCache | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Make queries of one sequence, and keys and values of another, or take them from the cache."""
        width = self.num_heads * self.head_dim
        rows = [width, self.projection.out_features - width]
        weights = self.projection.weight.split(rows)
        biases = (None, None) if self.projection.bias is None else self.projection.bias.split(rows)
        query = self._split(F.linear(hidden_states, weights[0], biases[0]))  # (B, H, T, D)
        if cache is not None and cache.key is not None and cache.value is not None:
            return query, cache.key, cache.value
        heads = self._split(F.linear(memory, weights[1], biases[1]))  # (B, 2 * G, S, D)
        key, value = heads.chunk(2, dim=1)
        if cache is not None:
            key, value = cache.append(key, value)
        return query, key, value

    def _split(self, projected: Tensor) -> Tensor:
        return projected.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)  # (B, heads, S, D)

    def _check_inputs(self, hidden_states: Tensor, memory: Tensor | None, positions: Tensor | None) -> None:
        for name, states in (("hidden_states", hidden_states), ("memory", memory)):
            if states is not None and (states.ndim != 3 or states.size(-1) != self.projection.in_features):
                raise ValueError(
                    f"{name} {tuple(states.shape)}: (batch, tokens, {self.projection.in_features}) is needed"
                )
        if self.rotary is None and positions is not None:
            raise ValueError(
                "positions were given, but this attention has no rotary positions: leave them out"
            )
        if self.rotary is not None and memory is not None:
            raise ValueError("attention to a memory knows no distances: build it with rotary=None")
        batch, length = hidden_states.shape[:2]
        if self.rotary is not None and (
            positions is None or positions.shape not in ((batch, length), (1, length))
        ):
            given = None if positions is None else tuple(positions.shape)
            raise ValueError(
                f"positions={given}: this attention has rotary positions and needs those of its tokens, "
                f"({batch}, {length}) or (1, {length})"
            )


@contextmanager
def recorded(model: nn.Module) -> Iterator[dict[str, list[Tensor]]]:
    """Keep the attention weights that a model computes meanwhile.

    The fused computation never has them in one place, so they are computed a second time; the outputs are
    those of a run without recording.

    Args:
        model: contains `MultiHeadAttention` somewhere.

    Yields:
        For each such module, by its name in the model, one tensor (B, H, T, S) per call.

    Raises:
        ValueError: there is no such module in the model.
    """
    modules = {name: part for name, part in model.named_modules() if isinstance(part, MultiHeadAttention)}
    if not modules:
        raise ValueError(f"{type(model).__name__} contains no MultiHeadAttention")
    record: dict[str, list[Tensor]] = {name: [] for name in modules}
    for name, module in modules.items():
        module._record = record[name]
    try:
        yield record
    finally:
        for module in modules.values():
            module._record = None


def _check(query: Tensor, key: Tensor, mask: Tensor | None) -> None:
    if query.size(-1) != key.size(-1):
        raise ValueError(
            f"query {tuple(query.shape)} and key {tuple(key.shape)} differ in their last dimension"
        )
    batch = _broadcast(query.shape[:-2], key.shape[:-2])
    if batch is None:
        raise ValueError(
            f"query {tuple(query.shape)} and key {tuple(key.shape)}: all but the last two dimensions have to "
            "be the same, or 1"
        )
    if mask is None:
        return
    if mask.dtype != torch.bool:
        raise ValueError(f"the mask is {mask.dtype}: a boolean one is needed, True for 'may attend'")
    scores = (*batch, query.size(-2), key.size(-2))
    if _broadcast(mask.shape, scores) != scores:
        raise ValueError(
            f"the mask {tuple(mask.shape)} does not fit scores {scores}: each dimension has to be the same, "
            "or 1"
        )


def _broadcast(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...] | None:
    try:
        return tuple(torch.broadcast_shapes(one, other))
    except RuntimeError:
        return None
