"""Which pretraining helps the writer of a summarizer: the same decoder from five starts, for chapter 14.

    python recipes/pretraining.py --output build/pretraining

The summarizer is that of `recipes/summarization.py`: a decoder of two layers on the first three layers of the
embedded encoder, which is frozen. With a seed all starts have the same first weights, the bias of the head
included, which begins as the log frequencies of the tokens of the training lines. They differ in what the
decoder is trained on before the training on pairs of a text and its line:

- "random": on nothing;
- "language model": to write a paragraph, token by token, without reading it: the encoder gets an empty text,
  so the paragraph's own earlier words are all that helps (with the whole paragraph in the encoder it would
  learn to copy);
- "denoising": to write a paragraph, from this paragraph with 30 % of its tokens masked, other ones each time
  (BART's token masking);
- "gap sentences": to write the principal sentence of a paragraph (PEGASUS), from this paragraph with [MASK]
  in its place;
- "longer": on the same pairs: one training with as many steps more as the others have of pretraining. It
  tells what those steps are worth without any pretraining.

Equal are the paragraphs to draw from (those of the training modules with at least two sentences and at most
`LONGEST` tokens), the number of steps, and the target tokens of a step (at most `TOKENS`, padding included);
so a step of "gap sentences" reads more paragraphs than one of the other two, whose targets are longer. The
first 40 tokens of a paragraph are its target. No paragraph is read twice. Each phase has its own warm-up and
cosine. The head chooses among the tokens that occur at least `LEAST` times in the training pairs; others are
never written, and do not count in a loss.

The output holds a file for each finished run, with its lines; finished runs are not repeated, so an
interrupted recipe goes on where it was. The record is written after each run. Its figures are

- "runs": for each seed and start the steps and target tokens of each phase, "losses" on the validation pairs
  (in nats per token, without smoothing) before the training on pairs and at equal distances in it, the last
  one after it; the loss on the test pairs ("test_loss"), and for both splits what the losses are if each
  text is replaced by another one ("validation_loss_of_another_text", ...); of the lines written greedily for
  the test texts ROUGE F1 in percent, ROUGE-1 also against the line of another text
  ("rouge1_of_another_text"), the share of their content words that the text does not have ("unsupported"),
  their mean number of words and the number of different ones; and processor seconds;
- "baselines": the same scores for the first sentence, and for the authors' line of another text;
- "differences": for pairs of starts, and for each start and the first sentence, the mean difference of ROUGE
  over the test texts with its 95 % bootstrap interval, for each seed, and for the mean of the seeds;
- "examples": what each start wrote for a few texts with the first seed;
- "sizes".

`--smoke` runs everything on a small scale, in seconds; its numbers mean nothing, and its record stays in the
output.
"""

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.data import DataLoader

from chapters_src import resources
from chapters_src.data.summaries import Pair
from chapters_src.evaluation import bootstrap_interval, rouge
from chapters_src.pretrained import load
from chapters_src.tokenization.sentences import split_sentences
from chapters_src.training import IGNORED, Settings, TokenBudgetSampler, pad, shift_tokens_right, train
from chapters_src.transformer import Encoder, EncoderDecoder, Memory
from recipes import summarization
from recipes.output import kept, options_of_runs, parser_of_runs, write_record
from recipes.summarization import LABEL_SMOOTHING, MAX_TARGET, Texts

STARTS = ("random", "language model", "denoising", "gap sentences", "longer")
COMPARED = (
    *((start, "random") for start in STARTS[1:]),
    *((start, "longer") for start in STARTS[1:4]),
    ("gap sentences", "denoising"),
    ("gap sentences", "language model"),
    ("denoising", "language model"),
)
KINDS = ("rouge1", "rouge2", "rougeL")
LAYERS = 3  # Of the encoder, as in the shipped summarizer.
RATE = 1e-3
TOKENS = 160  # Of the targets of a step, with padding.
LONGEST = 80  # Tokens of a paragraph.
LEAST = 3  # Occurrences of a token that may be written.
AT_ONCE = 8  # Texts that the encoder reads together.
SHOWN = 5

Item = tuple[Any, list[int]]  # What is read, as ids or states, and what is to be written.


