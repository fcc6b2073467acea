"""The two recurrent translators of chapter 06: one hands over a single vector, the other looks back.

    python recipes/recurrent_translation.py --output build/recurrent-translation

Both read an English sentence word by word with a GRU and write a German one with another, as in Sutskever,
Vinyals and Le (2014), https://arxiv.org/abs/1409.3215. The first writes from the last state alone; the second
also looks at all states, with the additive attention of Bahdanau, Cho and Bengio (2015),
https://arxiv.org/abs/1409.0473. Sentences, words, width, number of steps and learning rate are the same. The
sentences come from the grammar of chapter 09 (`chapters_src/data/english_german.md`), or with `--corpus` from
a file with an English sentence, a tab and its German translation on each line, the last of them held out.
`trained` takes any lists of ids, and a time instead of a number of steps.

The output holds one file for each run; finished runs are not repeated, so an interrupted recipe goes on where
it was. The record is written after each run. `--kinds` and `--seeds` make only some of the runs. With `--ship
FOLDER` the weights of the translator that looks back, of the first seed, are written with its words and a
card. The figures of the record are

- "runs": for each kind, seed and number of steps the number of weights, the loss over the last steps, the
  share of held-out sentences translated word for word, by the number of tokens of the source, and how many
  there are; also for sentences longer than any in training ("longer"); and the seconds of processor time;
- "shown": what each run makes of the sentences of the page, none of which is in training;
- "alignment": the first of these sentences, its translation by the translator that looks back (first seed),
  and the attention weights, a row for each German word;
- "sizes", "words" (the sizes of both vocabularies) and "longest" (tokens of a source in training).

`--smoke` runs everything on a small scale, in seconds; its numbers mean nothing, and its record stays in the
output.
"""

import json
import math
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional as F

from chapters_src.data import english_german
from chapters_src.files import atomic_write, write_text
from recipes.machine import hardware, versions
from recipes.output import options_of_runs, parser_of_runs, write_record

Pairs = Sequence[tuple[str, str]]
Items = Sequence[tuple[list[int], list[int]]]  # The ids of a source and of its target, both with the end.

TOKEN = re.compile(r"[\w'’-]+|[^\w\s]")
SPECIAL_TOKENS = ("<start>", "<end>", "<unknown>")
START, END, UNKNOWN = range(3)  # Their ids.
IGNORED = -100  # A label where the target is over.
LENGTHS = ((1, 7), (8, 11), (12, 15), (16, 99))  # Tokens of a source, first and last of each group.
SEEDS = range(4)
MOST_NEW = 60  # Tokens that a translation has at most.
SHOWN = (
    "I cannot sleep because the new picture is ugly.",
    "My boss is angry.",
    "The picture is ugly.",
    "We are tired because the manager lost the old book.",  # No sentence of the grammar has a manager.
    "Because the new picture is ugly, my boss is angry.",
    "The artist wants to draw a new picture today.",
)


@dataclass(frozen=True)
class Sizes:
    """What differs between the recorded runs and a smoke run."""

    num_pairs: int = 20_000
    num_held_out: int = 1000  # Of each scored split.
    width: int = 128  # Of words and states.
    steps: int = 3000
    batch_size: int = 64
    learning_rate: float = 3e-3


SMOKE = Sizes(60, 8, 8, 2, 8)


# Words ----------------------------------------------------------------------------------------------------


