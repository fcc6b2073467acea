"""The language model of chapter 12: a small Llama-style decoder, trained on the docstrings of packages.

    python recipes/language_model.py --output build/language-model
    accelerate launch recipes/language_model.py --output build/language-model
    torchrun --nproc-per-node 2 recipes/language_model.py --output build/language-model

The second line is for GPUs, the third for processes on a CPU, which also needs ACCELERATE_USE_CPU=true. The
batch of a step is the same on any number of processes.

It extracts the texts from the installed packages (`chapters_src/data/docstrings.md`), trains a byte-level
byte-pair tokenizer and then the model, and measures bits per byte on held-out modules, compared with an
n-gram model. An interrupted run resumes from its last checkpoint, beside the output. It writes a regular
checkpoint of the Transformers library with a card; the folder appears complete or not at all. `--smoke` runs
everything on a small scale, in seconds; its numbers mean nothing.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")  # The texts are encoded before the loader exists.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import torch
from accelerate import DistributedType, PartialState
from accelerate.state import AcceleratorState
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

from chapters_src.data import docstrings
from chapters_src.evaluation import bits_per_byte, document_log_probabilities
from chapters_src.files import atomic_write
from chapters_src.ngrams import NGramModel
from chapters_src.pretrained import export
from chapters_src.training import IGNORED, History, PackedDocuments, Settings, train
from chapters_src.transformer import Config, LanguageModel
from recipes.corpus import paragraphs
from recipes.machine import precision, rows_per_process, versions
from recipes.output import gathered, harvested, listed, log_of, options_from, parser_for, time_taken

END = "<|endoftext|>"  # Before and after each document; id 0.
NGRAM_ORDER = 4
HEAD_WIDTH = 32


@dataclass(frozen=True)
class Sizes:
    """What differs between the shipped run and a smoke run."""

    packages: tuple[str, ...] = docstrings.PACKAGES
    vocab_size: int = 6_144
    context: int = 256
    d_model: int = 256
    num_layers: int = 6
    num_heads: int = 8
    blocks_per_batch: int = 32  # Of one step, on all processes together.
    max_documents: int | None = None  # Of each split; None: all.


SMOKE = Sizes(("datasets",), 400, 64, 32, 2, 2, 4, 8)


# Data -----------------------------------------------------------------------------------------------------


def documents(sizes: Sizes, kinds: Sequence[str]) -> dict[str, list[str]]:
    """Return the documents of each split: a module's paragraphs, one on each line."""
    found = {}
    for split, chosen in paragraphs(sizes.packages, kinds).items():
        kept = sorted(chosen, key=lambda p: p.module)
        found[split] = ["\n".join(p.text for p in group) for _, group in groupby(kept, lambda p: p.module)]
        found[split] = found[split][: sizes.max_documents]
    return found


def trained_tokenizer(texts: Sequence[str], vocab_size: int) -> Tokenizer:
    """Train a byte-level byte-pair tokenizer; chapter 03 builds the algorithm."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


class Shuffled:
    """Encoded documents, each after an end token, in a different order in each epoch."""

    def __init__(self, encoded: Sequence[np.ndarray], end_id: int, seed: int) -> None:
        self.encoded, self.end_id, self.seed, self.epoch = encoded, end_id, seed, 0

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, which determines the order of the next pass."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[np.ndarray]:
        """Yield the ids of each document."""
        for i in np.random.default_rng([self.seed, self.epoch]).permutation(len(self.encoded)):
            yield np.concatenate([[self.end_id], self.encoded[i]])


# Model and training ---------------------------------------------------------------------------------------


def config_of(sizes: Sizes, dropout: float) -> Config:
    """Return the configuration: rotary positions, RMSNorm, SwiGLU, no biases, tied embedding."""
    return Config(
        vocab_size=sizes.vocab_size,
        max_length=sizes.context,
        d_model=sizes.d_model,
        num_layers=sizes.num_layers,
        num_heads=sizes.num_heads,
        feed_forward_width=sizes.d_model * 8 // 3 // 8 * 8,
        positions="rotary",
        norm="rms",
        activation="silu",
        gated=True,
        bias=False,
        dropout=dropout,
    )


def loss_of(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    """Return the summed loss of a batch's tokens. Tokens attend across the documents of a block."""
    logits = model(batch["ids"], None)
    return F.cross_entropy(
        logits.flatten(0, 1).float(), batch["labels"].flatten(), ignore_index=IGNORED, reduction="sum"
    )


def default_optimizer(mixed_precision: str | None) -> str:
    """Choose Muon with AdamW, or AdamW alone where the engine can only handle one optimizer."""
    state = AcceleratorState()
    is_fp16 = (mixed_precision or state.mixed_precision) == "fp16"
    if not is_fp16 and state.distributed_type != DistributedType.FSDP:
        return "muon"
    if state.is_main_process:
        reason = "fp16" if is_fp16 else "FSDP"
        print(f"With {reason} only one optimizer is possible: AdamW without Muon.", file=sys.stderr)
    return "adamw"


