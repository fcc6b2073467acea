"""What pretraining is worth for few labels: the measurements of chapter 01 on ULMFiT's three steps.

    python recipes/transfer.py --output build/transfer

Howard and Ruder (2018), https://arxiv.org/abs/1801.06146, pretrain a language model on general text, adapt it
to the text of a task, and fine-tune it with the labels. Here the book's encoder takes these steps, toward the
six classes of the emotions. A head on the mean of the encoder's states is trained together with all weights
of the encoder, from four starts that differ in the encoder's weights alone:

- "random": random weights;
- "pretrained": the book's encoder;
- "documentation": the encoder, adapted to documentation (`recipes/masked_language_model.py`);
- "messages": that one, adapted to the messages of the training split by masked-language modeling.

Whatever the start, the drawn labels, the weights of the new head, the number of steps and the size of a batch
are the same. The learning rate is one of three: for each start the one with the best mean of accuracy and
macro F1 on the validation split, with 200 labels and seed 0. With most labels each start is also trained for
twice the steps, to see on the validation split whether the number of steps is what it lacks. The labels that
are wrong on purpose (`chapters_src/data/emotions.md`) stay wrong in the training and validation splits; the
test split has none.

The output holds the encoder adapted to the messages and one file for each run; finished runs are not
repeated, so an interrupted recipe goes on where it was. `--starts` makes only the runs of some starts, so
that several processes can share the work. Once all runs are there, the record is written. Its figures are

- "runs": for each start, number of labels and seed the learning rate, and accuracy and macro F1 on the test
  split;
- "baselines": the same for the majority class, for logistic regression on weighted word counts, and for
  logistic regression on the mean states of the frozen encoder;
- "chosen": for each start the validation scores of all learning rates (for the baselines with logistic
  regression, of its strengths C), and the one that was chosen;
- "twice_the_steps": validation scores of each start with most labels and seed 0, with as many steps as in its
  other runs and with twice as many;
- "adaptation": loss and accuracy on hidden tokens of the validation messages before, during and after the
  adaptation to the messages;
- "settings", and "seconds" of processor time.

`--smoke` runs everything on a small scale, in seconds; its numbers mean nothing, and its record stays in the
output.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")  # The texts are encoded before the loader exists.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import torch
from accelerate import PartialState
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader
from transformers import AutoConfig, AutoModel, AutoTokenizer
from transformers.utils import logging

from chapters_src import records, resources
from chapters_src.data import emotions
from chapters_src.evaluation import classification_scores
from chapters_src.files import atomic_write, write_text
from chapters_src.pretrained.mean_pool_classifier import MeanPoolClassifier, MeanPoolConfig
from chapters_src.training import Settings, TokenBudgetSampler, pad, train
from recipes import masked_language_model
from recipes.machine import precision
from recipes.masked_language_model import AtHidden, Texts, guesses_of, hide, measured
from recipes.output import write_record

STARTS = ("random", "pretrained", "documentation", "messages")
RATES = (1e-4, 3e-4, 5e-4)  # For every start.
STRENGTHS = (1.0, 10.0, 100.0)  # C of the logistic regressions.
SELECTING = 0  # The seed with which learning rates are chosen.
SCORES = ("accuracy", "macro_f1")


@dataclass(frozen=True)
class Sizes:
    """What differs between the recorded run and a smoke run."""

    steps: Mapping[int, int] = field(default_factory=lambda: {50: 60, 200: 120, 1440: 200})  # For n labels.
    selecting: int = 200  # The number of labels with which learning rates are chosen.
    seeds: int = 4
    tokens_per_batch: int = 384  # About 16 messages.
    adaptation_epochs: int = 8
    adaptation_rate: float = 1e-3
    adaptation_tokens: int = 512  # In a batch.
    adaptation_rank: int = 4  # Of the updates, as in the adaptation to documentation.
    most_messages: int | None = None  # Of each split; None: all.


SMOKE = Sizes(steps={24: 2}, selecting=24, seeds=2, adaptation_epochs=1, most_messages=48)


# Data -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Messages:
    """The messages of one split."""

    texts: list[str]
    rows: list[list[int]]  # Ids of the encoder's tokenizer, from [CLS] to [SEP].
    labels: np.ndarray  # As they are in the split, (N,).


def load(most: int | None) -> dict[str, Messages]:
    """Load the messages of each split.

    Raises:
        ValueError: a message is in two splits.
    """
    tokenizer = AutoTokenizer.from_pretrained(resources.checkpoint("encoder"))
    found = {}
    for split, messages in emotions.load().items():
        texts, labels = list(messages["text"])[:most], np.array(messages["label"][:most])
        found[split] = Messages(texts, tokenizer(texts).input_ids, labels)
    everything = [text for messages in found.values() for text in messages.texts]
    if len(set(everything)) < len(everything):
        raise ValueError("a message occurs twice, so training texts may be among those that are scored")
    return found


def drawn(labels: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Draw rows in which every class has its share; a smaller draw with the same seed is part of a larger.

    The rows of each class, in random order, are spread evenly over the interval from 0 to 1, and the first
    rows of this interval are taken.

    Args:
        labels: of all rows, (N,).
        count: how many rows to draw.
        seed: of the random order.

    Returns:
        The rows, (count,).

    Raises:
        ValueError: a class has no row in the draw.
    """
    order = np.random.default_rng(seed).permutation(len(labels))
    places = np.empty(len(labels))
    for label in np.unique(labels):
        rows = order[labels[order] == label]
        places[rows] = (np.arange(len(rows)) + 0.5) / len(rows)
    chosen = order[np.argsort(places[order], kind="stable")][:count]
    missing = set(labels.tolist()) - set(labels[chosen].tolist())
    if missing:
        raise ValueError(f"{count} labels are too few: classes {sorted(missing)} have none of them")
    return chosen


