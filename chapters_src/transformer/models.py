"""Encoder, decoder, encoder-decoder, and language model.

Every forward method requires the `attention_mask` of its sequences, 1 for a token and 0 for padding, because
treating a padded batch as a full one silently gives wrong vectors and a wrong loss. None means that there is
no padding, and allows the fastest attention kernel. A decoder adds the causal mask itself.

The forward methods check shapes and types but no values: reading a value makes the CPU wait for the GPU, and
breaks the graph of a compiled or exported model.

Shapes: B sequences, T tokens, S tokens of the encoder, D = d_model, V = vocab_size.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from chapters_src.attention import Mask, causal_mask, document_mask, padding_mask
from chapters_src.transformer.configuration import Config
from chapters_src.transformer.embedding import Embedding
from chapters_src.transformer.heads import LanguageModelHead
from chapters_src.transformer.layers import Memory, TransformerStack


class Encoder(nn.Module):
    """A model like BERT: every token attends to every token.

    Devlin et al. (2019), https://aclanthology.org/N19-1423/.

    Raises:
        ValueError: the configuration has cross-attention, sliding layers, or no vocabulary.
    """

    def __init__(self, config: Config) -> None:
        super().__init__()
        if config.cross_attention:
            raise ValueError("an encoder has nothing to cross-attend to: set cross_attention=False")
        if config.sliding_layers:
            raise ValueError(
                f"sliding_layers={config.sliding_layers}: a window reaches back only, so it is for decoders"
            )
        self.config = config
        self.embedding = Embedding(config)
        self.stack = TransformerStack(config)

    def forward(
        self, ids: Tensor, attention_mask: Tensor | None, token_types: Tensor | None = None
    ) -> Tensor:
        """Encode a batch, (B, T): (B, T, D). The vectors of padding are meaningless.

        Padding, on either side, does not count for positions. `token_types`, for a model that has them, are
        (B, T), and 0 by default.

        Raises:
            ValueError: the shapes or types do not match, or the batch exceeds the context.
        """
        _check(ids, attention_mask, self.embedding.max_length)
        positions = _positions(ids, attention_mask)
        mask = None if attention_mask is None else padding_mask(attention_mask)
        return self.stack(self.embedding(ids, positions, token_types), mask, positions=positions)


class Decoder(nn.Module):
    """A model like GPT, or the decoder of a translator: each token attends to itself and those before it.

    Radford et al., GPT-2 (2019), section 2.3,
    https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf.
    With cross-attention, it follows an encoder.

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
        documents: Tensor | None = None,
        positions: Tensor | None = None,
    ) -> Tensor:
        """Compute the hidden states of a batch, (B, T): (B, T, D). The vectors of padding are meaningless.

        Args:
            ids: (B, T).
            attention_mask: (B, T); may be None, too, if all padding is on the right, where no token attends
                to it.
            memory: the encoder's output, for a decoder with cross-attention.
            documents: for documents packed one after another into each sequence, the number of each token's
                document, (B, T). No token attends to another document. All documents share the memory.
            positions: (B, T) or (1, T). By default, tokens are counted from the start of their document;
                padding, on either side, does not count.

        Raises:
            ValueError: the shapes or types do not match, the batch exceeds the context, or the memory is
                missing or not expected.
        """
        _check(ids, attention_mask, self.embedding.max_length, documents)
        if positions is None:
            positions = _positions(ids, attention_mask, documents)
        mask = _decoder_mask(attention_mask, documents)
        return self.stack(self.embedding(ids, positions), mask, positions=positions, memory=memory)


class LanguageModel(nn.Module):
    """A decoder with a head that predicts the next token. Generate text with `start_decoding`.

    Raises:
        ValueError: the configuration has cross-attention, or no vocabulary.
    """

    def __init__(self, config: Config) -> None:
        super().__init__()
        if config.cross_attention:
            raise ValueError("a language model has no encoder to cross-attend to: set cross_attention=False")
        self.config = config
        self.decoder = Decoder(config)
        tokens = self.decoder.embedding.tokens
        self.head = LanguageModelHead(config.d_model, tokens.num_embeddings, bias=False)
        if config.tie_weights:
            self.head.tie(tokens)

    def forward(
        self,
        ids: Tensor,
        attention_mask: Tensor | None,
        *,
        documents: Tensor | None = None,
        positions: Tensor | None = None,
    ) -> Tensor:
        """Compute the logits of the next token, after each token: (B, T, V). As for `Decoder.forward`."""
        return self.head(self.decoder(ids, attention_mask, documents=documents, positions=positions))


