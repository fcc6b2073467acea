"""How surprised a language model is by whole documents, however long: log-probabilities, and bits per byte.

A document that is longer than the context is read in windows that overlap, so that no token but the first
ones is predicted from next to nothing. Chapter 12 compares models this way, also with one that only counts.
"""

import math
from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F


@torch.inference_mode()
def document_log_probabilities(
    logits_of: Callable[[Tensor], Tensor],
    documents: Sequence[Sequence[int]],
    *,
    end_id: int,
    length: int,
    stride: int,
    batch_size: int = 16,
) -> list[Tensor]:
    """Score each token of documents, and their ends, given what stands before them.

    Args:
        logits_of: a causal model: takes ids, int64, (B, T), on the processor, T at most `length`; gives the
            logits of the next token after each, (B, T, V), on any device.
        documents: ids of each, without `end_id`.
        end_id: read before each document, and predicted after it.
        length: of a window: tokens that the model reads at once.
        stride: how far apart windows begin, at most `length`. Each token but those of the first window is
            predicted from at least `length - stride` tokens before it.
        batch_size: windows that are read together.

    Returns:
        For each document the natural logarithms of the probabilities, float64, (tokens + 1,), on the
        processor.

    Raises:
        ValueError: length, stride or batch_size out of range.
    """
    if not 1 <= stride <= length or batch_size < 1:
        raise ValueError(
            f"length={length}, stride={stride}, batch_size={batch_size}: 1 <= stride <= length is needed, "
            "and at least one window in a batch"
        )
    scores = [torch.zeros(len(document) + 1, dtype=torch.float64) for document in documents]
    windows = []  # Of which document, where it begins, and its tokens with the one after them.
    for number, document in enumerate(documents):
        ids = torch.tensor([end_id, *document, end_id])
        last = max(0, math.ceil((len(ids) - 1 - length) / stride))
        windows += [(number, i * stride, ids[i * stride :][: length + 1]) for i in range(last + 1)]
    windows.sort(key=lambda window: -len(window[2]))  # Those of one length together.
    for first in range(0, len(windows), batch_size):
        batch = windows[first : first + batch_size]
        read = torch.full((len(batch), len(batch[0][2]) - 1), end_id)  # What stands behind is not looked at.
        for row, (_, _, ids) in enumerate(batch):
            read[row, : len(ids) - 1] = ids[:-1]
        logits = logits_of(read)
        for row, (number, start, ids) in enumerate(batch):
            here = F.log_softmax(logits[row, : len(ids) - 1].float(), dim=-1).cpu()
            chosen = here.gather(1, ids[1:, None])[:, 0].double()
            new = 0 if start == 0 else length - stride  # What stands before was scored by another window.
            scores[number][start + new : start + len(chosen)] = chosen[new:]
    return scores


def bits_per_byte(log_probabilities: Iterable[Sequence[float] | Tensor], texts: Iterable[str]) -> float:
    """Say how many bits a model needs for a byte of text: the same measure for all tokenizers.

    Args:
        log_probabilities: natural, for each text those of its tokens and of its end.
        texts: the texts themselves; their bytes are counted in UTF-8, ends not at all.

    Returns:
        Bits per byte.

    Raises:
        ValueError: not as many texts as sequences, or no bytes.
    """
    pairs = list(zip(log_probabilities, texts, strict=True))
    num_bytes = sum(len(text.encode("utf-8")) for _, text in pairs)
    if num_bytes == 0:
        raise ValueError(f"{len(pairs)} texts without a byte: there is nothing to divide by")
    return -sum(float(torch.as_tensor(scores).sum()) for scores, _ in pairs) / math.log(2) / num_bytes
