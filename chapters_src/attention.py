"""Attention: scaled dot product, masks, multi-head and cross-attention, rotary positions, key-value cache.

Chapters 06 and 07 build it step by step, chapter 08 puts it into layers, chapter 13 decodes with the cache.

A mask is None, "causal" (equivalent to `causal_mask(length)`, but faster), or a boolean tensor, True for
"may attend", that broadcasts to the scores. It has at most two dimensions, (T, S), or as many as the scores,
mostly (B, H, T, S): with three, the first could be for sequences or for heads. Masks combine with `&`, as in
`padding_mask(attention_mask) & causal_mask(length)`. No mask has a default: pass None for no mask.

Shapes: B sequences in a batch, H heads, G heads of keys and values (H unless queries share them), T queries,
S keys, D numbers per head (`head_dim`).
"""

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Mask = Tensor | Literal["causal"] | None


def causal_mask(num_queries: int, num_keys: int | None = None, device: torch.device | None = None) -> Tensor:
    """Let each token attend to itself and to the tokens before it: boolean, (T, S).

    Vaswani et al., Attention Is All You Need (2017), section 3.2.3, https://arxiv.org/abs/1706.03762. If
    there are more keys than queries, as with a cache, the queries are the last tokens. S defaults to T.

    Raises:
        ValueError: there are no queries, or fewer keys than queries.
    """
    num_keys = num_queries if num_keys is None else num_keys
    if not 1 <= num_queries <= num_keys:
        raise ValueError(
            f"{num_queries} queries and {num_keys} keys: at least one query is needed, and no more queries "
            "than keys, because the queries are the last of the tokens that the keys belong to"
        )
    full = torch.ones(num_queries, num_keys, dtype=torch.bool, device=device)
    return full.tril(diagonal=num_keys - num_queries)


def padding_mask(attention_mask: Tensor) -> Tensor:
    """Hide padding from all queries and heads: boolean, (B, 1, 1, S).

    `attention_mask` is 1 or True for a token, 0 or False for padding, (B, S), as tokenizers return it.

    Raises:
        ValueError: `attention_mask` has another number of dimensions, or a floating-point type.
    """
    if attention_mask.ndim != 2 or attention_mask.is_floating_point():
        raise ValueError(
            f"attention_mask {tuple(attention_mask.shape)}, {attention_mask.dtype}: expected integers or "
            "booleans, (batch, length), 1 for a token and 0 for padding; for an additive mask, pass mask == 0"
        )
    return attention_mask.bool()[:, None, None, :]


def document_mask(documents: Tensor) -> Tensor:
    """Let each token attend to its own document only, where several are packed into one sequence.

    `documents` has the number of each token's document, (B, T). The mask is boolean, (B, 1, T, T); a decoder
    combines it with `causal_mask`.

    Raises:
        ValueError: `documents` has another number of dimensions, or is not of integers.
    """
    if documents.ndim != 2 or documents.is_floating_point() or documents.dtype == torch.bool:
        raise ValueError(
            f"documents {tuple(documents.shape)}, {documents.dtype}: expected (batch, tokens), the number of "
            "each token's document"
        )
    return documents[:, None, :, None] == documents[:, None, None, :]


def sliding_window_mask(
    num_queries: int, num_keys: int, window: int, device: torch.device | None = None
) -> Tensor:
    """Hide the tokens that are `window` or more places before a query: boolean, (T, S).

    Beltagy et al., Longformer (2020), section 3.1, https://arxiv.org/abs/2004.05150. Later tokens are not
    hidden: combine it with `causal_mask`, and a query attends to itself and to the `window` - 1 tokens before
    it. If there are more keys than queries, as with a cache, the queries are the last tokens.

    Raises:
        ValueError: there are no queries, fewer keys than queries, or no token in the window.
    """
    if window < 1 or not 1 <= num_queries <= num_keys:
        raise ValueError(
            f"a window of {window}, {num_queries} queries and {num_keys} keys: the window has at least one "
            "token, at least one query is needed, and no more queries than keys"
        )
    full = torch.ones(num_queries, num_keys, dtype=torch.bool, device=device)
    return full.triu(diagonal=num_keys - num_queries - window + 1)


