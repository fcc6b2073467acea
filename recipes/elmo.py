"""A small ELMo: a two-way language model over words that are read through their characters, and its senses.

    python recipes/elmo.py --output build/elmo --seeds 0 1

Peters et al. (2018), https://arxiv.org/abs/1802.05365. Each word becomes a vector through its characters:
embeddings, convolutions of five widths, the maximum over the word, a highway layer, a projection. One LSTM
of two layers reads the sentence forward and predicts the next word, another reads it backward and predicts
the word before. Both share the characters' part and the softmax; the output of the first layer is added to
that of the second. It is tiny: the paper's LSTMs have 4,096 units and read a billion words, this one's have
96 and read the sentences of the documentation, those of chapter 02 (the same modules are held out), each
once, under a million words. Words are runs of the letters a to z and digits, in lower case. The softmax has
the words that occur at least 50 times, a class for all others, and one for the edge of the sentence.

The output folder keeps checkpoints, the trained weights of each seed and what the rivals scored, so that a
run that was stopped goes on, also with more passes; weights are not shipped. When all seeds are trained, all
is measured on held-out modules, and the record is written to `chapters_src/records/elmo.json` (or
`--record`). `--smoke` runs everything on a small scale, in seconds; its numbers mean nothing, and it needs a
`--record` of its own. The figures:

- "training": words, sentences, parameters, sizes; steps and processor seconds of each seed (at the rate since
  its last start; null if nothing was left to do).
- "language_model": a row for each seed ("start") and direction: the loss on validation sentences in bits,
  the perplexity, and the share of predictions that are right; also those of n-gram models (Kneser-Ney) of the
  same classes, on the same text.
- "senses": rows {"task", "word", "spelling", "vectors", "start", "centered", "examples", "right", "of"}:
  "right" is a list, for each draw of the labeled examples (seeds 0 to 3) the number of occurrences that are
  right, of "of"; "start" is the seed of the model (null: the vectors are not the model's).
  A few labeled examples of each sense give a centroid; an occurrence gets the sense of the nearest centroid
  by cosine ("centered": the mean of the examples is subtracted first). Both senses have the same number of
  occurrences, so naming one sense always is right in half. The tasks: "pseudo-words", two words that are
  both replaced by one spelling that the corpus never has, so that the truth is which word it was ("far":
  words of different subjects, "near": of the same); "packages", a word whose sense is the package it stands
  in (so the subject of the sentence gives it away); "flies", the sixteen sentences of chapter 02, nearest of
  the other fifteen.
- "senses_summary": for each task and kind of vectors the share of all its words together: the mean, lowest
  and highest over draws and starts.
- "unknown": of words that were taken out of the text before training, how many have their base form as the
  nearest and among the nearest ten of all words of the text, by the characters' vector, and how many of these
  ten end as the form does, on average; beside an untrained characters' part, shared character n-grams, and
  fastText's vectors of the same text. Then the nearest five words of unseen ones.
- "seconds": of the measuring.

The rivals for senses: the mean of the static vectors of the other words of the sentence, or of the three on
either side (chapter 02's skip-gram, same text); the book's encoder at the word, last and middle layer, and
with [MASK] in its place (it reads the sentence with its punctuation); the model itself beside the word: the
forward state before it and the backward state behind it, which never read the word; and the model before
training.
"""

import argparse
import hashlib
import itertools
import json
import math
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import torch
from gensim.models import FastText
from sklearn.feature_extraction.text import CountVectorizer
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader
from transformers import AutoModel, AutoTokenizer

from chapters_src import records, resources
from chapters_src import word_vectors as wv
from chapters_src.data import docstrings
from chapters_src.ngrams import NGramModel
from chapters_src.tokenization.sentences import split_sentences
from chapters_src.training import IGNORED, Settings, TokenBudgetSampler, train
from recipes.output import kept, write_record

LONGEST_SENTENCE, LONGEST_WORD = 60, 20  # The rest of a longer one is cut off.
START, END = "<s>", "</s>"  # The edges of a sentence, each a character of its own.
CHARACTERS = ["", "<", ">", START, END, *"abcdefghijklmnopqrstuvwxyz0123456789"]  # Padding, begin and end.
DRAWS = range(4)
SPELLINGS = ("zorvex", "blund")  # Not in the corpus; the second shows how much depends on the first.
PAIRS = {
    "far": [
        ("array", "graph"),
        ("axis", "polynomial"),
        ("column", "tensor"),
        ("kernel", "node"),
        ("image", "matrix"),
    ],
    "near": [
        ("edge", "node"),
        ("layer", "model"),
        ("row", "column"),
        ("function", "method"),
        ("input", "output"),
    ],
}
PACKAGES = {
    "series": ("pandas", "sympy"),
    "path": ("networkx", "torch"),
    "degree": ("networkx", "sympy"),
    "window": ("pandas", "transformers"),
    "field": ("sympy", "numpy"),
    "tree": ("networkx", "sklearn"),
}
FLIES = """Time flies like an arrow.
The plane flies over the ocean.
She flies to Berlin every week.
A bird flies from tree to tree.
The pilot flies at night.
He flies the company's small jet.
The kite flies high above the beach.
An eagle flies across the valley.
Fruit flies like a banana.
The kitchen is full of flies.
Flies landed on the cheese.
Frogs catch flies with their tongues.
A spider eats flies and moths.
He hates the flies in the barn.
House flies carry diseases.
Two flies sat on the window.""".splitlines()  # Eight verbs, then eight insects.
MADE_UP = [
    "plottable",
    "legendary",
    "unpickled",
    "tensorish",
    "refitting",
    "subgraphing",
    "tokenizable",
    "misplotted",
]


