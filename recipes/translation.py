"""The translator of chapter 09: an encoder-decoder, trained on English and German sentences of a grammar.

    python recipes/translation.py --output build/translator
    accelerate launch recipes/translation.py --output build/translator
    torchrun --nproc-per-node 2 recipes/translation.py --output build/translator

The second line is for GPUs, the third for processes on a CPU, which also needs ACCELERATE_USE_CPU=true. The
batch of a step is the same on any number of processes.

It samples the pairs from the grammar (`chapters_src/data/english_german.md`), trains a subword vocabulary for
both languages and the model, and translates the held-out splits, compared with a dictionary. An interrupted
run resumes from its last checkpoint, beside the output. It writes a folder with the weights in 16 bits, the
tokenizer, a card and a log, which appears complete or not at all. `--smoke` runs everything on a small scale,
in seconds; its numbers mean nothing.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import torch
from accelerate import PartialState

from chapters_src import translation
from chapters_src.data import english_german
from chapters_src.data.english_german import HELD_OUT_SPLITS, Pair, word_by_word
from chapters_src.evaluation import bleu, chrf
from chapters_src.files import atomic_write
from chapters_src.pretrained import load, save
from chapters_src.training import IGNORED, History, Settings, batches_per_step, best_precision, train
from chapters_src.transformer import EncoderDecoder
from chapters_src.translation import LABEL_SMOOTHING, NUM_BEAMS, Texts, loss_of, translate
from recipes.machine import tokens_per_process, versions
from recipes.output import gathered, listed, log_of, options_from, parser_for, time_taken


@dataclass(frozen=True)
class Sizes:
    """What differs between the shipped run and a smoke run."""

    num_pairs: int = 200_000
    num_held_out: int = 1000  # Of each scored split; a part of validation is for losses during training.
    vocab_size: int = 3000
    d_model: int = 128
    feed_forward_width: int = 256
    num_layers: int = 2  # Of the encoder, and of the decoder.
    tokens_per_batch: int = 320  # Of one step, on all processes together.


SMOKE = Sizes(60, 8, 400, 16, 32, 1, 256)


def new_model(sizes: Sizes, vocab_size: int) -> EncoderDecoder:
    """Make the model of chapter 09 in one of the sizes."""
    return translation.new_model(
        vocab_size,
        d_model=sizes.d_model,
        feed_forward_width=sizes.feed_forward_width,
        num_layers=sizes.num_layers,
    )


def trained(
    options: argparse.Namespace, sizes: Sizes, texts: Texts, data: Mapping[str, Sequence[Pair]]
) -> tuple[EncoderDecoder, History]:
    """Train the model; under a launcher, in all processes."""
    torch.manual_seed(options.seed)
    model = new_model(sizes, len(texts.tokenizer))
    batches = texts.batches(data["train"], tokens_per_process(sizes.tokens_per_batch), shuffle=True)
    held_out = texts.batches(data["validation"][:500], sizes.tokens_per_batch, shuffle=False)

    def evaluate(model: EncoderDecoder) -> dict[str, float]:
        device = next(model.parameters()).device
        total = count = 0
        for batch in held_out:
            batch = {name: None if value is None else value.to(device) for name, value in batch.items()}
            total += float(loss_of(model, batch, smoothing=0.0))
            count += int((batch["labels"] != IGNORED).sum())
        return {"validation_loss": total / count}

    per_epoch = max(1, len(batches) // batches_per_step())
    settings = Settings(
        learning_rate=options.learning_rate,
        max_steps=max(1, round(options.epochs * per_epoch)),
        warmup=0.05,
        schedule="cosine",
        betas=(0.9, 0.98),
        mixed_precision=best_precision(
            PartialState().device
        ),  # On a CPU 16 bits are not faster at this width.
        seed=options.seed,
        evaluate_every=max(1, per_epoch // 2),
        checkpoint_every=max(1, per_epoch // 8),
    )
    folder = options.output.with_name(f"{options.output.name}-checkpoints")
    return model, train(model, batches, loss_of, settings, evaluate=evaluate, checkpoint_folder=folder)


def scores(
    model: EncoderDecoder, texts: Texts, data: Mapping[str, Sequence[Pair]]
) -> dict[str, dict[str, float]]:
    """Score each held-out split: BLEU, chrF, and the share of sentences identical to the reference."""
    found = {}
    for split in HELD_OUT_SPLITS:
        sentences, references = zip(*((pair.english, pair.german) for pair in data[split]), strict=True)
        by_beams = translate(model, texts, sentences)
        found[split] = {
            "dictionary": bleu([word_by_word(sentence) for sentence in sentences], references),
            "greedy": bleu(translate(model, texts, sentences, num_beams=1), references),
            "beams": bleu(by_beams, references),
            "chrf": chrf(by_beams, references),
            "exact": float(np.mean([a == b for a, b in zip(by_beams, references, strict=True)])),
        }
    return found


def table(figures: Mapping[str, Mapping[str, float]]) -> str:
    """Return the scores as a Markdown table."""
    lines = [
        f"| split | BLEU, dictionary | BLEU, greedy | BLEU, {NUM_BEAMS} beams | chrF, {NUM_BEAMS} beams "
        f"| exactly right, {NUM_BEAMS} beams |",
        "|---|---|---|---|---|---|",
    ]
    for split, found in figures.items():
        numbers = " | ".join(f"{found[name]:.1f}" for name in ("dictionary", "greedy", "beams", "chrf"))
        lines.append(f"| {split} | {numbers} | {found['exact']:.1%} |")
    return "\n".join(lines)


def card(facts: str, figures: str, examples: str) -> str:
    """Write the model card; all numbers come from this run."""
    return f"""# Translator: sentences of a small grammar, from English to German