def attention_weights(query: Tensor, key: Tensor, mask: Mask) -> Tensor:
    """Compute softmax(Q Kᵀ / √d_k), equation 1 of Vaswani et al. (2017) without V: (..., T, S).

    `query` is (..., T, D), mostly (B, H, T, D), and `key` (..., S, D). Each row sums to 1, except that a
    query that may attend to nothing gets all zeros.

    Raises:
        ValueError: the shapes do not match, or the mask is not valid for them.
    """
    _check(query, key, mask)
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))  # (..., T, D) x (..., D, S)
    if mask is None:
        return scores.softmax(dim=-1)
    if isinstance(mask, str):
        mask = causal_mask(query.size(-2), device=query.device)
    # With minus infinity, a row without keys would be NaN. With the lowest finite number it is uniform, and
    # the second fill sets it to zero; in all other rows exp(lowest - highest) is exactly 0 already.
    lowest = torch.finfo(scores.dtype).min
    return scores.masked_fill(~mask, lowest).softmax(dim=-1).masked_fill(~mask, 0.0)


def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, mask: Mask) -> Tensor:
    """Compute softmax(Q Kᵀ / √d_k) V, equation 1 of Vaswani et al. (2017): (..., T, width of a value).

    It keeps all T x S weights in memory, unlike PyTorch's function of this name, which the modules call. A
    query that may attend to nothing gets zeros.

    Raises:
        ValueError: as for `attention_weights`, or keys and values differ in number.
    """
    if key.shape[:-1] != value.shape[:-1]:
        raise ValueError(f"key {tuple(key.shape)} and value {tuple(value.shape)}: each key needs one value")
    return attention_weights(query, key, mask) @ value  # (..., T, S) x (..., S, D)


def rotary_angles(positions: Tensor, head_dim: int, base: float = 10_000.0) -> tuple[Tensor, Tensor]:
    """Return the cosines and sines of the angles by which rotary positions rotate queries and keys.

    Su et al., RoFormer (2021), equation 34, https://arxiv.org/abs/2104.09864: pair i is rotated by
    base^(-2i/D) radians per position. All layers share them, so a model computes them once per forward pass.

    `positions` are integers, (B, T), or (1, T) for all sequences. Cosines and sines are (B or 1, 1, T, D), in
    float32, because half precision rounds distances.

    Raises:
        ValueError: `head_dim` is odd or less than 2.
    """
    if head_dim < 2 or head_dim % 2:
        raise ValueError(f"head_dim={head_dim} has to be even and positive: rotary positions rotate pairs")
    pairs = torch.arange(0, head_dim, 2, device=positions.device)
    frequencies = base ** (-pairs.float() / head_dim)  # (D/2,)
    angles = positions[:, None, :, None] * frequencies  # (B, 1, T, D/2)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([cos, cos], dim=-1), torch.cat([-sin, sin], dim=-1)


def apply_rotary(heads: Tensor, angles: tuple[Tensor, Tensor]) -> Tensor:
    """Rotate each vector by its position, so that dot products depend on the distance of two positions.

    Number i is paired with number i + D/2, as in Llama (the paper pairs neighbors): (x, y) becomes
    (x cos - y sin, y cos + x sin). `heads` are queries or keys, (B, H, T, D), and `angles` those of
    `rotary_angles`.

    Raises:
        ValueError: the angles are for other tokens or another width.
    """
    cos, sin = angles  # The first half of the sines is negated already.
    if cos.shape[-2:] != heads.shape[-2:] or cos.size(0) not in (1, heads.size(0)):
        raise ValueError(
            f"angles {tuple(cos.shape)} for heads {tuple(heads.shape)}: compute them for the same tokens and "
            "the same head_dim"
        )
    first, second = heads.chunk(2, dim=-1)
    swapped = torch.cat([second, first], dim=-1)
    return (heads * cos + swapped * sin).to(heads.dtype)