def optimizers_for(options: argparse.Namespace) -> Any:
    """Return what makes Muon for the layers' matrices and AdamW for the rest; None for AdamW alone."""

    def make(model: nn.Module) -> list[torch.optim.Optimizer]:
        named = dict(model.named_parameters())
        matrices = {name: p for name, p in named.items() if p.ndim == 2 and "stack." in name}
        groups = [
            {"params": [p for n, p in named.items() if n not in matrices and p.ndim == 2]},
            {"params": [p for n, p in named.items() if p.ndim < 2], "weight_decay": 0.0},
        ]
        rest = torch.optim.AdamW(
            groups, options.learning_rate, (0.9, 0.95), weight_decay=options.weight_decay
        )
        # This scale makes updates of Muon about as large as those of AdamW: Liu et al. (2025), section 2.2,
        # https://arxiv.org/abs/2502.16982.
        muon = torch.optim.Muon(
            matrices.values(),
            options.muon_learning_rate,
            weight_decay=options.weight_decay,
            adjust_lr_fn="match_rms_adamw",
        )
        return [muon, rest]

    return make if options.optimizer == "muon" else None


def trained(
    options: argparse.Namespace,
    sizes: Sizes,
    encoded: dict[str, list[np.ndarray]],
    texts: dict[str, list[str]],
) -> tuple[LanguageModel, History]:
    """Train the model; under a launcher, in all processes."""
    torch.manual_seed(options.seed)
    model = LanguageModel(config_of(sizes, options.dropout))
    blocks_per_process = rows_per_process(sizes.blocks_per_batch, "--blocks-per-batch")
    blocks = PackedDocuments(Shuffled(encoded["train"], 0, options.seed), sizes.context, 0)
    num_tokens = sum(len(ids) + 2 for ids in encoded["train"])
    steps_per_epoch = num_tokens // (sizes.context * sizes.blocks_per_batch)
    settings = Settings(
        learning_rate=options.learning_rate,
        max_steps=max(1, round(options.epochs * steps_per_epoch)),
        warmup=0.02,
        schedule="cosine",
        min_learning_rate=options.learning_rate / 20,
        weight_decay=options.weight_decay,
        betas=(0.9, 0.95),
        mixed_precision=options.precision,
        seed=options.seed,
        evaluate_every=max(1, steps_per_epoch),
        checkpoint_every=max(1, steps_per_epoch // 4),
    )
    history = train(
        torch.compile(model) if options.compile else model,
        DataLoader(blocks, batch_size=blocks_per_process, drop_last=True),
        loss_of,
        settings,
        evaluate=lambda model: {
            "bits_per_byte": measured(model, encoded["validation"], texts["validation"], sizes.context)
        },
        make_optimizers=optimizers_for(options),
        checkpoint_folder=options.output.with_name(f"{options.output.name}-checkpoints"),
    )
    return model, history


def measured(model: nn.Module, encoded: Sequence[np.ndarray], texts: Sequence[str], context: int) -> float:
    """Return the bits per byte of documents, read in windows that overlap by half."""
    device = next(model.parameters()).device

    def logits_of(ids: Tensor) -> Tensor:
        found = model(ids.to(device), None) if isinstance(model, LanguageModel) else model(ids.to(device))
        return found if isinstance(found, Tensor) else found.logits

    scores = document_log_probabilities(logits_of, encoded, end_id=0, length=context, stride=context // 2)
    return bits_per_byte(scores, texts)


# Results -------------------------------------------------------------------------------------------------


def write(
    options: argparse.Namespace,
    sizes: Sizes,
    model: LanguageModel,
    tokenizer: Tokenizer,
    encoded: dict[str, list[np.ndarray]],
    texts: dict[str, list[str]],
    history: History,
    seconds: float,
) -> None:
    """Save in 16 bits, load and evaluate the saved model, and write the card; then move the folder."""
    with atomic_write(options.output) as result:
        still = LanguageModel(replace(model.config, dropout=0.0))  # Llama has no dropout.
        still.load_state_dict(model.state_dict())
        export(still.to(torch.bfloat16), result, bos_token_id=0, eos_token_id=0, pad_token_id=0)
        wrapped = PreTrainedTokenizerFast(
            tokenizer_object=tokenizer,
            bos_token=END,
            eos_token=END,
            pad_token=END,
            model_max_length=sizes.context,
        )
        wrapped.save_pretrained(result)
        shipped = AutoModelForCausalLM.from_pretrained(result, dtype=torch.float32).eval()
        counted = NGramModel(encoded["train"], NGRAM_ORDER, vocab_size=sizes.vocab_size, end_id=0)
        figures = {}
        for split in docstrings.SPLITS[1:]:
            scores = [counted.log_probabilities(ids) for ids in encoded[split]]
            figures[split] = {
                "this model": measured(shipped, encoded[split], texts[split], sizes.context),
                f"n-grams of order {NGRAM_ORDER}": bits_per_byte(scores, texts[split]),
            }
        content = card(options, sizes, model, encoded, texts, history, figures, seconds)
        (result / "README.md").write_text(content, encoding="utf-8")
        log = {
            **log_of(options, history, figures),
            "parameters": sum(p.numel() for p in model.parameters()),
            "parameters_of_layers": sum(p.numel() for p in model.decoder.stack.parameters()),
        }
        (result / "run.json").write_text(json.dumps(log), encoding="utf-8")
    print(content)


def card(
    options: argparse.Namespace,
    sizes: Sizes,
    model: LanguageModel,
    encoded: dict[str, list[np.ndarray]],
    texts: dict[str, list[str]],
    history: History,
    figures: dict[str, dict[str, float]],
    seconds: float,
) -> str:
    """Write the model card; all numbers come from this run."""
    seen = history.steps[-1]["items"]
    once = sum(map(len, encoded["train"]))
    rates = f"AdamW, learning rate {options.learning_rate}"
    if options.optimizer == "muon":
        rates += f", but Muon, {options.muon_learning_rate}, for the matrices of the layers"
    facts = {
        "docstrings of": harvested(sizes.packages),
        "kinds of text": ", ".join(options.kinds),
        "training text": f"{len(texts['train']):,} modules, {sum(map(len, texts['train'])):,} characters, "
        f"{once:,} tokens",
        "parameters": f"{sum(p.numel() for p in model.parameters()):,}",
        "tokens seen": f"{seen:,}, {seen / once:.1f} passes, in {len(history.steps):,} steps of "
        f"{sizes.blocks_per_batch} blocks",
        "time": time_taken(seconds),
        "settings": f"{rates}, dropout {options.dropout}, weight decay {options.weight_decay}, "
        f"seed {options.seed}",
    }
    rows = "\n".join(
        f"| {name} | {figures['validation'][name]:.3f} | {figures['test'][name]:.3f} |"
        for name in figures["test"]
    )
    return f"""# Language model: docstrings of scientific Python

A decoder of Llama's kind: {sizes.num_layers} layers, {sizes.d_model} wide, {sizes.num_heads} attention
heads, rotary positions, RMSNorm, SwiGLU, a context of {sizes.context} tokens, and a tokenizer of byte-level
byte-pair encoding with {sizes.vocab_size:,} pieces. Chapter 12 takes it apart. Made by
`recipes/language_model.py`, with {versions()}.

{listed(facts, smoke=options.smoke)}

## Bits per byte

On modules that were held out, prose only; what shares a run of 13 words with training text is left out. Each
token is predicted from at least half a context before it, where there is so much.

| model | validation | test |
|---|---|---|
{rows}

## What it cannot do

It has read a few megabytes of English about software, and nothing else. It knows phrases, not facts: what
it writes looks like documentation and is mostly wrong. It follows no instructions, answers no questions, and
does not translate. Some training sentences it can say by heart. The texts are under the licenses of the
packages that they come from; the weights are under Apache-2.0, like the code of this book.
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the recipe."""
    parser = parser_for(__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=float, default=8)
    parser.add_argument("--kinds", nargs="+", default=list(docstrings.KINDS), choices=docstrings.KINDS)
    parser.add_argument("--layers", type=int, help="of the model")
    parser.add_argument("--width", type=int, help="numbers per token between the layers; a multiple of 32")
    parser.add_argument("--blocks-per-batch", type=int, help="of 256 tokens each, in a step of all processes")
    parser.add_argument(
        "--optimizer",
        choices=("muon", "adamw"),
        help="default: muon; adamw in fp16 and under FSDP, where only one optimizer is possible",
    )
    parser.add_argument("--learning-rate", type=float, default=2e-3)
    parser.add_argument("--muon-learning-rate", type=float, default=4e-3)
    parser.add_argument("--weight-decay", type=float, default=0.1)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--precision", choices=("no", "bf16", "fp16"), help="default: the device's best")
    parser.add_argument(
        "--compile", action="store_true", help="faster on a GPU; needs a C++ compiler on a CPU"
    )
    options = options_from(parser, arguments)
    options.precision = options.precision or precision(PartialState().device)
    options.optimizer = options.optimizer or default_optimizer(options.precision)
    sizes = SMOKE if options.smoke else Sizes()
    heads = None if options.width is None else options.width // HEAD_WIDTH
    changes = {"num_layers": options.layers, "d_model": options.width, "num_heads": heads}
    changes["blocks_per_batch"] = options.blocks_per_batch
    sizes = replace(sizes, **{name: value for name, value in changes.items() if value is not None})
    with PartialState().main_process_first():  # It fills the cache for the other processes.
        texts = documents(sizes, options.kinds)
    tokenizer = trained_tokenizer(texts["train"], sizes.vocab_size)
    encoded = {
        split: [np.array(one.ids, dtype=np.int64) for one in tokenizer.encode_batch(of_split)]
        for split, of_split in texts.items()
    }
    begin = time.monotonic()
    model, history = trained(options, sizes, encoded, texts)
    seconds = time.monotonic() - begin
    full = gathered(model, lambda: LanguageModel(model.config))
    if full is not None:
        write(options, sizes, full, tokenizer, encoded, texts, history, seconds)
    PartialState().wait_for_everyone()


if __name__ == "__main__":
    main()
