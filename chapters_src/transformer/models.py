"""Encoder, decoder, the two together, and a language model.

Every forward asks for the `attention_mask` of its sequences: a padded batch that is taken for a full one
gives wrong vectors, and flatters or spoils a loss in silence. None says that nothing is padding, and lets
attention take its fastest kernel. A decoder masks the future by itself.

A forward looks at shapes and types, not at values: to read one, a graphics card would have to finish all that
it has been given, and a compiled or exported model would have to be cut in two.

Shapes: B sequences, T tokens, S tokens of the encoder, D = d_model, V = vocab_size.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from chapters_src.attention import Mask, causal_mask, padding_mask
from chapters_src.transformer.configuration import Config
from chapters_src.transformer.embedding import Embedding
from chapters_src.transformer.heads import LanguageModelHead
from chapters_src.transformer.layers import TransformerStack


@dataclass(frozen=True, eq=False)
class Memory:
    """What an encoder made of a batch, and where it is padding: what a decoder attends to."""

    hidden_states: Tensor  # (B, S, D)
    attention_mask: Tensor | None  # 1 for a token, 0 for padding, (B, S); None: nothing is padding.


class Encoder(nn.Module):
    """Every token sees every token: models of BERT's kind. Devlin et al. (2019), https://aclanthology.org/N19-1423/.

    Args:
        config: without cross-attention.

    Raises:
        ValueError: the configuration has cross-attention, or no vocabulary.
    """

    def __init__(self, config: Config) -> None:
        super().__init__()
        if config.cross_attention:
            raise ValueError("an encoder has nothing to cross-attend to: set cross_attention=False")
        self.config = config
        self.embedding = Embedding(config)
        self.stack = TransformerStack(config)

    def forward(
        self, ids: Tensor, attention_mask: Tensor | None, token_types: Tensor | None = None
    ) -> Tensor:
        """Encode a batch.

        Positions count the tokens: padding has no place of its own, on whichever side it is.

        Args:
            ids: (B, T).
            attention_mask: 1 for a token, 0 for padding, (B, T); None: nothing is padding.
            token_types: (B, T), for a model with types; all 0 if they are not given.

        Returns:
            (B, T, D). What stands at padding means nothing.

        Raises:
            ValueError: shapes or types do not fit, or the batch is longer than the context.
        """
        _check(ids, attention_mask, self.config.max_length)
        positions = _positions(ids, attention_mask)
        mask = None if attention_mask is None else padding_mask(attention_mask)
        return self.stack(self.embedding(ids, positions, token_types), mask, positions=positions)


class Decoder(nn.Module):
    """Every token sees itself and what is on its left: models of GPT's kind, or a translator's second half.

    Radford et al., GPT-2 (2019), section 2.3,
    https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf.

    Args:
        config: with cross-attention if it is to work behind an encoder.

    Raises:
        ValueError: the configuration has no vocabulary.
    """

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.embedding = Embedding(config)
        self.stack = TransformerStack(config)

    def forward(
        self,
        ids: Tensor,
        attention_mask: Tensor | None,
        *,
        memory: Memory | None = None,
        positions: Tensor | None = None,
    ) -> Tensor:
        """Give the states of a batch.

        Args:
            ids: (B, T).
            attention_mask: 1 for a token, 0 for padding, (B, T). None: nothing is padding, or all of it is on
                the right, where nobody looks at it. Boolean (B, 1, T, T): who may attend to whom, taken as it
                is, for several documents in a row (`positions` has to start anew with each).
            memory: what the encoder made, for a decoder with cross-attention.
            positions: (B, T) or (1, T). If they are not given, the tokens are counted: padding has no place
                of its own, on whichever side it is.

        Returns:
            (B, T, D). What stands at padding means nothing.

        Raises:
            ValueError: shapes or types do not fit, the batch is longer than the context, or the memory is
                missing or not wanted.
        """
        _check(ids, attention_mask, self.config.max_length)
        if (memory is not None) != self.config.cross_attention:
            raise ValueError(
                f"this decoder has cross_attention={self.config.cross_attention}, and memory is "
                f"{'missing' if memory is None else 'not wanted'}"
            )
        if positions is None:
            positions = _positions(ids, attention_mask)
        states = memory_mask = None
        if memory is not None:
            states = memory.hidden_states
            memory_mask = None if memory.attention_mask is None else padding_mask(memory.attention_mask)
        return self.stack(
            self.embedding(ids, positions),
            _causal(attention_mask),
            positions=positions,
            memory=states,
            memory_mask=memory_mask,
        )


class LanguageModel(nn.Module):
    """A decoder and a head that says which token comes next. It writes with `start_decoding`.

    Args:
        config: without cross-attention.

    Raises:
        ValueError: the configuration has cross-attention, or no vocabulary.
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
        self, ids: Tensor, attention_mask: Tensor | None, *, positions: Tensor | None = None
    ) -> Tensor:
        """Score every entry of the vocabulary as the next token, after each token.

        Args, and what is raised: as for `Decoder.forward`.

        Returns:
            Logits, (B, T, V).
        """
        return self.head(self.decoder(ids, attention_mask, positions=positions))


