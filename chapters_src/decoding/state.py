"""The state of decoding: one object for our models and for those of the Transformers library.

`start_decoding` reads a prompt, or a source and the beginning of its target. The state it returns has the
logits of the next token, and `step` reads more tokens. Keys, values, the memory and its mask, positions and
padding are kept in one place, so that `select` and `crop` change all of them together.

Shapes: B sequences, P tokens of the prompt, T tokens of a step, S tokens of the source, V = vocab_size.
"""

import contextlib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from chapters_src.attention import KeyValueCache, Mask, causal_mask, padding_mask
from chapters_src.transformer import EncoderDecoder, LanguageModel, Memory


@torch.inference_mode()
def start_decoding(
    model: nn.Module,
    ids: Tensor,
    attention_mask: Tensor | None,
    *,
    max_new_tokens: int,
    target_ids: Tensor | None = None,
) -> "DecodingState":
    """Read the prompts, or the sources and the beginnings of their targets.

    The values of ids and mask are checked here, once; steps do not check them again. The state is on the
    model's device.

    Args:
        model: a `LanguageModel` or an `EncoderDecoder`, or a model of the Transformers library that can
            `generate` with a key-value cache; in evaluation mode.
        ids: prompts, or the sources of an encoder-decoder, (B, P).
        attention_mask: 1 for a token, 0 for padding on either side, (B, P); None: there is no padding.
        max_new_tokens: maximum number of tokens to step; memory is allocated for them.
        target_ids: for an encoder-decoder, and only there: the first tokens of its targets, (B, tokens),
            without padding. Often a single start token.

    Raises:
        TypeError: the model is none of these, or has no key-value cache.
        ValueError: the model is in training mode, an id is not in the vocabulary, a row has no token, the
            mask has other values than 0 and 1, the tokens exceed the context, or `target_ids` are missing or
            not expected.
    """
    model = getattr(model, "_orig_mod", model)  # The original of a compiled one: shapes of steps vary.
    if model.training:
        raise ValueError(
            "the model is in training mode, where dropout changes its outputs: call model.eval()"
        )
    info = _model_info(model)
    if target_ids is not None and not info.is_encoder_decoder:
        raise ValueError("target_ids are only for an encoder-decoder: leave them out")
    if target_ids is None and info.is_encoder_decoder:
        raise ValueError("target_ids are missing: pass the tokens that the decoder of this model starts with")
    prompt, prompt_mask = ids, _checked(ids, attention_mask, info.input_vocab_size)
    source_mask = prompt_mask
    if target_ids is not None:
        prompt, prompt_mask = target_ids, _checked(target_ids, None, info.vocab_size)
        if len(target_ids) != len(ids):
            raise ValueError(
                f"{len(target_ids)} rows of target_ids for {len(ids)} sources: pass one for each"
            )
    longest = prompt.size(1) if prompt_mask is None else int(prompt_mask.sum(dim=1).max())
    if max_new_tokens < 0 or (info.max_length is not None and longest + max_new_tokens > info.max_length):
        raise ValueError(
            f"max_new_tokens={max_new_tokens} after {longest} tokens: the context is limited to "
            f"{info.max_length} tokens; shorten the prompt, or generate fewer tokens"
        )
    memory = None if target_ids is None else _encoded(model, ids.long(), source_mask)
    capacity = prompt.size(1) + max_new_tokens
    state = _OwnState if isinstance(model, LanguageModel | EncoderDecoder) else _LibraryState
    return state(model, prompt.long(), prompt_mask, capacity, memory)


