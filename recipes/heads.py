"""The heads of chapter 01 on the embedded encoder: sentiment, entities, answers.

    python recipes/heads.py sentiment --output build/sentiment-classifier
    python recipes/heads.py entities --output build/entity-tagger
    python recipes/heads.py answers --output build/answer-finder

Each is a small layer on top of the encoder, and low-rank updates of the encoder's matrices, trained with PEFT
on texts that were written for this book: the emotions, the entities, the questions and answers. The updates
start from those of the book's masked-language model (pretrained by others, adapted to the domain, then
fine-tuned for the task), or from zero with `--start encoder`. Answers are trained first on questions made by
rules, from the documentation of parameters and from the sentences of the paragraphs. The scores of three
seeds, with questions about parameters and with `--without parameters`, are in seeds.json beside the weights.

The validation split is scored during training, and the test split once at the end, compared with baselines
that need no model. The recipe writes a PEFT adapter in 16 bits, with a card; the folder appears complete or
not at all. `--smoke` runs everything on a small scale, in seconds; its numbers mean nothing.
"""

import argparse
import json
import os
import re
import sys
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")  # The texts are encoded before the loader exists.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import torch
import transformers
from accelerate import PartialState
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader
from transformers import AutoConfig, AutoModel, AutoTokenizer, pipeline

from chapters_src import resources
from chapters_src.data import docstrings, emotions, entities, question_answers
from chapters_src.data.entities import Sentence
from chapters_src.data.question_answers import Question
from chapters_src.evaluation import bootstrap_interval, classification_scores
from chapters_src.evaluation.answers import answer_scores
from chapters_src.evaluation.spans import span_scores
from chapters_src.files import atomic_write
from chapters_src.tokenization.sentences import split_sentences
from chapters_src.training import (
    IGNORED,
    History,
    Settings,
    TokenBudgetSampler,
    batches_per_step,
    pad,
    train,
)
from recipes import parameter_questions
from recipes.machine import precision, tokens_per_process, versions
from recipes.output import gathered, listed, log_of, options_from, parser_for, time_taken

ENCODER = "sentence-transformers/all-MiniLM-L6-v2"  # On the Hub: the base model of the adapters.
RANK = 4  # Of the updates; the same as in the masked-language model, from which they may start.
MAX_LENGTH = 384  # Tokens of a question with its paragraph; the book's own data are not longer.
LONGEST_ANSWER = 30  # Tokens.
DROPPED = 0.35  # Share of the words dropped from a question that is made from a sentence.
PUNCTUATION = ',;:.!?()"'
COPIES = 1  # Copies of each training sentence with other names in it.
STARTS = ("masked-language-model", "encoder")
UPDATES = resources.embedded.WEIGHTS_FOLDER  # Trained by other recipes.


class Row(NamedTuple):
    """A text or a pair of texts, as input of the model."""

    ids: list[int]  # From [CLS] to [SEP].
    types: list[int]  # 0 for the first text, 1 for the second.
    labels: list[int]  # Of the text or of each token, or the first and last position of the answer.


