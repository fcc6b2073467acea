"""Attention: every query takes an average of values, weighted by how well its key fits.

Chapters 06 and 07 build it step by step, from a loop over single vectors to heads, masks and shared keys;
chapter 08 turns queries and keys by their positions and puts attention into layers, and chapter 13 decodes
with its cache.

A mask says who may attend to whom. It is None (everyone to everyone), "causal" (each token to itself and to
what is on its left), or a boolean tensor in which True means "may attend". Tensors broadcast, so that they
combine with `&`: `padding_mask(attention_mask) & causal_mask(length)`. "causal" says the same as
`causal_mask(length)`, and lets PyTorch take its fastest kernel. No function here fills in a mask that was
left out: who wants none writes None.

Shapes: B sequences in a batch, H heads, G heads of keys and values (H unless queries share them), T queries,
S keys, D numbers in a head (`head_dim`).
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Mask = Tensor | Literal["causal"] | None


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
        ValueError: `attention_mask` has another number of dimensions, or is of floating point.
    """
    if attention_mask.ndim != 2 or attention_mask.is_floating_point():
        raise ValueError(
            f"attention_mask {tuple(attention_mask.shape)}, {attention_mask.dtype}: (batch, length) is "
            "needed in whole numbers or booleans, 1 for a token and 0 for padding; an additive mask becomes "
            "one by `mask == 0`"
        )
    return attention_mask.bool()[:, None, None, :]


def attention_weights(query: Tensor, key: Tensor, mask: Mask) -> Tensor:
    """Compute how much each query takes from each key: softmax(Q Kᵀ / √d_k), equation 1 without V.

    Vaswani et al. (2017), https://arxiv.org/abs/1706.03762.

    Args:
        query: (..., T, D), mostly (B, H, T, D).
        key: (..., S, D).
        mask: None, "causal" (S = T), or boolean, True for "may attend", a shape that broadcasts to
            (..., T, S).

    Returns:
        (..., T, S). Each row adds up to one, but for that of a query that may attend to nothing: all zeros.

    Raises:
        ValueError: the widths differ, the mask is not boolean, or its shape does not fit.
    """
    _check(query, key, mask)
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))  # (..., T, D) x (..., D, S)
    if mask is None:
        return scores.softmax(dim=-1)
    if isinstance(mask, str):
        mask = causal_mask(query.size(-2), device=query.device)
    # Minus infinity would make a row without any key NaN. The lowest number makes it uniform, and the second
    # fill turns that into zeros; in any other row exp(lowest - highest) is exactly 0 either way.
    lowest = torch.finfo(scores.dtype).min
    return scores.masked_fill(~mask, lowest).softmax(dim=-1).masked_fill(~mask, 0.0)


def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, mask: Mask) -> Tensor:
    """Average the values with the attention weights: softmax(Q Kᵀ / √d_k) V, equation 1.

    Vaswani et al. (2017), https://arxiv.org/abs/1706.03762. All T x S weights are in memory at once;
    PyTorch's function of this name gives the same without them, and `MultiHeadAttention` calls that one.

    Args:
        query: (..., T, D), mostly (B, H, T, D).
        key: (..., S, D).
        value: (..., S, any width).
        mask: None, "causal" (S = T), or boolean, True for "may attend", a shape that broadcasts to
            (..., T, S).

    Returns:
        (..., T, width of the values). A query that may attend to nothing gets zeros.

    Raises:
        ValueError: shapes do not fit, or the mask is not boolean.
    """
    if key.shape[:-1] != value.shape[:-1]:
        raise ValueError(f"key {tuple(key.shape)} and value {tuple(value.shape)}: each key needs one value")
    return attention_weights(query, key, mask) @ value  # (..., T, S) x (..., S, D)


def rotary_angles(positions: Tensor, head_dim: int, base: float = 10_000.0) -> tuple[Tensor, Tensor]:
    """Give the angles by which rotary positions turn queries and keys, as cosines and sines.

    Su et al., RoFormer (2021), equation 34, https://arxiv.org/abs/2104.09864. They are the same in all
    layers, so a model computes them once per forward pass.

    Args:
        positions: whole numbers, (B, T), or (1, T) for all sequences.
        head_dim: D, even.
        base: the angle of pair i grows by base^(-2i/D) radians per position.

    Returns:
        Cosines and sines, each (B or 1, 1, T, D), in float32: half precision would round the angles, and
        distances with them.

    Raises:
        ValueError: head_dim is odd or not positive.
    """
    if head_dim < 2 or head_dim % 2:
        raise ValueError(f"head_dim={head_dim}: rotary positions turn pairs of numbers, so it has to be even")
    pairs = torch.arange(0, head_dim, 2, device=positions.device)
    frequencies = base ** (-pairs.float() / head_dim)  # (D/2,)
    angles = positions[:, None, :, None] * frequencies  # (B, 1, T, D/2)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([cos, cos], dim=-1), torch.cat([-sin, sin], dim=-1)


