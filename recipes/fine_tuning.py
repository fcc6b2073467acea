"""What fine-tuning is worth on the emotions: the recorded runs of chapter 05.

    python recipes/fine_tuning.py --output build/fine_tuning

All runs train on the 1,500 messages of the training split with the `Trainer` and settings of chapter 05:
batches of 32 messages of similar length, AdamW, warm-up over a tenth of the steps, 32-bit floats. They differ
in what is trained:

- "fine-tuned": the book's encoder and a new head;
- "random": the same body, whose weights are drawn at random, and a new head;
- "LoRA": the encoder is frozen; corrections of rank 8 to its queries and values, and a new head.

The learning rate of "fine-tuned" is that of the chapter. For the others it is one of two or three: the one
with the best mean of accuracy and macro F1 on the validation split after three passes, with seed 0. The seeds
0, 1000, 2000 and 3000 are those of the book at BOOK_SEED 0 to 3, so the runs "fine-tuned" are those of the
page. No model is chosen among the passes: what is scored is the last one. Each run is compared with the probe
of chapter 04, on the same test messages (paired bootstrap, 95%).

The labels that are wrong on purpose (`chapters_src/data/emotions.md`) stay wrong in training. The validation
split is scored with its labels as given, and once more with the true labels of its twenty wrong ones.

The output holds one file of scores and one of logits for each run. Finished runs are not repeated, so an
interrupted recipe goes on where it was, and the record is written after each of them. Its figures are

- "baselines": accuracy and macro F1 of the majority class and of the probe, on the test split; for the probe
  also its layer, and the recall of the wrong validation labels among the highest losses;
- "runs": for each run what is trained, seed, passes and learning rate; accuracy and macro F1 on the test
  split, and their gain over the probe with its interval; after the passes (for LoRA and random weights only
  after the last) loss and scores on the validation split, with its labels as given and corrected, and on the
  test split, with the calibration error there; the recall of the wrong labels among the 2, 5, 10 and 20
  percent of messages with the highest losses, in validation and (of "fine-tuned") in training; temperatures
  fitted on validation; for "fine-tuned" the probabilities of the classes for the sentences of a few texts;
- "texts": these sentences, and the probabilities that the probe gives;
- "rates": validation scores of the learning rates that were tried, and the one that was chosen;
- "settings", and "seconds" of processor time.

`--smoke` runs everything on a small scale, in seconds; its numbers mean nothing, and its record stays in the
output.
"""

import argparse
import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import torch
from peft import LoraConfig, get_peft_model
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import (
    AutoConfig,
    AutoModel,
    AutoTokenizer,
    DataCollatorWithPadding,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)
from transformers.trainer_callback import PrinterCallback
from transformers.utils import logging

from chapters_src import evaluation, features, records, resources
from chapters_src.data import emotions
from chapters_src.files import write_text
from recipes.output import write_record

KINDS = ("fine-tuned", "random", "LoRA")
RATES = {"fine-tuned": (2e-4,), "random": (2e-4, 5e-4), "LoRA": (1e-3, 3e-3, 1e-2)}
PASSES = 3  # Of all kinds, with all seeds.
MORE_PASSES = {"LoRA": 9}  # Of further runs, with all seeds.
CONTROLS = {"random": 6}  # Passes of one more run, with the first seed.
PERCENTS = (2, 5, 10, 20)
METRICS = {"accuracy": evaluation.accuracy, "macro_f1": evaluation.macro_f1}
RANK, ALPHA = 8, 16
TEXTS = (  # The sentences of Merete Falk's message (chapter 01), then relatives of a message of the school.
    "Dear maintainers of chartling, since I upgraded to version 3.2 on Monday, every legend in my figures "
    "sits on top of the data.",
    "Not beside it, not below it: on top of it, like a cat on a keyboard.",
    "My name is Merete Falk, I count salmon for Nordvik Seafood in Tromsø, and last Tuesday I showed forty "
    "people a chart of one very large gray rectangle.",
    "Somebody asked whether the rectangle was the salmon.",
    "I have moved the legend to eleven different places.",
    "It comes back.",
    "With version 3.1 everything was fine, and I was happy.",
    "My colleague Idris Boakye says that your new function auto_place ignores the size of the figure.",
    "He is usually right, and smug about it.",
    "Please fix this before Friday, when I have to present again, this time to the Faroese minister of "
    "fisheries.",
    "I love your library.",
    "I hate your legend.",
    "three missed calls from the school and now nobody picks up",
    "three missed calls from the school",
    "now nobody picks up",
    "the school",
    "praise from the school",
    "three missed calls from my sister",
)