class DecodingState(ABC):
    """Everything that the next step needs. Create it with `start_decoding`.

    The logits it returns are copies without gradients, which may be modified in place.
    """

    def __init__(
        self, model: Any, ids: Tensor, attention_mask: Tensor | None, capacity: int, memory: Memory | None
    ) -> None:
        self._model = model
        self._batch_size, self._is_consistent = len(ids), True
        self._memory = memory
        self.capacity = capacity  # Maximum number of tokens, including padding.
        self.length = 0  # Number of tokens read so far, including padding.
        self._is_token: Tensor | None = None  # Boolean, (B, capacity); None: there is no padding.
        if attention_mask is not None:
            # Move padding to the left, so that new tokens follow the old ones, and windows hold tokens only.
            order = attention_mask.argsort(dim=1, stable=True)
            ids, attention_mask = ids.gather(1, order), attention_mask.gather(1, order)
            self._is_token = attention_mask.new_ones(len(ids), capacity, dtype=torch.bool)
            self._is_token[:, : ids.size(1)] = attention_mask.bool()
        self._prepare(ids)
        states = self._read(ids)
        self._next_logits: Tensor | None = self._logits(states[:, -1])

    @property
    def next_logits(self) -> Tensor:
        """The logits of the next token, (B, V).

        Raises:
            ValueError: after `crop`, until the next step.
        """
        if self._next_logits is None:
            raise ValueError("after crop, the logits of the next token are not known: call step first")
        return self._next_logits.clone()

    def step(self, ids: Tensor) -> Tensor:
        """Read the next token of each sequence, (B,), or several, (B, T). Earlier ones are not read again.

        Returns:
            The logits after each of these tokens, (B, V) or (B, T, V). The last ones are also `next_logits`.

        Raises:
            ValueError: the ids have another shape or type, exceed the capacity, or an earlier call was
                interrupted.
        """
        read = ids[:, None] if ids.ndim == 1 else ids
        if read.ndim != 2 or 0 in read.shape or read.size(0) != self._batch_size or read.is_floating_point():
            raise ValueError(
                f"ids {tuple(ids.shape)}, {ids.dtype}, for {self._batch_size} sequences: expected integers, "
                "(batch,) or (batch, tokens); call select to change the batch"
            )
        if self.length + read.size(1) > self.capacity:
            raise ValueError(
                f"cannot read {read.size(1)} more tokens: {self.length} of the capacity of {self.capacity} "
                "are used; start decoding with a larger max_new_tokens"
            )
        with self._change():
            logits = self._logits(self._read(read.long()))  # (B, T, V)
            self._next_logits = logits[:, -1]
        # Outside of inference mode, a clone is an ordinary tensor.
        return logits[:, -1].clone() if ids.ndim == 1 else logits.clone()

    def select(self, rows: Tensor) -> None:
        """Keep these sequences of the batch, by index, in this order. A row may occur several times.

        Raises:
            ValueError: `rows` has another shape or type, or an earlier call was interrupted.
            IndexError: there is no such row. The state is unchanged.
        """
        if rows.ndim != 1 or len(rows) < 1 or rows.dtype not in (torch.int64, torch.int32):
            raise ValueError(f"rows {tuple(rows.shape)}, {rows.dtype}: expected integers, one per sequence")
        torch.arange(self._batch_size, device=rows.device).index_select(0, rows)  # Raises before any change.
        with self._change():
            if self._is_token is not None:
                self._is_token = self._is_token.index_select(0, rows)
            if self._next_logits is not None:
                self._next_logits = self._next_logits.index_select(0, rows)
            if self._memory is not None:
                states, mask = self._memory.hidden_states, self._memory.attention_mask
                mask = None if mask is None else mask.index_select(0, rows)
                self._memory = Memory(states.index_select(0, rows), mask)
            self._select(rows)
            self._batch_size = len(rows)

    def crop(self, length: int) -> None:
        """Discard all but the first tokens, as speculative decoding does. Padding of the prompt counts.

        Raises:
            ValueError: `length` is 0, or fewer tokens were read; the model has a sliding window, and has
                discarded tokens that would be in it again (ours keeps 64 tokens before its window, the
                library's models none); or an earlier call was interrupted.
        """
        if not 1 <= length <= self.length:
            raise ValueError(f"cannot keep {length} tokens: {self.length} were read")
        if reason := self._why_no_crop(length):
            raise ValueError(f"cannot crop: {reason}")
        if length < self.length:
            with self._change():
                self._crop(length)
                self.length, self._next_logits = length, None

    @contextlib.contextmanager
    def _change(self) -> Iterator[None]:
        """Detect interrupted changes (out of memory, Ctrl-C), which leave the state inconsistent."""
        if not self._is_consistent:
            raise ValueError(
                "an earlier call was interrupted, so the state is incomplete: start decoding again"
            )
        self._is_consistent = False
        with torch.inference_mode():
            yield
        self._is_consistent = True

    def _positions(self, num_new: int, device: torch.device) -> Tensor:
        """Return the positions of the new tokens; padding does not count."""
        end = self.length + num_new
        if self._is_token is None:
            return torch.arange(self.length, end, device=device)[None]  # (1, T)
        counted = self._is_token[:, :end].cumsum(dim=1) - 1
        return counted[:, self.length :].clamp(min=0)  # (B, T)

    @abstractmethod
    def _prepare(self, ids: Tensor) -> None:
        """Make what reading needs, before the first tokens, (B, P), are read."""

    @abstractmethod
    def _read(self, ids: Tensor) -> Tensor:
        """Read (B, T) new tokens, and return the input of `_logits`, (B, T, ...)."""

    @abstractmethod
    def _logits(self, states: Tensor) -> Tensor:
        """Compute logits: (..., D) -> (..., V)."""

    @abstractmethod
    def _select(self, rows: Tensor) -> None: ...

    @abstractmethod
    def _why_no_crop(self, length: int) -> str:
        """Return the reason why it cannot keep `length` tokens only; empty if it can."""

    @abstractmethod
    def _crop(self, length: int) -> None: ...