class Task(ABC):
    """The task of one head: data, loss and scores."""

    name: str  # Of the checkpoint in this book.
    title: str
    model_class: str  # Of the Transformers library.
    head: str  # The new layer.
    labels: tuple[str, ...] = ()  # The meanings of its outputs.
    settings: ClassVar[dict[str, Any]]  # Defaults of the options.
    phases: tuple[str, ...] = ("train",)  # Splits to train on, one after the other.
    data: dict[str, list]  # "train", "validation", "test", and further training data.
    about: str  # The data, for the card.
    limits: str  # What the model cannot do.

    def __init__(self, folder: str, smoke: bool) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.data = self.load(smoke)

    @abstractmethod
    def load(self, smoke: bool) -> dict[str, list]:
        """Load the items of each split, a few for a smoke run."""

    @abstractmethod
    def rows(self, items: Sequence) -> list[Row]:
        """Encode items."""

    @abstractmethod
    def loss(self, outputs: Any, batch: dict[str, Tensor | None]) -> Tensor:
        """Return the summed loss of a batch's labels."""

    @abstractmethod
    def predict(self, model: nn.Module, items: Sequence) -> list:
        """Return the model's prediction for each item, made as in chapter 01."""

    @abstractmethod
    def scores(self, items: Sequence, predictions: Sequence) -> dict[str, float]:
        """Compare predictions with the truth; the first score is the main one."""

    @abstractmethod
    def baselines(self) -> dict[str, list]:
        """Return the predictions of simple rules for the test items."""

    def groups(self, items: Sequence) -> list[list[int]]:
        """Return the groups of items that the bootstrap resamples."""
        return [[i] for i in range(len(items))]

    def interval(self, predictions: Sequence) -> tuple[float, float]:
        """Return the 95% interval of the first score on the test split."""
        items = self.data["test"]
        groups = self.groups(items)

        def score(drawn: np.ndarray) -> float:
            chosen = [i for group in drawn for i in groups[group]]
            found = self.scores([items[i] for i in chosen], [predictions[i] for i in chosen])
            return next(iter(found.values()))

        return bootstrap_interval(score, np.arange(len(groups)), num_samples=500)[1:]


class Sentiment(Task):
    """Is a message glad or not? Joy and love against sadness, anger and fear."""

    name, title = "sentiment-classifier", "Sentiment classifier"
    model_class, head = "BertForSequenceClassification", "classifier"
    labels = ("NEGATIVE", "POSITIVE")
    settings: ClassVar = {"epochs": 6, "learning_rate": 1e-3, "tokens_per_batch": 768}
    about = """[The emotions](../../data/emotions.md), short first-person messages that a language model
wrote for this book: synthetic, all of it. Joy and love count as positive; sadness, anger and fear as
negative. Messages of surprise are left out, because a surprise may be either. Labels that the data set has
wrong on purpose are set right."""
    limits = """It tells glad messages from sad, angry and frightened ones, in the voice of those that it was
trained on: short, first person, about everyday life. It has no third answer: a text without any feeling gets
one of the two, often with confidence. Irony, mixed feelings and the tone of other kinds of text (reviews, bug
reports) are outside of what was measured. It repeats what its data and its encoder associate with
feelings, words for groups of people among them."""

    def load(self, smoke: bool) -> dict[str, list]:
        """Load pairs of message and label."""
        wrong = emotions.planted_errors()
        data = {}
        for split, messages in emotions.load().items():
            names = [emotions.LABELS[label] for label in messages["label"]]
            for row, label in wrong.loc[wrong.split == split, ["row", "label"]].itertuples(index=False):
                names[row] = label
            items = [
                (text, int(name in ("joy", "love")))
                for text, name in zip(messages["text"], names, strict=True)
                if name != "surprise"
            ]
            data[split] = items[:32] if smoke else items
        return data

    def rows(self, items: Sequence) -> list[Row]:
        """Encode messages."""
        ids = self.tokenizer([text for text, _ in items]).input_ids
        return [Row(row, [0] * len(row), [label]) for row, (_, label) in zip(ids, items, strict=True)]

    def loss(self, outputs: Any, batch: dict[str, Tensor | None]) -> Tensor:
        """Return the summed loss over messages."""
        return F.cross_entropy(outputs.logits.float(), batch["labels"][:, 0], reduction="sum")

    def predict(self, model: nn.Module, items: Sequence) -> list[int]:
        """Return 1 for glad messages and 0 for others."""
        classify = pipeline("text-classification", model=model, tokenizer=self.tokenizer, device=model.device)
        return [self.labels.index(found["label"]) for found in classify([text for text, _ in items])]

    def scores(self, items: Sequence, predictions: Sequence) -> dict[str, float]:
        """Return accuracy and macro F1."""
        return classification_scores([label for _, label in items], list(predictions))

    def baselines(self) -> dict[str, list]:
        """Return the predictions of the majority class and of word counts."""
        labels = [label for _, label in self.data["train"]]
        words = make_pipeline(TfidfVectorizer(), LogisticRegression(C=10, max_iter=1000))
        words.fit([text for text, _ in self.data["train"]], labels)
        test = [text for text, _ in self.data["test"]]
        return {
            "always the more frequent label": [Counter(labels).most_common(1)[0][0]] * len(test),
            "logistic regression on weighted word counts": words.predict(test).tolist(),
        }


