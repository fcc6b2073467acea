"""Sequences as batches: padding, labels for the next token, packing, and batches of similar length.

The functions here also check the values of ids, because a model checks only shapes. A batch without padding
has None as its attention mask, so that attention may use its fastest implementation.

Shapes: B sequences in a batch, T positions in the longest.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import IterableDataset, Sampler, get_worker_info

IGNORED = -100  # The label of a position without one: `ignore_index` of PyTorch's cross-entropy.

Ids = Sequence[int] | np.ndarray | Tensor


def pad(
    sequences: Sequence[Ids],
    *,
    padding_id: int,
    side: Literal["right", "left"] = "right",
    vocab_size: int | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Make one batch of sequences by padding the shorter ones.

    Args:
        sequences: B lists, arrays or tensors of ids.
        padding_id: the id of padding.
        side: where the padding goes; a decoder that continues prompts needs "left".
        vocab_size: ids have to be below it; pass None to check only that they are not negative.

    Returns:
        The ids, int64, (B, T), and the attention mask, 1 for a token and 0 for padding, int64, (B, T); None
        if all have the same length.

    Raises:
        TypeError: a sequence does not consist of whole numbers.
        ValueError: no sequences, an empty one, an id out of range, or an unknown side.
    """
    if side not in ("right", "left"):
        raise ValueError(f"side={side!r} is neither 'right' nor 'left'")
    if len(sequences) == 0:
        raise ValueError("there are no sequences to make a batch of")
    rows = [_ids(sequence, f"row {row}", vocab_size) for row, sequence in enumerate(sequences)]
    _ids([padding_id], "padding_id", vocab_size)
    ids = pad_sequence(rows, batch_first=True, padding_value=padding_id, padding_side=side)
    lengths = torch.tensor([len(row) for row in rows])
    if (lengths == ids.size(1)).all():
        return ids, None
    mask = (torch.arange(ids.size(1)) < lengths[:, None]).long()  # (B, T)
    return ids, mask if side == "right" else mask.flip(1)


def shift_tokens_left(ids: Tensor, attention_mask: Tensor | None) -> tuple[Tensor, Tensor | None, Tensor]:
    """Return the inputs of a language model, and as labels the token that follows each position.

    The row `a b c d` becomes the input `a b c` and the labels `b c d`.

    Args:
        ids: (B, T), T at least 2, padded on either side.
        attention_mask: as `pad` returned it, (B, T) or None.

    Returns:
        The inputs, (B, T - 1); their attention mask, None if no padding is left; and the labels, (B, T - 1),
        `IGNORED` where a token or its successor is padding.

    Raises:
        ValueError: the shapes do not match, or the rows have only one token.
    """
    _check_mask(ids, attention_mask)
    if ids.size(1) < 2:
        raise ValueError(f"ids {tuple(ids.shape)}: nothing follows the only token of a row")
    inputs, labels = ids[:, :-1], ids[:, 1:]
    if attention_mask is None:
        return inputs, None, labels
    mask = attention_mask[:, :-1]
    labels = labels.masked_fill((mask & attention_mask[:, 1:]) == 0, IGNORED)
    return inputs, None if mask.all() else mask, labels


def shift_tokens_right(
    target_ids: Tensor, attention_mask: Tensor | None, start_id: int
) -> tuple[Tensor, Tensor]:
    """Return the inputs and labels of the decoder in an encoder-decoder, for teacher forcing.

    The target `a b end` becomes the input `start a b` and the labels `a b end`. The input has the same
    attention mask as the target.

    Args:
        target_ids: (B, T), padded on the right.
        attention_mask: as `pad` returned it, (B, T) or None.
        start_id: the first id that the decoder reads.

    Returns:
        The inputs and the labels, (B, T) each; labels are `IGNORED` where the target is padding.

    Raises:
        ValueError: the shapes do not match, or a target is padded on the left.
    """
    _check_mask(target_ids, attention_mask)
    inputs = target_ids.roll(1, dims=1)
    inputs[:, 0] = start_id
    if attention_mask is None:
        return inputs, target_ids
    if not attention_mask[:, 0].all():
        raise ValueError(f"row {int(attention_mask[:, 0].argmin())} is padded on the left: use side='right'")
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

    def __init__(
        self,
        documents: Iterable[Ids],
        length: int,
        end_id: int,
        *,
        vocab_size: int | None = None,
        drop_last: bool = True,
    ):
        """Pack documents.

        Args:
            documents: their ids, in an iterable that can be read repeatedly in the same order.
            length: of a block, at least 1.
            end_id: follows each document.
            vocab_size: ids have to be below it; pass None to check only that they are not negative.
            drop_last: drop an incomplete block at the end; otherwise fill it with `end_id`, as another
                document without labels.

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
        _ids([end_id], "end_id", vocab_size)
        self.documents, self.length, self.end_id = documents, length, end_id
        self.vocab_size, self.drop_last = vocab_size, drop_last
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
            ValueError: an id is out of range, there are fewer tokens than a block, or several workers would
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
        if pieces and not self.drop_last:
            pieces.append((torch.full((missing,), self.end_id), torch.full((missing,), IGNORED)))
            self._blocks += 1
            yield _block(pieces)
        elif self._blocks == 0:
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
                ids = torch.cat([_ids(document, f"document {number}", self.vocab_size), end])
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
        """Plan the batches.

        Args:
            lengths: of all sequences, in the order of the data set; for pairs the longer of both.
            tokens_per_batch: the budget: number of sequences times the length of the longest.
            shuffle: False: all epochs have the same order, the longest sequences first.

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


def _ids(sequence: Ids, name: str, vocab_size: int | None) -> Tensor:
    if len(sequence) == 0:
        raise ValueError(f"{name} is empty: leave it out")
    # A copy, because an array may be read-only, such as a memory-mapped file.
    ids = sequence if isinstance(sequence, Tensor) else torch.tensor(sequence)
    if ids.ndim != 1 or ids.dtype == torch.bool or ids.is_floating_point() or ids.is_complex():
        raise TypeError(f"{name} {tuple(ids.shape)}, {ids.dtype}: a list of whole numbers is needed")
    ids = ids.long()  # PyTorch cannot compare most unsigned types, such as those of tokens on a disk.
    wrong = ids < 0 if vocab_size is None else (ids < 0) | (ids >= vocab_size)
    if wrong.any():
        place = int(wrong.nonzero()[0])
        limit = "0 or more" if vocab_size is None else f"from 0 to {vocab_size - 1}"
        raise ValueError(f"{name}, place {place}: the id {int(ids[place])} is not {limit}")
    return ids


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