class EncoderDecoder(nn.Module):
    """The transformer of Vaswani et al. (2017), figure 1: an encoder, a decoder that attends to it, a head.

    Generate text with `start_decoding`. `tie_weights` of the decoder ties the head to the decoder's
    embedding; `share_embedding`, for a vocabulary of both languages, is one token embedding for both;
    `head_bias` is as in BART and Marian.

    Raises:
        ValueError: the configurations do not match.
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
        if share_embedding:
            self.decoder.embedding.tokens = self.encoder.embedding.tokens
        tokens = self.decoder.embedding.tokens
        self.head = LanguageModelHead(decoder.d_model, tokens.num_embeddings, bias=head_bias)
        if decoder.tie_weights:
            self.head.tie(tokens)

    def encode(self, ids: Tensor, attention_mask: Tensor | None) -> Memory:
        """Run the encoder on ids and attention_mask, both (B, S)."""
        return Memory(self.encoder(ids, attention_mask), attention_mask)

    def decode(
        self,
        ids: Tensor,
        attention_mask: Tensor | None,
        memory: Memory,
        *,
        documents: Tensor | None = None,
        positions: Tensor | None = None,
    ) -> Tensor:
        """Compute the logits of the next token, after each token: (B, T, V). As for `Decoder.forward`."""
        states = self.decoder(ids, attention_mask, memory=memory, documents=documents, positions=positions)
        return self.head(states)

    def forward(
        self,
        source_ids: Tensor,
        source_attention_mask: Tensor | None,
        target_ids: Tensor,
        target_attention_mask: Tensor | None,
    ) -> Tensor:
        """Encode the sources and decode all tokens of the targets at once, as in training: logits, (B, T, V).

        `target_ids` are the decoder's input: the targets shifted right by one, (B, T). Their mask may be
        None, too, if all padding is on the right, where no token attends to it.
        """
        memory = self.encode(source_ids, source_attention_mask)
        return self.decode(target_ids, target_attention_mask, memory)


def _decoder_mask(attention_mask: Tensor | None, documents: Tensor | None) -> Mask:
    """Combine the causal mask with those of padding and documents."""
    if attention_mask is None and documents is None:
        return "causal"
    given = [] if attention_mask is None else [padding_mask(attention_mask)]
    given += [] if documents is None else [document_mask(documents)]
    mask = causal_mask(given[0].size(-1), device=given[0].device)
    for each in given:
        mask = mask & each
    return mask


def _positions(ids: Tensor, attention_mask: Tensor | None, documents: Tensor | None = None) -> Tensor:
    """Count the tokens of each sequence, or of each document, from 0."""
    if attention_mask is None and documents is None:
        return torch.arange(ids.size(1), device=ids.device)[None]  # (1, T)
    is_token = torch.ones_like(ids) if attention_mask is None else attention_mask.long()
    counts = is_token.cumsum(dim=1)  # (B, T)
    if documents is not None:
        is_first = F.pad(documents[:, 1:] != documents[:, :-1], (1, 0), value=True)
        counts = counts - ((counts - is_token) * is_first).cummax(dim=1).values  # minus the earlier documents
    return (counts - 1).clamp(min=0)


def _check(
    ids: Tensor, attention_mask: Tensor | None, max_length: int, documents: Tensor | None = None
) -> None:
    if ids.ndim != 2 or 0 in ids.shape:
        raise ValueError(f"ids {tuple(ids.shape)}: expected (batch, tokens), with at least one token")
    if ids.size(1) > max_length:
        raise ValueError(
            f"{ids.size(1)} tokens exceed max_length={max_length}: truncate the text, or increase max_length"
        )
    if attention_mask is not None and (
        attention_mask.shape != ids.shape or attention_mask.is_floating_point()
    ):
        raise ValueError(
            f"attention_mask {tuple(attention_mask.shape)}, {attention_mask.dtype}, for ids "
            f"{tuple(ids.shape)}: expected {tuple(ids.shape)}, integers or booleans, 1 for a token and 0 for "
            "padding. For packed documents, a decoder takes `documents`"
        )
    if documents is not None and documents.shape != ids.shape:
        raise ValueError(
            f"documents {tuple(documents.shape)} for ids {tuple(ids.shape)}: expected the number of each "
            "token's document"
        )