@dataclass(frozen=True)
class Sizes:
    """What differs between the recorded run and a smoke run."""

    packages: tuple[str, ...] = docstrings.PACKAGES
    d_char: int = 16
    filters: tuple[int, ...] = (16, 32, 32, 48, 48)  # Of width 1, 2, ...
    d_model: int = 96  # Of the characters' vector, and of each LSTM.
    dropout: float = 0.1
    min_count: int = 50  # Of the words in the softmax.
    tokens_per_batch: int = 1024
    learning_rate: float = 3e-3
    epochs: float = 1.5  # Passes at this learning rate, in twelfths.
    decay: float = 0.0  # Passes after these, in which it falls to 0.
    sentences: int | None = None  # Of each split; None: all.
    removed: int = 60  # Inflected forms taken out of the text.
    occurrences: int = 70  # Of each sense, at most.
    static_epochs: int = 5


SMOKE = Sizes(("datasets", "networkx"), 4, (4, 4, 4), 8, 0.1, 10, 512, 3e-3, 1.0, 0.5, 400, 6, 12, 1)


# Text -----------------------------------------------------------------------------------------------------


class Sentence(NamedTuple):
    """A sentence of the documentation, in lower case, with its words and where they are."""

    text: str
    words: list[str]
    spans: list[tuple[int, int]]
    package: str


def sentence(text: str, package: str = "") -> Sentence:
    """Find the words of a sentence: runs of the letters a to z and digits."""
    lower = text.lower()
    found = list(re.finditer(r"[a-z0-9]+", lower))[:LONGEST_SENTENCE]
    return Sentence(lower, [match[0] for match in found], [match.span() for match in found], package)


def split_of(module: str) -> str:
    """Say to which split a module belongs, as chapter 02 does."""
    unit = ".".join(module.split(".")[:3])
    place = int(hashlib.sha256(unit.encode()).hexdigest(), 16) % 100
    return "test" if place < 20 else "validation" if place < 30 else "train"


def read(sizes: Sizes) -> tuple[dict[str, list[Sentence]], list[list[str]]]:
    """Return the sentences of each split, and the paragraphs of the training text as words.

    Held-out sentences are of paragraphs that share no run of 13 words with training text.
    """
    found: dict[str, list[Sentence]] = {"train": [], "validation": [], "test": []}
    paragraphs = docstrings.paragraphs(sizes.packages)
    seen = {run for p in paragraphs if split_of(p.module) == "train" for run in docstrings.runs(p.text)}
    texts = []
    for paragraph in paragraphs:
        split = split_of(paragraph.module)
        if split != "train" and not seen.isdisjoint(docstrings.runs(paragraph.text)):
            continue
        parts = [sentence(text, paragraph.package) for text in split_sentences(paragraph.text)]
        found[split] += [part for part in parts if len(part.words) > 1]
        if split == "train":
            texts.append(re.findall(r"[a-z0-9]+", paragraph.text.lower()))
    limit = sizes.sentences
    return {split: by_digest(all_)[:limit] for split, all_ in found.items()}, texts[:limit]


def by_digest(sentences: Sequence[Sentence]) -> list[Sentence]:
    """Sort sentences in an order that nobody chose, each text once."""
    once = {s.text: s for s in sentences}
    return [once[text] for text in sorted(once, key=digest)]


def digest(text: str) -> str:
    """Return a number of the text that nobody chose."""
    return hashlib.sha256(text.encode()).hexdigest()