class Entities(Task):
    """Which tokens are names, and of what?"""

    name, title = "entity-tagger", "Entity tagger"
    model_class, head = "BertForTokenClassification", "classifier"
    labels = entities.BIO_LABELS
    settings: ClassVar = {"epochs": 10, "learning_rate": 2e-3, "tokens_per_batch": 512}
    about = """[The entities](../../data/entities.md), sentences with marked names that a language model wrote
for this book: synthetic, all of it. No name is in two splits."""
    limits = """The encoder sees no capital letters, so it has to tell *pandas* from pandas by what is around
them. It knows some names from the encoder's own reading and guesses others from context; so unusual names,
names that are also words, and names without much text around them are missed or get the wrong label. It finds
names better than it sorts them (last column). It was trained on a few hundred sentences about software,
travel and everyday life, with five labels of its own; its figures cannot be compared with those on
CoNLL-2003. How well it finds names of any group of people was not measured."""

    def load(self, smoke: bool) -> dict[str, list]:
        """Load sentences, and add copies of training sentences with other training names."""
        data = {split: found[:24] if smoke else found for split, found in entities.sentences().items()}
        data["train"] = [*data["train"], *with_other_names(data["train"], COPIES)]
        return data

    def rows(self, items: Sequence[Sentence]) -> list[Row]:
        """Encode sentences; each token except [CLS] and [SEP] has a label."""
        rows = []
        for sentence in items:
            found = self.tokenizer(sentence.text, return_offsets_mapping=True)
            labels = entities.bio_labels(sentence.entities, found.offset_mapping)
            labels = [IGNORED if label is None else self.labels.index(label) for label in labels]
            rows.append(Row(found.input_ids, [0] * len(labels), labels))
        return rows

    def loss(self, outputs: Any, batch: dict[str, Tensor | None]) -> Tensor:
        """Return the summed loss over tokens."""
        logits = outputs.logits.float().flatten(0, 1)
        return F.cross_entropy(logits, batch["labels"].flatten(), ignore_index=IGNORED, reduction="sum")

    def predict(self, model: nn.Module, items: Sequence[Sentence]) -> list[tuple]:
        """Return the grouped entities of each sentence; a word has the label of its first piece."""
        tag = pipeline(
            "token-classification",
            model=model,
            tokenizer=self.tokenizer,
            aggregation_strategy="first",
            device=model.device,
        )
        return [
            tuple((one["start"], one["end"], one["entity_group"]) for one in found)
            for found in tag([sentence.text for sentence in items])
        ]

    def scores(self, items: Sequence[Sentence], predictions: Sequence) -> dict[str, float]:
        """Return F1, precision and recall of entities, and F1 of their boundaries alone."""
        truth = [[tuple(entity) for entity in sentence.entities] for sentence in items]
        found = span_scores(truth, predictions)
        ends = span_scores(*([[span[:2] for span in text] for text in each] for each in (truth, predictions)))
        return {name: found[name] for name in ("f1", "precision", "recall")} | {"f1 of the ends": ends["f1"]}

    def baselines(self) -> dict[str, list]:
        """Return the entities found by capitals and by a list of known names."""
        known = {
            name: entity.label
            for sentence in self.data["train"]
            for name, entity in zip(sentence.names, sentence.entities, strict=True)
        }
        rules = {
            "words with a capital letter, all LOC": lambda text: entities.capitalized(text, "LOC"),
            "names of the training split": lambda text: entities.looked_up(text, known),
        }
        return {
            name: [tuple(map(tuple, rule(sentence.text))) for sentence in self.data["test"]]
            for name, rule in rules.items()
        }


