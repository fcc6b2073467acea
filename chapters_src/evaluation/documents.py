"""Log-probabilities of documents of any length, and bits per byte.

Documents longer than the context are read in overlapping windows, so that only the first tokens are predicted
from little context. Chapter 12 compares language models and n-gram models this way.
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
    """Return the log-probabilities of all tokens of documents, and of their ends.

    Args:
        logits_of: a causal model: takes ids, int64, (B, T), on the CPU, T at most `length`; returns the
            logits of the next token after each, (B, T, V), on any device.
        documents: the ids of each document, without `end_id`.
        end_id: read before each document, and predicted after it.
        length: of a window, in tokens.
        stride: distance between the beginnings of windows, at most `length`. After the first window, each
            token is predicted from at least `length - stride` tokens.
        batch_size: number of windows per batch.

    Returns:
        Natural logarithms for each document, float64, (tokens + 1,), on the CPU.

    Raises:
        ValueError: `length`, `stride` or `batch_size` is out of range.
    """
    if not 1 <= stride <= length or batch_size < 1:
        raise ValueError(
            f"length={length}, stride={stride}, batch_size={batch_size}: 1 <= stride <= length and "
            "batch_size >= 1 are needed"
        )
    scores = [torch.zeros(len(document) + 1, dtype=torch.float64) for document in documents]
    windows = []  # Index of the document, start, and tokens with the one after them.
    for number, document in enumerate(documents):
        ids = torch.tensor([end_id, *document, end_id])
        last = max(0, math.ceil((len(ids) - 1 - length) / stride))
        windows += [(number, i * stride, ids[i * stride :][: length + 1]) for i in range(last + 1)]
    windows.sort(key=lambda window: -len(window[2]))  # To batch windows of similar lengths.
    for first in range(0, len(windows), batch_size):
        batch = windows[first : first + batch_size]
        # The model is causal, so padding is ignored.
        read = torch.full((len(batch), len(batch[0][2]) - 1), end_id)
        for row, (_, _, ids) in enumerate(batch):
            read[row, : len(ids) - 1] = ids[:-1]
        logits = logits_of(read)
        for row, (number, start, ids) in enumerate(batch):
            here = F.log_softmax(logits[row, : len(ids) - 1].float(), dim=-1).cpu()
            chosen = here.gather(1, ids[1:, None])[:, 0].double()
            new = 0 if start == 0 else length - stride  # Another window has scored the rest.
            scores[number][start + new : start + len(chosen)] = chosen[new:]
    return scores


def bits_per_byte(log_probabilities: Iterable[Sequence[float] | Tensor], texts: Iterable[str]) -> float:
    """Return how many bits per byte of text a model needs, which is comparable between tokenizers.

    `log_probabilities` are natural logarithms: for each text, of its tokens and its end. Bytes are counted
    in UTF-8, without the ends.

    Raises:
        ValueError: the numbers of texts and sequences differ, or there are no bytes.
    """
    pairs = list(zip(log_probabilities, texts, strict=True))
    num_bytes = sum(len(text.encode("utf-8")) for _, text in pairs)
    if num_bytes == 0:
        raise ValueError(f"{len(pairs)} texts have no bytes, so bits per byte are not defined")
    return -sum(float(torch.as_tensor(scores).sum()) for scores, _ in pairs) / math.log(2) / num_bytes
