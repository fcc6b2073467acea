"""Texts as vectors: what a pretrained model makes of them, layer by layer, without training it.

A batch is as long as its longest text, and everything in it is computed for that length. So texts of similar
length go together. Chapter 04 builds this step by step; chapters 05 and 14 use it.

Shapes: N texts, B of them in a batch, T tokens, L layers, D numbers per token (`d_model`).
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from chapters_src.transformer.pooling import check_states, mean_pool

__all__ = ["extract", "first_token", "mean_pool"]


def first_token(hidden_states: Tensor, attention_mask: Tensor) -> Tensor:
    """Take the vector of the first token, `[CLS]` in models of BERT's kind.

    Devlin et al., BERT (2019), section 3, https://aclanthology.org/N19-1423/.

    Args:
        hidden_states: (B, T, D), padded on the right.
        attention_mask: 1 for a token, 0 for padding, (B, T).

    Returns:
        (B, D).

    Raises:
        ValueError: the shapes do not fit, or the first place of a text is padding.
    """
    check_states(hidden_states, attention_mask)
    if not attention_mask[:, 0].all():
        raise ValueError("the first place of a text is padding: set tokenizer.padding_side = 'right'")
    return hidden_states[:, 0]


def extract(
    model: Any,
    tokenizer: Any,
    texts: Sequence[str],
    pool: Callable[[Tensor, Tensor], Tensor] = mean_pool,
    batch_size: int = 64,
) -> Tensor:
    """Turn texts into one vector per layer.

    Args:
        model: one of the Transformers library, without a head, that can return `hidden_states`. It is put
            into evaluation mode; nothing of it is trained.
        tokenizer: the one that belongs to the model.
        texts: N strings, none empty. One longer than the model's context is cut off there.
        pool: makes one vector of the vectors of a text: `mean_pool`, `first_token`, or a function of one's
            own from (B, T, D) and (B, T) to (B, D).
        batch_size: how many texts go through the model at once. It changes the speed and, but for rounding,
            nothing else.

    Returns:
        (N, L + 1, D) on the processor, in the order of the texts. Index 0 of the second dimension are the
        embeddings, -1 is the last layer.

    Raises:
        TypeError: `texts` is one string.
        ValueError: there are no texts, one is empty, or batch_size is below 1.
    """
    if isinstance(texts, str):
        raise TypeError(f"texts is one string, {texts[:40]!r}: hand over a list, [text]")
    texts = list(texts)
    empty = [i for i, text in enumerate(texts) if not text.strip()]
    if not texts or empty or batch_size < 1:
        raise ValueError(
            f"{len(texts)} texts, empty ones at {empty[:5]}, batch_size={batch_size}: "
            "at least one text, none of them empty, and a batch size of at least 1 are needed"
        )
    limit = model.config.max_position_embeddings
    encoded = tokenizer(texts, truncation=True, max_length=limit)
    ids = encoded["input_ids"]
    longest_first = sorted(range(len(texts)), key=lambda i: -len(ids[i]))  # Too little memory shows at once.
    model.eval()
    vectors: list[Tensor] = [torch.empty(0)] * len(texts)
    for start in range(0, len(texts), batch_size):
        chosen = longest_first[start : start + batch_size]
        batch = {name: [values[i] for i in chosen] for name, values in encoded.items()}
        for i, vector in zip(chosen, _pooled_layers(model, tokenizer, batch, pool), strict=True):
            vectors[i] = vector
    return torch.stack(vectors)


def _pooled_layers(model: Any, tokenizer: Any, batch: dict[str, list], pool: Callable) -> Tensor:
    padded = tokenizer.pad(batch, return_tensors="pt").to(model.device)
    with torch.inference_mode():
        layers = model(**padded, output_hidden_states=True).hidden_states  # L + 1 times (B, T, D)
    return torch.stack([pool(states, padded["attention_mask"]) for states in layers], dim=1).float().cpu()