# Starts ---------------------------------------------------------------------------------------------------


def body_of(start: str, output: Path) -> nn.Module | None:
    """Return the encoder of a start; None for random weights."""
    folders = {
        "pretrained": lambda: resources.checkpoint("encoder"),
        "documentation": lambda: resources.checkpoint("masked-language-model"),
        "messages": lambda: str(output / "messages"),
    }
    return None if start == "random" else AutoModel.from_pretrained(folders[start](), add_pooling_layer=False)


def adapt(data: Mapping[str, Messages], sizes: Sizes, output: Path) -> None:
    """Adapt the encoder of "documentation" to the training messages, and save it with its head as "messages".

    As for the documentation, the updates of its matrices have a low rank; they are merged into it.
    """
    folder = resources.checkpoint("masked-language-model")
    texts = Texts(AutoTokenizer.from_pretrained(folder))
    begin = time.process_time()
    torch.manual_seed(SELECTING)
    model = masked_language_model.with_head(folder, sizes.adaptation_rank)
    rows = data["train"].rows
    batches = texts.batches(rows, sizes.adaptation_tokens, share=0.2, kept=0.2)
    held_out = hide(data["validation"].rows, texts.mask)

    def score(model: nn.Module) -> dict[str, float]:
        return measured(guesses_of(model, texts.padding), held_out)

    before = score(AtHidden(model).eval())
    history = train(
        AtHidden(model),
        batches,
        masked_language_model.loss_of,
        Settings(
            learning_rate=sizes.adaptation_rate,
            num_epochs=sizes.adaptation_epochs,
            warmup=0.05,
            schedule="cosine",
            mixed_precision=precision(PartialState().device),
            seed=SELECTING,
            evaluate_every=len(batches),
        ),
        evaluate=score,
    )
    scores = {
        "start": "messages",
        "before": before,
        "after_each_epoch": history.evaluations,
        "seconds": time.process_time() - begin,
    }
    merged = model.cpu().merge_and_unload()
    with atomic_write(output / "messages") as place:
        merged.save_pretrained(place)
        (place / "scores.json").write_text(json.dumps(scores), encoding="utf-8")


# Runs -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """One fine-tuning."""

    start: str
    labels: int
    seed: int
    learning_rate: float
    steps: int

    def file(self, output: Path) -> Path:
        """Return the file that holds its scores."""
        return output / "runs" / f"{','.join(map(str, asdict(self).values()))}.json"


def collate(items: Sequence[tuple[list[int], int]]) -> dict[str, Tensor]:
    """Make one batch of messages with their labels."""
    ids, attention_mask = pad([row for row, _ in items], padding_id=0)
    mask = torch.ones_like(ids) if attention_mask is None else attention_mask
    return {"ids": ids, "attention_mask": mask, "labels": torch.tensor([label for _, label in items])}


