"""The summarizer of chapter 14: a small decoder on the embedded encoder, trained on docstrings.

    python recipes/summarization.py --output build/summarizer
    accelerate launch recipes/summarization.py --output build/summarizer
    torchrun --nproc-per-node 2 recipes/summarization.py --output build/summarizer

The second line is for GPUs, the third for processes on a CPU, which also needs ACCELERATE_USE_CPU=true. The
batch of a step is the same on any number of processes.

It extracts the pairs from the installed packages (`chapters_src/data/summaries.md`). First the model learns
to write: it reads paragraphs of docstrings with masked tokens and reproduces their most representative
sentence. Then it is trained on the pairs, and summarizes the test pairs, compared with three baselines. An
interrupted run resumes from its last checkpoint, beside the output. It writes a folder with the weights in 16
bits and a card, which appears complete or not at all. `--smoke` runs everything on a small scale, in seconds;
its numbers mean nothing.
"""

import argparse
import math
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import torch
from accelerate import PartialState
from tokenizers import Tokenizer
from torch.nn import functional as F
from torch.utils.data import DataLoader

from chapters_src import resources
from chapters_src.data import docstrings, summaries
from chapters_src.data.summaries import Pair
from chapters_src.decoding import Stop, beam_search
from chapters_src.evaluation import bootstrap_interval, rouge, rouge_n
from chapters_src.files import atomic_write
from chapters_src.pretrained import load, load_on_encoder, on_encoder, save_on_encoder
from chapters_src.tokenization.sentences import split_sentences
from chapters_src.training import (
    IGNORED,
    History,
    Settings,
    TokenBudgetSampler,
    batches_per_step,
    pad,
    shift_tokens_right,
    train,
)
from chapters_src.transformer import Config, Encoder, EncoderDecoder, mean_pool
from chapters_src.translation import LABEL_SMOOTHING, loss_of
from recipes.machine import precision, tokens_per_process, versions
from recipes.output import gathered, harvested, listed, options_from, parser_for, time_taken

MAX_SOURCE, MAX_TARGET = 192, 40  # Tokens; longer texts are truncated.
NUM_BEAMS, BATCH_SIZE = 4, 32  # Of the summaries.
HOLES = 0.3  # Share of the tokens masked in pretraining.


@dataclass(frozen=True)
class Sizes:
    """What differs between the shipped run and a smoke run."""

    packages: tuple[str, ...] = summaries.PACKAGES
    num_pairs: int | None = None  # For each split; None: all.
    num_epochs: int = 12
    pretraining_epochs: int = 2
    tokens_per_batch: int = 1024  # Of one step, on all processes together.
    feed_forward_width: int = 512


SMOKE = Sizes(("peft",), 8, 1, 1, 512, 32)


