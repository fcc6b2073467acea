"""Answers to the exercises of chapter 05, with small data."""

import tempfile
from pathlib import Path

import numpy as np
import torch
from planted import Planted, defined, planted
from torch.nn import functional as F
from transformers import AutoTokenizer, pipeline

from chapters_src import resources
from chapters_src.exercises.chapter_05 import SIZES, _softmax
from chapters_src.pretrained import mean_pool_classifier


@planted("5.1")
def parts() -> Planted:
    (right,) = defined(5, "accumulate", F=F)

    def weighed(weigh):
        def accumulate(model, parts):
            for inputs, labels in parts:
                loss = F.cross_entropy(model(inputs), labels, reduction="sum")
                (loss * weigh(len(labels))).backward()

        return accumulate

    def zeroed(model, parts):
        for inputs, labels in parts:
            model.zero_grad()
            F.cross_entropy(model(inputs), labels).backward()

    def stepped(model, parts):
        right(model, parts)
        with torch.no_grad():
            model.weight -= 0.1 * model.weight.grad

    def zeroed_before(model, parts):
        model.zero_grad()
        right(model, parts)

    def added_first(model, parts):
        losses = [F.cross_entropy(model(x), y, reduction="sum") for x, y in parts]
        (sum(losses) / sum(SIZES)).backward()

    return Planted(
        (right,),
        {
            "all parts were in memory": (added_first,),
            "each part counts the same": (weighed(lambda size: 1 / (3 * size)),),
            "are added up": (weighed(lambda size: 1 / size),),
            "16 times as long": (weighed(lambda size: 1),),
            "only the last part": (zeroed,),
            "weights have changed": (stepped,),
            "has no gradient": (lambda model, parts: 1.0,),
            "another direction": (weighed(lambda size: size),),
        },
        also_right=((zeroed_before,),),
        secrets=("sum(len", "reduction"),
    )


@planted("5.2")
def counted() -> Planted:
    width, num_layers, num_classes = 384, 6, 6
    return Planted(
        (149766, 192),
        {
            "Something else is trained": (147456, 192),
            "Has the head only a matrix": (149760, 192),
            "or for rank 8.": (76038, 192),
            "half of it, and no head": (73728, 192),
            "an A and a B of rank 16": (1000, 192),
            "A and B are two": (149766, 384),
            "the matrix 147,456": (149766, 96),
            "A rank is above 0": (149766, 0),
        },
        {"width": width, "num_layers": num_layers, "num_classes": num_classes},
        also_right=((np.int64(149766), 192.0),),
        secrets=("149,766", "149766", "192"),
    )


@planted("5.3")
def shares() -> Planted:
    (right,) = defined(5, "adapt", np=np)

    def in_place(logits, old, new):
        logits += np.log(new) - np.log(old)
        return logits

    return Planted(
        (right,),
        {
            "away from what has become common": (lambda z, old, new: z + np.log(old) - np.log(new),),
            "those for equal shares": (lambda z, old, new: z - np.log(old),),
            "what they were": (lambda z, old, new: z,),
            "are still in it": (lambda z, old, new: z + np.log(new),),
            "you give probabilities": (lambda z, old, new: _softmax(right(z, old, new)),),
            "not those of Bayes' rule": (lambda z, old, new: z * new / old,),
            "changes its argument": (in_place,),
            "50 messages and 3 classes": (lambda z, old, new: right(z, old, new)[0],),
        },
        also_right=((lambda z, old, new: torch.tensor(np.log(_softmax(z) * new / old)),),),
        secrets=("np.log", "log("),
    )


@planted("5.4")
def halves() -> Planted:
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 4, 400)
    logits = generator.normal(size=(400, 4)) + 2 * np.eye(4)[labels] * generator.random((400, 1))
    logits += 3 * generator.normal(size=(400, 1))  # shifts a row, and no probability
    right = logits.argmax(axis=1) == labels
    order = np.argsort(-_softmax(logits).max(axis=1), kind="stable")
    surer, other = right[order[:200]].mean(), right[order[200:]].mean()
    by_logit = np.argsort(-logits.max(axis=1), kind="stable")
    return Planted(
        (surer, other),
        {
            "the surer one": (other, surer),
            "in its order": (right[:200].mean(), right[200:].mean()),
            "from 0 to 1": (100 * surer, 100 * other),
            "highest logit": (right[by_logit[:200]].mean(), right[by_logit[200:]].mean()),
            "come out otherwise": (0.99, 0.01),
        },
        {"logits": torch.tensor(logits), "labels": labels},
        also_right=((round(float(surer), 2), round(float(other), 2)),),
        secrets=(f"{surer:.3f}", f"{other:.3f}"),
    )


