"""The masked-language model of chapter 12: a head for the embedded encoder, and low-rank updates of it.

    python recipes/masked_language_model.py --output build/masked-language-model
    accelerate launch recipes/masked_language_model.py --output build/masked-language-model
    torchrun --nproc-per-node 2 recipes/masked_language_model.py --output build/masked-language-model

The second line is for GPUs, the third for processes on a CPU, which also needs ACCELERATE_USE_CPU=true. The
batch of a step is the same on any number of processes.

The encoder was tuned to compare sentences and has lost its masked-language-model head. The recipe extracts
paragraphs from the installed packages (`chapters_src/data/docstrings.md`), masks some of their tokens, and
trains a new head to predict them, with PEFT. Then it measures how many masked tokens of held-out modules are
predicted correctly, compared with three baselines. An interrupted run resumes from its last checkpoint,
beside the output. It writes a PEFT adapter, in 16 bits, with a card; the folder appears complete or not at
all. `--smoke` runs everything on a small scale, in seconds; its numbers mean nothing.
"""

import argparse
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")  # The texts are encoded before the loader exists.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import torch
from accelerate import PartialState
from peft import LoraConfig, PeftModel, get_peft_model
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader
from transformers import AutoConfig, AutoModelForMaskedLM, AutoTokenizer, PreTrainedTokenizerBase
from transformers.utils import logging

from chapters_src import resources
from chapters_src.data import docstrings
from chapters_src.files import atomic_write
from chapters_src.ngrams import NGramModel
from chapters_src.training import (
    IGNORED,
    History,
    Settings,
    TokenBudgetSampler,
    batches_per_step,
    pad,
    train,
)
from recipes.corpus import paragraphs
from recipes.machine import precision, tokens_per_process, versions
from recipes.output import gathered, harvested, listed, log_of, options_from, parser_for, time_taken

ENCODER = "sentence-transformers/all-MiniLM-L6-v2"  # On the Hub: the base model of the adapter.
MAX_LENGTH = 128  # Tokens with [CLS] and [SEP]; longer texts are truncated.
HIDDEN = 0.15  # Share of the tokens hidden in evaluations; each becomes [MASK].
PART = 5  # During training the model is evaluated on every fifth validation paragraph.
SAMPLE = 16  # A test evaluates the model again on about one in this many test paragraphs.


@dataclass(frozen=True)
class Sizes:
    """What differs between the shipped run and a smoke run."""

    packages: tuple[str, ...] = docstrings.PACKAGES
    tokens_per_batch: int = 2048  # Of one step, on all processes together.
    max_texts: int | None = None  # Of each split; None: all.


SMOKE = Sizes(("datasets",), 512, 48)


# Data -----------------------------------------------------------------------------------------------------


class Texts:
    """Texts as ids of the encoder's tokenizer, with some tokens hidden."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self.tokenizer = tokenizer
        self.mask, self.padding = tokenizer.mask_token_id, tokenizer.pad_token_id
        self.special = torch.tensor(sorted(tokenizer.all_special_ids))

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text, from [CLS] to [SEP]."""
        return self.tokenizer(texts, truncation=True, max_length=MAX_LENGTH).input_ids

    def batch(self, rows: Sequence[Sequence[int]], share: float, kept: float) -> dict[str, Tensor | None]:
        """Make a batch in which a share of the tokens is hidden, different ones in each epoch.

        Hidden tokens become [MASK], except for a share of `kept`: half of these stay unchanged and half
        become a random token. Devlin et al. (2019), section 3.1, https://arxiv.org/abs/1810.04805.
        """
        ids, attention_mask = pad(rows, padding_id=self.padding)
        hidden = ~torch.isin(ids, self.special) & (torch.rand(ids.shape) < share)
        lot = torch.rand(ids.shape)
        inputs = ids.masked_fill(hidden & (lot >= kept), self.mask)
        inputs = torch.where(hidden & (lot < kept / 2), torch.randint(len(self.tokenizer), ids.shape), inputs)
        labels = ids.masked_fill(~hidden, IGNORED)
        return {"ids": inputs, "attention_mask": attention_mask, "labels": labels}

    def batches(self, rows: Sequence[Sequence[int]], tokens: int, share: float, kept: float) -> DataLoader:
        """Return batches of rows of similar length, within a budget of tokens."""
        sampler = TokenBudgetSampler(list(map(len, rows)), tokens)
        return DataLoader(
            rows, batch_sampler=sampler, collate_fn=lambda items: self.batch(items, share, kept)
        )


