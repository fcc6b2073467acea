"""A translator from English to German: its pieces, batches, loss and shape, and how it writes. Chapter 09.

The chapter and its recipes (`recipes/translation.py`, `recipes/rival_translation.py`) share these.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader

from chapters_src.data.english_german import Pair
from chapters_src.decoding import Stop, beam_search, greedy
from chapters_src.tokenization.byte_pair import BytePairTokenizer
from chapters_src.training import IGNORED, TokenBudgetSampler, pad, shift_tokens_right
from chapters_src.transformer import Config, EncoderDecoder

SPECIAL_TOKENS = ("<|pad|>", "<|start|>", "<|end|>")
PADDING, START, END = range(3)  # Their ids: special tokens come first.
MAX_NEW, NUM_BEAMS, BATCH_SIZE = 96, 4, 250  # Of the translations.
LABEL_SMOOTHING = 0.1
VOCABULARY_PAIRS = 50_000


class Texts:
    """Converts sentences of both languages to ids of one tokenizer, and back."""

    def __init__(self, tokenizer: BytePairTokenizer) -> None:
        self.tokenizer = tokenizer

    @classmethod
    def of(cls, pairs: Sequence[Pair], vocab_size: int) -> "Texts":
        """Train the vocabulary on both sides of the first pairs, as chapter 09 does."""
        texts = (text for pair in pairs[:VOCABULARY_PAIRS] for text in (pair.english, pair.german))
        return cls(BytePairTokenizer.train(texts, vocab_size, SPECIAL_TOKENS))

    def ids(self, text: str) -> list[int]:
        """Return the ids of a sentence of either language, with the end token."""
        return [*self.tokenizer.encode(text), END]

    def batches(self, pairs: Sequence[Pair], tokens: int, *, shuffle: bool) -> DataLoader:
        """Return batches of pairs of similar length, within a budget of tokens per language."""
        items: Any = [(self.ids(pair.english), self.ids(pair.german)) for pair in pairs]
        lengths = [max(map(len, item)) for item in items]
        sampler = TokenBudgetSampler(lengths, tokens, shuffle=shuffle)
        return DataLoader(items, batch_sampler=sampler, collate_fn=batch_of)


def batch_of(items: Sequence[tuple[list[int], list[int]]]) -> dict[str, torch.Tensor | None]:
    """Make a batch of (source, target): the decoder reads the target shifted right by one."""
    sources, targets = zip(*items, strict=True)
    source_ids, source_mask = pad(sources, padding_id=PADDING)
    inputs, labels = shift_tokens_right(*pad(targets, padding_id=PADDING), START)
    return {"source_ids": source_ids, "source_mask": source_mask, "inputs": inputs, "labels": labels}


def loss_of(model: Any, batch: Mapping[str, Any], smoothing: float = LABEL_SMOOTHING) -> torch.Tensor:
    """Return the summed loss of a batch's target tokens, in nats."""
    logits = model(batch["source_ids"], batch["source_mask"], batch["inputs"], None)
    return F.cross_entropy(
        logits.flatten(0, 1).float(),
        batch["labels"].flatten(),
        ignore_index=IGNORED,
        reduction="sum",
        label_smoothing=smoothing,
    )


def new_model(
    vocab_size: int, *, d_model: int = 128, feed_forward_width: int = 256, num_layers: int = 2
) -> EncoderDecoder:
    """Make the model of chapter 09: the transformer of 2017, but small, pre-norm and without dropout.

    Its matrices are initialized as in PyTorch's `nn.Transformer`; the package's own smaller initial values
    suit wider models.

    Args:
        vocab_size: number of pieces; one embedding serves encoder, decoder and head.
        d_model: width.
        feed_forward_width: numbers per token inside the feed-forward network.
        num_layers: of the encoder, and of the decoder.
    """
    shape = {
        "d_model": d_model,
        "num_layers": num_layers,
        "num_heads": 4,
        "feed_forward_width": feed_forward_width,
        "vocab_size": vocab_size,
        "max_length": 128,
    }
    decoder = Config(**shape, cross_attention=True)
    model = EncoderDecoder(Config(**shape), decoder, share_embedding=True)
    for parameter in (*model.encoder.stack.parameters(), *model.decoder.stack.parameters()):
        if parameter.ndim == 2:
            nn.init.xavier_uniform_(parameter)
    return model


def translate(
    model: EncoderDecoder,
    texts: Texts,
    sentences: Sequence[str],
    num_beams: int = NUM_BEAMS,
    *,
    beginning: str = "",
    **options: Any,
) -> list[str]:
    """Translate English sentences by beam search, or greedily with one beam.

    `texts` are the pieces of the model. Each translation has to begin with the German words of `beginning`,
    which are not returned. `options` are more arguments of `greedy` or `beam_search`, such as
    `length_penalty`.
    """
    settings: dict[str, Any] = {
        "max_new_tokens": MAX_NEW,
        "target_ids": [START, *texts.tokenizer.encode(beginning)],
        "stop": Stop(END, tokenizer=texts.tokenizer),
    } | options
    written = [""] * len(sentences)
    order = sorted(range(len(sentences)), key=lambda i: len(sentences[i]))
    for first in range(0, len(order), BATCH_SIZE):
        rows = order[first : first + BATCH_SIZE]
        sources = [texts.ids(sentences[i]) for i in rows]
        if num_beams == 1:
            found = greedy(model, sources, **settings)
        else:
            found = [best for best, *_ in beam_search(model, sources, num_beams=num_beams, **settings)]
        for i, translation in zip(rows, found, strict=True):
            written[i] = translation.text or ""
    return written