@dataclass(frozen=True)
class Sizes:
    """What differs between the recorded runs and a smoke run."""

    pretraining_steps: int = 240
    steps: int = 360  # Of the training on pairs; 360 are one pass.
    seeds: tuple[int, ...] = (0, 1, 2, 3)
    data: summarization.Sizes = field(default_factory=summarization.Sizes)


SMOKE = Sizes(2, 4, (0, 1), summarization.SMOKE)


# What is read and written ---------------------------------------------------------------------------------


class Reader:
    """Reads texts with the frozen encoder, and makes batches of its states.

    Args:
        encoder: with as many layers as are used.
        texts: converts to ids.
    """

    def __init__(self, encoder: Encoder, texts: Texts) -> None:
        self.encoder, self.texts = encoder.eval(), texts

    @torch.no_grad()
    def states(self, sources: Sequence[list[int]]) -> list[Tensor]:
        """Return the states of each source, (tokens, D)."""
        found: list[Tensor] = [torch.empty(0)] * len(sources)
        order = sorted(range(len(sources)), key=lambda i: len(sources[i]))
        for first in range(0, len(order), AT_ONCE):
            rows = order[first : first + AT_ONCE]
            states = self.encoder(*pad([sources[i] for i in rows], padding_id=self.texts.padding))
            for row, i in enumerate(rows):
                found[i] = states[row, : len(sources[i])].clone()
        return found

    def with_holes(self, ids: list[int]) -> list[int]:
        """Mask some of the tokens between the first and the last, other ones each time."""
        holes = (torch.rand(len(ids)) < summarization.HOLES).tolist()
        inner = [self.texts.mask if hole else id for id, hole in zip(ids, holes, strict=True)][1:-1]
        return [ids[0], *inner, ids[-1]]

    def collate(self, items: Sequence[Item], change: Callable[[list[int]], list[int]] | None = None) -> dict:
        """Make a batch; sources that are ids are changed, if wanted, and read."""
        sources, targets = zip(*items, strict=True)
        if not isinstance(sources[0], Tensor):
            sources = self.states([change(ids) if change else ids for ids in sources])
        inputs, labels = shift_tokens_right(*pad(targets, padding_id=self.texts.padding), self.texts.start)
        return {**memory_of(sources), "inputs": inputs, "labels": labels}

    def batches(
        self, items: Sequence[Item], *, shuffle: bool, change: Callable[[list[int]], list[int]] | None = None
    ) -> DataLoader:
        """Return batches with a budget of target tokens."""
        sampler = TokenBudgetSampler([len(target) for _, target in items], TOKENS, shuffle=shuffle)
        return DataLoader(
            list(items), batch_sampler=sampler, collate_fn=lambda some: self.collate(some, change)
        )


def memory_of(sources: Sequence[Tensor]) -> dict[str, Tensor]:
    """Pad states on the right, and make their mask."""
    lengths = torch.tensor([len(states) for states in sources])
    padded = torch.nn.utils.rnn.pad_sequence(list(sources), batch_first=True)
    mask = (torch.arange(int(lengths.max())) < lengths[:, None]).long()
    return {"states": padded, "source_mask": mask}


def task_of(start: str, paragraphs: Sequence[str], texts: Texts) -> list[Item]:
    """Return what the decoder reads and writes before it sees a pair, as ids; "denoising" without holes."""
    if start == "language model":
        return [(texts.source(""), texts.target(paragraph)) for paragraph in paragraphs]
    if start == "denoising":
        return [(texts.source(paragraph), texts.target(paragraph)) for paragraph in paragraphs]
    sentences = [summarization.principal_sentence(paragraph) for paragraph in paragraphs]
    return [
        (texts.source(paragraph.replace(sentence, "[MASK]", 1)), texts.target(sentence))
        for paragraph, sentence in zip(paragraphs, sentences, strict=True)
    ]


def suitable(paragraphs: Sequence[str], texts: Texts) -> list[str]:
    """Keep the paragraphs of two sentences or more that are short enough for a step."""
    return [
        paragraph
        for paragraph in paragraphs
        if len(split_sentences(paragraph)) > 1 and len(texts.source(paragraph)) <= LONGEST
    ]


def writable(pairs: Sequence[Pair], texts: Texts) -> Tensor:
    """Return the ids, sorted, of all tokens that may be written."""
    counts = Counter(id for pair in pairs for text in pair[:2] for id in texts.source(text))
    counts[texts.end] = LEAST
    unwanted = {texts.start, texts.padding, texts.mask}
    return torch.tensor(sorted(id for id, count in counts.items() if count >= LEAST and id not in unwanted))