class Hidden(NamedTuple):
    """A held-out text with hidden tokens, which its ids determine, so they are always the same."""

    ids: list[int]  # With [MASK].
    places: list[int]
    tokens: list[int]  # The original ones.


def hide(rows: Sequence[Sequence[int]], mask_id: int) -> list[Hidden]:
    """Hide random tokens of each row; rows without a hidden token are left out."""
    found = []
    for row in rows:
        generator = np.random.default_rng(_digest(row))
        places = [i for i in range(1, len(row) - 1) if generator.random() < HIDDEN]
        ids = [mask_id if i in places else id for i, id in enumerate(row)]
        if places:
            found.append(Hidden(ids, places, [row[i] for i in places]))
    return found


def sample(rows: Sequence[Sequence[int]]) -> list[Sequence[int]]:
    """Choose a few rows for a test; the choice does not depend on the other rows."""
    return [row for row in rows if _digest(row) % SAMPLE == 0]


def _digest(row: Sequence[int]) -> int:
    return int(hashlib.sha256(repr(list(row)).encode()).hexdigest()[:15], 16)


# Model and training ---------------------------------------------------------------------------------------


def with_head(folder: str, rank: int) -> PeftModel:
    """Put a new head on the encoder, and low-rank updates beside its matrices.

    Trained are the head's own layers, all biases, and for each matrix of the encoder a product of two thin
    ones (chapter 05). The last matrix of the head is shared with the embedding and stays frozen.
    """
    model = AutoModelForMaskedLM.from_pretrained(
        folder, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, attn_implementation="eager"
    )
    updates = LoraConfig(
        r=rank,
        lora_alpha=2 * rank,
        target_modules=["query", "key", "value", "dense"],
        exclude_modules=r"cls\..*",
        modules_to_save=["transform"],
        bias="all",
    )
    return get_peft_model(model, updates)


class AtHidden(nn.Module):
    """The model with its head applied to hidden tokens only, which nearly halves the computation."""

    def __init__(self, model: PeftModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor, attention_mask: Tensor | None, wanted: Tensor) -> Tensor:
        """Return the logits at the wanted positions, (their number, pieces)."""
        inner = self.model.get_base_model()
        hidden_states = inner.bert(ids, attention_mask=attention_mask).last_hidden_state
        return inner.cls(hidden_states[wanted])


def loss_of(model: nn.Module, batch: dict[str, Tensor | None]) -> Tensor:
    """Return the summed loss of a batch's hidden tokens."""
    wanted = batch["labels"] != IGNORED
    logits = model(batch["ids"], batch["attention_mask"], wanted)
    return F.cross_entropy(logits.float(), batch["labels"][wanted], reduction="sum")


def log_frequencies(rows: Sequence[Sequence[int]], vocab_size: int) -> Tensor:
    """Return the log relative frequency of each token, without [CLS] and [SEP]."""
    counts = torch.bincount(torch.tensor([id for row in rows for id in row[1:-1]]), minlength=vocab_size)
    return (counts + 0.1).log().log_softmax(dim=0)