class EncoderDecoder(nn.Module):
    """The transformer of Vaswani et al. (2017), figure 1: encoder, decoder that attends to it, and head.

    It writes with `start_decoding`.

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
        self.share_embedding = share_embedding
        self.encoder = Encoder(encoder)
        self.decoder = Decoder(decoder)
        self.head = LanguageModelHead(decoder.d_model, decoder.vocab_size, bias=head_bias)
        if share_embedding:
            self.decoder.embedding.tokens = self.encoder.embedding.tokens
        if decoder.tie_weights:
            self.head.tie(self.decoder.embedding.tokens)

    def encode(self, ids: Tensor, attention_mask: Tensor | None) -> Memory:
        """Run the encoder: ids and attention_mask are (B, S); None: nothing is padding."""
        return Memory(self.encoder(ids, attention_mask), attention_mask)

    def decode(
        self,
        ids: Tensor,
        attention_mask: Tensor | None,
        memory: Memory,
        *,
        positions: Tensor | None = None,
    ) -> Tensor:
        """Score every entry of the target vocabulary as the next token, after each token.

        Args, and what is raised: as for `Decoder.forward`.

        Returns:
            Logits, (B, T, V).
        """
        return self.head(self.decoder(ids, attention_mask, memory=memory, positions=positions))

    def forward(
        self,
        source_ids: Tensor,
        source_attention_mask: Tensor | None,
        target_ids: Tensor,
        target_attention_mask: Tensor | None,
    ) -> Tensor:
        """Encode the sources and decode the targets, all tokens at once, as in training.

        Args:
            source_ids: (B, S).
            source_attention_mask: 1 for a token, 0 for padding, (B, S); None: nothing is padding.
            target_ids: what the decoder reads: the targets shifted right by one, (B, T).
            target_attention_mask: likewise, (B, T). None also if all padding is on the right, where nobody
                looks at it.

        Returns:
            Logits, (B, T, V).
        """
        memory = self.encode(source_ids, source_attention_mask)
        return self.decode(target_ids, target_attention_mask, memory)


def _causal(attention_mask: Tensor | None) -> Mask:
    """Say which tokens of a decoder may attend to which."""
    if attention_mask is None:
        return "causal"
    if attention_mask.ndim == 4:
        return attention_mask
    return padding_mask(attention_mask) & causal_mask(attention_mask.size(1), device=attention_mask.device)


def _positions(ids: Tensor, attention_mask: Tensor | None) -> Tensor:
    """Count the tokens of each sequence from 0."""
    if attention_mask is None or attention_mask.ndim == 4:
        return torch.arange(ids.size(1), device=ids.device)[None]  # (1, T)
    return (attention_mask.long().cumsum(dim=1) - 1).clamp(min=0)  # (B, T)


def _check(ids: Tensor, attention_mask: Tensor | None, max_length: int) -> None:
    if ids.ndim != 2 or 0 in ids.shape:
        raise ValueError(f"ids {tuple(ids.shape)}: (batch, tokens), at least one token, is needed")
    batch, length = ids.shape
    if length > max_length:
        raise ValueError(
            f"{length} tokens in a row are more than max_length={max_length}: cut the text, or make "
            "max_length larger"
        )
    if attention_mask is None:
        return
    is_boolean = attention_mask.dtype == torch.bool
    whole = attention_mask.ndim == 4 and is_boolean and attention_mask.shape[-2:] == (length, length)
    if not whole and (attention_mask.shape != ids.shape or attention_mask.is_floating_point()):
        raise ValueError(
            f"ids {tuple(ids.shape)} and attention_mask {tuple(attention_mask.shape)}, "
            f"{attention_mask.dtype}, do not fit: ({batch}, {length}) in whole numbers or booleans is "
            "needed, 1 for a token and 0 for padding"
        )