# The decoder ----------------------------------------------------------------------------------------------


class Writer:
    """Computes losses and writes lines with the decoder of a model, on states that were read before.

    Args:
        ids: of the tokens that may be written, sorted.
        reader: that makes the batches.
    """

    def __init__(self, ids: Tensor, reader: Reader) -> None:
        self.ids, self.reader = ids, reader
        self.place = torch.full((reader.texts.tokenizer.get_vocab_size(),), IGNORED)
        self.place[ids] = torch.arange(len(ids))
        self.vectors = reader.encoder.embedding.tokens.weight.detach()[ids]

    def logits(self, model: EncoderDecoder, states: Tensor) -> Tensor:
        """Return the logits of the tokens that may be written, as the model's head would."""
        return F.linear(states, self.vectors, model.head.projection.bias[self.ids])

    def loss_of(
        self, model: EncoderDecoder, batch: Mapping[str, Tensor], smoothing: float = LABEL_SMOOTHING
    ) -> Tensor:
        """Return the summed loss of a batch's target tokens."""
        memory = Memory(batch["states"], batch["source_mask"])
        states = model.decoder(batch["inputs"], None, memory=memory)
        return F.cross_entropy(
            self.logits(model, states.flatten(0, 1)),
            self.labels(batch).flatten(),
            ignore_index=IGNORED,
            reduction="sum",
            label_smoothing=smoothing,
        )

    def labels(self, batch: Mapping[str, Tensor]) -> Tensor:
        """Return the place of each label among the tokens that may be written."""
        labels = batch["labels"]
        return torch.where(labels == IGNORED, IGNORED, self.place[labels.clamp(min=0)])

    def count(self, batch: Mapping[str, Tensor]) -> int:
        """Return the number of labels that count."""
        return int((self.labels(batch) != IGNORED).sum())

    @torch.no_grad()
    def loss(self, model: EncoderDecoder, items: Sequence[Item]) -> float:
        """Return the loss without smoothing, in nats per token."""
        total = number = 0.0
        for batch in self.reader.batches(items, shuffle=False):
            total += self.loss_of(model, batch, smoothing=0.0).item()
            number += self.count(batch)
        return round(total / number, 4)

    @torch.no_grad()
    def lines(self, model: EncoderDecoder, sources: Sequence[Tensor]) -> list[str]:
        """Write the most probable token again and again, after each text."""
        texts = self.reader.texts
        written: list[list[int]] = [[] for _ in sources]
        order = sorted(range(len(sources)), key=lambda i: len(sources[i]))
        for first in range(0, len(order), 32):
            open_rows = order[first : first + 32]
            for _ in range(MAX_TARGET):
                memory = Memory(*memory_of([sources[i] for i in open_rows]).values())
                ids = torch.tensor([[texts.start, *written[i]] for i in open_rows])
                states = model.decoder(ids, None, memory=memory)[:, -1]
                chosen = self.ids[self.logits(model, states).argmax(dim=-1)].tolist()
                for i, id in zip(open_rows, chosen, strict=True):
                    written[i].append(id)
                open_rows = [i for i in open_rows if written[i][-1] != texts.end]
                if not open_rows:
                    break
        return [texts.tokenizer.decode(ids) for ids in written]


# Runs -----------------------------------------------------------------------------------------------------