class Answers(Task):
    """Where in a sentence is the answer to a question? Nowhere: [CLS] stands for that.

    The sentence is that of the paragraph whose embedding, the encoder's own, is closest to the question's.
    Trained on whole paragraphs, the head stayed below the rules: a few hundred questions do not teach it to
    find the place, and that the encoder can do already.
    """

    name, title = "answer-finder", "Answer finder"
    model_class, head = "BertForQuestionAnswering", "qa_outputs"
    settings: ClassVar = {"epochs": 8, "learning_rate": 1e-3, "tokens_per_batch": 512}
    phases = ("parameters", "blanks", "train")
    about = """[Questions and answers](../../data/question_answers.md) over paragraphs that a language model
wrote for this book: synthetic, all of it. A paragraph is in one split. Before these come questions that were
made by rule: words cut out of sentences of the training paragraphs, and the defaults, types and choices of
parameters in the documentation of installed packages (distant supervision). Twenty of the questions in
the training split have no answer in their paragraph."""
    limits = """It answers a small part of the questions word for word. Look at the text around an answer
before you believe it. It does not recognize when a paragraph does not say: see the last two columns.
Answers are words of the paragraph: it does not count, conclude or say yes. Its figures cannot be compared
with those on SQuAD."""

    def load(self, smoke: bool) -> dict[str, list]:
        """Load questions, with some that have no answer."""
        own, none = question_answers.questions(), question_answers.unanswerable_questions()
        made = parameter_questions.questions(("datasets",) if smoke else docstrings.PACKAGES)["train"]
        drawn = [made[i] for i in np.random.default_rng(0).permutation(len(made))]
        data = {split: own[split] + none[split] for split in own}
        data["parameters"] = [q for q in drawn[:400] if fits(self.tokenizer, q)]
        data["blanks"] = [in_its_sentence(q) for q in blanked(own["train"])]
        data["train"] = [in_its_sentence(q) for q in own["train"]] + self.closest(none["train"])
        if smoke:
            data = {split: found[-6:] + found[:12] for split, found in data.items()}
        return data

    def rows(self, items: Sequence[Question]) -> list[Row]:
        """Encode questions with their paragraphs; the labels are the answer's first and last token."""
        rows = []
        for item in items:
            found = self.tokenizer(
                item.question,
                item.context,
                truncation="only_second",
                max_length=MAX_LENGTH,
                return_offsets_mapping=True,
            )
            types, place = found.token_type_ids, [0]
            if item.answer:
                place = [
                    i
                    for i, (start, end) in enumerate(found.offset_mapping)
                    if types[i] == 1 and start < item.end and end > item.start
                ]
            rows.append(Row(found.input_ids, types, [place[0], place[-1]]))
        return rows

    def loss(self, outputs: Any, batch: dict[str, Tensor | None]) -> Tensor:
        """Return the summed loss over both ends."""
        logits = torch.stack([outputs.start_logits, outputs.end_logits], dim=1).float()  # (B, 2, T)
        if batch["attention_mask"] is not None:
            logits = logits.masked_fill(batch["attention_mask"][:, None] == 0, -1e4)
        return F.cross_entropy(logits.flatten(0, 1), batch["labels"].flatten(), reduction="sum")

    @torch.inference_mode()
    def closest(self, items: Sequence[Question]) -> list[Question]:
        """Keep only the sentence closest to the question, chosen without knowing the answer."""
        encoder = AutoModel.from_pretrained(resources.checkpoint("encoder")).eval()

        def embed(texts: Sequence[str]) -> Tensor:
            batch = self.tokenizer(texts, padding=True, return_tensors="pt")
            is_token = batch["attention_mask"][..., None]
            states = encoder(**batch).last_hidden_state  # (N, T, D)
            return F.normalize((states * is_token).sum(1) / is_token.sum(1), dim=-1)

        sentences = {one.context: split_sentences(one.context) for one in items}
        vectors = {context: embed(found) for context, found in sentences.items()}
        chosen = []
        for one in items:
            best = int((vectors[one.context] @ embed([one.question])[0]).argmax())
            chosen.append(one._replace(context=sentences[one.context][best], answer="", start=0, end=0))
        return chosen

    @torch.inference_mode()
    def predict(self, model: nn.Module, items: Sequence[Question]) -> list[str]:
        """Return the best span of the closest sentence, or an empty string where [CLS] scores higher."""
        found, items = [""] * len(items), self.closest(items)
        by_length = sorted(range(len(items)), key=lambda i: len(items[i].context))
        for chosen in (by_length[i : i + 16] for i in range(0, len(items), 16)):
            batch = self.tokenizer(
                [items[i].question for i in chosen],
                [items[i].context for i in chosen],
                truncation="only_second",
                max_length=MAX_LENGTH,
                padding=True,
                return_offsets_mapping=True,
                return_tensors="pt",
            ).to(next(model.parameters()).device)
            offsets = batch.pop("offset_mapping")
            outputs = model(**batch)
            starts, ends = outputs.start_logits.float(), outputs.end_logits.float()
            inside = (batch.token_type_ids == 1) & (offsets[..., 1] > 0)  # Not [SEP], not padding.
            spans = best_spans(starts.masked_fill(~inside, -1e4), ends.masked_fill(~inside, -1e4))
            nothing = starts[:, 0] + ends[:, 0]
            for row, (i, (score, first, last)) in enumerate(zip(chosen, spans, strict=True)):
                if score > nothing[row]:
                    found[i] = items[i].context[offsets[row, first, 0] : offsets[row, last, 1]]
        return found

    def scores(self, items: Sequence[Question], predictions: Sequence[str]) -> dict[str, float]:
        """Return SQuAD's scores of answerable questions, and how often "none" is right and wrong."""
        asked = [(item.answer, found) for item, found in zip(items, predictions, strict=True) if item.answer]
        none = [not found for item, found in zip(items, predictions, strict=True) if not item.answer]
        table = answer_scores([found for _, found in asked], [answer for answer, _ in asked])
        return {
            "f1": table["f1"].mean(),
            "exact match": table["exact_match"].mean(),
            "none said, rightly": float(np.mean(none)) if none else float("nan"),
            "none said, wrongly": float(np.mean([not found for _, found in asked])),
        }

    def baselines(self) -> dict[str, list]:
        """Return the answers of four rules, for the paragraph and for the sentence that the model sees."""
        rules = (
            question_answers.by_kind,
            question_answers.nearest_number,
            question_answers.likeliest_sentence,
            question_answers.first_capitals,
        )
        items = {"": self.data["test"], ", closest sentence": self.closest(self.data["test"])}
        return {
            f"`{rule.__name__}`{where}": [rule(item.context, item.question) for item in asked]
            for where, asked in items.items()
            for rule in rules
        }

    def groups(self, items: Sequence[Question]) -> list[list[int]]:
        """Group answerable questions by paragraph."""
        order = sorted((i for i in range(len(items)) if items[i].answer), key=lambda i: items[i].paragraph)
        return [list(group) for _, group in groupby(order, key=lambda i: items[i].paragraph)]


