"""Stacks of layers: encoder, decoder, the two together, and a language model.

Every forward asks for the `attention_mask` of its sequences: a padded batch that is taken for a full one
gives wrong vectors, and flatters or spoils a loss in silence. A decoder masks the future by itself.

Shapes: B sequences, T tokens, S tokens of the encoder, D = d_model, V = vocab_size.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from chapters_src.attention import KeyValueCache, causal_mask, padding_mask
from chapters_src.transformer.configuration import Config
from chapters_src.transformer.embedding import Embedding
from chapters_src.transformer.heads import LanguageModelHead
from chapters_src.transformer.layers import DecoderLayer, EncoderLayer, make_norm


@dataclass(frozen=True, eq=False)
class Memory:
    """What an encoder made of a batch, and where it is padding: what a decoder attends to."""

    hidden_states: Tensor  # (B, S, D)
    attention_mask: Tensor  # 1 for a token, 0 for padding, (B, S)


class Cache:
    """The keys and values of all layers of a decoder, for decoding token by token (chapter 13)."""

    def __init__(self, num_layers: int) -> None:
        self.self_attention = [KeyValueCache() for _ in range(num_layers)]
        self.cross_attention = [KeyValueCache() for _ in range(num_layers)]

    @property
    def length(self) -> int:
        """How many tokens of the decoder are in it."""
        return self.self_attention[0].length

    def select(self, rows: Tensor) -> None:
        """Keep these sequences of the batch, in this order; one may be named several times (beam search)."""
        for cache in (*self.self_attention, *self.cross_attention):
            cache.select(rows)

    def crop(self, length: int) -> None:
        """Forget all but the first `length` tokens of the decoder (speculative decoding).

        Raises:
            ValueError: there are not so many.
        """
        for cache in self.self_attention:
            cache.crop(length)


class Encoder(nn.Module):
    """Every token sees every token: BERT's kind of body. Devlin et al. (2019), https://aclanthology.org/N19-1423/.

    Args:
        config: without cross-attention.

    Raises:
        ValueError: the configuration has cross-attention.
    """

    def __init__(self, config: Config) -> None:
        super().__init__()
        if config.cross_attention:
            raise ValueError("an encoder has nothing to cross-attend to: set cross_attention=False")
        self.config = config
        self.embedding = Embedding(config)
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.num_layers))
        self.norm = make_norm(config) if config.norm_first else nn.Identity()
        _initialize(self, config)

    def forward(self, ids: Tensor, attention_mask: Tensor, token_types: Tensor | None = None) -> Tensor:
        """Encode a batch.

        Args:
            ids: (B, T).
            attention_mask: 1 for a token, 0 for padding, (B, T).
            token_types: (B, T), for a model with types; all 0 if they are not given.

        Returns:
            (B, T, D). What stands at padding means nothing.

        Raises:
            ValueError: shapes do not fit, or a sequence is longer than the context.
        """
        _check(ids, attention_mask, 0)
        mask = _unless_all(padding_mask(attention_mask))
        positions = torch.arange(ids.size(1), device=ids.device)[None]  # (1, T)
        hidden_states = self.embedding(ids, positions, token_types)
        for layer in self.layers:
            hidden_states = layer(hidden_states, mask, positions=positions)
        return self.norm(hidden_states)


class Decoder(nn.Module):
    """Every token sees itself and what is on its left: GPT's kind of body, or a translator's second half.

    Radford et al., GPT-2 (2019), section 2.3,
    https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf.

    Args:
        config: with cross-attention if it is to work behind an encoder.
    """

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        kind = DecoderLayer if config.cross_attention else EncoderLayer
        self.embedding = Embedding(config)
        self.layers = nn.ModuleList(kind(config) for _ in range(config.num_layers))
        self.norm = make_norm(config) if config.norm_first else nn.Identity()
        _initialize(self, config)

    def forward(
        self,
        ids: Tensor,
        attention_mask: Tensor,
        *,
        memory: Memory | None = None,
        positions: Tensor | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        """Give the states of a batch, or of its newest tokens.

        Args:
            ids: of the tokens that are not in the cache yet, (B, T).
            attention_mask: 1 for a token, 0 for padding, of all tokens with those in the cache, (B, S).
            memory: what the encoder made, for a decoder with cross-attention.
            positions: of the new tokens, (B, T) or (1, T). If they are not given, the tokens are counted:
                padding has no place of its own, on whichever side it is.
            cache: what was computed before; it takes up the new tokens.

        Returns:
            (B, T, D). What stands at padding means nothing.

        Raises:
            ValueError: shapes do not fit, a sequence is longer than the context, or the memory is missing or
                not wanted.
        """
        past = 0 if cache is None else cache.length
        _check(ids, attention_mask, past)
        if (memory is not None) != self.config.cross_attention:
            raise ValueError(
                f"this decoder has cross_attention={self.config.cross_attention}, and memory is "
                f"{'missing' if memory is None else 'not wanted'}"
            )
        mask, counted = _mask_and_positions(attention_mask, past)
        positions = counted if positions is None else positions
        hidden_states = self.embedding(ids, positions)
        memory_mask = None if memory is None else _unless_all(padding_mask(memory.attention_mask))
        for i, layer in enumerate(self.layers):
            own = None if cache is None else cache.self_attention[i]
            if memory is None:
                hidden_states = layer(hidden_states, mask, positions=positions, cache=own)
                continue
            cross = None if cache is None else cache.cross_attention[i]
            both = (memory.hidden_states, memory_mask)
            hidden_states = layer(
                hidden_states, mask, *both, positions=positions, cache=own, cross_cache=cross
            )
        return self.norm(hidden_states)

    def new_cache(self) -> Cache:
        """Make an empty cache for one batch."""
        return Cache(self.config.num_layers)


class LanguageModel(nn.Module):
    """A decoder and a head that says which token comes next.

    Args:
        config: without cross-attention.

    Raises:
        ValueError: the configuration has cross-attention.
    """

    def __init__(self, config: Config) -> None:
        super().__init__()
        if config.cross_attention:
            raise ValueError("a language model has no encoder to cross-attend to: set cross_attention=False")
        self.config = config
        self.decoder = Decoder(config)
        self.head = LanguageModelHead(config.d_model, config.vocab_size, bias=False)
        if config.tie_weights:
            self.head.tie(self.decoder.embedding.tokens)

    def forward(
        self,
        ids: Tensor,
        attention_mask: Tensor,
        *,
        positions: Tensor | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        """Score every entry of the vocabulary as the next token, after each token.

        Args, and what is raised: as for `Decoder.forward`.

        Returns:
            Logits, (B, T, V).
        """
        return self.head(self.decoder(ids, attention_mask, positions=positions, cache=cache))

    def new_cache(self) -> Cache:
        """Make an empty cache for one batch."""
        return self.decoder.new_cache()


class EncoderDecoder(nn.Module):
    """The transformer of Vaswani et al. (2017), figure 1: encoder, decoder that attends to it, and head.

    Args:
        encoder: configuration of the encoder.
        decoder: configuration of the decoder, with cross-attention. Its `tie_weights` ties the head to the
            decoder's embedding.
        share_embedding: whether the two use one embedding of tokens, for a vocabulary of both languages.
        head_bias: whether the head has a bias, as those of BART and Marian do.

    Raises:
        ValueError: the configurations do not fit each other.
    """

    def __init__(
        self, encoder: Config, decoder: Config, *, share_embedding: bool, head_bias: bool = False
    ) -> None:
        super().__init__()
        if not decoder.cross_attention or encoder.d_model != decoder.d_model:
            raise ValueError(
                f"the decoder has cross_attention={decoder.cross_attention} and d_model={decoder.d_model}, "
                f"the encoder d_model={encoder.d_model}: cross-attention and the same d_model are needed"
            )
        if share_embedding and encoder.vocab_size != decoder.vocab_size:
            raise ValueError(
                f"vocabularies of {encoder.vocab_size} and {decoder.vocab_size} entries cannot share an "
                "embedding: train one tokenizer on both sides, or set share_embedding=False"
            )
        self.encoder = Encoder(encoder)
        self.decoder = Decoder(decoder)
        self.head = LanguageModelHead(decoder.d_model, decoder.vocab_size, bias=head_bias)
        if share_embedding:
            self.decoder.embedding.tokens = self.encoder.embedding.tokens
        if decoder.tie_weights:
            self.head.tie(self.decoder.embedding.tokens)

    def encode(self, ids: Tensor, attention_mask: Tensor) -> Memory:
        """Run the encoder, once per batch: ids and attention_mask are (B, S)."""
        return Memory(self.encoder(ids, attention_mask), attention_mask)

    def decode(
        self,
        ids: Tensor,
        attention_mask: Tensor,
        memory: Memory,
        *,
        positions: Tensor | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        """Score every entry of the target vocabulary as the next token, after each token.

        Args, and what is raised: as for `Decoder.forward`.

        Returns:
            Logits, (B, T, V).
        """
        states = self.decoder(ids, attention_mask, memory=memory, positions=positions, cache=cache)
        return self.head(states)

    def forward(
        self,
        source_ids: Tensor,
        source_attention_mask: Tensor,
        target_ids: Tensor,
        target_attention_mask: Tensor,
    ) -> Tensor:
        """Encode the sources and decode the targets, all tokens at once, as in training.

        Args:
            source_ids: (B, S).
            source_attention_mask: 1 for a token, 0 for padding, (B, S).
            target_ids: what the decoder reads: the targets shifted right by one, (B, T).
            target_attention_mask: 1 for a token, 0 for padding, (B, T).

        Returns:
            Logits, (B, T, V).
        """
        memory = self.encode(source_ids, source_attention_mask)
        return self.decode(target_ids, target_attention_mask, memory)

    def new_cache(self) -> Cache:
        """Make an empty cache for one batch."""
        return self.decoder.new_cache()


def _initialize(body: nn.Module, config: Config) -> None:
    """Draw matrices from N(0, 0.02²), biases 0; what is added to the residual stream smaller with depth.

    Radford et al. (2019), section 2.3.
    """
    parts_per_layer = 3 if config.cross_attention else 2
    for name, module in body.named_modules():
        if isinstance(module, nn.Linear):
            is_last = name.endswith((".output", ".down"))
            std = 0.02 / math.sqrt(parts_per_layer * config.num_layers) if is_last else 0.02
            nn.init.normal_(module.weight, std=std)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding) and module.weight.requires_grad:
            nn.init.normal_(module.weight, std=0.02)


def _unless_all(mask: Tensor) -> Tensor | None:
    """Leave out a mask that masks nothing: computing without one is faster."""
    return None if bool(mask.all()) else mask


def _mask_and_positions(attention_mask: Tensor, past: int) -> tuple[Tensor | None, Tensor]:
    """Say what the tokens after the `past` first ones may attend to, and which positions they have."""
    length = attention_mask.size(1)
    causal = causal_mask(length - past, length, attention_mask.device)  # (T, S)
    padding = _unless_all(padding_mask(attention_mask))
    if padding is None:
        return _unless_all(causal), torch.arange(past, length, device=attention_mask.device)[None]  # (1, T)
    counted = (attention_mask.long().cumsum(dim=1) - 1).clamp(min=0)  # (B, S)
    return padding & causal, counted[:, past:]


def _check(ids: Tensor, attention_mask: Tensor, past: int) -> None:
    needed = (ids.size(0), past + ids.size(1)) if ids.ndim == 2 else ("batch", "tokens")
    if ids.ndim != 2 or attention_mask.shape != needed or not ids.numel():
        raise ValueError(
            f"ids {tuple(ids.shape)} and attention_mask {tuple(attention_mask.shape)} do not fit: (batch, "
            f"tokens), at least one token, and a mask {needed} are needed, with the {past} in the cache"
        )