def trained(
    options: argparse.Namespace, sizes: Sizes, texts: Texts, rows: dict[str, list[list[int]]], folder: str
) -> tuple[PeftModel, History]:
    """Train the head and the updates; under a launcher, in all processes."""
    torch.manual_seed(options.seed)
    model = with_head(folder, options.rank)
    with torch.no_grad():  # So no steps are spent on learning which tokens are rare.
        model.get_base_model().cls.predictions.bias.copy_(
            log_frequencies(rows["train"], len(texts.tokenizer))
        )
    tokens = tokens_per_process(sizes.tokens_per_batch)
    batches = texts.batches(rows["train"], tokens, options.share, options.kept)
    held_out = hide(rows["validation"][::PART], texts.mask)
    steps_per_epoch = len(batches) // batches_per_step()
    settings = Settings(
        learning_rate=options.learning_rate,
        max_steps=max(1, round(options.epochs * steps_per_epoch)),
        warmup=0.05,
        schedule="cosine",
        mixed_precision=precision(PartialState().device),
        seed=options.seed,
        evaluate_every=max(1, steps_per_epoch // 4),
        checkpoint_every=max(1, steps_per_epoch // 32),
    )
    history = train(
        AtHidden(model),
        batches,
        loss_of,
        settings,
        evaluate=lambda model: measured(guesses_of(model, texts.padding), held_out),
        checkpoint_folder=options.output.with_name(f"{options.output.name}-checkpoints"),
    )
    return model, history


# Guesses, and how good they are ---------------------------------------------------------------------------

Guesses = Callable[[Sequence[Hidden]], Tensor]  # Log-probabilities, (hidden tokens of all, pieces).


def guesses_of(model: nn.Module, padding_id: int) -> Guesses:
    """Make a function that guesses with a model whose inputs are those of `AtHidden`."""

    def guesses(texts: Sequence[Hidden]) -> Tensor:
        ids, attention_mask = pad([text.ids for text in texts], padding_id=padding_id)
        wanted = torch.zeros_like(ids, dtype=torch.bool)
        for row, text in enumerate(texts):
            wanted[row, text.places] = True
        device = next(model.parameters()).device
        inputs = (None if part is None else part.to(device) for part in (ids, attention_mask, wanted))
        return model(*inputs).float().log_softmax(dim=-1).cpu()

    return guesses


class WithoutHead(nn.Module):
    """The unchanged encoder, whose output vector is compared with the embedding of each token."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        self.body = AutoModelForMaskedLM.from_pretrained(folder).bert

    def forward(self, ids: Tensor, attention_mask: Tensor | None, wanted: Tensor) -> Tensor:
        """Return the inner products as logits, (number of hidden tokens, pieces)."""
        hidden_states = self.body(ids, attention_mask=attention_mask).last_hidden_state
        return hidden_states[wanted] @ self.body.embeddings.word_embeddings.weight.T


def neighbors(rows: Sequence[Sequence[int]], vocab_size: int) -> Guesses:
    """Guess from the two tokens beside the hidden one: P(token | left) P(token | right) / P(token).

    This is the exact posterior if both neighbors depend only on the token.
    """
    plain = [row[1:-1] for row in rows]
    after = NGramModel(plain, 2, vocab_size=vocab_size, end_id=rows[0][-1])
    before = NGramModel([row[::-1] for row in plain], 2, vocab_size=vocab_size, end_id=rows[0][-1])
    alone = log_frequencies(rows, vocab_size)

    def guesses(texts: Sequence[Hidden]) -> Tensor:
        sides = [
            np.log(after.probabilities(text.ids[1:i])) + np.log(before.probabilities(text.ids[-2:i:-1]))
            for text in texts
            for i in text.places
        ]
        scores = torch.from_numpy(np.stack(sides)).float() - alone
        scores[:, rows[0][-1]] = -torch.inf  # The end is never hidden, and rare in `alone`.
        return scores.log_softmax(dim=-1)

    return guesses


@torch.inference_mode()
def measured(guesses: Guesses, texts: Sequence[Hidden], batch_size: int = 32) -> dict[str, float]:
    """Return the loss in nats per hidden token, and the accuracy of the first and the first five guesses."""
    ordered = sorted(texts, key=lambda text: len(text.ids))
    sums, count = torch.zeros(3, dtype=torch.float64), 0
    for first in range(0, len(ordered), batch_size):
        batch = ordered[first : first + batch_size]
        log_probabilities = guesses(batch)
        tokens = torch.tensor([token for text in batch for token in text.tokens])[:, None]
        hits = log_probabilities.topk(5).indices == tokens
        losses = -log_probabilities.gather(1, tokens)
        sums += torch.tensor([losses.sum(), hits[:, 0].sum(), hits.sum()])
        count += len(tokens)
    return dict(zip(("loss", "top1", "top5"), (sums / count).tolist(), strict=True))


# Results -------------------------------------------------------------------------------------------------


def save(model: PeftModel, encoder: str, result: Path) -> None:
    """Save the trained weights as a PEFT adapter, in 16 bits, with the configuration of the full model."""
    model.peft_config["default"].base_model_name_or_path = ENCODER
    doubled = (
        ".original_module.",
        ".decoder.bias",
    )  # Replaced by the adapter; a second name of another tensor.
    weights = model.state_dict().items()
    model.save_pretrained(
        result,
        state_dict={name: w.half() for name, w in weights if not any(part in name for part in doubled)},
        save_embedding_layers=False,  # They are the encoder's. By default PEFT would query the Hub.
    )
    config = AutoConfig.from_pretrained(encoder)
    config.architectures = [type(model.get_base_model()).__name__]
    config.save_pretrained(result)


def load(result: Path, encoder: str) -> PeftModel:
    """Load the saved model."""
    return PeftModel.from_pretrained(AutoModelForMaskedLM.from_pretrained(encoder), result).eval()


def write(
    options: argparse.Namespace,
    sizes: Sizes,
    model: PeftModel,
    texts: Texts,
    rows: dict[str, list[list[int]]],
    history: History,
    seconds: float,
    folder: str,
) -> None:
    """Save, load and evaluate the saved model, and write the card; then move the folder to its place."""
    with atomic_write(options.output) as result:
        save(model, folder, result)
        guesses = guesses_of(AtHidden(load(result, folder)), texts.padding)
        alone = log_frequencies(rows["train"], len(texts.tokenizer))
        compared = {
            "this model": guesses,
            "the two neighbors of the token": neighbors(rows["train"], len(texts.tokenizer)),
            "the encoder without a head": guesses_of(WithoutHead(folder), texts.padding),
            "the most frequent tokens": lambda some: alone.expand(sum(len(t.tokens) for t in some), -1),
        }
        held_out = hide(rows["test"], texts.mask)
        figures = {name: measured(guess, held_out) for name, guess in compared.items()}
        log = log_of(options, history, figures)
        log["sample"] = measured(guesses, hide(sample(rows["test"]), texts.mask))
        facts = {
            "docstrings of": harvested(sizes.packages),
            "kinds of text": ", ".join(options.kinds),
            "training text": f"{len(rows['train']):,} paragraphs, {sum(map(len, rows['train'])):,} tokens",
            "trained parameters": f"{model.get_nb_trainable_parameters()[0]:,}, rank {options.rank}",
            "measured on": f"{sum(len(text.tokens) for text in held_out):,} hidden tokens of the test split",
            "hidden tokens seen": f"{history.steps[-1]['items']:,} in {len(history.steps):,} steps, "
            f"{options.epochs} passes",
            "time": time_taken(seconds),
            "settings": f"learning rate {options.learning_rate}, {options.share:.0%} of the tokens hidden, "
            f"{options.kept:.0%} of these without [MASK], seed {options.seed}",
        }
        content = card(listed(facts, smoke=options.smoke), table(figures), shown(texts, held_out, guesses))
        (result / "README.md").write_text(content, encoding="utf-8")
        (result / "run.json").write_text(json.dumps(log), encoding="utf-8")
    print(content)


def table(figures: dict[str, dict[str, float]]) -> str:
    """Return the scores as a Markdown table."""
    lines = ["| guess | the first is right | one of five is right | nats |", "|---|---|---|---|"]
    for name, found in figures.items():
        lines.append(f"| {name} | {found['top1']:.1%} | {found['top5']:.1%} | {found['loss']:.3f} |")
    return "\n".join(lines)


def shown(texts: Texts, held_out: Sequence[Hidden], guesses: Guesses) -> str:
    """Return five random hidden tokens, with their context and the best guesses."""
    lines = []
    for i in np.random.default_rng(0).permutation(len(held_out))[:5]:
        text = held_out[i]
        place, token = text.places[0], text.tokens[0]
        around = texts.tokenizer.decode(text.ids[max(1, place - 12) : place + 9])
        best = guesses([text])[0].exp().topk(3)
        found = [
            f"{texts.tokenizer.convert_ids_to_tokens(id)} {probability:.0%}"
            for probability, id in zip(best.values.tolist(), best.indices.tolist(), strict=True)
        ]
        wanted = texts.tokenizer.convert_ids_to_tokens(token)
        lines.append(f"- `{around}`: the first [MASK] is `{wanted}`; guessed: `{'`, `'.join(found)}`")
    return "\n".join(lines)


def card(facts: str, figures: str, examples: str) -> str:
    """Write the model card; all numbers come from this run."""
    return f"""# Masked-language model: a head for the book's encoder

A head that guesses hidden tokens, and low-rank updates of the encoder, all-MiniLM-L6-v2, whose own weights
are not here. Chapter 12 uses it. Made by `recipes/masked_language_model.py`, with {versions()}.
With

    checkpoint = resources.checkpoint("masked-language-model")

the book puts it together with the encoder: `AutoModelForMaskedLM.from_pretrained(checkpoint)` is an ordinary
model of the Transformers library. The folder itself is an adapter of PEFT.

{facts}

## Hidden tokens that are guessed

On modules that were held out, prose only; what shares a run of 13 words with training text is left out. Of
each paragraph {HIDDEN:.0%} of the tokens become [MASK], the same ones for all guesses. The loss is in nats
per hidden token. The neighbors guess with P(token | left) P(token | right) / P(token), from counts of pairs
with Kneser-Ney smoothing; the encoder without a head takes the token whose embedding is most like its output.

{figures}

## Some of them, drawn at random

{examples}

## What it cannot do

It has read a few megabytes of English about software since its encoder was tuned for something else. On news
or fiction it is worse than the numbers above, and than a model that kept its first head. It guesses one piece
at a time: a word of several pieces needs several [MASK], which are guessed as if they had nothing to do with
each other. It does not write text, and the product of its guesses is not the probability of a text, so its
loss cannot be compared with that of a language model that reads from left to right. What it thinks probable
is what its sources repeat; it knows no facts. The texts are under the licenses of the packages that they come
from; the weights are under Apache-2.0, like the code of this book.
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the recipe."""
    parser = parser_for(__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=float, default=2)
    parser.add_argument("--kinds", nargs="+", default=list(docstrings.KINDS), choices=docstrings.KINDS)
    parser.add_argument("--rank", type=int, default=4, help="of the encoder's updates")
    parser.add_argument("--share", type=float, default=0.2, help="of the tokens to hide in training")
    parser.add_argument("--kept", type=float, default=0.2, help="share of these not to become [MASK]")
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    options = options_from(parser, arguments)
    logging.set_verbosity_error()  # It would warn that the head is new.
    sizes = SMOKE if options.smoke else Sizes()
    folder = resources.checkpoint("encoder")
    texts = Texts(AutoTokenizer.from_pretrained(folder))
    with PartialState().main_process_first():  # It fills the cache for the other processes.
        found = paragraphs(sizes.packages, options.kinds)
    rows = {
        split: texts.encode([paragraph.text for paragraph in of_split[: sizes.max_texts]])
        for split, of_split in found.items()
    }
    begin = time.monotonic()
    model, history = trained(options, sizes, texts, rows, folder)
    seconds = time.monotonic() - begin
    full = gathered(model, lambda: with_head(folder, options.rank))
    if full is not None:
        write(options, sizes, full, texts, rows, history, seconds, folder)
    PartialState().wait_for_everyone()


if __name__ == "__main__":
    main()