def with_other_names(sentences: Sequence[Sentence], copies: int) -> list[Sentence]:
    """Copy sentences with other names of the same label, so that a model learns to use the context.

    Sentences without a name are not copied.
    """
    names: dict[str, list[str]] = {}
    for sentence in sentences:
        for name, entity in zip(sentence.names, sentence.entities, strict=True):
            names.setdefault(entity.label, []).append(name)
    rng, found = np.random.default_rng(0), []
    for sentence in [one for one in sentences if one.entities] * copies:
        text, spans, behind = "", [], 0
        for start, end, label in sentence.entities:
            text += sentence.text[behind:start]
            name = names[label][rng.integers(len(names[label]))]
            spans.append(entities.Entity(len(text), len(text) + len(name), label))
            text, behind = text + name, end
        found.append(Sentence(text + sentence.text[behind:], tuple(spans)))
    return found


def in_its_sentence(question: Question) -> Question:
    """Keep only the sentence that holds the answer."""
    end = 0
    for sentence in split_sentences(question.context):
        begin = question.context.index(sentence, end)
        end = begin + len(sentence)
        if begin <= question.start < end:
            start = question.start - begin
            return question._replace(context=sentence, start=start, end=start + len(question.answer))
    raise ValueError(f"no sentence of {question.paragraph} holds the answer to {question.question!r}")