An encoder-decoder of this book's package, trained on sentences that a bilingual grammar has drawn. Chapter 09
takes it apart. Made by `recipes/translation.py`, with {versions()}. With

    folder = resources.checkpoint("translator")
    model = pretrained.load(folder)
    tokenizer = BytePairTokenizer.load(Path(folder, "tokenizer.json"))

it is an ordinary model of `chapters_src`. The sources end with `<|end|>`, and the decoder begins with
`<|start|>`.

{facts}

## Scores on the held-out splits

By sacrebleu, against the one translation that the grammar gives. Validation is like the training sentences;
in combinations words stand together that never did; in structures rules meet that never did; longer is built
like training, with more words; clauses has three clauses instead of two; both has both. The dictionary
translates word by word.

{figures}

## Some of its translations, drawn at random

{examples}

## What it cannot do

It knows some hundred words and the rules of one small grammar, and it refuses no sentence:
names, other words, idioms and other constructions become wrong German, or pieces of words that are no words.
Sentences longer than those of its training lose clauses. Scores on sentences of a grammar cannot be
compared with those on natural text. Do not use it to translate. The sentences are under CC BY 4.0, the
weights under Apache-2.0, like the text and the code of this book.
"""


def examples_of(model: EncoderDecoder, texts: Texts, data: Mapping[str, Sequence[Pair]]) -> str:
    """Translate two random sentences of each split."""
    rng = np.random.default_rng(0)
    lines = []
    for split in HELD_OUT_SPLITS:
        drawn = [data[split][i] for i in sorted(rng.permutation(len(data[split]))[:2])]
        for pair, written in zip(drawn, translate(model, texts, [p.english for p in drawn]), strict=True):
            lines.append(f"- {split}: {pair.english}\n- grammar: {pair.german}\n- model: {written}\n")
    return "\n".join(lines).rstrip()


def write(
    options: argparse.Namespace,
    model: EncoderDecoder,
    texts: Texts,
    data: Mapping[str, Sequence[Pair]],
    history: History,
    seconds: float,
) -> None:
    """Save, load and score the saved model, and write card and log; then move the folder to its place."""
    with atomic_write(options.output) as result:
        save(model.half(), result)
        texts.tokenizer.save(result / "tokenizer.json")
        shipped = load(result)
        figures = scores(shipped, texts, data)
        losses = ", ".join(f"{record['validation_loss']:.4f}" for record in history.evaluations)
        shape = shipped.decoder.config
        facts = {
            "pairs": ", ".join(f"{len(pairs):,} {split}" for split, pairs in data.items()),
            "parameters": f"{sum(p.numel() for p in shipped.parameters()):,}; {shape.num_layers} layers in "
            f"encoder and decoder, {shape.d_model} wide, {shape.num_heads} heads",
            "vocabulary": f"{len(texts.tokenizer):,} pieces of bytes, for both languages",
            "training": f"{len(history.steps):,} steps, {options.epochs:g} passes, "
            f"{history.steps[-1]['items']:,} target tokens",
            "loss on validation pairs on the way, in nats per token": losses,
            "time": time_taken(seconds),
            "settings": f"learning rate {options.learning_rate}, label smoothing {LABEL_SMOOTHING}, seed "
            f"{options.seed}",
        }
        examples = examples_of(shipped, texts, data)
        content = card(listed(facts, smoke=options.smoke), table(figures), examples)
        (result / "README.md").write_text(content, encoding="utf-8")
        (result / "run.json").write_text(json.dumps(log_of(options, history, figures)), encoding="utf-8")
    print(content)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the recipe."""
    parser = parser_for(__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=float, default=2, help="passes over the training pairs")
    parser.add_argument("--learning-rate", type=float, default=2e-3)
    options = options_from(parser, arguments)
    sizes = SMOKE if options.smoke else Sizes()
    data = english_german.pairs(sizes.num_pairs, num_held_out=sizes.num_held_out)
    texts = Texts.of(data["train"], sizes.vocab_size)
    begin = time.monotonic()
    model, history = trained(options, sizes, texts, data)
    seconds = time.monotonic() - begin
    full = gathered(model, lambda: new_model(sizes, len(texts.tokenizer)))
    if full is not None:
        write(options, full, texts, data, history, seconds)
    PartialState().wait_for_everyone()


if __name__ == "__main__":
    main()