@dataclass(frozen=True)
class Sizes:
    """What differs between the recorded run and a smoke run."""

    seeds: tuple[int, ...] = (0, 1000, 2000, 3000)
    batch_size: int = 32
    longest: int = 9  # Passes; no run has more.
    most_messages: int | None = None  # Of each split; None: all.
    redrawn: int = 2000  # Test sets of the bootstrap.


SMOKE = Sizes(seeds=(0, 1000), batch_size=16, longest=1, most_messages=32, redrawn=20)


# Data and baselines ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Data:
    """Messages, labels as given and as they should be, and what the probe makes of them."""

    encoded: Any  # DatasetDict
    tokenizer: Any
    labels: dict[str, np.ndarray]
    correct: dict[str, np.ndarray]
    probe: np.ndarray  # Its predictions on the test split.
    of_texts: list[list[float]]  # Its probabilities for `TEXTS`.
    baselines: dict[str, Any]

    def wrong(self, split: str) -> np.ndarray:
        """Say which messages of a split have a wrong label."""
        return self.labels[split] != self.correct[split]


def load(sizes: Sizes) -> Data:
    """Load the messages, and fit the probe of the chapter: one layer, chosen by accuracy on validation."""
    folder = resources.checkpoint("encoder")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    messages = emotions.load()
    if sizes.most_messages:
        for split in messages:
            messages[split] = messages[split].select(range(sizes.most_messages))
    encoded = messages.map(lambda rows: tokenizer(rows["text"], truncation=True), batched=True)
    labels = {split: np.array(rows[:]["label"]) for split, rows in messages.items()}
    correct = {split: of_split.copy() for split, of_split in labels.items()}
    for _, split, row, label in emotions.planted_errors().itertuples():
        if row < len(correct[split]):
            correct[split][row] = emotions.LABELS.index(label)
    body = AutoModel.from_pretrained(folder)
    vectors = {
        split: features.extract(body, tokenizer, rows[:]["text"]).numpy() for split, rows in messages.items()
    }

    def fitted(layer: int) -> Any:
        head = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=2000))
        return head.fit(vectors["train"][:, layer], labels["train"])

    def accuracy(layer: int) -> float:
        return fitted(layer).score(vectors["validation"][:, layer], labels["validation"])

    layer = max(range(vectors["train"].shape[1]), key=accuracy)
    probe = fitted(layer)
    losses = -np.log(probe.predict_proba(vectors["validation"][:, layer]))
    losses = losses[np.arange(len(losses)), labels["validation"]]
    predictions = {
        "majority class": np.full_like(labels["test"], np.bincount(labels["train"]).argmax()),
        "probe": probe.predict(vectors["test"][:, layer]),
    }
    baselines = {name: scores_of(labels["test"], found) for name, found in predictions.items()}
    baselines["probe"] |= {
        "layer": layer,
        "recall": recalls(losses, labels["validation"] != correct["validation"]),
    }
    of_texts = probe.predict_proba(features.extract(body, tokenizer, TEXTS).numpy()[:, layer])
    return Data(
        encoded.remove_columns("text"),
        tokenizer,
        labels,
        correct,
        predictions["probe"],
        of_texts.astype(float).round(3).tolist(),
        baselines,
    )