def blanked(questions: Sequence[Question]) -> list[Question]:
    """Make questions from the paragraphs by a rule: remove some words of a sentence and ask for them.

    The question is a question word and the rest of the sentence, without a third of its words. So a model
    learns to locate what a question is about before it sees questions by people. After Lewis, Denoyer and
    Riedel, "Unsupervised question answering by cloze translation",
    [2019](https://aclanthology.org/P19-1484/), without the translation.

    Args:
        questions: only their paragraphs are used.

    Returns:
        The questions, in random order.
    """
    rng, found = np.random.default_rng(0), []
    for name, context in {one.paragraph: one.context for one in questions}.items():
        behind = 0
        for sentence in split_sentences(context):
            begin = context.index(sentence, behind)
            behind = begin + len(sentence)
            for start, end, words in cuts(sentence, rng):
                rest = [
                    word.strip(PUNCTUATION)
                    for word in f"{sentence[:start]} {sentence[end:]}".split()
                    if rng.random() > DROPPED
                ]
                question = " ".join([words[rng.integers(len(words))], *filter(None, rest)]) + "?"
                answer = sentence[start:end]
                found.append(Question(name, context, question, answer, begin + start, begin + end))
    return [found[i] for i in rng.permutation(len(found))]


def cuts(sentence: str, rng: np.random.Generator) -> list[tuple[int, int, tuple[str, ...]]]:
    """Choose what to ask for in a sentence: its numbers, its names, and a few sequences of words.

    Returns:
        The start and end of each, and matching question words.
    """
    found = [
        (*one.span(), ("How many", "When", "Which")) for one in re.finditer(r"\d+(?:[.,:]\d+)*", sentence)
    ]
    names = entities.capitalized(sentence, "MISC")
    found += [(one.start, one.end, ("Who", "Which", "Where", "What")) for one in names if one.start]
    words = list(re.finditer(r"[\w'-]+(?:[.,:]\d+)*", sentence))
    for _ in range(8):
        first, length = rng.integers(len(words)), rng.integers(1, 5)
        run = words[first : first + length]
        start, end = run[0].start(), run[-1].end()
        ends = {run[0].group().lower(), run[-1].group().lower()}
        if len(run) < len(words) / 2 and not ends & ENGLISH_STOP_WORDS and "," not in sentence[start:end]:
            found.append((start, end, ("What", "Which", "How")))
    return found


def fits(tokenizer: Any, question: Question) -> bool:
    """Tell whether question and paragraph fit into the maximum length."""
    return len(tokenizer(question.question, question.context).input_ids) <= MAX_LENGTH