class Experiment:
    """What all runs share: the data, read once, and the encoder.

    Args:
        sizes: of the runs.
    """

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes
        folder = resources.checkpoint("encoder")
        self.encoder, self.texts = load(folder), Texts(folder)
        self.data = summarization.pairs_of(sizes.data)
        self.reader = Reader(self.new_model(0).encoder, self.texts)
        self.writer = Writer(writable(self.data["train"], self.texts), self.reader)
        self.paragraphs = suitable(summarization.free_paragraphs(sizes.data.packages, self.data), self.texts)
        self.items: dict[str, list[Item]] = {}
        for split, pairs in self.data.items():
            targets = [self.texts.target(pair.summary) for pair in pairs]
            states = self.reader.states([self.texts.source(pair.body) for pair in pairs])
            self.items[split] = list(zip(states, targets, strict=True))

    def new_model(self, seed: int) -> EncoderDecoder:
        """Make the model of a seed, with its first weights."""
        torch.manual_seed(seed)
        options = argparse.Namespace(rank=0, encoder_layers=LAYERS)
        return summarization.new_model(options, self.sizes.data, self.encoder)

    def drawn(self, seed: int) -> list[str]:
        """Draw paragraphs for a seed, enough for every task."""
        order = np.random.default_rng(seed).permutation(len(self.paragraphs))
        return [self.paragraphs[i] for i in order[: 16 * self.sizes.pretraining_steps]]

    def fit(
        self,
        model: EncoderDecoder,
        batches: DataLoader,
        steps: int,
        seed: int,
        evaluate: Callable[[EncoderDecoder], dict[str, float]] | None = None,
    ) -> tuple[list[float], int]:
        """Train for some steps; return the losses in between and the number of target tokens."""
        settings = Settings(
            learning_rate=RATE,
            max_steps=steps,
            warmup=0.05,
            schedule="cosine",
            weight_decay=0.05,
            mixed_precision="no",
            seed=seed,
            evaluate_every=max(1, steps // 4) if evaluate else 0,
        )
        history = train(
            model,
            batches,
            self.writer.loss_of,
            settings,
            count_items=self.writer.count,
            evaluate=evaluate,
        )
        losses = [found["validation_loss"] for found in history.evaluations]
        return losses, int(history.steps[-1]["items"])

    def of(self, start: str, seed: int) -> dict[str, Any]:
        """Make one run, and return what the record says of it, and its lines."""
        begin = time.process_time()
        model = self.new_model(seed)
        summarization.start_from_frequencies(model, [target for _, target in self.items["train"]])
        model.eval()
        found: dict[str, Any] = {"seed": seed, "start": start}
        steps = self.sizes.steps
        if start == "longer":
            steps += self.sizes.pretraining_steps
        elif start != "random":
            task = task_of(start, self.drawn(seed), self.texts)
            change = self.reader.with_holes if start == "denoising" else None
            batches = self.reader.batches(task, shuffle=True, change=change)
            assert len(batches) >= self.sizes.pretraining_steps or self.sizes == SMOKE, "read twice"
            _, tokens = self.fit(model, batches, self.sizes.pretraining_steps, seed)
            found |= {"pretraining_steps": self.sizes.pretraining_steps, "pretraining_tokens": tokens}
        held_out = self.items["validation"]
        before = self.writer.loss(model, held_out)
        pairs = self.reader.batches(self.items["train"], shuffle=True)
        losses, tokens = self.fit(
            model,
            pairs,
            steps,
            seed,
            lambda model: {"validation_loss": self.writer.loss(model, held_out)},
        )
        model.eval()
        found |= {"steps": steps, "tokens": tokens, "losses": [before, *losses]}
        for split in ("validation", "test"):
            found[f"{split}_loss"] = self.writer.loss(model, self.items[split])
            found[f"{split}_loss_of_another_text"] = self.writer.loss(model, misread(self.items[split]))
        lines = self.writer.lines(model, [states for states, _ in self.items["test"]])
        found |= self.scores(lines)
        return found | {"seconds": round(time.process_time() - begin, 1), "lines": lines}

    def scores(self, lines: Sequence[str]) -> dict[str, float]:
        """Score lines for the test texts."""
        table = self.rouge_of(lines)
        references = self.authors()
        return {
            **{kind: round(float(table[kind].mean()), 2) for kind in KINDS},
            "rouge1_of_another_text": round(
                100 * float(rouge(list(lines), another(references))["rouge1"].mean()), 2
            ),
            "unsupported": round(summarization.share_invented(self.data["test"], lines), 4),
            "words": round(float(np.mean([len(line.split()) for line in lines])), 2),
            "different": len(set(lines)),
        }

    def authors(self) -> list[str]:
        """Return the authors' lines of the test texts."""
        return [pair.summary for pair in self.data["test"]]

    def rouge_of(self, lines: Sequence[str]) -> pd.DataFrame:
        """Return the scores of each test text, in percent."""
        return 100 * rouge(list(lines), self.authors())[list(KINDS)]

    def baselines(self) -> dict[str, list[str]]:
        """Return the lines that need no training."""
        return {
            "first sentence": [split_sentences(pair.body)[0] for pair in self.data["test"]],
            "another text's line": another(self.authors()),
        }


def another(values: Sequence[Any]) -> list[Any]:
    """Give each text what belongs to another one, half the list away (of another package, mostly)."""
    half = len(values) // 2
    return [*values[half:], *values[:half]]


def misread(items: Sequence[Item]) -> list[Item]:
    """Give each line another text to read."""
    return list(zip(another([states for states, _ in items]), [line for _, line in items], strict=True))


# The record -----------------------------------------------------------------------------------------------


def differences(experiment: Experiment, runs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Compare starts text by text: for each seed, and for the mean of the seeds that are there."""
    tables = {(run["start"], run["seed"]): experiment.rouge_of(run["lines"]) for run in runs}
    first = experiment.rouge_of(experiment.baselines()["first sentence"])
    found = []
    for one, other in [*COMPARED, *((start, "first sentence") for start in STARTS)]:
        of_seeds = {}
        for seed in experiment.sizes.seeds:
            against = first if other == "first sentence" else tables.get((other, seed))
            if against is not None and (one, seed) in tables:
                of_seeds[seed] = tables[one, seed] - against
        if of_seeds:
            mean = sum(of_seeds.values()) / len(of_seeds)
            for seed, table in [*of_seeds.items(), ("mean", mean)]:
                intervals = {
                    kind: [round(float(x), 2) for x in bootstrap_interval(np.mean, table[kind])]
                    for kind in KINDS
                }
                found.append({"start": one, "minus": other, "seed": seed, **intervals})
    return found


def figures_of(experiment: Experiment, runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Make the figures of the record from the runs that are there."""
    sizes, first_seed = experiment.sizes, experiment.sizes.seeds[0]
    drawn = np.random.default_rng(0).permutation(len(experiment.data["test"]))[:SHOWN].tolist()
    baselines = experiment.baselines()
    written = {"author": experiment.authors(), "first sentence": baselines["first sentence"]}
    written |= {run["start"]: run["lines"] for run in runs if run["seed"] == first_seed}
    return {
        "runs": [{name: value for name, value in run.items() if name != "lines"} for run in runs],
        "baselines": {name: experiment.scores(lines) for name, lines in baselines.items()},
        "differences": differences(experiment, runs),
        "examples": [{name: lines[i] for name, lines in written.items()} for i in drawn],
        "sizes": {
            **{name: value for name, value in asdict(sizes).items() if name != "data"},
            "tokens_per_step": TOKENS,
            "learning_rate": RATE,
            "pairs": {split: len(pairs) for split, pairs in experiment.data.items()},
            "paragraphs": len(experiment.paragraphs),
            "writable_tokens": len(experiment.writer.ids),
        },
    }


def wanted(sizes: Sizes) -> Iterator[tuple[str, int]]:
    """Yield start and seed of every run, all starts of a seed together."""
    for seed in sizes.seeds:
        for start in STARTS:
            yield start, seed


def main(arguments: Sequence[str] | None = None) -> None:
    """Make all runs, and write the record after each."""
    parser = parser_of_runs("Train the summarizer of chapter 14 from several starts.", "pretraining")
    parser.add_argument("--pretraining-steps", type=int, default=Sizes.pretraining_steps)
    parser.add_argument("--steps", type=int, default=Sizes.steps, help="on pairs, after the pretraining")
    options = options_of_runs(parser, arguments)
    sizes = SMOKE if options.smoke else Sizes(options.pretraining_steps, options.steps)
    experiment = Experiment(sizes)
    what = (
        "The summarizer of chapter 14 from five starts of its decoder, with equal steps, at four seeds: "
        "losses and ROUGE on the test split."
    )
    runs: list[dict[str, Any]] = []
    for start, seed in wanted(sizes):
        name = f"{start.replace(' ', '_')}-{sizes.pretraining_steps}-{sizes.steps}-{seed}.json"
        run = kept(options.output / name, partial(experiment.of, start, seed))
        shown = ("validation_loss", "test_loss", *KINDS, "unsupported", "seconds")
        print(seed, start, *(f"{name} {run[name]}" for name in shown), flush=True)
        runs.append(run)
        write_record(options.record, what, "recipes/pretraining.py", figures_of(experiment, runs))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