def scores_of(labels: np.ndarray, predictions: np.ndarray) -> dict[str, float]:
    """Return accuracy and macro F1."""
    return {name: round(float(metric(labels, predictions)), 4) for name, metric in METRICS.items()}


def recalls(losses: np.ndarray, wrong: np.ndarray) -> dict[str, float]:
    """Return the recall of the wrong labels among the highest losses, in percent of all messages."""
    ks = {percent: max(1, len(wrong) * percent // 100) for percent in PERCENTS}
    return {str(percent): float(evaluation.recall_at_k(losses, wrong, k)) for percent, k in ks.items()}


# Models ---------------------------------------------------------------------------------------------------


class Classifier(nn.Module):
    """The classifier of chapter 05: a body, the mean over the tokens, and a linear head."""

    def __init__(self, body: nn.Module, num_classes: int) -> None:
        super().__init__()
        self.body = body
        self.dropout = nn.Dropout(0.1)
        self.head = nn.Linear(body.config.hidden_size, num_classes)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor | None = None) -> dict:
        """Return the logits, and the mean loss if there are labels."""
        states = self.body(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        logits = self.head(self.dropout(features.mean_pool(states, attention_mask)))
        return {"loss": None if labels is None else F.cross_entropy(logits, labels), "logits": logits}


def new_model(kind: str, seed: int) -> Classifier:
    """Make what a run trains, before training."""
    set_seed(seed)
    folder = resources.checkpoint("encoder")
    if kind == "random":
        body = AutoModel.from_config(AutoConfig.from_pretrained(folder))
    else:
        body = AutoModel.from_pretrained(folder)
    model = Classifier(body, len(emotions.LABELS))
    if kind == "LoRA":
        config = LoraConfig(r=RANK, lora_alpha=ALPHA, lora_dropout=0.0, target_modules=["query", "value"])
        model.body = get_peft_model(body, config)
    return model


@torch.inference_mode()
def logits_of(model: nn.Module, data: Data, split: str) -> Tensor:
    """Return the logits of a split, or of `TEXTS`, in their order."""
    was_training = model.training
    model.eval()
    ids = data.tokenizer(TEXTS).input_ids if split == "texts" else data.encoded[split][:]["input_ids"]
    logits = torch.empty(len(ids), len(emotions.LABELS))
    order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
    for start in range(0, len(ids), 64):
        chosen = order[start : start + 64]
        batch = data.tokenizer.pad({"input_ids": [ids[i] for i in chosen]}, return_tensors="pt")
        logits[chosen] = model(**batch)["logits"].float()
    model.train(was_training)
    return logits


# Runs -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """One training."""

    kind: str
    seed: int
    passes: int
    learning_rate: float

    def file(self, output: Path) -> Path:
        """Return the file that holds its scores."""
        return output / "runs" / f"{','.join(map(str, asdict(self).values()))}.json"


class AfterEachPass(TrainerCallback):
    """Score validation and test splits after each pass."""

    def __init__(self, score: Any) -> None:
        self.score, self.found = score, []

    def on_epoch_end(self, args: Any, state: Any, control: Any, model: Any = None, **rest: Any) -> None:
        """Called by the Trainer."""
        self.found.append(self.score(model))


def after_a_pass(data: Data, model: nn.Module) -> dict[str, Any]:
    """Score validation, as given and corrected, and test."""
    validation, test = (logits_of(model, data, split) for split in ("validation", "test"))
    found: dict[str, Any] = {}
    for name, labels in {"given": data.labels, "corrected": data.correct}.items():
        of_split = labels["validation"]
        found[name] = {
            "loss": round(float(evaluation.cross_entropies(validation, of_split).mean()), 4),
            **scores_of(of_split, validation.argmax(-1).numpy()),
        }
    wrong = data.wrong("validation")
    if wrong.any():
        of_wrong = evaluation.cross_entropies(validation, data.labels["validation"])[wrong]
        found["loss of the wrong labels"] = round(float(of_wrong.mean()), 4)
    found["test"] = {
        "loss": round(float(evaluation.cross_entropies(test, data.labels["test"]).mean()), 4),
        "calibration error": calibration_error(test, data.labels["test"], 1.0),
        **scores_of(data.labels["test"], test.argmax(-1).numpy()),
    }
    return found


def calibration_error(logits: Tensor, labels: np.ndarray, temperature: float) -> float:
    """Return the expected calibration error."""
    probabilities = torch.softmax(logits.double() / temperature, dim=-1).numpy()
    return round(evaluation.expected_calibration_error(probabilities, labels), 4)


def temperatures(data: Data, validation: Tensor, test: Tensor) -> dict[str, dict[str, float]]:
    """Fit a temperature on validation labels as given and corrected, and score both on the test split."""
    found = {}
    for name, labels in {"given": data.labels, "corrected": data.correct}.items():
        fitted = evaluation.fit_temperature(validation, labels["validation"])
        found[name] = {
            "T": round(fitted, 4),
            "test loss": round(
                float(evaluation.cross_entropies(test / fitted, data.labels["test"]).mean()), 4
            ),
            "calibration error": calibration_error(test, data.labels["test"], fitted),
        }
    return found


def trained(run: Run, data: Data, sizes: Sizes, place: str) -> tuple[nn.Module, list[dict[str, Any]]]:
    """Train with the settings of the chapter; return the model, and its scores after the passes."""
    model = new_model(run.kind, run.seed)
    passes = min(run.passes, sizes.longest)
    steps = passes * math.ceil(len(data.labels["train"]) / sizes.batch_size)
    trainer = Trainer(
        model=model,
        args=TrainingArguments(
            output_dir=place,
            num_train_epochs=passes,
            eval_strategy="epoch" if run.kind == "fine-tuned" else "no",  # It draws, as on the page.
            per_device_eval_batch_size=64,
            per_device_train_batch_size=sizes.batch_size,
            learning_rate=run.learning_rate,
            warmup_steps=round(0.1 * steps + 0.5),
            weight_decay=0.01,
            max_grad_norm=1.0,
            train_sampling_strategy="group_by_length",
            use_cpu=True,
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
            dataloader_pin_memory=False,
            seed=run.seed,
        ),
        train_dataset=data.encoded["train"],
        eval_dataset=data.encoded["validation"],
        data_collator=DataCollatorWithPadding(data.tokenizer),
        processing_class=data.tokenizer,
    )
    trainer.remove_callback(PrinterCallback)
    noted = AfterEachPass(partial(after_a_pass, data))
    if run.kind == "fine-tuned":
        trainer.add_callback(noted)
    trainer.train()
    return model, noted.found or [after_a_pass(data, model)]


def fine_tune(run: Run, data: Data, sizes: Sizes, output: Path) -> dict[str, Any]:
    """Train and score a classifier, or read what a finished run has left."""
    file = run.file(output)
    if file.is_file():
        return json.loads(file.read_text(encoding="utf-8"))
    begin = time.process_time()
    with tempfile.TemporaryDirectory() as place:
        model, after_passes = trained(run, data, sizes, place)
    splits = ("validation", "test", *["train"] * (run.kind == "fine-tuned"))
    logits = {split: logits_of(model, data, split) for split in splits}
    predictions = logits["test"].argmax(-1).numpy()
    found: dict[str, Any] = asdict(run) | scores_of(data.labels["test"], predictions)
    found["gain"] = {
        name: [
            round(value, 4)
            for value in evaluation.paired_bootstrap(
                metric,
                data.labels["test"],
                predictions,
                data.probe,
                num_samples=sizes.redrawn,
                seed=run.seed,
            )
        ]
        for name, metric in METRICS.items()
    }
    found["after_passes"] = after_passes
    found["recall"] = {
        split: recalls(evaluation.cross_entropies(logits[split], data.labels[split]), data.wrong(split))
        for split in set(splits) - {"test"}
    }
    if run.kind == "fine-tuned":
        of_texts = torch.softmax(logits_of(model, data, "texts").double(), dim=-1)
        found["of_texts"] = of_texts.numpy().round(3).tolist()
    found["temperatures"] = temperatures(data, logits["validation"], logits["test"])
    found["seconds"] = round(time.process_time() - begin, 1)
    file.parent.mkdir(parents=True, exist_ok=True)
    np.savez(
        file.with_suffix(".npz"),
        **{split: values.numpy() for split, values in logits.items()},
    )
    write_text(file, json.dumps(found))
    print(json.dumps(found), flush=True)
    return found


def validation_score(found: dict[str, Any]) -> float:
    """Return the mean of accuracy and macro F1 on the validation split, after the last pass."""
    return sum(found["after_passes"][-1]["given"][name] for name in METRICS) / len(METRICS)


def entries(data: Data, sizes: Sizes, output: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Make all runs, those that choose a learning rate first.

    Yields:
        The list of the record that it belongs to, and the entry.
    """
    first = sizes.seeds[0]
    rates: dict[str, float] = {}
    for kind in KINDS:
        tried = {rate: fine_tune(Run(kind, first, PASSES, rate), data, sizes, output) for rate in RATES[kind]}
        rates[kind] = max(tried, key=lambda rate: validation_score(tried[rate]))
        if len(tried) > 1:
            yield (
                "rates",
                {
                    "kind": kind,
                    "passes": PASSES,
                    "chosen": rates[kind],
                    "tried": [
                        {"learning_rate": rate, "score": round(validation_score(found), 4)}
                        | found["after_passes"][-1]["given"]
                        for rate, found in tried.items()
                    ],
                },
            )
        for seed in sizes.seeds:
            yield "runs", fine_tune(Run(kind, seed, PASSES, rates[kind]), data, sizes, output)
        if kind in CONTROLS:
            yield "runs", fine_tune(Run(kind, first, CONTROLS[kind], rates[kind]), data, sizes, output)
    for kind, passes in MORE_PASSES.items():
        for seed in sizes.seeds:
            yield "runs", fine_tune(Run(kind, seed, passes, rates[kind]), data, sizes, output)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the recipe."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True, help="folder for the runs")
    parser.add_argument("--smoke", action="store_true", help="run everything on a small scale, in seconds")
    options = parser.parse_args(arguments)
    logging.set_verbosity_error()
    sizes = SMOKE if options.smoke else Sizes()
    options.output.mkdir(parents=True, exist_ok=True)
    data = load(sizes)
    figures: dict[str, Any] = {
        "baselines": data.baselines,
        "texts": {"sentences": list(TEXTS), "probe": data.of_texts},
        "rates": [],
        "runs": [],
        "settings": {
            "batch_size": sizes.batch_size,
            "messages": {split: len(labels) for split, labels in data.labels.items()},
            "wrong_on_purpose": {split: int(data.wrong(split).sum()) for split in data.labels},
            "rank": RANK,
            "alpha": ALPHA,
            "redrawn": sizes.redrawn,
        },
    }
    for name, entry in entries(data, sizes, options.output):
        figures[name].append(entry)
        figures["seconds"] = round(
            sum(json.loads(file.read_text("utf-8"))["seconds"] for file in options.output.glob("runs/*.json"))
        )
        write_record(
            (options.output if options.smoke else records.FOLDER) / "fine_tuning.json",
            "What fine-tuning, the same body from random weights, and LoRA reach on the emotions, with four "
            "seeds, and how they compare with a probe on frozen features.",
            "recipes/fine_tuning.py",
            figures,
        )


if __name__ == "__main__":
    main()