class _OwnState(DecodingState):
    """For our models. Memory for all keys and values is allocated at the start."""

    def _prepare(self, ids: Tensor) -> None:
        stack, like = self._model.decoder.stack, self._model.decoder.embedding.tokens.weight
        self._caches = stack.make_caches(len(ids), self.capacity, like)
        all_positions = torch.arange(self.capacity, device=ids.device)[None]
        self._angles = stack.angles(all_positions, like.dtype)

    def _read(self, ids: Tensor) -> Tensor:
        decoder, num_new = self._model.decoder, ids.size(1)
        positions = self._positions(num_new, ids.device)
        angles = self._angles
        if angles is not None and self._is_token is None:
            start = self.length
            angles = [(cos.narrow(2, start, num_new), sin.narrow(2, start, num_new)) for cos, sin in angles]
        elif angles is not None:  # (B, 1, T, D)
            angles = [(cos[0, 0, positions][:, None], sin[0, 0, positions][:, None]) for cos, sin in angles]
        states = decoder.stack(
            decoder.embedding(ids, positions),
            self._mask(num_new, ids.device),
            angles=angles,
            memory=self._memory,
            caches=self._caches,
        )
        self.length += num_new
        return states

    def _mask(self, num_new: int, device: torch.device) -> Mask:
        """Return which of all tokens the new ones may attend to."""
        end = self.length + num_new
        if self._is_token is None and self.length == 0:
            return "causal"
        if self._is_token is None:
            return None if num_new == 1 else causal_mask(num_new, end, device)
        seen = padding_mask(self._is_token[:, :end])
        return seen if num_new == 1 else seen & causal_mask(num_new, end, device)

    def _logits(self, states: Tensor) -> Tensor:
        return self._model.head(states)

    def _select(self, rows: Tensor) -> None:
        for cache in self._caches:
            cache.select(rows)

    def _why_no_crop(self, length: int) -> str:
        if all(cache.can_crop(length) for cache in self._caches):
            return ""
        return (
            f"its sliding layers have discarded tokens that are in the windows after {length} tokens; they "
            f"hold {KeyValueCache.SPARE} tokens before the last window"
        )

    def _crop(self, length: int) -> None:
        for cache in self._caches:
            cache.crop(length)