def apply_rotary(heads: Tensor, angles: tuple[Tensor, Tensor]) -> Tensor:
    """Turn each vector by the angles of its position; dot products of two such vectors tell their distance.

    Number i is paired with number i + D/2, as models of Llama's kind have it, where the paper pairs
    neighbors: (x, y) becomes (x cos - y sin, y cos + x sin).

    Args:
        heads: queries or keys, (B, H, T, D).
        angles: what `rotary_angles` gives for their positions.

    Returns:
        (B, H, T, D), lengths unchanged.

    Raises:
        ValueError: the angles are of other tokens or another width.
    """
    cos, sin = angles  # The sines have the signs of their places.
    if cos.shape[-2:] != heads.shape[-2:] or cos.size(0) not in (1, heads.size(0)):
        raise ValueError(
            f"angles {tuple(cos.shape)} for heads {tuple(heads.shape)}: those of the same tokens and "
            "head_dim are needed"
        )
    first, second = heads.chunk(2, dim=-1)
    swapped = torch.cat([second, first], dim=-1)
    return (heads * cos + swapped * sin).to(heads.dtype)


class KeyValueCache:
    """The keys and values that one attention module has computed, in room that was allocated ahead.

    Args:
        batch_size: B.
        num_heads: G, heads of keys and values.
        room: how many tokens it can hold.
        head_dim: D.
        like: a tensor whose type and device it takes over.
    """

    def __init__(self, batch_size: int, num_heads: int, room: int, head_dim: int, like: Tensor) -> None:
        self._key = like.new_zeros(batch_size, num_heads, room, head_dim)
        self._value = torch.zeros_like(self._key)
        self.length = 0  # How many tokens are in it.

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Put new tokens at the end, and give all of them. What is there already is not copied.

        Args:
            key: of the new tokens, (B, G, T, D).
            value: likewise.

        Returns:
            The keys and the values of all tokens so far, each (B, G, S, D): views of the room.

        Raises:
            ValueError: there is no room for so many, or they are of another number of sequences.
        """
        rows, _, room, _ = self._key.shape
        end = self.length + key.size(2)
        if key.size(0) != rows or end > room:
            raise ValueError(
                f"the cache has {rows} sequences and room for {room} tokens, {self.length} of them taken; "
                f"{key.size(0)} sequences of {key.size(2)} tokens came: select rows, or ask for more room"
            )
        self._key.narrow(2, self.length, key.size(2)).copy_(key)
        self._value.narrow(2, self.length, key.size(2)).copy_(value)
        self.length = end
        return self._key.narrow(2, 0, end), self._value.narrow(2, 0, end)

    def select(self, rows: Tensor) -> None:
        """Keep these sequences of the batch, in this order; one may be named several times (beam search).

        Args:
            rows: whole numbers, any number of them.
        """
        for name in ("_key", "_value"):
            tensor = getattr(self, name)
            filled = tensor[:, :, : self.length].index_select(0, rows)
            if len(rows) != tensor.size(0):
                tensor = tensor.new_zeros(len(rows), *tensor.shape[1:])
                setattr(self, name, tensor)
            tensor[:, :, : self.length] = filled

    def crop(self, length: int) -> None:
        """Forget all but the first `length` tokens.

        Raises:
            ValueError: there are not so many.
        """
        if not 0 <= length <= self.length:
            raise ValueError(f"cannot keep {length} tokens: the cache holds {self.length}")
        self.length = length


class _Attention(nn.Module):
    """What self-attention and cross-attention share: the heads, what they average, and the output."""

    output: nn.Linear

    def __init__(self, d_model: int, num_heads: int, num_key_value_heads: int | None, dropout: float) -> None:
        super().__init__()
        groups = num_heads if num_key_value_heads is None else num_key_value_heads
        if num_heads < 1 or groups < 1 or d_model % num_heads or num_heads % groups:
            raise ValueError(
                f"d_model={d_model}, num_heads={num_heads}, num_key_value_heads={groups}: the heads have to "
                "divide d_model, and the heads of keys and values have to divide the heads"
            )
        self.d_model, self.num_heads, self.num_key_value_heads = d_model, num_heads, groups
        self.head_dim = d_model // num_heads
        self.dropout = dropout
        self._record: list[Tensor] | None = None

    def _attend(self, query: Tensor, key: Tensor, value: Tensor, mask: Mask) -> Tensor:
        """Average the values in each head, and mix the heads: (B, T, d_model)."""
        _check_mask(query.shape[:-1], key.size(-2), mask)
        if self._record is not None:
            keys = key.repeat_interleave(self.num_heads // self.num_key_value_heads, dim=1)  # G -> H
            self._record.append(attention_weights(query.detach(), keys.detach(), mask))
        is_causal = isinstance(mask, str)
        mixed = F.scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=None if is_causal or mask is None else torch.atleast_2d(mask),  # at least (T, S)
            dropout_p=self.dropout if self.training else 0.0,
            is_causal=is_causal,
            enable_gqa=self.num_key_value_heads < self.num_heads,
        )
        return self.output(mixed.transpose(1, 2).flatten(2))  # (B, H, T, D) -> (B, T, H * D)

    def _split(self, projected: Tensor) -> Tensor:
        batch, length, _ = projected.shape
        return projected.view(batch, length, -1, self.head_dim).transpose(1, 2)  # (B, heads, S, D)

    def _check_states(self, name: str, states: Tensor) -> None:
        if states.ndim != 3 or states.size(-1) != self.d_model:
            raise ValueError(f"{name} {tuple(states.shape)}: (batch, tokens, {self.d_model}) is needed")


class MultiHeadAttention(_Attention):
    """Several attentions side by side, each in a subspace of its own: section 3.2.2 of Vaswani et al. (2017).

    The tokens of a sequence attend to each other (self-attention). One projection makes the queries, keys and
    values of all heads; its rows are in this order. With fewer heads of keys and values than heads,
    neighboring queries share them: grouped-query attention, Ainslie et al. (2023),
    https://arxiv.org/abs/2305.13245.

    Args:
        d_model: width of what comes in and goes out.
        num_heads: H; divides d_model, and head_dim = d_model / H.
        num_key_value_heads: G, divides H; H if it is not given.
        bias: whether the projections have one.
        dropout: share of the attention weights that is dropped in training.

    Raises:
        ValueError: a number that does not divide.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        num_key_value_heads: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(d_model, num_heads, num_key_value_heads, dropout)
        rows = (num_heads + 2 * self.num_key_value_heads) * self.head_dim
        self.query_key_value = nn.Linear(d_model, rows, bias=bias)
        self.output = nn.Linear(d_model, d_model, bias=bias)

    def forward(
        self,
        hidden_states: Tensor,
        mask: Mask,
        *,
        angles: tuple[Tensor, Tensor] | None = None,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """Let each token collect from the tokens that it may attend to.

        Args:
            hidden_states: (B, T, d_model).
            mask: None, "causal" (S = T), or boolean, True for "may attend", a shape that broadcasts to
                (B, H, T, S).
            angles: of the T tokens, for rotary positions.
            cache: takes up the keys and values of the T tokens, and S counts all that are in it. Without one,
                S = T.

        Returns:
            (B, T, d_model).

        Raises:
            ValueError: shapes do not fit, or the mask is not boolean.
        """
        self._check_states("hidden_states", hidden_states)
        groups = self.num_key_value_heads
        heads = self._split(self.query_key_value(hidden_states))  # (B, H + 2 * G, T, D)
        if angles is None:
            query, key, value = heads.split_with_sizes([self.num_heads, groups, groups], dim=1)
        else:
            compared, value = heads.split_with_sizes([self.num_heads + groups, groups], dim=1)
            query, key = apply_rotary(compared, angles).split_with_sizes([self.num_heads, groups], dim=1)
        if cache is not None:
            key, value = cache.append(key, value)
        return self._attend(query, key, value, mask)


class CrossAttention(_Attention):
    """Multi-head attention of one sequence to another, the memory: section 3.2.3 of Vaswani et al. (2017).

    One projection makes the queries, another the keys and values (rows of keys first).

    Args, and what is raised: as for `MultiHeadAttention`.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        num_key_value_heads: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(d_model, num_heads, num_key_value_heads, dropout)
        self.query = nn.Linear(d_model, d_model, bias=bias)
        self.key_value = nn.Linear(d_model, 2 * self.num_key_value_heads * self.head_dim, bias=bias)
        self.output = nn.Linear(d_model, d_model, bias=bias)

    def forward(
        self, hidden_states: Tensor, memory: Tensor | tuple[Tensor, Tensor], memory_mask: Tensor | None
    ) -> Tensor:
        """Let each token collect from the memory.

        Args:
            hidden_states: what asks, (B, T, d_model).
            memory: what is asked, (B, S, d_model); or its keys and values, which `keys_and_values` has made
                once for many calls.
            memory_mask: boolean, True for "may attend", a shape that broadcasts to (B, H, T, S); None:
                everyone may.

        Returns:
            (B, T, d_model).

        Raises:
            ValueError: shapes do not fit, or the mask is not boolean.
        """
        self._check_states("hidden_states", hidden_states)
        query = self._split(self.query(hidden_states))  # (B, H, T, D)
        key, value = memory if isinstance(memory, tuple) else self.keys_and_values(memory)
        if isinstance(memory_mask, str):
            raise ValueError(
                f"memory_mask={memory_mask!r}: a memory has no future to hide; give a tensor, or None"
            )
        if key.size(0) not in (1, query.size(0)):
            raise ValueError(
                f"a memory of {key.size(0)} sequences for {query.size(0)}: one each, or one for all"
            )
        return self._attend(query, key, value, memory_mask)

    def keys_and_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Make the keys and values of a memory.

        Args:
            memory: (B, S, d_model).

        Returns:
            Keys and values, each (B, G, S, D).

        Raises:
            ValueError: `memory` has another shape.
        """
        self._check_states("memory", memory)
        key, value = self._split(self.key_value(memory)).chunk(2, dim=1)
        return key, value


@contextmanager
def recorded(model: nn.Module) -> Iterator[dict[str, list[Tensor]]]:
    """Keep the attention weights that a model computes meanwhile.

    The fused computation never has them in one place, so they are computed a second time; the outputs are
    those of a run without recording.

    Args:
        model: contains `MultiHeadAttention` or `CrossAttention` somewhere.

    Yields:
        For each such module, by its name in the model, one tensor (B, H, T, S) per call.

    Raises:
        ValueError: there is no such module in the model.
    """
    modules = {name: module for name, module in model.named_modules() if isinstance(module, _Attention)}
    if not modules:
        raise ValueError(f"{type(model).__name__} contains no attention of this book")
    record: dict[str, list[Tensor]] = {name: [] for name in modules}
    before = {name: module._record for name, module in modules.items()}
    for name, module in modules.items():
        module._record = record[name]
    try:
        yield record
    finally:
        for name, module in modules.items():
            module._record = before[name]


def _check(query: Tensor, key: Tensor, mask: Mask) -> None:
    """Look at shapes and types only: to look at values would make a graphics card wait for the answer."""
    if query.size(-1) != key.size(-1):
        raise ValueError(
            f"query {tuple(query.shape)} and key {tuple(key.shape)} differ in their last dimension"
        )
    if not _fits(key.shape[:-2], query.shape[:-2]) and not _fits(query.shape[:-2], key.shape[:-2]):
        raise ValueError(
            f"query {tuple(query.shape)} and key {tuple(key.shape)}: all but the last two dimensions have to "
            "be the same, or 1"
        )
    _check_mask(query.shape[:-1], key.size(-2), mask)


def _check_mask(queries: tuple[int, ...], num_keys: int, mask: Mask) -> None:
    if mask is None:
        return
    if isinstance(mask, str):
        if mask != "causal" or queries[-1] != num_keys:
            raise ValueError(
                f"mask={mask!r} for {queries[-1]} queries and {num_keys} keys: a mask that is no tensor is "
                "'causal', for as many keys as queries; else use causal_mask"
            )
        return
    if mask.dtype != torch.bool:
        raise ValueError(f"the mask is {mask.dtype}: a boolean one is needed, True for 'may attend'")
    if not _fits(mask.shape, (*queries, num_keys)):
        raise ValueError(
            f"the mask {tuple(mask.shape)} does not fit scores {(*queries, num_keys)}: each dimension has to "
            "be the same, or 1"
        )


def _fits(shape: tuple[int, ...], needed: tuple[int, ...]) -> bool:
    """Tell whether a tensor of this shape broadcasts to the shape that is needed."""
    pairs = zip(reversed(shape), reversed(needed), strict=False)
    return len(shape) <= len(needed) and all(size in (1, wanted) for size, wanted in pairs)
