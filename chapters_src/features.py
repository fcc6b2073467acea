"""Feature extraction: vectors of texts from each layer of a frozen pretrained model.

All texts of a batch are padded to the longest, so texts of similar length are batched together. Chapter 04
builds this step by step; chapters 05 and 14 use it.

Shapes: N texts, B of them in a batch, T tokens, L layers, D numbers per token (`d_model`).
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from chapters_src.transformer.pooling import check_states, mean_pool

__all__ = ["extract", "first_token", "mean_pool"]


def first_token(hidden_states: Tensor, attention_mask: Tensor) -> Tensor:
    """Return the vector of the first token, which is `[CLS]` in models like BERT: (B, T, D) -> (B, D).

    Devlin et al., BERT (2019), section 3, https://aclanthology.org/N19-1423/. The texts are padded on the
    right; `attention_mask` is 1 for a token, 0 for padding, (B, T).

    Raises:
        ValueError: the shapes do not match, or a text begins with padding.
    """
    check_states(hidden_states, attention_mask)
    if not attention_mask[:, 0].all():
        raise ValueError("a text begins with padding: set tokenizer.padding_side = 'right'")
    return hidden_states[:, 0]


def extract(
    model: Any,
    tokenizer: Any,
    texts: Sequence[str],
    pool: Callable[[Tensor, Tensor], Tensor] = mean_pool,
    batch_size: int = 64,
) -> Tensor:
    """Return one vector per text and layer.

    Args:
        model: a model of the Transformers library without a head, which is set to evaluation mode.
        tokenizer: the tokenizer of the model.
        texts: N strings, none of them empty. They are truncated to the model's context.
        pool: reduces the vectors of a text to one: `mean_pool`, `first_token`, or another function from
            (B, T, D) and (B, T) to (B, D).
        batch_size: number of texts per batch. Except for rounding, it affects only the speed.

    Returns:
        (N, L + 1, D) on the CPU, in the order of the texts: index 0 of the second dimension is the embedding,
        -1 the last layer.

    Raises:
        TypeError: `texts` is a single string.
        ValueError: there are no texts, one is empty, or `batch_size` is less than 1.
    """
    if isinstance(texts, str):
        raise TypeError(f"texts is a single string, {texts[:40]!r}: pass a list, [text]")
    texts = list(texts)
    empty = [i for i, text in enumerate(texts) if not text.strip()]
    if not texts or empty or batch_size < 1:
        raise ValueError(
            f"{len(texts)} texts, empty ones at {empty[:5]}, batch_size={batch_size}: pass at least one "
            "text, no empty ones, and a batch size of at least 1"
        )
    limit = model.config.max_position_embeddings
    encoded = tokenizer(texts, truncation=True, max_length=limit)
    ids = encoded["input_ids"]
    # To run out of memory early, if at all.
    longest_first = sorted(range(len(texts)), key=lambda i: -len(ids[i]))
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
        layers = model(**padded, output_hidden_states=True).hidden_states  # L + 1 tensors (B, T, D)
    return torch.stack([pool(states, padded["attention_mask"]) for states in layers], dim=1).float().cpu()