def inflected(counts: Mapping[str, int], wanted: int) -> dict[str, str]:
    """Choose forms to take out of the text, with their bases: half with s, a quarter each with ing and ed.

    The base occurs at least 20 times, the form at least five; a form is its base with the letters behind.
    """
    chosen: dict[str, str] = {}
    for ending, share in (("s", 2), ("ing", 4), ("ed", 4)):
        able = [
            base
            for base, n in counts.items()
            if n >= 20
            and len(base) >= 4
            and base.isalpha()
            and base[-1] != "s"
            and counts.get(base + ending, 0) >= 5
        ]
        chosen |= {base + ending: base for base in sorted(able, key=digest)[: wanted // share]}
    return chosen


class Vocabulary:
    """The classes of the softmax: frequent words, all others, and the edge of a sentence."""

    def __init__(self, counts: Mapping[str, int], min_count: int) -> None:
        self.words = sorted((w for w, n in counts.items() if n >= min_count), key=lambda w: (-counts[w], w))
        self.index = {word: i for i, word in enumerate(self.words)}
        self.unknown, self.edge = len(self.words), len(self.words) + 1
        self.size = len(self.words) + 2

    def ids(self, words: Sequence[str]) -> list[int]:
        """Return the classes of words, without edges."""
        return [self.index.get(word, self.unknown) for word in words]


_CHARACTER = {character: i for i, character in enumerate(CHARACTERS)}


def spelled(word: str) -> list[int]:
    """Return the characters of a word as ids, between two that mark its begin and end, padded."""
    inside = [word] if word in (START, END) else list(word[:LONGEST_WORD])
    ids = [_CHARACTER[character] for character in ("<", *inside, ">")]
    return ids + [0] * (LONGEST_WORD + 2 - len(ids))


def batch_of(sentences: Sequence[Sequence[str]], vocabulary: Vocabulary | None = None) -> dict[str, Tensor]:
    """Make a batch of sentences; L is the length of the longest with both edges.

    Args:
        sentences: the words of each.
        vocabulary: for the labels.

    Returns:
        "spellings", the characters of the U distinct words, (U, C); "places", rows of it for each token,
        (B, L); "lengths", with edges, (B,); and, given a vocabulary, "labels", the class of the next token
        and of the one before, IGNORED where there is none, (B, 2, L).
    """
    rows = [[START, *words, END] for words in sentences]
    distinct = {word: i for i, word in enumerate(dict.fromkeys(itertools.chain([END], *rows)))}
    longest = max(map(len, rows))
    places = [[distinct[word] for word in row] + [0] * (longest - len(row)) for row in rows]
    batch = {
        "spellings": torch.tensor([spelled(word) for word in distinct]),
        "places": torch.tensor(places),
        "lengths": torch.tensor(list(map(len, rows))),
    }
    if vocabulary is not None:
        labels = torch.full((len(rows), 2, longest), IGNORED)
        for i, words in enumerate(sentences):
            ids = torch.tensor([vocabulary.edge, *vocabulary.ids(words), vocabulary.edge])
            labels[i, 0, : len(ids) - 1] = ids[1:]
            labels[i, 1, 1 : len(ids)] = ids[:-1]
        batch["labels"] = labels
    return batch


class Data(NamedTuple):
    """What a run reads."""

    held_out: dict[str, list[Sentence]]
    train_text: list[list[str]]  # Sentences, without the removed words.
    texts: list[list[str]]  # The paragraphs of the same text, for static vectors.
    counts: Counter[str]  # Of the training text.
    removed: dict[str, str]
    vocabulary: Vocabulary
    of_classes: Tensor  # How often each class occurs, float, (classes,).


def prepared(sizes: Sizes) -> Data:
    """Read the text, take some words out of it, and count the rest."""
    found, texts = read(sizes)
    removed = inflected(Counter(word for s in found["train"] for word in s.words), sizes.removed)
    train_text = [[word for word in s.words if word not in removed] for s in found.pop("train")]
    train_text = [words for words in train_text if words]
    texts = [[word for word in text if word not in removed] for text in texts]
    counts = Counter(word for words in train_text for word in words)
    if clash := [word for word in SPELLINGS if word in counts]:
        raise ValueError(f"{clash} is in the corpus: choose another spelling")
    vocabulary = Vocabulary(counts, sizes.min_count)
    classes = Counter(id for words in train_text for id in [*vocabulary.ids(words), vocabulary.edge])
    of_classes = torch.tensor([classes[i] for i in range(vocabulary.size)], dtype=torch.float)
    return Data(found, train_text, texts, counts, removed, vocabulary, of_classes)


# Model ----------------------------------------------------------------------------------------------------


class Spelling(nn.Module):
    """The vector of a word from its characters, without any context."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.characters = nn.Embedding(len(CHARACTERS), sizes.d_char, padding_idx=0)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(sizes.d_char, number, width) for width, number in enumerate(sizes.filters, start=1)
        )
        total = sum(sizes.filters)
        self.highway = nn.Linear(total, 2 * total)
        self.projection = nn.Linear(total, sizes.d_model)

    def forward(self, spellings: Tensor) -> Tensor:
        """Return a vector for each word, (U, D) for characters of shape (U, C)."""
        x = self.characters(spellings).mT  # (U, d_char, C)
        features = torch.cat([convolve(x).amax(dim=-1) for convolve in self.convolutions], dim=-1).relu()
        new, gate = self.highway(features).chunk(2, dim=-1)
        gate = gate.sigmoid()
        return self.projection(gate * new.relu() + (1 - gate) * features)


class OneWay(nn.Module):
    """Two LSTM layers that read from left to right."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.first, self.second = (nn.LSTM(sizes.d_model, sizes.d_model, batch_first=True) for _ in range(2))
        self.dropout = nn.Dropout(sizes.dropout)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the states of both layers, each (B, L, D)."""
        one = self.first(self.dropout(x))[0]
        return one, self.second(self.dropout(one))[0] + one


class ELMo(nn.Module):
    """The two-way language model."""

    def __init__(self, sizes: Sizes, vocab_size: int) -> None:
        super().__init__()
        self.spelling = Spelling(sizes)
        self.forward_way, self.backward_way = OneWay(sizes), OneWay(sizes)
        self.dropout = nn.Dropout(sizes.dropout)
        self.softmax = nn.Linear(sizes.d_model, vocab_size)

    def layers(self, spellings: Tensor, places: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Return the vectors of the words, (B, L, D), and the states: (layer, direction, B, L, D)."""
        x = F.embedding(places, self.spelling(spellings))  # Each distinct word is computed once.
        steps = torch.arange(places.shape[1], device=places.device)
        turned = lengths[:, None] - 1 - steps
        turned = torch.where(turned >= 0, turned, steps)[..., None].expand_as(x)  # Padding stays behind.
        there = self.forward_way(x)
        back = [states.gather(1, turned) for states in self.backward_way(x.gather(1, turned))]
        return x, torch.stack([torch.stack(pair) for pair in zip(there, back, strict=True)])

    def forward(self, spellings: Tensor, places: Tensor, lengths: Tensor, wanted: Tensor) -> Tensor:
        """Return the logits at the wanted places, (number, classes), for `wanted` of shape (B, 2, L)."""
        _, states = self.layers(spellings, places, lengths)
        return self.softmax(self.dropout(states[-1].transpose(0, 1)[wanted]))


def loss_of(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    """Return the summed loss of a batch, of both directions."""
    wanted = batch["labels"] != IGNORED
    logits = model(batch["spellings"], batch["places"], batch["lengths"], wanted)
    return F.cross_entropy(logits.float(), batch["labels"][wanted], reduction="sum")


def trained(
    output: Path, sizes: Sizes, seed: int, vocabulary: Vocabulary, counts: Tensor, sentences: list[list[str]]
) -> tuple[ELMo, dict[str, Any]]:
    """Train with a seed, or go on, or load what was trained. Returns the model and how long it took."""
    torch.manual_seed(seed)
    model = ELMo(sizes, vocabulary.size)
    with torch.no_grad():  # So no steps are spent on learning which words are rare.
        model.softmax.bias.copy_(((counts + 1) / (counts + 1).sum()).log())
    place = output / f"seed-{seed}-{sizes.epochs:g}-{sizes.decay:g}.pt"
    if place.is_file():
        saved = torch.load(place, weights_only=True)
        model.load_state_dict(saved["weights"])
        return model.eval(), saved["took"]
    sampler = TokenBudgetSampler([len(words) + 2 for words in sentences], sizes.tokens_per_batch)
    batches = DataLoader(
        sentences,  # pyrefly: ignore[bad-argument-type]
        batch_sampler=sampler,
        collate_fn=lambda rows: batch_of(rows, vocabulary),
    )
    steps = fresh = 0
    part = max(1, len(sampler) // 12)
    used = time.process_time()

    def counted(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        nonlocal fresh
        fresh += 1
        return loss_of(model, batch)

    for schedule, passes in (("constant", sizes.epochs), ("linear", sizes.decay)):
        if not passes:
            continue
        settings = Settings(
            learning_rate=sizes.learning_rate,
            max_steps=max(1, round(12 * passes)) * part,
            schedule=schedule,
            seed=seed,
            checkpoint_every=part,
        )
        after = f"-{sizes.epochs:g}" * (schedule == "linear")
        folder = output / f"seed-{seed}-{schedule}{after}"
        steps += len(train(model, batches, counted, settings, checkpoint_folder=folder).steps)
    rate = (time.process_time() - used) / max(fresh, 1)  # Of a step, since the last start.
    took = {"seed": seed, "steps": steps, "processor_seconds": round(rate * steps, 1) if fresh else None}
    torch.save({"weights": model.state_dict(), "took": took}, place)
    return model.eval(), took


# The language model and its baselines ---------------------------------------------------------------------


@torch.inference_mode()
def scores(model: ELMo, vocabulary: Vocabulary, sentences: Sequence[Sequence[str]]) -> dict[str, dict]:
    """Measure both directions on sentences."""
    sums, count = np.zeros((2, 2)), 0
    ordered = sorted(sentences, key=len)
    for first in range(0, len(ordered), 64):
        batch = batch_of(ordered[first : first + 64], vocabulary)
        for direction in (0, 1):
            labels = batch["labels"].clone()
            labels[:, 1 - direction] = IGNORED
            wanted = labels != IGNORED
            logits = model(batch["spellings"], batch["places"], batch["lengths"], wanted)
            sums[direction, 0] += F.cross_entropy(logits, labels[wanted], reduction="sum").item()
            sums[direction, 1] += (logits.argmax(dim=-1) == labels[wanted]).sum().item()
        count += int(wanted.sum())
    return {
        name: quality(loss / count) | {"right": right / count}
        for name, (loss, right) in zip(("forward", "backward"), sums, strict=True)
    }


def quality(nats: float) -> dict[str, float]:
    """Return a loss per prediction in bits, and as a perplexity."""
    return {"bits": nats / math.log(2), "perplexity": math.exp(nats)}


def baselines(vocabulary: Vocabulary, train_text: list[list[str]], held_out: list[list[str]]) -> list[dict]:
    """Measure unigram and bigram models of both directions, on the same predictions."""
    rows = []
    for name, order, step in (
        ("unigram", 1, 1),
        ("bigram forward", 2, 1),
        ("bigram backward", 2, -1),
        ("trigram forward", 3, 1),
        ("trigram backward", 3, -1),
    ):
        documents = [vocabulary.ids(words)[::step] for words in train_text]
        model = NGramModel(documents, order, vocab_size=vocabulary.size, end_id=vocabulary.edge)
        losses = np.concatenate(
            [-model.log_probabilities(vocabulary.ids(words)[::step]) for words in held_out]
        )
        rows.append({"model": name, **quality(float(losses.mean()))})
    return rows


# Vectors of a word in its sentence ------------------------------------------------------------------------


class Occurrence(NamedTuple):
    """A word in a sentence."""

    sentence: Sentence
    place: int
    sense: int

    def spelled(self, spelling: str) -> "Occurrence":
        """Replace the word by another spelling."""
        text, words, spans, package = self.sentence
        first, last = spans[self.place]
        moved = len(spelling) - (last - first)
        words = [*words[: self.place], spelling, *words[self.place + 1 :]]
        spans = [
            *spans[: self.place],
            (first, last + moved),
            *((a + moved, b + moved) for a, b in spans[self.place + 1 :]),
        ]
        return Occurrence(Sentence(text[:first] + spelling + text[last:], words, spans, package), *self[1:])


@torch.inference_mode()
def of_elmo(model: ELMo, occurrences: Sequence[Occurrence], size: int = 64) -> dict[str, np.ndarray]:
    """Return the vectors of all layers at the words, each (N, D)."""
    found = defaultdict(list)
    for start in range(0, len(occurrences), size):
        some = occurrences[start : start + size]
        batch = batch_of([o.sentence.words for o in some])
        x, states = model.layers(batch["spellings"], batch["places"], batch["lengths"])
        rows, at = torch.arange(len(some)), torch.tensor([o.place + 1 for o in some])
        one, two = (torch.cat([layer[0, rows, at], layer[1, rows, at]], dim=-1) for layer in states)
        twice = torch.cat([x[rows, at]] * 2, dim=-1)  # As in the paper, so that all layers are as long.
        beside = torch.cat([states[-1, 0, rows, at - 1], states[-1, 1, rows, at + 1]], dim=-1)
        layers = {
            "characters": twice,
            "LSTM 1": one,
            "LSTM 2": two,
            "mean of the three": (twice + one + two) / 3,
        }
        for name, vectors in (layers | {"LSTM 2 beside the word": beside}).items():
            found[f"ELMo, {name}"].append(vectors.numpy())
    return {name: np.concatenate(parts) for name, parts in found.items()}


def of_static(vectors: wv.WordVectors, occurrences: Sequence[Occurrence]) -> dict[str, np.ndarray]:
    """Return the means of the static vectors around the words; zeros where no word has one."""
    found = {}
    for name, reach in (("all other words", LONGEST_SENTENCE), ("three words on each side", 3)):
        rows = []
        for o in occurrences:
            words = o.sentence.words
            around = words[max(0, o.place - reach) : o.place] + words[o.place + 1 : o.place + 1 + reach]
            known = [vectors[word] for word in around if word in vectors]
            rows.append(np.mean(known, axis=0) if known else np.zeros(vectors.matrix.shape[1]))
        found[f"static, {name}"] = np.stack(rows)
    return found


VectorsOf = Callable[[Sequence[Occurrence]], dict[str, np.ndarray]]


class Encoder:
    """The book's encoder, at a word."""

    def __init__(self) -> None:
        folder = resources.checkpoint("encoder")
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModel.from_pretrained(folder).eval()

    @torch.inference_mode()
    def __call__(self, occurrences: Sequence[Occurrence], size: int = 64) -> dict[str, np.ndarray]:
        """Return the mean over the pieces of each word, in the last and the middle layer, and at [MASK]."""
        found = defaultdict(list)
        masked = [o.spelled(self.tokenizer.mask_token) for o in occurrences]
        for name, some in (("", occurrences), (", at [MASK]", masked)):
            for start in range(0, len(some), size):
                part = some[start : start + size]
                batch = self.tokenizer(
                    [o.sentence.text for o in part],
                    padding=True,
                    truncation=True,
                    max_length=256,
                    return_offsets_mapping=True,
                    return_tensors="pt",
                )
                offsets = batch.pop("offset_mapping")
                spans = torch.tensor([o.sentence.spans[o.place] for o in part])[:, None]
                inside = (offsets[..., 0] < spans[..., 1]) & (offsets[..., 1] > spans[..., 0])
                if not inside.any(dim=1).all():
                    raise ValueError("a word stands behind the encoder's longest text")
                share = inside / inside.sum(dim=1, keepdim=True)
                layers = self.model(**batch, output_hidden_states=True).hidden_states
                for which, layer in (("last layer", -1), ("middle layer", len(layers) // 2)):
                    found[f"encoder, {which}{name}"].append(
                        (share[..., None] * layers[layer]).sum(dim=1).numpy()
                    )
        return {name: np.concatenate(parts) for name, parts in found.items()}


# Senses ---------------------------------------------------------------------------------------------------


def occurrences_of(
    sentences: Sequence[Sentence], word: str, sense: int, without: str
) -> Iterator[Occurrence]:
    """Find sentences in which a word stands once, and no other form of it or of another word."""
    for found in sentences:
        same = [i for i, w in enumerate(found.words) if w.startswith((word, without))]
        if len(same) == 1 and found.words[same[0]] == word:
            yield Occurrence(found, same[0], sense)


def balanced(senses: Sequence[Iterator[Occurrence]], limit: int) -> list[Occurrence]:
    """Take the same number of occurrences of each sense."""
    lists = [list(itertools.islice(found, limit)) for found in senses]
    number = min(map(len, lists))
    return [o for found in lists for o in found[:number]]


def nearest_centroid(
    vectors: np.ndarray, senses: np.ndarray, examples: int, seed: int, *, centered: bool = False
) -> tuple[int, int]:
    """Name the sense of all but a few labeled examples. Returns how many are right, of how many.

    Centered: the mean of the labeled examples is subtracted, so what all vectors share does not count.
    """
    generator = np.random.default_rng(seed)
    shown = np.concatenate(
        [generator.permutation(np.flatnonzero(senses == sense))[:examples] for sense in (0, 1)]
    )
    rest = np.setdiff1d(np.arange(len(senses)), shown)
    vectors = vectors - centered * vectors[shown].mean(axis=0)
    centroids = np.stack([vectors[shown[senses[shown] == sense]].mean(axis=0) for sense in (0, 1)])
    cosines = unit(vectors[rest]) @ unit(centroids).T
    gap = cosines[:, 1] - cosines[:, 0]
    return _right(gap, senses[rest]), len(rest)


def _right(gap: np.ndarray, senses: np.ndarray) -> int:
    """Count what is right; of ties every second one."""
    tied = np.abs(gap) < 1e-6
    return int(((gap > 0) == senses)[~tied].sum() + tied.sum() // 2)


def nearest_other(vectors: np.ndarray, senses: np.ndarray) -> tuple[float, int]:
    """Ask for each occurrence whether the nearest of the others has its sense; ties share the point."""
    cosines = unit(vectors) @ unit(vectors).T
    np.fill_diagonal(cosines, -np.inf)
    nearest = cosines >= cosines.max(axis=1, keepdims=True) - 1e-6
    same = senses[:, None] == senses
    return float(((nearest & same).sum(axis=1) / nearest.sum(axis=1)).sum()), len(senses)


def unit(vectors: np.ndarray) -> np.ndarray:
    """Scale vectors to length 1; zeros stay."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1)


class Task(NamedTuple):
    """Occurrences of a word with two senses."""

    name: str
    word: str
    spelling: str | None
    occurrences: list[Occurrence]


def tasks_of(held_out: Sequence[Sentence], limit: int, spellings: Sequence[str]) -> Iterator[Task]:
    """Make the tasks of held-out sentences; a smoke run has too few occurrences for most of them."""
    for kind, pairs in PAIRS.items():
        for one, other in pairs:
            ways = [
                occurrences_of(held_out, word, sense, without)
                for sense, (word, without) in enumerate(((one, other), (other, one)))
            ]
            found = balanced(ways, limit)
            for spelling in spellings:
                replaced = [o.spelled(spelling) for o in found]
                yield Task(f"pseudo-words, {kind}", f"{one}/{other}", spelling, replaced)
    for word, packages in PACKAGES.items():
        parts = [[s for s in held_out if s.package == package] for package in packages]
        ways = [occurrences_of(part, word, sense, word) for sense, part in enumerate(parts)]
        yield Task("packages", f"{word}: {'/'.join(packages)}", None, balanced(ways, limit))
    sayings = [sentence(text) for text in FLIES]
    found = [Occurrence(s, s.words.index("flies"), int(i >= 8)) for i, s in enumerate(sayings)]
    yield Task("flies", "flies", None, found)


def senses(vectors_of: VectorsOf, start: int | None, tasks: Iterable[Task]) -> list[dict]:
    """Measure vectors on all tasks; `start` is the seed of the model that they are of."""
    rows = []
    for task, word, spelling, occurrences in tasks:
        truth = np.array([o.sense for o in occurrences])
        if len(truth) < 12:
            continue
        for kind, matrix in vectors_of(occurrences).items():
            row: dict[str, Any] = {"task": task, "word": word, "spelling": spelling}
            row |= {"vectors": kind, "start": start}
            for centered in (False, True):
                row["centered"] = centered
                if task == "flies":
                    right, of = nearest_other(matrix - centered * matrix.mean(axis=0), truth)
                    rows.append({**row, "examples": len(truth) - 1, "right": [right], "of": of})
                    continue
                for examples in (5, 20):
                    if len(truth) >= 4 * examples:
                        found = [
                            nearest_centroid(matrix, truth, examples, seed, centered=centered)
                            for seed in DRAWS
                        ]
                        right = [right for right, _ in found]
                        rows.append({**row, "examples": examples, "right": right, "of": found[0][1]})
    return rows


def summary(rows: Sequence[dict]) -> list[dict]:
    """Summarize: the share of all words together, its mean, lowest and highest over draws and starts."""
    names = ("task", "spelling", "examples", "centered", "vectors")
    groups = defaultdict(lambda: defaultdict(lambda: np.zeros(2)))
    for row in rows:
        for draw, right in enumerate(row["right"]):
            groups[tuple(row[name] for name in names)][draw, row["start"]] += right, row["of"]
    found = []
    for key, sums in groups.items():
        shares = [right / of for right, of in sums.values()]
        row = dict(zip(names, key, strict=True)) | {"of": int(next(iter(sums.values()))[1])}
        found.append(row | {"mean": float(np.mean(shares)), "lowest": min(shares), "highest": max(shares)})
    return found


Similarity = Callable[[Sequence[str], Sequence[str]], np.ndarray]  # Of some words with others.


# Unknown words --------------------------------------------------------------------------------------------


def of_letters(data: Data) -> dict[str, Similarity]:
    """Return the rivals: shared character n-grams, and vectors of fastText, which adds those of n-grams."""
    counter = CountVectorizer(analyzer="char", ngram_range=(3, 5), binary=True)
    marked = counter.fit_transform(f"<{word}>" for word in candidates(data))
    lengths = np.sqrt(np.asarray(marked.sum(axis=1)).ravel())  # The unknown word's own changes no order.
    fast = FastText(
        data.texts, vector_size=100, window=5, min_count=5, epochs=5, sg=1, bucket=20000, workers=1, seed=0
    )

    def shared(some: Sequence[str], words: Sequence[str]) -> np.ndarray:
        return (counter.transform(f"<{word}>" for word in some) @ marked.T).toarray() / lengths

    def cosines(some: Sequence[str], words: Sequence[str]) -> np.ndarray:
        of_some, of_words = (unit(np.stack([fast.wv[word] for word in each])) for each in (some, words))
        return of_some @ of_words.T

    return {"shared character n-grams": shared, "fastText": cosines}


@torch.inference_mode()
def of_spelling(model: ELMo, some: Sequence[str], words: Sequence[str]) -> np.ndarray:
    """Return the cosines of the characters' vectors of some words with those of others."""
    one, other = (unit(model.spelling(torch.tensor(list(map(spelled, w)))).numpy()) for w in (some, words))
    return one @ other.T


def candidates(data: Data) -> list[str]:
    """Return the words among which a base form is looked for: all that occur five times."""
    return sorted(word for word, n in data.counts.items() if n >= 5)


def unknown(similarities: Mapping[str, Similarity], start: int | None, data: Data) -> dict:
    """Look for the base forms of words that were taken out of the text, and for neighbors of others."""
    words, forms = candidates(data), list(data.removed)
    place = {word: i for i, word in enumerate(words)}
    bases = np.array([place[base] for base in data.removed.values()])
    endings = np.array([form.removeprefix(base) for form, base in data.removed.items()])
    made_up = [word for word in MADE_UP if word not in data.counts]
    rows, neighbors = [], []
    for name, similarity in similarities.items():
        found = similarity(forms, words)
        near = np.argsort(-found, axis=1, kind="stable")[:, :10]
        alike = np.array(
            [sum(words[i].endswith(e) for i in row) for row, e in zip(near, endings, strict=True)]
        )
        rank = (found > found[np.arange(len(forms)), bases][:, None]).sum(axis=1)
        for ending in dict.fromkeys(endings.tolist()):
            these = rank[endings == ending]
            rows.append(
                {"vectors": name, "start": start, "ending": ending, "of": len(these)}
                | {"nearest": int((these < 1).sum()), "in_ten": int((these < 10).sum())}
                | {"same_ending_in_ten": float(alike[endings == ending].mean())}
            )
        for word, row in zip(made_up, similarity(made_up, words), strict=True):
            near = [words[i] for i in np.argsort(-row, kind="stable")[:5]]
            neighbors.append({"vectors": name, "start": start, "word": word, "neighbors": near})
    return {"rows": rows, "neighbors": neighbors}


# The run --------------------------------------------------------------------------------------------------


def of_rivals(
    data: Data, validation: list[list[str]], held_out: Sequence[Sentence], sizes: Sizes
) -> dict[str, Any]:
    """Measure everything that is not the model's."""
    settings = dict(dim=100, window=5, num_negatives=5, subsample=1e-4, epochs=sizes.static_epochs)
    static, _ = wv.train(wv.read_corpus(data.texts, min_count=5), "skip-gram", **settings, seed=0)
    encoder = Encoder()
    tasks = tasks_of(held_out, sizes.occurrences, SPELLINGS[:1])
    return {
        "senses": senses(lambda some: of_static(static, some) | encoder(some), None, tasks),
        "baselines": baselines(data.vocabulary, data.train_text, validation),
        "unknown": unknown(of_letters(data), None, data),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the recipe."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True, help="folder of checkpoints and weights")
    parser.add_argument("--record", type=Path, help="file to write; by default the book's own")
    parser.add_argument("--smoke", action="store_true", help="run everything on a small scale, in seconds")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--epochs", type=float, help="passes at the full learning rate, in twelfths")
    parser.add_argument("--decay", type=float, help="passes after these, in which it falls to 0")
    options = parser.parse_args(arguments)
    if options.smoke and options.record is None:
        parser.error("--smoke needs --record: it may not replace the book's record")
    sizes = SMOKE if options.smoke else Sizes()
    given = {name: getattr(options, name) for name in ("epochs", "decay")}
    sizes = replace(sizes, **{name: value for name, value in given.items() if value is not None})
    options.output.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    begin = time.monotonic()

    data = prepared(sizes)
    vocabulary, train_text, counts = data.vocabulary, data.train_text, data.counts
    validation = [s.words for s in data.held_out["validation"]]
    print(
        f"{len(train_text):,} sentences, {sum(counts.values()):,} words, {vocabulary.size:,} classes",
        flush=True,
    )

    held_out = [*data.held_out["test"], *data.held_out["validation"]]
    tasks = list(tasks_of(held_out, sizes.occurrences, SPELLINGS))
    runs, quality_rows, of_senses = [], [], []
    torch.manual_seed(options.seeds[0])
    untrained = ELMo(sizes, vocabulary.size).eval()
    of_unknown = [
        unknown({"ELMo, characters, untrained": partial(of_spelling, untrained)}, options.seeds[0], data),
    ]
    of_first = [task for task in tasks if task.spelling in (None, SPELLINGS[0])]
    for row in senses(partial(of_elmo, untrained), options.seeds[0], of_first):
        of_senses.append(row | {"vectors": f"untrained {row['vectors']}"})
    for seed in options.seeds:
        model, took = trained(options.output, sizes, seed, vocabulary, data.of_classes, train_text)
        runs.append(took)
        for direction, row in scores(model, vocabulary, validation).items():
            quality_rows.append({"start": seed, "direction": direction, **row})
        print(took, quality_rows[-2:], flush=True)
        of_senses += senses(partial(of_elmo, model), seed, tasks)
        of_unknown.append(unknown({"ELMo, characters": partial(of_spelling, model)}, seed, data))
    rivals = kept(options.output / "rivals.json", lambda: of_rivals(data, validation, held_out, sizes))
    of_senses += rivals["senses"]
    of_unknown.append(rivals["unknown"])
    figures = {
        "training": {
            "sizes": asdict(sizes),
            "sentences": len(train_text),
            "words": sum(counts.values()),
            "classes": vocabulary.size,
            "parameters": sum(p.numel() for p in untrained.parameters()),
            "runs": runs,
        },
        "language_model": {
            "sentences": len(validation),
            "predictions": sum(len(words) + 1 for words in validation),
            "unknown": float(
                np.mean([i == vocabulary.unknown for s in validation for i in vocabulary.ids(s)])
            ),
            "rows": quality_rows,
            "baselines": rivals["baselines"],
        },
        "senses": of_senses,
        "senses_summary": summary(of_senses),
        "unknown": {
            "candidates": len(candidates(data)),
            "removed": data.removed,
            "rows": [row for part in of_unknown for row in part["rows"]],
            "neighbors": [row for part in of_unknown for row in part["neighbors"]],
        },
        "seconds": round(time.monotonic() - begin, 1),
    }
    what = (
        "A small ELMo, trained on the documentation, and what its layers say of senses and of unknown words."
    )
    path = options.record or records.FOLDER / "elmo.json"
    write_record(path, what, "recipes/elmo.py", figures)
    print(json.dumps({name: figures[name] for name in ("language_model", "senses_summary")}, indent=1))


if __name__ == "__main__":
    main()