class Texts:
    """Converts texts to ids of the encoder's tokenizer, and back."""

    def __init__(self, folder: str) -> None:
        self.tokenizer = Tokenizer.from_file(str(Path(folder) / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        special = ("[CLS]", "[SEP]", "[PAD]", "[MASK]")
        self.start, self.end, self.padding, self.mask = map(self.tokenizer.token_to_id, special)

    def source(self, body: str) -> list[int]:
        """Return the ids that the encoder reads."""
        ids = self.tokenizer.encode(body).ids
        return ids if len(ids) <= MAX_SOURCE else [*ids[: MAX_SOURCE - 1], self.end]

    def target(self, summary: str) -> list[int]:
        """Return the ids that the decoder has to write, with the end token."""
        return [*self.tokenizer.encode(summary, add_special_tokens=False).ids[: MAX_TARGET - 1], self.end]

    def batch(self, items: Sequence[tuple[list[int], list[int]]]) -> dict[str, torch.Tensor | None]:
        """Make a batch of (source, target) pairs."""
        sources, targets = zip(*items, strict=True)
        source_ids, source_mask = pad(sources, padding_id=self.padding)
        inputs, labels = shift_tokens_right(*pad(targets, padding_id=self.padding), self.start)
        return {"source_ids": source_ids, "source_mask": source_mask, "inputs": inputs, "labels": labels}

    def batch_with_holes(
        self, items: Sequence[tuple[list[int], list[int]]]
    ) -> dict[str, torch.Tensor | None]:
        """Make a batch whose sources have masked tokens, different ones in each epoch."""
        batch = self.batch(items)
        ids = batch["source_ids"]
        is_word = ~torch.isin(ids, torch.tensor([self.start, self.end, self.padding]))
        batch["source_ids"] = ids.masked_fill(is_word & (torch.rand(ids.shape) < HOLES), self.mask)
        return batch

    def batches(
        self, pairs: Sequence[tuple[str, str]], tokens: int, *, shuffle: bool, holes: bool = False
    ) -> DataLoader:
        """Return batches of (body, summary) of similar length, within a budget of tokens."""
        items = [(self.source(body), self.target(summary)) for body, summary in pairs]
        lengths = [max(map(len, item)) for item in items]
        sampler = TokenBudgetSampler(lengths, tokens, shuffle=shuffle)
        collate = self.batch_with_holes if holes else self.batch
        return DataLoader(items, batch_sampler=sampler, collate_fn=collate)


def decoder_config(encoder: Encoder, feed_forward_width: int) -> Config:
    """Return the decoder's configuration: two layers whose queries share two heads of keys and values."""
    return Config(
        d_model=encoder.config.d_model,
        num_layers=2,
        num_heads=12,
        num_key_value_heads=2,
        feed_forward_width=feed_forward_width,
        vocab_size=encoder.config.vocab_size,
        max_length=MAX_TARGET + 1,
        cross_attention=True,
        positions="rotary",
        norm="rms",
        activation="gelu",
        bias=False,
        dropout=0.1,
    )


def new_model(options: argparse.Namespace, sizes: Sizes, encoder: Encoder) -> EncoderDecoder:
    """Put a new decoder on a copy of the encoder."""
    decoder = decoder_config(encoder, sizes.feed_forward_width)
    return on_encoder(encoder, decoder, rank=options.rank, num_layers=options.encoder_layers)


def start_from_frequencies(model: EncoderDecoder, targets: Sequence[Sequence[int]]) -> None:
    """Initialize the head's bias with the log frequencies of the target tokens.

    So the first steps are not spent on learning that most of the vocabulary never occurs. The gain of the
    last norm is reduced as well: otherwise the products of states and embedding are noise that hides the
    bias, and the first loss is higher than that of guessing.
    """
    bias = model.head.projection.bias
    counts = torch.bincount(torch.tensor([id for ids in targets for id in ids]), minlength=len(bias))
    with torch.no_grad():
        bias.copy_((counts + 0.1).log())
        bias.sub_(bias.logsumexp(dim=0))
        model.decoder.stack.norm.weight.fill_(0.3)


def principal_sentence(paragraph: str) -> str:
    """Choose the sentence that shares most words with the others, as PEGASUS does for pretraining.

    Zhang et al. (2020), section 3.1, https://arxiv.org/abs/1912.08777.
    """
    sentences = split_sentences(paragraph)
    if len(sentences) == 1:
        return paragraph
    others = [" ".join(sentences[:i] + sentences[i + 1 :]) for i in range(len(sentences))]
    return max(zip(sentences, others, strict=True), key=lambda pair: rouge_n(*pair, 1).f1)[0]


def pairs_of(sizes: Sizes) -> dict[str, list[Pair]]:
    """Load the pairs of each split; for a smoke run a few, from any split: small packages lack some."""
    data = summaries.pairs(sizes.packages).splits
    if sizes.num_pairs is None:
        return data
    pairs = [pair for of_split in data.values() for pair in of_split]
    return {split: pairs[i :: len(data)][: sizes.num_pairs] for i, split in enumerate(data)}


def free_paragraphs(packages: Sequence[str], data: dict[str, list[Pair]]) -> list[str]:
    """Return the paragraphs of training modules that share no run of words with a held-out pair."""
    held_out = {
        run
        for split in ("validation", "test")
        for pair in data[split]
        for run in docstrings.runs(f"{pair.summary} {pair.body}")
    }
    return [
        paragraph.text
        for paragraph in docstrings.paragraphs(packages)
        if docstrings.split_of(paragraph.module) == "train"
        and held_out.isdisjoint(docstrings.runs(paragraph.text))
    ]


def plain_texts(
    packages: Sequence[str], data: dict[str, list[Pair]], most: int | None, seed: int
) -> list[tuple[str, str]]:
    """Return paragraphs for pretraining, each with its principal sentence.

    They come from modules of the training split and share no run of words with a held-out pair. If there are
    more than `most`, that many are sampled.
    """
    found = free_paragraphs(packages, data)
    drawn = np.random.default_rng(seed).permutation(len(found))[:most]
    return [(found[i], principal_sentence(found[i])) for i in sorted(drawn)]


def trained(
    options: argparse.Namespace, sizes: Sizes, encoder: Encoder, texts: Texts, data: dict[str, list[Pair]]
) -> tuple[EncoderDecoder, list[History]]:
    """Train the decoder on the encoder; under a launcher, in all processes."""
    torch.manual_seed(options.seed)
    model = new_model(options, sizes, encoder)
    pairs = {split: [(pair.body, pair.summary) for pair in of_split] for split, of_split in data.items()}
    start_from_frequencies(model, [texts.target(summary) for _, summary in pairs["train"]])
    held_out = texts.batches(pairs["validation"], sizes.tokens_per_batch, shuffle=False)

    def evaluate(model: EncoderDecoder) -> dict[str, float]:
        device = next(model.parameters()).device
        total = count = 0
        for batch in held_out:
            batch = {name: None if value is None else value.to(device) for name, value in batch.items()}
            total += float(loss_of(model, batch, smoothing=0.0))
            count += int((batch["labels"] != IGNORED).sum())
        return {"validation_loss": total / count}

    def fit(phase: str, of_phase: Sequence[tuple[str, str]], num_epochs: int, *, holes: bool) -> History:
        tokens = tokens_per_process(sizes.tokens_per_batch)
        batches = texts.batches(of_phase, tokens, shuffle=True, holes=holes)
        steps_per_epoch = math.ceil(len(batches) / batches_per_step())
        settings = Settings(
            learning_rate=options.learning_rate,
            num_epochs=num_epochs,
            warmup=0.05,
            schedule="cosine",
            weight_decay=0.05,
            mixed_precision=precision(PartialState().device),
            seed=options.seed,
            evaluate_every=steps_per_epoch,
            checkpoint_every=steps_per_epoch,
        )
        folder = checkpoints_of(options.output) / phase
        return train(model, batches, loss_of, settings, evaluate=evaluate, checkpoint_folder=folder)

    histories = []
    if pretraining := chosen(options.pretraining_epochs, sizes.pretraining_epochs):
        most = chosen(options.paragraphs, sizes.num_pairs)
        paragraphs = plain_texts(sizes.packages, data, most, options.seed)
        histories.append(fit("pretraining", paragraphs, pretraining, holes=True))
    num_epochs = chosen(options.epochs, sizes.num_epochs)
    histories.append(fit("training", pairs["train"], num_epochs, holes=False))
    return model, histories


def checkpoints_of(output: Path) -> Path:
    """Return the folder of checkpoints beside the output; it has a folder for each phase."""
    return output.with_name(f"{output.name}-checkpoints")


def chosen(option: int | None, default: int | None) -> int | None:
    """Return the option from the command line, or else the default."""
    return default if option is None else option


def summarize(
    model: EncoderDecoder, texts: Texts, bodies: Sequence[str], num_beams: int = NUM_BEAMS
) -> list[str]:
    """Write a summary of each text by beam search, which with one beam is greedy decoding."""
    stop = Stop(end_ids=texts.end, tokenizer=texts.tokenizer)
    written = []
    for first in range(0, len(bodies), BATCH_SIZE):
        sources = [texts.source(body) for body in bodies[first : first + BATCH_SIZE]]
        found = beam_search(
            model,
            sources,
            num_beams=num_beams,
            max_new_tokens=MAX_TARGET,
            target_ids=[texts.start],
            stop=stop,
        )
        written += [best.text for best, *_ in found]
    return written


@torch.inference_mode()
def centroid(encoder: Encoder, texts: Texts, bodies: Sequence[str]) -> list[str]:
    """Choose from each text the sentence whose vector is closest to the mean of its sentences."""
    chosen = []
    for body in bodies:
        sentences = split_sentences(body)
        ids, mask = pad([texts.source(sentence) for sentence in sentences], padding_id=texts.padding)
        vectors = F.normalize(mean_pool(encoder(ids, mask), mask), dim=-1)
        chosen.append(sentences[int((vectors @ vectors.mean(dim=0)).argmax())])
    return chosen


def scores(predictions: dict[str, list[str]], references: list[str]) -> str:
    """Return a Markdown table of ROUGE in percent, with 95% intervals.

    The last row is the paired difference between the last summaries and the first ones.
    """
    tables = {name: 100 * rouge(texts, references) for name, texts in predictions.items()}
    first, *_, last = tables
    tables[f"{last} minus {first}"] = tables[last] - tables[first]
    lines = ["| summary | ROUGE-1 | ROUGE-2 | ROUGE-L |", "|---|---|---|---|"]
    for name, table in tables.items():
        intervals = [bootstrap_interval(np.mean, table[kind]) for kind in ("rouge1", "rouge2", "rougeL")]
        lines.append(f"| {name} |" + "".join(f" {i[0]:.1f} ({i[1]:.1f} to {i[2]:.1f}) |" for i in intervals))
    return "\n".join(lines)


def share_invented(pairs: Sequence[Pair], written: Sequence[str]) -> float:
    """Return the mean share of a summary's content words that do not occur in the text."""
    overlaps = [summaries.overlap(p._replace(summary=text)) for p, text in zip(pairs, written, strict=True)]
    return 1 - float(np.mean(overlaps))


def card(facts: str, table: str, examples: list[tuple[Pair, str]]) -> str:
    """Write the model card; all numbers come from this run."""
    shown = "\n\n".join(f"- author: {pair.summary}\n- model: {written}" for pair, written in examples)
    return f"""# Summarizer: one line for the body of a docstring

A decoder of two layers on the book's encoder, all-MiniLM-L6-v2, which is frozen but for low-rank updates (if
any). It reads the body of a docstring and writes a line. Chapter 14 takes it apart. The folder holds only
what was trained; `chapters_src.pretrained.load_on_encoder` puts it on the encoder again. Made by
`recipes/summarization.py`, with {versions()}.

{facts}

## Scores on the test split

ROUGE F1 in percent, one-sentence references, with 95% bootstrap intervals over the test pairs (they know
nothing of another seed). Lead-1 and lead-3 are the first sentences of the text, centroid the sentence whose
vector is closest to the mean of all its sentences. The model writes by beam search with {NUM_BEAMS} beams.

{table}

## Some of its summaries, drawn at random

{shown}

## What it cannot do

It has seen little English, all of it about software, and writes in lower case. It reads the first
{MAX_SOURCE} tokens. Nothing keeps it from stating what the text does not say; the share of its words that the
text does not have, above, tells roughly how often it does. Do not use it on other texts. The pairs are under
the licenses of the packages that they come from; the weights are under Apache-2.0, like the code of this
book.
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the recipe."""
    parser = parser_for(__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, help="passes over the training pairs")
    parser.add_argument("--pretraining-epochs", type=int, help="passes over paragraphs with holes; 0: none")
    parser.add_argument("--paragraphs", type=int, help="with holes, drawn at random; default: all")
    parser.add_argument("--rank", type=int, default=4, help="of the encoder's updates; 0: it is frozen")
    parser.add_argument("--encoder-layers", type=int, default=0, help="the first so many; 0: all")
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    options = options_from(parser, arguments)
    sizes = SMOKE if options.smoke else Sizes()
    folder = resources.checkpoint("encoder")
    encoder, texts = load(folder), Texts(folder)
    data = pairs_of(sizes)
    begin = time.monotonic()
    model, histories = trained(options, sizes, encoder, texts, data)
    seconds = time.monotonic() - begin
    full = gathered(model, lambda: new_model(options, sizes, encoder))
    if full is not None:
        write(options, sizes.packages, full, encoder, texts, data, histories, seconds)
    PartialState().wait_for_everyone()


def write(
    options: argparse.Namespace,
    packages: Sequence[str],
    model: EncoderDecoder,
    encoder: Encoder,
    texts: Texts,
    data: dict[str, list[Pair]],
    histories: list[History],
    seconds: float,
) -> None:
    """Save, load and score the saved model, and write the card; then move the folder to its place."""
    with atomic_write(options.output) as result:
        save_on_encoder(model, encoder, result)
        shipped = load_on_encoder(result, encoder)
        bodies, references = ([getattr(pair, part) for pair in data["test"]] for part in ("body", "summary"))
        written = summarize(shipped, texts, bodies)
        predictions = {
            "lead-1": [split_sentences(body)[0] for body in bodies],
            "lead-3": [" ".join(split_sentences(body)[:3]) for body in bodies],
            "centroid": centroid(encoder.eval(), texts, bodies),
            "this model": written,
        }
        phases = ("pretraining", "training")[-len(histories) :]
        invented = share_invented(data["test"], written), share_invented(data["test"], references)
        facts = {
            "docstrings of": harvested(packages),
            "pairs": ", ".join(f"{len(pairs):,} {split}" for split, pairs in data.items()),
            "trained parameters": f"{sum(p.numel() for p in model.parameters() if p.requires_grad):,}",
            "encoder": f"{len(model.encoder.stack.layers)} layers, updates of rank {options.rank}",
            **{phase: told(history) for phase, history in zip(phases, histories, strict=True)},
            "time": time_taken(seconds),
            "settings": f"learning rate {options.learning_rate}, label smoothing {LABEL_SMOOTHING}, seed "
            f"{options.seed}, holes {HOLES:.0%}",
            "content words that the text does not have": f"{invented[0]:.0%} of the model's, "
            f"{invented[1]:.0%} of the authors'",
        }
        drawn = np.random.default_rng(0).permutation(len(written))[:5]
        examples = [(data["test"][i], written[i]) for i in drawn]
        content = card(listed(facts, smoke=options.smoke), scores(predictions, references), examples)
        (result / "README.md").write_text(content, encoding="utf-8")
    print(content)


def told(history: History) -> str:
    """Describe the length and the losses of one phase."""
    tokens = history.steps[-1]["items"]
    losses = ", ".join(f"{record['validation_loss']:.3f}" for record in history.evaluations)
    return (
        f"{len(history.steps):,} steps, {tokens:,} target tokens; loss on the validation pairs after each "
        f"epoch, in nats per token: {losses}"
    )


if __name__ == "__main__":
    main()
