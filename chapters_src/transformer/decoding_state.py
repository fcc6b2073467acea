"""What decoding has to remember between two tokens, in one object, for our models and for the library's.

`start_decoding` reads a prompt, or a source and the beginning of its target. What it returns knows the logits
of the next token, and goes on with `step`. Keys, values, the memory and its mask, the positions and the
places of padding are kept together: `select` and `crop` change all of them at once, so that they cannot get
out of step. Chapter 13 builds its searches on these few calls.

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
from chapters_src.transformer.models import EncoderDecoder, LanguageModel


@torch.inference_mode()
def start_decoding(
    model: nn.Module,
    ids: Tensor,
    attention_mask: Tensor | None,
    *,
    max_new_tokens: int,
    target_ids: Tensor | None = None,
) -> "DecodingState":
    """Read what decoding starts from.

    Here values are looked at, once: ids, the mask, and whether there is room in the context. Steps then trust
    them.

    Args:
        model: a `LanguageModel` or an `EncoderDecoder`, or a model of the Transformers library that can
            `generate`; in evaluation mode.
        ids: prompts, or for an encoder-decoder the sources, (B, P).
        attention_mask: 1 for a token, 0 for padding, (B, P), padded on either side; None: nothing is padding.
        max_new_tokens: how many tokens are stepped at most; room is allocated for them.
        target_ids: for an encoder-decoder, and only there: what its decoder starts with, (B, tokens), without
            padding. Mostly one start token.

    Returns:
        The state after that, on the device of the model.

    Raises:
        TypeError: a model that is none of these.
        ValueError: the model is in training mode; ids that are not in the vocabulary, a row without a token,
            a mask that is not of 0 and 1; more tokens than the context has room for; `target_ids` missing or
            not wanted.
    """
    model = getattr(model, "_orig_mod", model)  # Of a compiled one: a step has other inputs.
    if model.training:
        raise ValueError(
            "the model is in training mode, where dropout changes its answers: call model.eval()"
        )
    about = _about(model)
    if about.is_encoder_decoder != (target_ids is not None):
        problem = "not wanted: only an" if target_ids is not None else "missing: an"
        raise ValueError(f"target_ids are {problem} encoder-decoder needs the tokens its decoder starts with")
    prompt, prompt_mask, source = ids, _checked(ids, attention_mask, about.input_vocab_size), None
    if target_ids is not None:
        source = (ids, prompt_mask)
        prompt, prompt_mask = target_ids, _checked(target_ids, None, about.vocab_size)
        if len(target_ids) != len(ids):
            raise ValueError(
                f"{len(target_ids)} rows of target_ids for {len(ids)} sources: one for each is needed"
            )
    longest = prompt.size(1) if prompt_mask is None else int(prompt_mask.sum(dim=1).max())
    if max_new_tokens < 0 or (about.max_length is not None and longest + max_new_tokens > about.max_length):
        raise ValueError(
            f"max_new_tokens={max_new_tokens} after {longest} tokens: the context has room for "
            f"{about.max_length}; cut the prompt, or write fewer"
        )
    return about.state(model, prompt, prompt_mask, prompt.size(1) + max_new_tokens, source)


class DecodingState(ABC):
    """Everything that the next step needs. `start_decoding` makes it.

    The logits that it gives are copies without a gradient, so that they may be changed in place.
    """

    def __init__(self, ids: Tensor, attention_mask: Tensor | None, room: int) -> None:
        self._batch_size, self._is_whole = len(ids), True
        self.room = room  # Places for tokens, padding included.
        self.length = 0  # Places that are taken.
        self._is_token: Tensor | None = None  # Boolean, (B, room); None: no place is padding.
        last = torch.full((len(ids),), ids.size(1) - 1, device=ids.device)
        if attention_mask is not None:
            self._is_token = attention_mask.new_ones(len(ids), room, dtype=torch.bool)
            self._is_token[:, : ids.size(1)] = attention_mask.bool()
            places = torch.arange(ids.size(1), device=ids.device)
            last = (places * attention_mask).argmax(dim=1)  # Of each row, the last place that is a token.
        states = self._read(ids)
        self._next_logits: Tensor | None = self._logits(
            states[torch.arange(len(ids), device=ids.device), last]
        )

    @property
    def next_logits(self) -> Tensor:
        """The scores of the next token, (B, V).

        Raises:
            ValueError: after a crop, until the next step: they are not kept.
        """
        if self._next_logits is None:
            raise ValueError("after a crop the logits of the next token are not known: step first")
        return self._next_logits.clone()

    def step(self, ids: Tensor) -> Tensor:
        """Read the next tokens of each sequence. What is there already is neither computed nor copied again.

        Args:
            ids: the next token of each, (B,), or several, (B, T).

        Returns:
            The scores of what follows each of them, (B, V) or (B, T, V). The last are also `next_logits`.

        Raises:
            ValueError: ids of another shape, no room is left, or an earlier call was interrupted.
        """
        read = ids[:, None] if ids.ndim == 1 else ids
        if read.ndim != 2 or 0 in read.shape or read.size(0) != self._batch_size or read.is_floating_point():
            raise ValueError(
                f"ids {tuple(ids.shape)}, {ids.dtype}, for {self._batch_size} sequences: whole numbers "
                "(batch,) or (batch, tokens) are needed; with `select`, other sequences go on"
            )
        if self.length + read.size(1) > self.room:
            raise ValueError(
                f"{read.size(1)} more tokens do not fit: {self.length} of {self.room} places are taken; "
                "start decoding with a larger max_new_tokens"
            )
        with self._change():
            logits = self._logits(self._read(read))  # (B, T, V)
            self._next_logits = logits[:, -1]
        # Outside of inference mode a copy is an ordinary tensor.
        return logits[:, -1].clone() if ids.ndim == 1 else logits.clone()

    def select(self, rows: Tensor) -> None:
        """Go on with these sequences of the batch, in this order; one may be named several times.

        Args:
            rows: whole numbers from 0, (new B,), on the device of the model.

        Raises:
            ValueError: `rows` has another shape or type, or an earlier call was interrupted.
            IndexError: there is no such row. The state is as it was.
        """
        if rows.ndim != 1 or len(rows) < 1 or rows.dtype not in (torch.int64, torch.int32):
            raise ValueError(f"rows {tuple(rows.shape)}, {rows.dtype}: whole numbers, one for each sequence")
        torch.arange(self._batch_size, device=rows.device).index_select(0, rows)  # Raises before any change.
        with self._change():
            if self._is_token is not None:
                self._is_token = self._is_token.index_select(0, rows)
            if self._next_logits is not None:
                self._next_logits = self._next_logits.index_select(0, rows)
            self._select(rows)
            self._batch_size = len(rows)

    def crop(self, length: int) -> None:
        """Forget all but the first places, those of the prompt's padding counted (speculative decoding).

        Args:
            length: how many stay, from 1.

        Raises:
            ValueError: there are not so many, the model forgets by itself (sliding windows), or an earlier
                call was interrupted.
        """
        if not 1 <= length <= self.length:
            raise ValueError(f"cannot keep {length} tokens: {self.length} were read")
        if reason := self._why_no_crop():
            raise ValueError(f"cannot crop: {reason}")
        if length < self.length:
            with self._change():
                self._crop(length)
                self.length, self._next_logits = length, None

    @contextlib.contextmanager
    def _change(self) -> Iterator[None]:
        """Notice what ends a change half way (no memory, a key press): afterwards nothing fits together."""
        if not self._is_whole:
            raise ValueError("an earlier call was interrupted, so keys are incomplete: start decoding anew")
        self._is_whole = False
        with torch.inference_mode():
            yield
        self._is_whole = True

    def _positions(self, num_new: int, device: torch.device) -> Tensor:
        """Count the tokens of each sequence; padding has no position of its own."""
        end = self.length + num_new
        if self._is_token is None:
            return torch.arange(self.length, end, device=device)[None]  # (1, T)
        counted = self._is_token[:, :end].cumsum(dim=1) - 1
        return counted[:, self.length :].clamp(min=0)  # (B, T)

    @abstractmethod
    def _read(self, ids: Tensor) -> Tensor:
        """Take up (B, T) new tokens, and give what `_logits` makes logits of: (B, T, ...)."""

    @abstractmethod
    def _logits(self, states: Tensor) -> Tensor:
        """Turn (..., D) into (..., V)."""

    @abstractmethod
    def _select(self, rows: Tensor) -> None: ...

    def _why_no_crop(self) -> str:
        """Say why nothing can be forgotten; empty if it can."""
        return ""

    @abstractmethod
    def _crop(self, length: int) -> None: ...


class _OwnState(DecodingState):
    """For our models: room for all keys and values is allocated at the start."""

    def __init__(
        self,
        model: LanguageModel | EncoderDecoder,
        ids: Tensor,
        attention_mask: Tensor | None,
        room: int,
        source: tuple[Tensor, Tensor | None] | None,
    ) -> None:
        self._model = model
        layers = model.decoder.stack.layers
        like = model.decoder.embedding.tokens.weight
        self._caches = [
            KeyValueCache(len(ids), layer.attention.num_key_value_heads, room, layer.attention.head_dim, like)
            for layer in layers
        ]
        self._memory = self._memory_mask = None
        if source is not None:
            states = model.encode(*source).hidden_states
            self._memory = [layer.cross_attention.keys_and_values(states) for layer in layers]
            self._memory_mask = None if source[1] is None else padding_mask(source[1])
        everywhere = torch.arange(room, device=ids.device)[None]
        self._angles = model.decoder.stack.angles(everywhere, like.dtype)  # Of all positions to come.
        super().__init__(ids, attention_mask, room)

    def _read(self, ids: Tensor) -> Tensor:
        decoder, num_new = self._model.decoder, ids.size(1)
        positions = self._positions(num_new, ids.device)
        angles = self._angles
        if angles is not None and self._is_token is None:
            angles = tuple(part.narrow(2, self.length, num_new) for part in angles)
        elif angles is not None:
            angles = tuple(part[0, 0, positions][:, None] for part in angles)  # (B, 1, T, D)
        states = decoder.stack(
            decoder.embedding(ids, positions),
            self._mask(num_new, ids.device),
            angles=angles,
            memory=self._memory,
            memory_mask=self._memory_mask,
            caches=self._caches,
        )
        self.length += num_new
        return states

    def _mask(self, num_new: int, device: torch.device) -> Mask:
        """Say what the new tokens may attend to among all tokens."""
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
        if self._memory is not None:
            self._memory = [tuple(part.index_select(0, rows) for part in pair) for pair in self._memory]
        if self._memory_mask is not None:
            self._memory_mask = self._memory_mask.index_select(0, rows)

    def _crop(self, length: int) -> None:
        for cache in self._caches:
            cache.crop(length)


class _LibraryState(DecodingState):
    """For models of the Transformers library, with the cache that they make; it grows by copying."""

    def __init__(
        self,
        model: Any,
        ids: Tensor,
        attention_mask: Tensor | None,
        room: int,
        source: tuple[Tensor, Tensor | None] | None,
    ) -> None:
        self._model, self._cache = model, None
        # Those without the argument have none (ALiBi), or count the mask themselves.
        self._takes_positions = "position_ids" in inspect.signature(model.forward).parameters
        self._encoded = self._source_mask = None
        if source is not None:
            self._source_mask = source[1]
            self._encoded = model.get_encoder()(source[0], attention_mask=source[1]).last_hidden_state
        super().__init__(ids, attention_mask, room)

    def _read(self, ids: Tensor) -> Tensor:
        end = self.length + ids.size(1)
        if self._encoded is not None:
            inputs = {"decoder_input_ids": ids, "encoder_outputs": (self._encoded,)}
            inputs["attention_mask"] = self._source_mask
        else:
            inputs = {"input_ids": ids}
            if self._is_token is not None:
                inputs["attention_mask"] = self._is_token[:, :end].long()
                if self._takes_positions:
                    inputs["position_ids"] = self._positions(ids.size(1), ids.device)
        output = self._model(**inputs, past_key_values=self._cache, use_cache=True, return_dict=True)
        self._cache, self.length = output.past_key_values, end
        return output.logits

    def _logits(self, states: Tensor) -> Tensor:
        return states

    def _select(self, rows: Tensor) -> None:
        self._cache.batch_select_indices(rows)
        if self._encoded is not None:
            self._encoded = self._encoded.index_select(0, rows)
        if self._source_mask is not None:
            self._source_mask = self._source_mask.index_select(0, rows)

    def _why_no_crop(self) -> str:
        if any(getattr(self._cache, "self_attention_cache", self._cache).is_sliding):
            return f"{type(self._model).__name__} attends to a sliding window and has forgotten the rest"
        return ""

    def _crop(self, length: int) -> None:
        self._cache.crop(length - self.length)  # Negative: so many tokens go.


class _About(NamedTuple):
    """What a start has to know of a model."""

    state: type[_OwnState | _LibraryState]
    is_encoder_decoder: bool
    input_vocab_size: int  # Of the source, or of the prompt.
    vocab_size: int  # Of what it writes.
    max_length: int | None  # Of the prompt or target; None: there is no limit.


def _about(model: nn.Module) -> _About:
    if isinstance(model, EncoderDecoder):
        decoder = model.decoder.config
        sources = model.encoder.config.vocab_size
        return _About(_OwnState, True, sources, decoder.vocab_size, decoder.max_length)
    if isinstance(model, LanguageModel):
        config = model.config
        return _About(_OwnState, False, config.vocab_size, config.vocab_size, config.max_length)
    if hasattr(model, "prepare_inputs_for_generation"):
        sizes = model.get_input_embeddings().num_embeddings, model.get_output_embeddings().out_features
        limit = getattr(model.config, "max_position_embeddings", None)
        return _About(_LibraryState, model.config.is_encoder_decoder, *sizes, limit)
    raise TypeError(
        f"{type(model).__name__}: a LanguageModel, an EncoderDecoder, or a model of the Transformers library "
        "that can generate() is needed"
    )


def _checked(ids: Tensor, attention_mask: Tensor | None, vocab_size: int) -> Tensor | None:
    """Check that the ids are in the vocabulary and that each row has a token; None if nothing is padding."""
    if ids.ndim != 2 or 0 in ids.shape or ids.is_floating_point():
        raise ValueError(
            f"ids {tuple(ids.shape)}, {ids.dtype}: whole numbers (batch, tokens), at least one token"
        )
    outside = ((ids < 0) | (ids >= vocab_size)).nonzero()
    if len(outside):
        row, place = outside[0].tolist()
        raise ValueError(
            f"id {ids[row, place].item()} in row {row}, place {place}, is not in 0 ... {vocab_size - 1}: was "
            "it made by this model's tokenizer?"
        )
    if attention_mask is None:
        return None
    if attention_mask.shape != ids.shape or not ((attention_mask == 0) | (attention_mask == 1)).all():
        raise ValueError(
            f"attention_mask {tuple(attention_mask.shape)} for ids {tuple(ids.shape)}, values from "
            f"{attention_mask.min()} to {attention_mask.max()}: 1 for each token and 0 for padding are needed"
        )
    empty = (attention_mask.sum(dim=1) == 0).nonzero()
    if len(empty):
        raise ValueError(f"row {empty[0].item()} has no token: begin it with a start token")
    return None if bool(attention_mask.all()) else attention_mask.long()