def best_spans(starts: Tensor, ends: Tensor) -> list[tuple[float, int, int]]:
    """Find the valid span (neither backwards nor too long) whose two scores have the largest sum.

    Args:
        starts: a score for each token as the first one of the answer, (B, T).
        ends: the same for the last one, (B, T).

    Returns:
        For each row the sum and both positions.
    """
    length = starts.size(1)
    sums = starts[:, :, None] + ends[:, None, :]  # (B, T, T)
    allowed = torch.ones(length, length, dtype=torch.bool, device=starts.device)
    allowed = allowed.triu() & ~allowed.triu(LONGEST_ANSWER)
    best = sums.masked_fill(~allowed, -torch.inf).flatten(1).max(dim=1)
    return [
        (value, place // length, place % length)
        for value, place in zip(best.values.tolist(), best.indices.tolist(), strict=True)
    ]


TASKS = {"sentiment": Sentiment, "entities": Entities, "answers": Answers}


# Model and training ---------------------------------------------------------------------------------------


def config_of(task: Task, encoder: str) -> AutoConfig:
    """Return the configuration of the full model, with the names of its outputs."""
    names = {"id2label": dict(enumerate(task.labels))} if task.labels else {}
    if task.labels:
        names["label2id"] = {label: i for i, label in enumerate(task.labels)}
    return AutoConfig.from_pretrained(encoder, architectures=[task.model_class], **names)


def with_head(task: Task, encoder: str, start: str) -> PeftModel:
    """Put a new head on the encoder, and new or pretrained low-rank updates beside its matrices."""
    model_class = getattr(transformers, task.model_class)
    updates = LoraConfig(
        r=RANK,
        lora_alpha=2 * RANK,
        target_modules=["query", "key", "value", "dense"],
        modules_to_save=[task.head],
        bias="all",
    )
    model = get_peft_model(model_class.from_pretrained(encoder, config=config_of(task, encoder)), updates)
    if start != "encoder":
        former = load_file(UPDATES / start / "adapter_model.safetensors")
        body = {
            re.sub(r"(lora_[AB])", r"\1.default", name): w.float()
            for name, w in former.items()
            if ".bert." in name
        }
        found = model.load_state_dict(body, strict=False)
        assert not found.unexpected_keys, found.unexpected_keys
    return model


def batches_of(rows: Sequence[Row], tokens: int) -> DataLoader:
    """Return batches of rows of similar length, within a budget of tokens."""
    return DataLoader(
        rows, batch_sampler=TokenBudgetSampler([len(row.ids) for row in rows], tokens), collate_fn=collate
    )


def collate(rows: Sequence[Row]) -> dict[str, Tensor | None]:
    """Make one batch of rows."""
    ids, attention_mask = pad([row.ids for row in rows], padding_id=0)
    types, _ = pad([row.types for row in rows], padding_id=0)
    labels = [torch.tensor(row.labels) for row in rows]
    labels = pad_sequence(labels, batch_first=True, padding_value=IGNORED)
    return {"ids": ids, "attention_mask": attention_mask, "types": types, "labels": labels}


def trained(options: argparse.Namespace, task: Task, encoder: str) -> tuple[PeftModel, dict[str, History]]:
    """Train the head and the updates; under a launcher, in all processes."""
    torch.manual_seed(options.seed)
    model = with_head(task, encoder, options.start)
    histories = {}

    def loss_of(model: nn.Module, batch: dict[str, Tensor | None]) -> Tensor:
        outputs = model(batch["ids"], attention_mask=batch["attention_mask"], token_type_ids=batch["types"])
        return task.loss(outputs, batch)

    for split in task.phases:
        batches = batches_of(task.rows(task.data[split]), tokens_per_process(options.tokens_per_batch))
        epochs = options.epochs if split == "train" else options.passes
        if not epochs or split in options.without:
            continue
        steps_per_epoch = max(1, len(batches) // batches_per_step())
        histories[split] = train(
            model,
            batches,
            loss_of,
            Settings(
                learning_rate=options.learning_rate,
                max_steps=max(1, round(epochs * steps_per_epoch)),
                warmup=0.1,
                schedule="cosine",
                mixed_precision=precision(PartialState().device),
                seed=options.seed,
                evaluate_every=2 * steps_per_epoch if split == "train" else 0,
            ),
            evaluate=lambda model: measured(task, model.get_base_model(), task.data["validation"]),
        )
    return model, histories


def measured(task: Task, model: nn.Module, items: Sequence) -> dict[str, float]:
    """Score a model of the library."""
    return task.scores(items, task.predict(model, items))


# Results -------------------------------------------------------------------------------------------------


def save(model: PeftModel, task: Task, encoder: str, result: Path) -> None:
    """Save the trained weights as a PEFT adapter, in 16 bits, with the configuration of the full model."""
    model.peft_config["default"].base_model_name_or_path = ENCODER
    weights = model.state_dict().items()
    model.save_pretrained(
        result,
        state_dict={name: w.half() for name, w in weights if ".original_module." not in name},
        save_embedding_layers=False,  # They are the encoder's. By default PEFT would query the Hub.
    )
    config_of(task, encoder).save_pretrained(result)


def load(task: Task, encoder: str, result: Path) -> PeftModel:
    """Load the saved model."""
    model = getattr(transformers, task.model_class).from_pretrained(encoder, config=config_of(task, encoder))
    return PeftModel.from_pretrained(model, result).eval()


def write(
    options: argparse.Namespace,
    task: Task,
    model: PeftModel,
    histories: dict[str, History],
    seconds: float,
    encoder: str,
) -> None:
    """Save, load and evaluate the saved model, and write card and log; then move the folder."""
    with atomic_write(options.output) as result:
        save(model, task, encoder, result)
        shipped = load(task, encoder, result).get_base_model()
        test = task.data["test"]
        predictions = {"this model": task.predict(shipped, test)} | task.baselines()
        figures = {name: task.scores(test, found) for name, found in predictions.items()}
        low, high = task.interval(predictions["this model"])
        first = next(iter(figures["this model"]))
        facts = {
            "split": ", ".join(f"{len(items):,} {name}" for name, items in task.data.items()),
            "begun as": options.start,
            "trained parameters": f"{model.get_nb_trainable_parameters()[0]:,}, rank {RANK}",
            "training": ", ".join(
                f"{len(history.steps):,} steps on {split}" for split, history in histories.items()
            ),
            "settings": f"{options.epochs} passes over train, learning rate {options.learning_rate}, at most "
            f"{options.tokens_per_batch} tokens in a batch, seed {options.seed}",
            f"{first} on validation, along the way": ", ".join(
                f"{record[first]:.3f}" for record in histories["train"].evaluations
            ),
            "time": time_taken(seconds),
        }
        if options.without:
            facts["left out, of the questions made by rule"] = ", ".join(options.without)
        interval = f"95% interval of this model's {first}: {low:.3f} to {high:.3f}."
        content = card(task, listed(facts, smoke=options.smoke), table(figures), interval)
        (result / "README.md").write_text(content, encoding="utf-8")
        log = log_of(options, histories["train"], figures)
        (result / "run.json").write_text(json.dumps(log), encoding="utf-8")
    print(content)


def table(figures: dict[str, dict[str, float]]) -> str:
    """Return the scores as a Markdown table."""
    columns = list(figures["this model"])
    lines = [f"| | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for name, found in figures.items():
        cells = ("" if np.isnan(found[column]) else f"{found[column]:.3f}" for column in columns)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def card(task: Task, facts: str, figures: str, interval: str) -> str:
    """Write the model card; all numbers come from this run."""
    return f"""# {task.title}: a head for the book's encoder

A head, and low-rank updates of the encoder, all-MiniLM-L6-v2, whose own weights are not here. Chapter 01 uses
it. Made by `recipes/heads.py`, with {versions()}.
With

    checkpoint = resources.checkpoint("{task.name}")

the book puts it together with the encoder: `{task.model_class}.from_pretrained(checkpoint)` is an ordinary
model of the Transformers library. The folder itself is an adapter of PEFT.

{facts}

## Data

{task.about}

## Scores on the test split

{figures}

{interval}

## What it cannot do

{task.limits}

The texts are under CC BY 4.0, the weights under Apache-2.0, like the text and the code of this book.
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the recipe."""
    parser = parser_for(__doc__.splitlines()[0])
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("--start", choices=STARTS, default=STARTS[0], help="where the updates start from")
    parser.add_argument("--epochs", type=float, help="passes over the training split")
    parser.add_argument("--passes", type=float, default=1, help="over questions made by rules")
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        choices=("parameters", "blanks"),
        help="leave out these questions made by rules",
    )
    parser.add_argument("--learning-rate", type=float)
    parser.add_argument("--tokens-per-batch", type=int, help="at most, in a step of all processes")
    options = options_from(parser, arguments)
    kind = TASKS[options.task]
    for name, value in kind.settings.items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    transformers.utils.logging.set_verbosity_error()  # It would warn that the head is new.
    encoder = resources.checkpoint("encoder")
    with PartialState().main_process_first():  # It fills the cache for the other processes.
        task = kind(encoder, options.smoke)
    begin = time.monotonic()
    model, histories = trained(options, task, encoder)
    seconds = time.monotonic() - begin
    full = gathered(model, lambda: with_head(task, encoder, options.start))
    if full is not None:
        write(options, task, full, histories, seconds, encoder)
    PartialState().wait_for_everyone()


if __name__ == "__main__":
    main()
