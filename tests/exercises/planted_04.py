"""Answers to the exercises of chapter 04, with small data."""

import numpy as np
import torch
from planted import Planted, defined, planted
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from chapters_src.exercises.chapter_04 import FEAR, _both_orders, _head


@planted("4.1")
def saved() -> Planted:
    lengths = np.random.default_rng(0).integers(5, 90, 1500).tolist()
    known = {"lengths": lengths}
    positions, right = defined(4, "positions", "share_saved", **known)

    def each(share):
        return {
            size: share(positions(lengths, size), positions(sorted(lengths), size)) for size in (8, 64, 512)
        }

    longest_first = {
        size: 1 - positions(sorted(lengths, reverse=True), size) / positions(lengths, size)
        for size in (8, 64, 512)
    }
    return Planted(
        (right,),
        {
            "the share that remains": (each(lambda a, b: b / a),),
            "no padding at all": (each(lambda a, b: 1 - sum(lengths) / a),),
            "of the sorted work": (each(lambda a, b: a / b - 1),),
            "from 0 to 1": (each(lambda a, b: 100 * (1 - b / a)),),
            "same batch size": (each(lambda a, b: 0.01),),
            "the keys 8, 64 and 512": ({8: 0.1},),
        },
        {"lengths": lengths},
        also_right=((each(lambda a, b: round(1 - b / a, 2)),), (longest_first,)),
        secrets=tuple(f"{value:.3f}" for value in right.values()),
    )


@planted("4.2")
def maximum() -> Planted:
    (right,) = defined(4, "max_pool", torch=torch)

    def mean(states, mask):
        return (states * mask[..., None]).sum(dim=1) / mask.sum(dim=1, keepdim=True)

    def minus_ten(states, mask):
        return states.masked_fill(mask[..., None] == 0, -10.0).amax(dim=1)

    def not_a_number(states, mask):
        return states.masked_fill(mask[..., None] == 0, torch.nan).amax(dim=1)

    return Planted(
        (right,),
        {
            "the first of them is 0": (lambda states, mask: (states * mask[..., None]).amax(dim=1),),
            "its padding takes part": (lambda states, mask: states.amax(dim=1),),
            "is the mean over its tokens": (mean,),
            "is not the maximum": (lambda states, mask: states[:, 0],),
            "padded to 6, has 1 of 16": (minus_ten,),
            "padded to 6, has 16 of 16": (not_a_number,),
            "gives 2 things": (lambda states, mask: states.max(dim=1),),
        },
        also_right=(
            (lambda states, mask: states.masked_fill(mask[..., None] == 0, -1e9).max(dim=1).values,),
            (lambda states, mask: torch.stack([s[m == 1].amax(0) for s, m in zip(states, mask)]),),  # noqa: B905
        ),
        secrets=("inf", "masked_fill"),
    )


@planted("4.3")
def promise() -> Planted:
    generator = np.random.default_rng(2)
    y = generator.integers(0, FEAR + 1, 1700)
    x = generator.normal(size=(1700, 120)) + 1.2 * np.eye(6, 120)[y]
    x, y, others, is_fear = x[:1500], y[:1500], x[1500:], y[1500:] == FEAR
    head = _head().fit(x, y)
    seen = head.predict_proba(x)[y == FEAR, -1]
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    unseen = cross_val_predict(_head(), x, y, cv=folds, method="predict_proba")[y == FEAR, -1]
    right, naive = float(np.quantile(unseen, 0.2)), float(np.quantile(seen, 0.2))
    return Planted(
        (right,),
        {
            "Was the probe asked": (naive,),
            "a few points, not so many": (float(np.quantile(unseen, 0.3)),),
            "or below it": (float(np.quantile(unseen, 0.8)),),
            "more false alarms": (float(np.quantile(unseen, 0.1)),),
            "lies between 0 and 1": (20,),
        },
        {"chances": head.predict_proba(others)[:, -1], "is_fear": is_fear, "x": x, "y": y},
        also_right=(
            (np.float64(np.quantile(unseen, 0.215)),),
            (torch.tensor(float(np.quantile(unseen, 0.185))),),
        ),
        secrets=(f"{right:.2f}", f"{right:.3f}", "quantile"),
    )


WORDS = {0: "gray rain again", 1: "sunny day here", 2: "thanks dear friend"}


def vectors_of(texts):
    """Five features: three of the words, and two of a smile and of a question mark at the end."""
    rows = [[*(word in text.lower() for word in WORDS.values())] for text in texts]
    noise = [[len(text) % 7 / 35, len(text) % 5 / 25] for text in texts]
    ends = [[float(text.endswith(":)")), float(text.endswith("?"))] for text in texts]
    return np.hstack([np.array(rows, float), np.array(noise), 3 * np.array(ends)])