class Words:
    """Converts the sentences of one language to ids and back.

    Args:
        words: the word of each id, the special tokens first.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.words = list(words)
        self.index = {word: i for i, word in enumerate(self.words)}

    @classmethod
    def of(cls, texts: Iterable[str]) -> "Words":
        """Collect the words that occur more than once."""
        counts = Counter(word for text in texts for word in tokens(text))
        return cls([*SPECIAL_TOKENS, *sorted(word for word, n in counts.items() if n > 1)])

    def __len__(self) -> int:
        """Return the number of words, special tokens included."""
        return len(self.words)

    def ids(self, text: str) -> list[int]:
        """Return the ids of a sentence, with the end token."""
        return [*(self.index.get(word, UNKNOWN) for word in tokens(text)), END]

    def text(self, ids: Iterable[int]) -> str:
        """Write a sentence from its ids, without the end token."""
        joined = " ".join(self.words[i] for i in ids if i != END)
        joined = re.sub(r" ([.,?!])", r"\1", joined)
        return joined[:1].upper() + joined[1:]


def tokens(text: str) -> list[str]:
    """Cut a sentence into words and marks; its first letter becomes a small one."""
    return TOKEN.findall(text[:1].lower() + text[1:])


def items_of(pairs: Pairs, source: Words, target: Words) -> list[tuple[list[int], list[int]]]:
    """Return the ids of both sides of each pair."""
    return [(source.ids(pair[0]), target.ids(pair[1])) for pair in pairs]


# The models -----------------------------------------------------------------------------------------------


class OneVector(nn.Module):
    """A GRU reads, another one writes, and a single vector is handed over.

    Args:
        source_size: number of words of the source language.
        target_size: of the target language.
        width: numbers of a word's vector, and of a state.
    """

    def __init__(self, source_size: int, target_size: int, width: int) -> None:
        super().__init__()
        self.source_words = nn.Embedding(source_size, width)
        self.target_words = nn.Embedding(target_size, width)
        self.encoder = nn.GRU(width, width, batch_first=True)
        self.decoder = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, target_size)

    def read(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """Return all states, (B, S, width), and the last one, (1, B, width)."""
        return self.encoder(self.source_words(source))

    def write(self, prefix: Tensor, state: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logits of the words after a prefix, (B, T, words), and the decoder's last state."""
        decoded, state = self.decoder(self.target_words(prefix), state)
        return self.head(decoded), state

    def forward(self, source: Tensor, prefix: Tensor) -> Tensor:
        """Return the logits; all sources of a batch are equally long."""
        states, last = self.read(source)
        return self.write(prefix, last, states)[0]


class AdditiveAttention(nn.Module):
    """The weights of all states for each state of the decoder, (B, T, S)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width, bias=False)
        self.v = nn.Linear(width, 1, bias=False)

    def forward(self, decoded: Tensor, states: Tensor) -> Tensor:
        """Compare each decoder state with each state."""
        pairs = self.query(decoded)[:, :, None] + self.key(states)[:, None]
        return self.v(torch.tanh(pairs)).squeeze(-1).softmax(dim=-1)


class LookingBack(OneVector):
    """The same, and before it chooses a word the decoder looks at all states of the encoder."""

    def __init__(self, source_size: int, target_size: int, width: int) -> None:
        super().__init__(source_size, target_size, width)
        self.attention = AdditiveAttention(width)
        self.join = nn.Linear(2 * width, width)

    def write(self, prefix: Tensor, state: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logits of the words after a prefix, and the decoder's last state."""
        decoded, state = self.decoder(self.target_words(prefix), state)
        context = self.attention(decoded, states) @ states
        joined = torch.tanh(self.join(torch.cat([context, decoded], dim=-1)))
        return self.head(joined), state


KINDS = {"attention": LookingBack, "one vector": OneVector}


# Training and translating ---------------------------------------------------------------------------------


def batches(items: Items, batch_size: int, generator: torch.Generator) -> Iterator[tuple[Tensor, ...]]:
    """Yield batches without end, each of sources of one length: the encoder needs no mask.

    Args:
        items: ids of sources and targets.
        batch_size: of all batches but the last of each length.
        generator: draws the order.

    Yields:
        Sources, (B, S); prefixes, which begin with the start token, and labels, (B, T) each.
    """
    while True:
        rows: dict[int, list[int]] = {}
        chosen = []
        for i in torch.randperm(len(items), generator=generator).tolist():
            group = rows.setdefault(len(items[i][0]), [])
            group.append(i)
            if len(group) == batch_size:
                chosen.append(rows.pop(len(items[i][0])))
        chosen += rows.values()
        for k in torch.randperm(len(chosen), generator=generator).tolist():
            yield batch_of([items[i] for i in chosen[k]])


