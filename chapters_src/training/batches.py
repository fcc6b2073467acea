"""Sequences as batches: labels for the next token, packing, and batches of similar length.

Shapes: B sequences in a batch, T positions in the longest.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import torch
from torch import Tensor
from torch.utils.data import IterableDataset, Sampler, get_worker_info

from chapters_src.padding import Ids, checked_ids

IGNORED = -100  # The label of a position without one: `ignore_index` of PyTorch's cross-entropy.


def shift_tokens_right(
    target_ids: Tensor, attention_mask: Tensor | None, start_id: int
) -> tuple[Tensor, Tensor]:
    """Return the inputs and labels of the decoder in an encoder-decoder, for teacher forcing, (B, T) each.

    The target `a b end`, padded on the right, becomes the input `start a b` and the labels `a b end`; labels
    are `IGNORED` where the target is padding. The input has the same attention mask as the target, (B, T) or
    None, as `pad` returned it.

    Raises:
        ValueError: the shapes do not match, or a target is padded on the left.
    """
    _check_mask(target_ids, attention_mask)
    inputs = target_ids.roll(1, dims=1)
    inputs[:, 0] = start_id
    if attention_mask is None:
        return inputs, target_ids
    if not attention_mask[:, 0].all():
        raise ValueError(f"row {int(attention_mask[:, 0].argmin())} is padded on the left, not on the right")
    return inputs, target_ids.masked_fill(attention_mask == 0, IGNORED)


class PackedDocuments(IterableDataset):
    """A concatenation of documents, cut into blocks of one length: a corpus without padding.

    Each document is followed by `end_id`. Documents are read when they are needed and not kept. Each item is
    a dictionary of tensors of shape (length,), which a `DataLoader` stacks:

    - `ids`;
    - `labels`: the next token of the same document, even where the block ends before it; `IGNORED` at
      `end_id`, which nothing follows;
    - `positions`: counted from 0 in each document, and again from 0 where a block starts in the middle of
      one, because tokens cannot attend beyond the block;
    - `documents`: the number of each token's document, from 0 in each block, as decoders take it.

    To resume an interrupted run that has used n blocks, call `load_state_dict({"blocks": n})`. Block n starts
    at token n * length, so used documents are counted and not packed again.
    """

    def __init__(self, documents: Iterable[Ids], length: int, end_id: int):
        """Pack documents into blocks of `length` ids; what does not fill a last block is left out.

        The documents have to be readable repeatedly, in the same order. `end_id` follows each document.

        Raises:
            TypeError: `documents` is an iterator, which can be read only once.
            ValueError: length or end_id is out of range.
        """
        if iter(documents) is documents:
            raise TypeError(
                "documents is an iterator, so a second epoch or a resumed run would find it empty: pass a "
                "list, or an object whose __iter__ starts from the beginning"
            )
        if length < 1:
            raise ValueError(f"length={length}: a block has at least one token")
        checked_ids([end_id], "end_id", None)
        self.documents, self.length, self.end_id = documents, length, end_id
        self._first = self._blocks = 0

    def set_epoch(self, epoch: int) -> None:
        """Pass the number of the next epoch, from 0, on to the documents, if they have a `set_epoch`."""
        if hasattr(self.documents, "set_epoch"):
            self.documents.set_epoch(epoch)

    def state_dict(self) -> dict[str, int]:
        """Return how many blocks of a pass were yielded. A loader that prefetches has used fewer of them."""
        return {"blocks": self._blocks}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Start the next iteration, and only that one, after so many blocks."""
        self._first = self._blocks = state["blocks"]

    def __iter__(self) -> Iterator[dict[str, Tensor]]:
        """Yield the blocks.

        Raises:
            TypeError: a document does not consist of whole numbers.
            ValueError: an id is negative, there are fewer tokens than a block, or several workers would
                each read everything.
        """
        worker = get_worker_info()
        if worker is not None and worker.num_workers > 1:
            raise ValueError(
                f"{worker.num_workers} workers would each read all documents: use num_workers=0 or 1"
            )
        self._blocks, self._first = self._first, 0
        return self._pack()

    def _pack(self) -> Iterator[dict[str, Tensor]]:
        pieces: list[tuple[Tensor, Tensor]] = []  # The ids and labels of the unfinished block.
        missing = self.length
        for ids, labels in self._tokens_after(self._blocks * self.length):
            start = 0
            while start < len(ids):
                piece = slice(start, start + missing)
                pieces.append((ids[piece], labels[piece]))
                start += len(pieces[-1][0])
                missing -= len(pieces[-1][0])
                if missing == 0:
                    self._blocks += 1
                    yield _block(pieces)
                    pieces, missing = [], self.length
        if self._blocks == 0:
            raise ValueError(f"all documents together do not fill one block of {self.length} tokens")

    def _tokens_after(self, skipped: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the ids and labels of each document, after skipping the first tokens of the corpus."""
        end = torch.tensor([self.end_id])
        for number, document in enumerate(self.documents):
            if skipped > len(document):  # It and the end after it.
                skipped -= len(document) + 1
                continue
            ids = end
            if len(document) > 0:
                ids = torch.cat([checked_ids(document, f"document {number}", None), end])
            labels = torch.cat([ids[1:], torch.tensor([IGNORED])])
            yield ids[skipped:], labels[skipped:]
            skipped = 0


class TokenBudgetSampler(Sampler[list[int]]):
    """Batches of sequences of similar length, within a budget of tokens that includes padding.

    For a fixed number of sequences in each batch, the library has
    `BatchSampler(LengthGroupedSampler(batch_size, lengths=lengths), batch_size, drop_last=False)`, from
    `transformers.trainer_pt_utils`.

    Sequences are sorted by length (equal lengths in random order) and cut into batches, which are then
    shuffled. So the number of batches is the same in each epoch. Random numbers come from PyTorch's global
    generator.
    """

    def __init__(self, lengths: Sequence[int], tokens_per_batch: int, *, shuffle: bool = True):
        """Plan the batches of sequences with these lengths, for pairs the longer of both.

        The budget is the number of sequences times the length of the longest. Without `shuffle` all epochs
        have the same order, the longest sequences first.

        Raises:
            ValueError: no sequences, an empty one, or one that is longer than the budget.
        """
        self.lengths, self.shuffle = torch.as_tensor(lengths), shuffle
        if len(self.lengths) == 0:
            raise ValueError("there are no lengths, so there are no batches")
        for row in ((self.lengths < 1) | (self.lengths > tokens_per_batch)).nonzero()[:1].flatten().tolist():
            raise ValueError(
                f"sequence {row} has {int(self.lengths[row])} tokens, not from 1 to tokens_per_batch="
                f"{tokens_per_batch}: leave it out, cut it, or allow more"
            )
        longest_first = self.lengths.sort(descending=True).values.tolist()
        self.sizes: list[int] = []
        start = 0
        while start < len(longest_first):
            size = min(tokens_per_batch // longest_first[start], len(longest_first) - start)
            self.sizes.append(size)
            start += size

    def __len__(self) -> int:
        """Return the number of batches in an epoch."""
        return len(self.sizes)

    def __iter__(self) -> Iterator[list[int]]:
        """Yield the batches of an epoch, as positions in the data set."""
        count = len(self.lengths)
        order = torch.randperm(count) if self.shuffle else torch.arange(count)
        order = order[self.lengths[order].argsort(descending=True, stable=True)]
        batches = order.split(self.sizes)
        for batch in torch.randperm(len(batches)) if self.shuffle else range(len(batches)):
            yield batches[batch].tolist()


def _check_mask(ids: Tensor, attention_mask: Tensor | None) -> None:
    if ids.ndim != 2 or (attention_mask is not None and attention_mask.shape != ids.shape):
        shape = None if attention_mask is None else tuple(attention_mask.shape)
        raise ValueError(f"ids {tuple(ids.shape)} and attention_mask {shape}: both need (batch, tokens)")


def _block(pieces: Sequence[tuple[Tensor, Tensor]]) -> dict[str, Tensor]:
    ids, labels = (torch.cat(parts) for parts in zip(*pieces, strict=True))
    lengths = [len(piece) for piece, _ in pieces]
    return {
        "ids": ids,
        "labels": labels,
        "positions": torch.cat([torch.arange(length) for length in lengths]),
        "documents": torch.arange(len(lengths)).repeat_interleave(torch.tensor(lengths)),
    }