@planted("4.4")
def shortcut() -> Planted:
    generator = np.random.default_rng(0)
    y = generator.integers(0, 3, 300)
    texts = [f"{WORDS[label]} {'a' * generator.integers(1, 9)}" for label in y]
    texts = [
        text + " :)" * bool(label == 1 and i % 2)
        for i, (text, label) in enumerate(zip(texts, y, strict=True))
    ]
    x = vectors_of(texts)
    x[:, :3] = 0.25 * x[:, :3] + 0.2 * generator.normal(size=(300, 3))
    (edit,) = defined(4, "edit")[:1]
    plain = [text.removesuffix(" :)") for text in texts]
    right = np.eye(7)[5]

    turned = np.linalg.qr(generator.normal(size=(7, 7)))[0]  # else a smile would be one feature
    x, right = x @ turned, right @ turned

    def scored(names):
        found = vectors_of(names)
        found[:, :3] *= 0.25
        return found @ turned

    def exclaims(text):  # to the encoder, a space at the end is nothing
        bare = text.rstrip(" .!?…")
        return (f"{bare}!", f"{bare}! ", f"! {text}", f"{text} \uff01")[len(text) % 4]

    own = (scored([edit(text) for text in plain[:100]]) - scored(plain[:100])).mean(axis=0)
    tilted = right + 0.02 * turned[6]
    tilted /= np.linalg.norm(tilted)
    return Planted(
        (edit, tilted),
        {
            "changes letters or digits": (lambda text: text + " x", tilted),
            "joins words": (lambda text: text.replace(" ", ""), tilted),
            "or cuts them": (lambda text: "-".join(text), tilted),
            "into 100 of 100": (exclaims, tilted),
            "It drops upper case": (lambda text: text.upper(), tilted),
            "20% are wanted": (lambda text: edit(text) if len(text) % 9 == 0 else text, tilted),
            "a vector of length 1": (edit, 3 * tilted),
            "more than half as many": (edit, turned[6]),
            "the very messages that are scored": (edit, own / np.linalg.norm(own)),
        },
        {"vectors_of": scored, "texts": plain[:100], "x": x, "y": y},
        also_right=((edit, torch.tensor(tilted)),),
        secrets=(":)",),
    )


@planted("4.5")
def copies() -> Planted:
    generator = np.random.default_rng(1)
    y = generator.choice(4, 600, p=[0.7, 0.2, 0.06, 0.04])
    x = generator.normal(size=(600, 8)) + 1.2 * np.eye(4, 8)[y]
    wrong_order, right_order, plain = _both_orders(x, y)
    return Planted(
        (wrong_order, right_order),
        {
            "have copies in both": (wrong_order, wrong_order),
            "Which of the two orders": (right_order, wrong_order),
            "Is that the accuracy": (wrong_order, plain),
            "between 0 and 1": (100 * wrong_order, right_order),
            "in splits of the check's own": (0.2, right_order),
        },
        {"x": x, "y": y},
        also_right=((wrong_order + 0.02, right_order - 0.02),),
        secrets=(f"{wrong_order:.2f}", f"{right_order:.2f}"),
    )


@planted("4.6")
def own() -> Planted:
    labels = ["sun", "rain"] * 40
    texts = [f"number {i} is {'rain' if i % 2 else 'sun'}ny" for i in range(80)]

    def of_number(texts):
        return np.array([[int(text.split()[1]) % 2, int(text.split()[1]) % 7] for text in texts], float)

    def blind(texts):
        return np.array([[int(text.split()[1]) // 2 % 7] for text in texts], float)

    mixed = [f"number {i} is here" for i in range(80)]
    return Planted(
        (texts, labels, "open"),
        {
            "80 labels: wanted are as many": (texts[:50], labels, "open"),
            "60 or more": (texts[:50], labels[:50], "open"),
            "occurs more than once": ([*texts[:-1], texts[0].upper() + "."], labels, "open"),
            "go with your verdict": (mixed, labels, "open"),
            "Encoder 1.00, counts 1.00": (texts, labels, "counts"),
            "two to five classes": (texts, [str(i) for i in range(80)], "open"),
            "a list of strings": (texts, list(range(80)), "open"),
        },
        {"vectors_of": of_number},
        also_right=((mixed, labels, "encoder"), (np.array(texts), np.array(labels), "open")),
        secrets=("TfidfVectorizer",),
    )