def batch_of(items: Items) -> tuple[Tensor, Tensor, Tensor]:
    """Make a batch of sources of one length: teacher forcing, the prefix is the target one position late."""
    longest = max(len(target) for _, target in items)
    labels = torch.tensor([target + [IGNORED] * (longest - len(target)) for _, target in items])
    prefix = torch.cat([torch.full((len(items), 1), START), labels[:, :-1]], dim=1)
    return torch.tensor([source for source, _ in items]), prefix.masked_fill(prefix == IGNORED, END), labels


def trained(
    kind: str, items: Items, source_size: int, target_size: int, sizes: Sizes, seed: int, seconds: float = 0
) -> tuple[OneVector, dict[str, float]]:
    """Train a translator.

    Args:
        kind: a key of `KINDS`.
        items: ids of sources and targets, of any vocabularies whose first ids are `START` and `END`.
        source_size: number of the source's ids.
        target_size: number of the target's ids.
        sizes: width, number of steps, batch and highest learning rate.
        seed: of the weights and of the order of the sentences.
        seconds: of processor time to train for, instead of a number of steps.

    Returns:
        The model, the number of its steps, the loss over the last tenth of them, and the seconds.
    """
    torch.manual_seed(seed)
    model = KINDS[kind](source_size, target_size, sizes.width)
    optimizer = torch.optim.Adam(model.parameters(), lr=sizes.learning_rate)
    source_of = batches(items, sizes.batch_size, torch.Generator().manual_seed(seed))
    losses, start, done = [], time.process_time(), 0.0
    while done < 1:
        rate = min(1.0, (done + 1e-3) / 0.05) * 0.5 * (1 + math.cos(math.pi * done))
        optimizer.param_groups[0]["lr"] = sizes.learning_rate * rate
        source, prefix, labels = next(source_of)
        logits = model(source, prefix)
        loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        took = time.process_time() - start
        done = took / seconds if seconds else len(losses) / sizes.steps
        if len(losses) % 250 == 0:
            print(kind, seed, len(losses), f"loss {sum(losses[-100:]) / 100:.4f}, {took:.0f} s", flush=True)
    last = losses[-max(1, len(losses) // 10) :]
    return model.eval(), {"steps": len(losses), "loss": sum(last) / len(last), "seconds": took}


@torch.no_grad()
def translated(model: OneVector, sources: Sequence[list[int]], most_new: int = MOST_NEW) -> list[list[int]]:
    """Write the most probable word again and again, until the end token.

    Args:
        model: a trained one.
        sources: ids, of any lengths.
        most_new: tokens at most.

    Returns:
        The ids of each translation, without start and end.
    """
    found: list[list[int]] = [[] for _ in sources]
    for length in {len(source) for source in sources}:
        rows = [i for i, source in enumerate(sources) if len(source) == length]
        states, state = model.read(torch.tensor([sources[i] for i in rows]))
        word = torch.full((len(rows), 1), START)
        written = []
        for _ in range(most_new):
            logits, state = model.write(word, state, states)
            word = logits.argmax(dim=-1)
            written.append(word)
            if (torch.cat(written, dim=1) == END).any(dim=1).all():
                break
        for i, ids in zip(rows, torch.cat(written, dim=1).tolist(), strict=True):
            found[i] = ids[: ids.index(END)] if END in ids else ids
    return found


# The runs -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Corpus:
    """Pairs of sentences, and the words of both languages."""

    train: Pairs
    validation: Pairs
    longer: Pairs  # Longer than any in training.
    source: Words
    target: Words


def corpus_of(sizes: Sizes, file: Path | None = None) -> Corpus:
    """Draw the pairs from the grammar, or read them from a file; the sentences of the page stay out."""
    if file is None:
        drawn = english_german.pairs(sizes.num_pairs, num_held_out=sizes.num_held_out)
        pairs = {split: [pair[:2] for pair in drawn[split]] for split in ("train", "validation", "longer")}
    else:
        lines = [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines()]
        rows = [(english, german) for english, german in lines]
        pairs = {"validation": rows[-sizes.num_held_out :], "longer": []}
        pairs["train"] = rows[: -sizes.num_held_out][: sizes.num_pairs]
    train = [pair for pair in pairs["train"] if pair[0] not in SHOWN]
    source, target = (Words.of(pair[side] for pair in train) for side in (0, 1))
    return Corpus(train, pairs["validation"], pairs["longer"], source, target)


def scores(model: OneVector, corpus: Corpus) -> dict[str, Any]:
    """Return the share of sentences that are translated word for word, by length, and their number."""

    def right(pairs: Pairs) -> list[tuple[int, bool]]:
        written = translated(model, [corpus.source.ids(pair[0]) for pair in pairs])
        same = [corpus.target.text(ids) == pair[1] for ids, pair in zip(written, pairs, strict=True)]
        return [(len(tokens(pair[0])), one) for pair, one in zip(pairs, same, strict=True)]

    found = right(corpus.validation)
    rows = {}
    for first, last in LENGTHS:
        own = [one for length, one in found if first <= length <= last]
        rows[f"{first}-{last}"] = {"right": sum(own) / max(1, len(own)), "of": len(own)}
    own = [one for _, one in right(corpus.longer)]
    rows["longer"] = {"right": sum(own) / max(1, len(own)), "of": len(own)}
    return rows


def run_of(kind: str, seed: int, steps: int, corpus: Corpus, sizes: Sizes, folder: Path) -> dict[str, Any]:
    """Train and score a translator, or read what a former call has found."""
    path = weights_of(folder, kind, seed, steps).with_suffix(".json")
    if path.is_file():
        return json.loads(path.read_text(encoding="utf-8"))
    items = items_of(corpus.train, corpus.source, corpus.target)
    sizes = Sizes(**{**asdict(sizes), "steps": steps})
    model, facts = trained(kind, items, len(corpus.source), len(corpus.target), sizes, seed)
    written = translated(model, [corpus.source.ids(text) for text in SHOWN])
    found = {
        "kind": kind,
        "seed": seed,
        **facts,
        "weights": sum(p.numel() for p in model.parameters()),
        "right": scores(model, corpus),
        "shown": dict(zip(SHOWN, map(corpus.target.text, written), strict=True)),
    }
    folder.mkdir(parents=True, exist_ok=True)
    save_file(halved(model), path.with_suffix(".safetensors"))
    write_text(path, json.dumps(found, ensure_ascii=False, indent=1))
    print(json.dumps(found, ensure_ascii=False, indent=1), flush=True)
    return found


def halved(model: OneVector) -> dict[str, Tensor]:
    """Return the weights in 16 bits."""
    return {name: tensor.half().contiguous() for name, tensor in model.state_dict().items()}


def weights_of(folder: Path, kind: str, seed: int, steps: int) -> Path:
    """Return where the weights of a run are, once it is finished."""
    return folder / f"{kind.replace(' ', '-')}-{seed}-{steps}.safetensors"


@torch.no_grad()
def alignment(weights: Path, corpus: Corpus, sizes: Sizes) -> dict[str, list]:
    """Return where a translator with attention looks in the first sentence of the page."""
    model = LookingBack(len(corpus.source), len(corpus.target), sizes.width)
    model.load_state_dict(load_file(weights))
    source = corpus.source.ids(SHOWN[0])
    [written] = translated(model, [source])
    states, last = model.read(torch.tensor([source]))
    decoded, _ = model.decoder(model.target_words(torch.tensor([[START, *written]])), last)
    rows = model.attention(decoded, states)[0].tolist()
    return {
        "english": [corpus.source.words[i] for i in source],
        "german": [corpus.target.words[i] for i in [*written, END]],
        "weights": [[round(weight, 4) for weight in row] for row in rows],
    }


# What is kept ---------------------------------------------------------------------------------------------


def ship(output: Path, corpus: Corpus, sizes: Sizes, run: Mapping[str, Any], weights: Path) -> None:
    """Write the weights of the translator that looks back, its words and its card."""
    with atomic_write(output) as folder:
        folder.mkdir()
        config = {
            "width": sizes.width,
            "source_words": corpus.source.words,
            "target_words": corpus.target.words,
        }
        (folder / "model.safetensors").write_bytes(weights.read_bytes())
        text = json.dumps(config, ensure_ascii=False, indent=1) + "\n"
        (folder / "config.json").write_text(text, encoding="utf-8", newline="\n")
        (folder / "README.md").write_text(card(corpus, sizes, run), encoding="utf-8", newline="\n")


def card(corpus: Corpus, sizes: Sizes, run: Mapping[str, Any]) -> str:
    """Return the card of the shipped translator."""
    rows = "\n".join(
        f"| {name.replace('1-7', 'up to 7').replace('16-99', '16 and more')} | {row['of']:,} | "
        f"{row['right']:.1%} |"
        for name, row in run["right"].items()
    )
    return f"""# Recurrent translator: English to German, word by word, with attention

A GRU reads an English sentence, another writes a German one and looks at all states of the first by additive
attention. Chapter 06 builds it and loads these weights. Made by `recipes/recurrent_translation.py`, with
{versions()}.

- sentences: {len(corpus.train):,} pairs of this book's grammar (`chapters_src/data/english_german.md`)
- words: {len(corpus.source):,} English, {len(corpus.target):,} German; special tokens included
- weights: {run["weights"]:,}, stored in 16 bits; words and states have {sizes.width} numbers
- training: {run["steps"]:,} steps of at most {sizes.batch_size} sentences, seed {run["seed"]}; highest \
learning rate {sizes.learning_rate:g}; loss over the last tenth {run["loss"]:.3f} nats per token
- time: {run["seconds"] / 60:.1f} minutes of processor time on {hardware()}

## Held-out sentences translated word for word, in 32 bits

| tokens of the source | sentences | right |
|---|---|---|
{rows}

In the last row are sentences with more words than any in training.

## What it cannot do

It knows the words and the constructions of the grammar, and no others; a word it does not know becomes
`<unknown>`. It writes one translation, greedily, and gets most sentences wrong that have more words than
those of its training. It is here to be taken apart, not to be used. The weights are under Apache-2.0, like
the code of this book.
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Train and score the translators, write the weights of one and the record."""
    parser = parser_of_runs("Train the two recurrent translators of chapter 06.", "recurrent_translation")
    parser.add_argument("--ship", type=Path, help="folder to write the weights to; must not exist yet")
    parser.add_argument("--corpus", type=Path, help="pairs to use instead of the grammar's")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--seeds", nargs="+", type=int, choices=SEEDS, default=list(SEEDS))
    parser.add_argument("--width", type=int)
    parser.add_argument("--steps", type=int)
    options = options_of_runs(parser, arguments)
    sizes = SMOKE if options.smoke else Sizes()
    given = {name: getattr(options, name) for name in ("width", "steps") if getattr(options, name)}
    sizes = Sizes(**{**asdict(sizes), **given})
    if options.ship and options.ship.exists():
        parser.error(f"{options.ship} already exists: name another folder, or remove it")
    corpus = corpus_of(sizes, options.corpus)
    everything = [(kind, seed, sizes.steps) for seed in SEEDS for kind in KINDS]
    everything.append(("one vector", SEEDS[0], 2 * sizes.steps))  # A control: is it short of training?
    wanted = [run for run in everything if run[0] in options.kinds and run[1] in options.seeds]
    for kind, seed, steps in wanted:
        run = run_of(kind, seed, steps, corpus, sizes, options.output)
        if options.ship and kind == "attention" and not options.ship.exists():
            ship(options.ship, corpus, sizes, run, weights_of(options.output, kind, seed, steps))
        finished = [key for key in everything if weights_of(options.output, *key).is_file()]
        runs = [run_of(*key, corpus, sizes, options.output) for key in finished]
        figures = {
            "runs": [{name: value for name, value in run.items() if name != "shown"} for run in runs],
            "shown": [{name: run[name] for name in ("kind", "seed", "steps", "shown")} for run in runs],
            "sizes": asdict(sizes),
            "words": [len(corpus.source), len(corpus.target)],
            "longest": max(len(tokens(pair[0])) for pair in corpus.train),
        }
        first = weights_of(options.output, "attention", SEEDS[0], sizes.steps)
        if first.is_file():
            figures["alignment"] = alignment(first, corpus, sizes)
        what = (
            "Two recurrent translators of equal width, one of which looks back: sentences right, by length."
        )
        write_record(options.record, what, "recipes/recurrent_translation.py", figures)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    torch.set_num_threads(1)
    main()