def loss_of(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    """Return the summed loss of a batch's messages."""
    logits = model(batch["ids"], batch["attention_mask"]).logits
    return F.cross_entropy(logits.float(), batch["labels"], reduction="sum")


def classifier(body: nn.Module | None, seed: int) -> MeanPoolClassifier:
    """Put a new head on an encoder, or on random weights; the head depends only on the seed."""
    torch.manual_seed(seed)
    config = AutoConfig.from_pretrained(resources.checkpoint("encoder"))
    model = MeanPoolClassifier(MeanPoolConfig(body=config.to_dict(), num_labels=len(emotions.LABELS)))
    model.body.pooler = None  # It would not be used.
    if body is not None:
        model.body.load_state_dict(body.state_dict())
    return model


@torch.inference_mode()
def in_batches(of_batch: Callable[..., Tensor], rows: Sequence[list[int]]) -> np.ndarray:
    """Apply a function to ids and mask of batches of similar length; return its values in the rows' order."""
    order = np.argsort([len(row) for row in rows], kind="stable")
    found = []
    for first in range(0, len(order), 32):
        batch = collate([(rows[i], 0) for i in order[first : first + 32]])
        found.append(of_batch(batch["ids"], batch["attention_mask"]))
    return torch.cat(found).cpu().numpy()[np.argsort(order)]


def predicted(model: nn.Module, rows: Sequence[list[int]]) -> np.ndarray:
    """Predict the class of each message."""
    device = next(model.parameters()).device
    return in_batches(lambda *inputs: model(*(x.to(device) for x in inputs)).logits.argmax(dim=1), rows)


def scores_of(labels: np.ndarray, predictions: np.ndarray) -> dict[str, float]:
    """Return accuracy and macro F1."""
    found = classification_scores(labels, predictions)
    return {name: round(found[name], 4) for name in SCORES}


def fine_tune(run: Run, data: Mapping[str, Messages], sizes: Sizes, output: Path) -> dict[str, Any]:
    """Train and score a classifier, or read what a finished run has left."""
    file = run.file(output)
    if file.is_file():
        return json.loads(file.read_text(encoding="utf-8"))
    begin = time.process_time()
    model = classifier(body_of(run.start, output), run.seed)
    rows, labels = data["train"].rows, data["train"].labels
    items = [(rows[i], int(labels[i])) for i in drawn(labels, run.labels, run.seed)]
    sampler = TokenBudgetSampler([len(row) for row, _ in items], sizes.tokens_per_batch)
    history = train(
        model,
        DataLoader(items, batch_sampler=sampler, collate_fn=collate),
        loss_of,
        Settings(
            learning_rate=run.learning_rate,
            max_steps=run.steps,
            warmup=0.1,
            schedule="linear",
            mixed_precision=precision(PartialState().device),
            seed=run.seed,
        ),
    )
    found: dict[str, Any] = asdict(run) | {
        "loss": float(np.mean([step["loss"] for step in history.steps[-10:]]))
    }
    for split in ("validation", "test") if run.seed == SELECTING else ("test",):
        found[split] = scores_of(data[split].labels, predicted(model, data[split].rows))
    found["seconds"] = time.process_time() - begin
    write_text(file, json.dumps(found))
    print(json.dumps(found), flush=True)
    return found


def best(candidates: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Choose the candidate with the best mean of both scores on validation, the first of equals."""
    return max(candidates, key=lambda one: sum(one["validation"][name] for name in SCORES))


def of_start(
    start: str, data: Mapping[str, Messages], sizes: Sizes, output: Path
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Make all runs of a start, those that choose the learning rate first.

    Yields:
        The list of the record that it belongs to, and the entry.
    """
    if start == "messages" and not (output / start).is_dir():
        adapt(data, sizes, output)
    tried = [
        fine_tune(
            Run(start, sizes.selecting, SELECTING, rate, sizes.steps[sizes.selecting]), data, sizes, output
        )
        for rate in RATES
    ]
    chosen = best(tried)["learning_rate"]
    yield (
        "chosen",
        {
            "start": start,
            "labels": sizes.selecting,
            "learning_rate": chosen,
            "validation": {str(one["learning_rate"]): one["validation"] for one in tried},
        },
    )
    for labels, steps in sizes.steps.items():
        for seed in range(sizes.seeds):
            found = fine_tune(Run(start, labels, seed, chosen, steps), data, sizes, output)
            named = {name: found[name] for name in ("start", "labels", "seed", "steps", "learning_rate")}
            yield "runs", named | found["test"]
    for steps in (sizes.steps[max(sizes.steps)] * factor for factor in (1, 2)):
        found = fine_tune(Run(start, max(sizes.steps), SELECTING, chosen, steps), data, sizes, output)
        named = {name: found[name] for name in ("start", "labels", "steps", "learning_rate")}
        yield "twice_the_steps", named | found["validation"]


# Baselines and record -------------------------------------------------------------------------------------


def baselines(data: Mapping[str, Messages], sizes: Sizes) -> Iterator[tuple[str, dict[str, Any]]]:
    """Score the baselines on the same labels; strengths are chosen as the learning rates are.

    Yields:
        The list of the record that it belongs to, and the entry.
    """
    encoder = AutoModel.from_pretrained(resources.checkpoint("encoder"), add_pooling_layer=False).eval()

    def mean_states(ids: Tensor, attention_mask: Tensor) -> Tensor:
        mask = attention_mask[..., None]
        return (encoder(ids, attention_mask).last_hidden_state * mask).sum(dim=1) / mask.sum(dim=1)

    texts = {split: np.array(messages.texts, dtype=object) for split, messages in data.items()}
    states = {split: in_batches(mean_states, messages.rows) for split, messages in data.items()}

    def words(c: float) -> Any:
        return make_pipeline(TfidfVectorizer(), LogisticRegression(C=c, max_iter=1000))

    kinds: dict[str, tuple[Callable[[float], Any], Mapping[str, np.ndarray], Sequence[float]]] = {
        "majority class": (lambda _: DummyClassifier(), texts, STRENGTHS[:1]),
        "weighted word counts": (words, texts, STRENGTHS),
        "frozen encoder": (lambda c: LogisticRegression(C=c, max_iter=1000), states, STRENGTHS),
    }
    for name, (make, inputs, strengths) in kinds.items():

        def scored(c: float, count: int, seed: int, split: str) -> dict[str, float]:
            rows = drawn(data["train"].labels, count, seed)
            model = make(c).fit(inputs["train"][rows], data["train"].labels[rows])  # noqa: B023
            return scores_of(data[split].labels, model.predict(inputs[split]))  # noqa: B023

        tried = [
            {"C": c, "validation": scored(c, sizes.selecting, SELECTING, "validation")} for c in strengths
        ]
        chosen = best(tried)["C"]
        if len(strengths) > 1:
            yield (
                "chosen",
                {
                    "baseline": name,
                    "labels": sizes.selecting,
                    "C": chosen,
                    "validation": {str(one["C"]): one["validation"] for one in tried},
                },
            )
        for count in sizes.steps:
            for seed in range(sizes.seeds):
                scores = scored(chosen, count, seed, "test")
                yield "baselines", {"name": name, "labels": count, "seed": seed} | scores


def collected(data: Mapping[str, Messages], sizes: Sizes, output: Path) -> dict[str, Any]:
    """Collect the figures of finished runs, and those of the baselines."""
    figures: dict[str, Any] = {
        name: [] for name in ("runs", "baselines", "chosen", "twice_the_steps", "adaptation")
    }
    for start in STARTS:
        for name, entry in of_start(start, data, sizes, output):
            figures[name].append(entry)
    for name, entry in baselines(data, sizes):
        figures[name].append(entry)
    adapted = output / "messages" / "scores.json"
    figures["adaptation"].append(json.loads(adapted.read_text(encoding="utf-8")))
    times = [json.loads(file.read_text("utf-8"))["seconds"] for file in (output / "runs").glob("*.json")]
    figures["seconds"] = round(sum(times) + sum(one["seconds"] for one in figures["adaptation"]))
    wrong = emotions.planted_errors()
    figures["settings"] = {
        "steps": {str(labels): steps for labels, steps in sizes.steps.items()},
        "tokens_per_batch": sizes.tokens_per_batch,
        "precision": precision(PartialState().device),
        "adaptation": {
            name.removeprefix("adaptation_"): value
            for name, value in asdict(sizes).items()
            if name.startswith("adaptation_")
        },
        "messages": {split: len(messages.texts) for split, messages in data.items()},
        "wrong_on_purpose": {split: int((wrong["split"] == split).sum()) for split in data},
    }
    return figures


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the recipe."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True, help="folder for encoders and runs")
    parser.add_argument("--starts", nargs="+", choices=STARTS, default=STARTS, help="make only their runs")
    parser.add_argument("--smoke", action="store_true", help="run everything on a small scale, in seconds")
    options = parser.parse_args(arguments)
    logging.set_verbosity_error()  # It would warn that the head is new.
    sizes = SMOKE if options.smoke else Sizes()
    data = load(sizes.most_messages)
    options.output.mkdir(parents=True, exist_ok=True)
    for start in options.starts:
        for _ in of_start(start, data, sizes, options.output):
            pass
    if set(options.starts) < set(STARTS):
        return
    write_record(
        (options.output if options.smoke else records.FOLDER) / "transfer.json",
        "Accuracy and macro F1, on the test split of the emotions, of a classifier with six classes that is "
        "fine-tuned from several starts with 50, 200 and 1,440 labels, with four seeds.",
        "recipes/transfer.py",
        collected(data, sizes, options.output),
    )


if __name__ == "__main__":
    main()