class KeyValueCache:
    """The keys and values that one layer has computed, in memory allocated in advance.

    It can read `capacity` tokens. With a sliding `window` (how many tokens a query attends to, itself
    included), tokens that no later query can reach are discarded, so it does not grow beyond the window and
    `2 * SPARE` tokens. `num_heads` is G; `like` has the data type and device to use.
    """

    SPARE = 64  # Tokens before the window that are kept at least, so that as many can be cropped.

    def __init__(
        self,
        batch_size: int,
        num_heads: int,
        capacity: int,
        head_dim: int,
        like: Tensor,
        window: int | None = None,
    ) -> None:
        self.capacity, self.window = capacity, window
        self.memory: tuple[Tensor, Tensor] | None = None  # Keys and values that cross-attention has made.
        places = capacity if window is None else min(capacity, window - 1 + 2 * self.SPARE)
        self._key = like.new_zeros(batch_size, num_heads, places, head_dim)
        self._value = torch.zeros_like(self._key)
        self.length = 0  # Number of tokens it has read.
        self._discarded = 0  # How many of them it no longer holds: the first ones.

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Append keys and values of new tokens, (B, G, T, D). Earlier ones are copied with a window, seldom.

        Returns:
            The keys and the values of all tokens so far, each (B, G, S, D): views into the cache. With a
            window, those that one of the new tokens can reach: the last S = min(tokens, window - 1 + T).

        Raises:
            ValueError: the tokens exceed the capacity, or belong to another number of sequences.
        """
        rows, _, places, _ = self._key.shape
        num_new = key.size(2)
        end = self.length + num_new
        if key.size(0) != rows or end > self.capacity:
            raise ValueError(
                f"cannot append {num_new} tokens of {key.size(0)} sequences: the cache is for {rows} "
                f"sequences, and {self.length} of its capacity of {self.capacity} tokens are used; select "
                "rows, or create it with a larger capacity"
            )
        in_reach = end if self.window is None else min(end, self.window - 1 + num_new)
        if self.window is not None and end - self._discarded > places:
            return self._slide(key, value, self.window - 1 + self.SPARE, in_reach)
        start = self.length - self._discarded
        self._key.narrow(2, start, num_new).copy_(key)
        self._value.narrow(2, start, num_new).copy_(value)
        self.length = end
        first = start + num_new - in_reach
        return self._key.narrow(2, first, in_reach), self._value.narrow(2, first, in_reach)

    def _slide(self, key: Tensor, value: Tensor, num_kept: int, in_reach: int) -> tuple[Tensor, Tensor]:
        """Append new tokens, and discard all but the last `num_kept`; return those in reach."""
        held, reached = self.length - self._discarded, []
        for buffer, new in ((self._key, key), (self._value, value)):
            tokens = torch.cat([buffer[:, :, :held][:, :, -num_kept:], new], dim=2)
            buffer[:, :, :num_kept] = tokens[:, :, -num_kept:]
            reached.append(tokens[:, :, -in_reach:])
        self.length += key.size(2)
        self._discarded = self.length - num_kept
        return reached[0], reached[1]

    def select(self, rows: Tensor) -> None:
        """Keep these sequences of the batch, by index, in this order. Beam search repeats some of them."""
        held = self.length - self._discarded
        for name in ("_key", "_value"):
            tensor = getattr(self, name)
            filled = tensor[:, :, :held].index_select(0, rows)
            if len(rows) != tensor.size(0):
                tensor = tensor.new_zeros(len(rows), *tensor.shape[1:])
                setattr(self, name, tensor)
            tensor[:, :, :held] = filled
        if self.memory is not None:
            key, value = self.memory
            self.memory = key.index_select(0, rows), value.index_select(0, rows)

    def can_crop(self, length: int) -> bool:
        """Return whether it still holds what the tokens after the first `length` attend to."""
        reach = 0 if self.window is None else self.window - 1
        return 0 <= length <= self.length and self._discarded <= max(length - reach, 0)

    def crop(self, length: int) -> None:
        """Discard all but the first `length` tokens; a ValueError where `can_crop` is False."""
        if not 0 <= length <= self.length:
            raise ValueError(f"cannot keep {length} tokens: the cache holds {self.length}")
        if not self.can_crop(length):
            raise ValueError(
                f"cannot keep {length} tokens: the first {self._discarded} are discarded, and the window of "
                f"{self.window} of the next token would reach them"
            )
        self.length = length


class _Attention(nn.Module):
    """What self-attention and cross-attention have in common."""

    output: nn.Linear

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        num_key_value_heads: int | None,
        head_dim: int | None,
        dropout: float,
    ) -> None:
        super().__init__()
        groups = num_heads if num_key_value_heads is None else num_key_value_heads
        d_model, num_heads, groups = map(operator.index, (d_model, num_heads, groups))
        divides = head_dim is not None or (num_heads > 0 and d_model % num_heads == 0)
        if num_heads < 1 or groups < 1 or not divides or num_heads % groups:
            raise ValueError(
                f"d_model={d_model}, num_heads={num_heads}, num_key_value_heads={groups}: num_heads has to "
                "divide d_model unless head_dim is given, and num_key_value_heads has to divide num_heads"
            )
        self.d_model, self.num_heads, self.num_key_value_heads = d_model, num_heads, groups
        self.head_dim = d_model // num_heads if head_dim is None else operator.index(head_dim)
        self.dropout = dropout
        self._record: list[Tensor] | None = None

    def _attend(self, query: Tensor, key: Tensor, value: Tensor, mask: Mask) -> Tensor:
        """Attend in each head, then combine the heads: (B, T, d_model)."""
        _check_mask(query.shape[:-1], key.size(-2), mask)
        if self._record is not None:
            keys = key.repeat_interleave(self.num_heads // self.num_key_value_heads, dim=1)  # G -> H
            self._record.append(attention_weights(query.detach(), keys.detach(), mask))
        attn_mask = torch.atleast_2d(mask) if isinstance(mask, Tensor) else None  # PyTorch refuses (S,).
        mixed = F.scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=attn_mask,
            dropout_p=self.dropout if self.training else 0.0,
            is_causal=isinstance(mask, str),
            enable_gqa=self.num_key_value_heads < self.num_heads,
        )
        return self.output(mixed.transpose(1, 2).flatten(2))  # (B, H, T, D) -> (B, T, H * D)

    def _split(self, projected: Tensor) -> Tensor:
        batch, length, _ = projected.shape
        return projected.view(batch, length, -1, self.head_dim).transpose(1, 2)  # (B, heads, S, D)

    def _check_states(self, name: str, states: Tensor) -> None:
        if states.ndim != 3 or states.size(-1) != self.d_model:
            raise ValueError(f"{name} {tuple(states.shape)}: expected (batch, tokens, {self.d_model})")


class MultiHeadAttention(_Attention):
    """Multi-head self-attention: section 3.2.2 of Vaswani et al. (2017).

    One projection computes the queries, keys and values of all heads; its rows are in this order. If G < H,
    neighboring queries share keys: grouped-query attention, Ainslie et al. (2023),
    https://arxiv.org/abs/2305.13245.

    Args:
        d_model: width of input and output.
        num_heads: H, a divisor of d_model unless `head_dim` is given.
        num_key_value_heads: G, a divisor of H; defaults to H.
        head_dim: D; defaults to d_model / H.
        bias: of the projections.
        dropout: probability of dropping an attention weight in training.
        query_key_norm: makes the norm of each query and of each key, called with D, so that a score cannot
            grow with their lengths: Henry et al. (2020), https://arxiv.org/abs/2010.04245. None: no norms.

    Raises:
        ValueError: a number does not divide the other.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        num_key_value_heads: int | None = None,
        head_dim: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
        query_key_norm: Callable[[int], nn.Module] | None = None,
    ) -> None:
        super().__init__(d_model, num_heads, num_key_value_heads, head_dim, dropout)
        rows = (self.num_heads + 2 * self.num_key_value_heads) * self.head_dim
        self.query_key_value = nn.Linear(self.d_model, rows, bias=bias)
        self.output = nn.Linear(self.num_heads * self.head_dim, self.d_model, bias=bias)
        self.query_norm = self.key_norm = None
        if query_key_norm is not None:
            self.query_norm, self.key_norm = query_key_norm(self.head_dim), query_key_norm(self.head_dim)

    def forward(
        self,
        hidden_states: Tensor,
        mask: Mask,
        *,
        angles: tuple[Tensor, Tensor] | None = None,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """Compute what each token takes from those it may attend to: (B, T, d_model) -> (B, T, d_model).

        A tensor as mask broadcasts to (B, H, T, S). S is T, or with a cache, to which keys and values are
        appended, the number of tokens that it returns. `angles` are those of the T tokens, for rotary
        positions.

        Raises:
            ValueError: the shapes do not match, or the mask is not valid for them.
        """
        self._check_states("hidden_states", hidden_states)
        groups = self.num_key_value_heads
        heads = self._split(self.query_key_value(hidden_states))  # (B, H + 2 * G, T, D)
        compared, value = heads.split_with_sizes([self.num_heads + groups, groups], dim=1)
        if self.query_norm is not None and self.key_norm is not None:
            query, key = compared.split_with_sizes([self.num_heads, groups], dim=1)
            compared = torch.cat([self.query_norm(query), self.key_norm(key)], dim=1)
        if angles is not None:
            compared = apply_rotary(compared, angles)
        query, key = compared.split_with_sizes([self.num_heads, groups], dim=1)
        if cache is not None:
            key, value = cache.append(key, value)
        return self._attend(query, key, value, mask)


class CrossAttention(_Attention):
    """Multi-head attention from one sequence to another, the memory: section 3.2.3 of Vaswani et al. (2017).

    One projection computes the queries, another the keys and values (rows of the keys first). What is passed
    and raised is the same as for `MultiHeadAttention`.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        num_key_value_heads: int | None = None,
        head_dim: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(d_model, num_heads, num_key_value_heads, head_dim, dropout)
        width = self.num_heads * self.head_dim
        self.query = nn.Linear(self.d_model, width, bias=bias)
        self.key_value = nn.Linear(self.d_model, 2 * self.num_key_value_heads * self.head_dim, bias=bias)
        self.output = nn.Linear(width, self.d_model, bias=bias)

    def forward(
        self,
        hidden_states: Tensor,
        memory: Tensor,
        memory_mask: Tensor | None,
        *,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """Compute what each token takes from the memory: (B, T, d_model), (B, S, d_model) -> (B, T, d_model).

        `memory_mask` is boolean and broadcasts to (B, H, T, S); None: no mask. The first call with a cache
        leaves the keys and values of the memory in it, and later ones use these.

        Raises:
            ValueError: the shapes do not match, or the mask is not valid for them.
        """
        self._check_states("hidden_states", hidden_states)
        query = self._split(self.query(hidden_states))  # (B, H, T, D)
        if cache is not None and cache.memory is not None:
            key, value = cache.memory
        else:
            self._check_states("memory", memory)
            key, value = self._split(self.key_value(memory)).chunk(2, dim=1)  # (B, G, S, D) each
        if cache is not None:
            cache.memory = key, value
        if isinstance(memory_mask, str):
            raise ValueError(f"memory_mask={memory_mask!r}: pass a boolean tensor, or None for no mask")
        if key.size(0) not in (1, query.size(0)):
            raise ValueError(
                f"a memory of {key.size(0)} sequences for {query.size(0)}: pass one for each, or one for all"
            )
        return self._attend(query, key, value, memory_mask)


@contextmanager
def recorded(model: nn.Module) -> Iterator[dict[str, list[Tensor]]]:
    """Record the attention weights that a model computes inside the `with` block.

    PyTorch's fused kernels do not return them, so they are computed again. The outputs stay the same.

    Yields:
        For each `MultiHeadAttention` and `CrossAttention`, by its name in the model, one tensor (B, H, T, S)
        per call.

    Raises:
        ValueError: the model contains no such module.
    """
    modules = {name: module for name, module in model.named_modules() if isinstance(module, _Attention)}
    if not modules:
        raise ValueError(f"{type(model).__name__} contains no MultiHeadAttention and no CrossAttention")
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
    """Check shapes and types, but no values: reading a value makes the CPU wait for the GPU."""
    if query.size(-1) != key.size(-1):
        raise ValueError(
            f"query {tuple(query.shape)} and key {tuple(key.shape)} have to agree in the last dimension"
        )
    if not _fits(key.shape[:-2], query.shape[:-2]) and not _fits(query.shape[:-2], key.shape[:-2]):
        raise ValueError(
            f"query {tuple(query.shape)} and key {tuple(key.shape)}: all but the last two dimensions have to "
            "be equal, or 1"
        )
    _check_mask(query.shape[:-1], key.size(-2), mask)


def _check_mask(queries: Sequence[int], num_keys: int, mask: Mask) -> None:
    if mask is None:
        return
    if isinstance(mask, str):
        if mask != "causal" or queries[-1] != num_keys:
            raise ValueError(
                f"mask={mask!r} for {queries[-1]} queries and {num_keys} keys: the only string allowed is "
                "'causal', for as many keys as queries; otherwise pass a tensor, such as causal_mask returns"
            )
        return
    if mask.dtype != torch.bool:
        raise ValueError(f"the mask is {mask.dtype}: expected a boolean tensor, True for 'may attend'")
    scores = (*queries, num_keys)
    if not _fits(mask.shape, scores):
        raise ValueError(
            f"the mask {tuple(mask.shape)} does not fit scores {scores}: each dimension has to be equal, or 1"
        )
    if 2 < mask.ndim < len(scores):
        raise ValueError(
            f"the mask {tuple(mask.shape)} for scores {scores} is ambiguous: with mask[:, None] it differs "
            "between sequences, with mask[None] between heads"
        )


def _fits(shape: Sequence[int], target: Sequence[int]) -> bool:
    """Return whether a tensor of this shape broadcasts to the target shape."""
    pairs = zip(reversed(shape), reversed(target), strict=False)
    return len(shape) <= len(target) and all(size in (1, wanted) for size, wanted in pairs)