class _LibraryState(DecodingState):
    """For models of the Transformers library, with the library's own cache, which grows by copying."""

    def _prepare(self, ids: Tensor) -> None:
        self._cache: Any = None  # Of the library; its class depends on the model.
        # Models without the argument have no positions (ALiBi), or compute them from the mask.
        self._takes_positions = "position_ids" in inspect.signature(self._model.forward).parameters

    def _read(self, ids: Tensor) -> Tensor:
        end = self.length + ids.size(1)
        if self._memory is not None:
            inputs: dict[str, Any] = {"decoder_input_ids": ids, "attention_mask": self._memory.attention_mask}
            inputs["encoder_outputs"] = (self._memory.hidden_states,)
        else:
            inputs = {"input_ids": ids}
            if self._is_token is not None:
                inputs["attention_mask"] = self._is_token[:, :end].long()
                if self._takes_positions:
                    inputs["position_ids"] = self._positions(ids.size(1), ids.device)
        output = self._model(**inputs, past_key_values=self._cache, use_cache=True, return_dict=True)
        self._cache, self.length = getattr(output, "past_key_values", None), end
        if self._cache is None:
            raise TypeError(
                f"{type(self._model).__name__} returns no key-value cache (past_key_values): call its own "
                "generate() instead"
            )
        return output.logits

    def _logits(self, states: Tensor) -> Tensor:
        return states

    def _select(self, rows: Tensor) -> None:
        self._cache.batch_select_indices(rows)

    def _why_no_crop(self, length: int) -> str:
        if any(getattr(self._cache, "self_attention_cache", self._cache).is_sliding):
            return f"{type(self._model).__name__} uses a sliding window and has discarded earlier tokens"
        return ""

    def _crop(self, length: int) -> None:
        self._cache.crop(length - self.length)  # A negative number removes as many tokens.


class _ModelInfo(NamedTuple):
    """What `start_decoding` needs to know about a model."""

    is_encoder_decoder: bool
    input_vocab_size: int  # Of the source, or of the prompt.
    vocab_size: int  # Of the output.
    max_length: int | None  # Of prompt or target together with the new tokens; None: unlimited.


def _model_info(model: Any) -> _ModelInfo:
    if isinstance(model, LanguageModel | EncoderDecoder):
        reader = model.encoder if isinstance(model, EncoderDecoder) else model.decoder
        return _ModelInfo(
            is_encoder_decoder=isinstance(model, EncoderDecoder),
            input_vocab_size=reader.embedding.tokens.num_embeddings,
            vocab_size=model.decoder.embedding.tokens.num_embeddings,
            max_length=model.decoder.embedding.max_length,
        )
    if hasattr(model, "prepare_inputs_for_generation"):
        limit = getattr(model.config, "max_position_embeddings", None)
        if limit is not None and limit < 1:  # XLNet's is -1: it has no limit.
            limit = None
        return _ModelInfo(
            is_encoder_decoder=model.config.is_encoder_decoder,
            input_vocab_size=model.get_input_embeddings().num_embeddings,
            vocab_size=model.get_output_embeddings().out_features,
            max_length=limit,
        )
    raise TypeError(
        f"{type(model).__name__}: expected a LanguageModel, an EncoderDecoder, or a model of the "
        "Transformers library that can generate()"
    )


def _encoded(model: Any, source_ids: Tensor, attention_mask: Tensor | None) -> Memory:
    if isinstance(model, EncoderDecoder):
        return model.encode(source_ids, attention_mask)
    output = model.get_encoder()(source_ids, attention_mask=attention_mask)
    return Memory(output.last_hidden_state, attention_mask)


def _checked(ids: Tensor, attention_mask: Tensor | None, vocab_size: int) -> Tensor | None:
    """Check ids and mask; return the mask in integers, or None if there is no padding."""
    if ids.ndim != 2 or 0 in ids.shape or ids.is_floating_point():
        raise ValueError(
            f"ids {tuple(ids.shape)}, {ids.dtype}: expected integers, (batch, tokens), at least one token"
        )
    outside = ((ids < 0) | (ids >= vocab_size)).nonzero()
    if len(outside):
        row, place = outside[0].tolist()
        raise ValueError(
            f"id {ids[row, place].item()} in row {row}, place {place}, is not in 0 ... {vocab_size - 1}: is "
            "this the tokenizer of this model?"
        )
    if attention_mask is None:
        return None
    if attention_mask.shape != ids.shape or not ((attention_mask == 0) | (attention_mask == 1)).all():
        raise ValueError(
            f"attention_mask {tuple(attention_mask.shape)} for ids {tuple(ids.shape)}, values from "
            f"{attention_mask.min()} to {attention_mask.max()}: expected 1 for each token and 0 for padding"
        )
    empty = (attention_mask.sum(dim=1) == 0).nonzero()
    if len(empty):
        raise ValueError(f"row {empty[0].item()} has no token: begin it with a start token")
    return None if bool(attention_mask.all()) else attention_mask.long()