@planted("5.5")
def errors() -> Planted:
    generator = np.random.default_rng(0)
    correct = generator.integers(0, 4, 500)
    logits = generator.normal(size=(500, 4)) + 4 * np.eye(4)[correct]
    alike = correct ^ 1  # 0 and 1 are alike, and 2 and 3
    soft = generator.choice(500, 120, replace=False)
    logits[soft, alike[soft]] += 3
    second = {int(row): int(alike[row]) for row in soft[:38]}
    given = correct.copy()
    given[soft[-8:]] = alike[soft[-8:]]
    given[generator.choice(np.setdiff1d(np.arange(500), soft), 12, replace=False)] = 3
    rows = np.array(sorted(second))

    def in_tenth(labels):
        losses = -np.log(_softmax(logits))[np.arange(500), labels]
        return int(np.isin(np.argsort(-losses, kind="stable")[:50], rows).sum())

    def changed(labels):
        labels = labels.copy()
        labels[rows] = alike[rows]
        return labels

    right, left_in, first = in_tenth(changed(correct)), in_tenth(changed(given)), in_tenth(correct)
    assert len({right, left_in, first}) == 3
    hidden = {int(row): int(alike[row]) for row in soft[40:60]}
    guesses = logits.argmax(axis=1)
    peeked = [row for row in range(500) if guesses[row] != correct[row] and row not in second][:20]
    far = {int(row): int((correct[row] + 2) % 4) for row in range(20)}
    return Planted(
        (right, hidden),
        {
            "wrong before are still wrong": (left_in, hidden),
            "with their first reading": (first, hidden),
            "a tenth is 50 messages": (right + 100, hidden),
            "a dictionary of 20": (right, dict(list(hidden.items())[:5])),
            "is the right label": (right, hidden | {int(soft[40]): int(correct[soft[40]])}),
            "can be read that way": (right, dict([*list(hidden.items())[:19], *list(second.items())[:1]])),
            "no such row": (right, dict([*list(hidden.items())[:19], (900, 1)])),
            "write both as numbers": (right, dict.fromkeys(range(20), "fear")),
            "own answers": (right, {row: int(guesses[row]) for row in peeked}),
        },
        {"logits": logits, "given": given, "correct": correct, "second": second},
        also_right=(
            (right, far),
            (float(right), {np.int64(row): np.int64(label) for row, label in hidden.items()}),
        ),
        secrets=(f"is {right} ",),
    )


DISHES = ("soup", "bread", "cake", "salad", "pie")
FRUITS = ("apple", "cheese", "fennel", "honey", "lemon", "plum")
FOODS = [f"{fruit}{dish}" for fruit in FRUITS for dish in DISHES]
SUBJECTS, MANY = FOODS[:15], FOODS[15:]


@planted("5.6")
def own() -> Planted:
    pairs = [(f"{word} {other}", kind) for word, other in zip(SUBJECTS, MANY, strict=True) for kind in "ab"]
    pairs = [(f"{text} {kind * 3} {i}", kind) for i, (text, kind) in enumerate(pairs)]
    pairs += [(f"{kind}{kind} {word}{i}", kind) for i, word in enumerate(SUBJECTS + MANY) for kind in "ab"]
    pairs = [pair for i, pair in enumerate(pairs) if i < 90]
    train, test = pairs[:30] + pairs[60:], pairs[30:60]
    mean_pool_classifier.register()
    config = mean_pool_classifier.MeanPoolConfig(
        body={
            "model_type": "bert",
            "hidden_size": 16,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "intermediate_size": 16,
        },
        id2label={0: "a", 1: "b"},
        label2id={"a": 0, "b": 1},
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = mean_pool_classifier.MeanPoolClassifier(config)
    place = Path(tempfile.mkdtemp())

    def written(name, card, model=model):
        folder = place / name
        model.save_pretrained(folder)
        AutoTokenizer.from_pretrained(resources.checkpoint("encoder")).save_pretrained(folder)
        if card:
            (folder / "README.md").write_text(card, encoding="utf-8")
        return folder

    right = written("right", "")
    answers = pipeline("text-classification", model=str(right), device="cpu")([text for text, _ in test])
    share = np.mean([answer["label"] == label for answer, (_, label) in zip(answers, test, strict=True)])
    card = f"accuracy: {share:.2f}\nlargest class: 0.50\n"
    (right / "README.md").write_text(card, encoding="utf-8")
    model.config.id2label = {0: "LABEL_0", 1: "LABEL_1"}
    unnamed = written("unnamed", card)
    model.config.id2label = {0: "a", 1: "b"}
    empty = place / "empty"
    empty.mkdir()

    def vectors_of(texts):
        return np.array([[len(text), text.count("a"), text.count("b")] for text in texts], float)

    return Planted(
        (right, train, test),
        {
            "30 and 30 messages: wanted are 80": (right, train[:30], test),
            "both sides need all": (right, [(text, "a") for text, _ in train], test),
            "nearly the same": (right, [*train, (test[0][0].upper() + "!", "a")], test),
            "There is no folder": (place / "nowhere", train, test),
            "cannot load": (empty, train, test),
            "your classes are": (unnamed, train, test),
            "has no README.md": (written("without", ""), train, test),
            "does not say the largest class": (written("half", f"accuracy: {share:.2f}"), train, test),
            "says accuracy 1.00": (written("proud", "accuracy: 1.00\nlargest class: 0.50"), train, test),
            "a list of pairs": (right, [text for text, _ in train], test),
        },
        {"vectors_of": vectors_of},
        also_right=((str(right), [list(pair) for pair in train], test),),
        secrets=("save_pretrained",),
    )
