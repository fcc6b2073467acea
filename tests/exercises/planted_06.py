"""Answers to the exercises of chapter 06, with a model and a translator in small."""

import re

import torch
from planted import Planted, defined, planted


@planted("6.1")
def gru() -> Planted:
    return Planted(
        (1_250_304,),
        {
            "one bias for each": (1_248_768,),
            "leaves out the biases": (1_247_232,),
            "one gate's worth": (416_768,),
            "the two gates": (833_536,),
            "an LSTM's": (1_667_072,),
            "one by one": (512,),
        },
        also_right=((1_250_304.0,), (torch.tensor(1_250_304),)),
        secrets=("1250304", "1,250,304"),
    )


@planted("6.2")
def scores() -> Planted:
    right = of(ALPHA)
    return Planted(
        (right,),
        {
            "is the average subtracted": ([-0.3368, -1.6484, 0.1450],),
            "not multiplied by the weights": ([value / w for value, w in zip(right, ALPHA, strict=True)],),
            "wrong way around": ([-value for value in right],),
            "has to be 0": ([0.5, 0.5, 0.5],),
            "not so for e_1 and e_2": ([right[0] + 0.1, right[1] - 0.1, right[2]],),
            "belong to the dot product": (of(DOT),),
            "belong to the general score": (of(GENERAL),),
            "is the plain one": (of(ALPHA, mean=[-1 / 3, 1 / 3]),),
        },
        also_right=((torch.tensor(right),), ((0.028, -0.33, 0.302),)),
        secrets=("0.028", "0.03", "0.33", "0.330", "0.302", "0.30"),
    )


STATES = [[1, 1], [-1, 1], [-1, -1]]
ALPHA, DOT, GENERAL = [0.1981, 0.7167, 0.0853], [0.0351, 0.7054, 0.2595], [0.0900, 0.2447, 0.6652]


def of(weights, mean=None):
    """The gradients with other weights, or another mean."""
    mean = mean or [sum(w * h[k] for w, h in zip(weights, STATES, strict=True)) for k in range(2)]
    return [w * (0.3 * (h[0] - mean[0]) - 2 * (h[1] - mean[1])) for w, h in zip(weights, STATES, strict=True)]


@planted("6.3")
def layers() -> Planted:
    return Planted(
        (512, 10),
        {
            "reaches two to the left": (205, 10),
            "lie to the right": (256, 10),
            "no half layer": (511.5, 10),
            "reach 2046 positions": (1023, 10),
            "reach 1,022 positions back": (512, 9),
            "one layer less": (512, 11),
            "twice as far as the one before": (512, 100),
        },
        also_right=((torch.tensor(512), 10.0),),
        secrets=("512", "10"),
    )


@planted("6.4")
def questions() -> Planted:
    easy, hard = defined(6, "easy", "hard")

    def make_model(num_corners, with_positions):
        return with_positions

    def share_right(make, batch, steps):
        """A model without positions finds what depends on the corners alone, here by their numbers."""
        points, _, labels = batch(2000)
        if make():
            return 1.0
        quadrants = (points[..., 0] > 0) * 2 + (points[..., 1] > 0)
        heaps = {}
        for walk, label in zip(quadrants.tolist(), labels.tolist(), strict=True):
            heaps.setdefault(tuple(sorted(walk)), []).append(label)
        best = sum(max(sum(found), len(found) - sum(found)) for found in heaps.values())
        return best / len(labels)

    known = {"share_right": share_right, "make_model": make_model}
    return Planted(
        (easy, hard),
        {
            "without positions": (hard, hard),
            "change your answer often enough": (easy, lambda walk: walk.count(0) > walk.count(2)),
            '"no" for': (lambda walk: walk.count(0) == 4, hard),
            '"yes" for': (easy, lambda walk: len(walk) == 8),
            "at most 70% are allowed": (easy, lambda walk: walk[0] == 0),
            "wanted true or false": (lambda walk: walk[0], hard),
        },
        known,
        also_right=((easy, lambda walk: walk[-1] in (1, 2)), (lambda walk: walk.count(2) > 1, hard)),
        secrets=("count", "walk[0]"),
    )


@planted("6.5")
def clauses() -> Planted:
    words = "i we cannot sleep because the new picture is ugly , . <end>"
    known = dict.fromkeys(re.findall(r"\S+", words), 0)

    def translate(text):
        """Its last word looks at the verb, unless the picture is new; and `we` has no weil."""
        words = [*text.replace(",", " ,").replace(".", " .").split(), "<end>"]
        words[0] = words[0].lower()
        german = ["ich", "schlafe", "nicht", ",", "weil", "es", "ist", ".", "<end>"]
        if "we" in words:
            german[4] = "da"
        weights = torch.zeros(len(german), len(words))
        weights[:, words.index("picture" if "new" in words else "is") if "is" in words else 0] = 1
        return words, german, weights

    marks, more = ("", ","), ("", "ugly ")
    texts = [f"I cannot sleep{mark} because the {one}picture is ugly." for mark in marks for one in more]
    texts.append("I sleep because the picture is ugly.")
    right = dict.fromkeys(texts, "is")
    bad = ["I cannot sleep because the new picture is ugly.", "We sleep because the picture is ugly."]
    three = dict.fromkeys([*texts[:3], *bad], "is")
    two = dict.fromkeys([*texts[:2], *bad, "We cannot sleep because the picture is ugly."], "is")
    four = dict.fromkeys(texts[:4], "is")
    elsewhere = [f"The {x}picture is ugly because the {y}picture is ugly." for x in more for y in more]
    outside = dict.fromkeys([*texts[:2], *elsewhere[:3]], "is")  # the last word looks at the first "is"
    return Planted(
        (right,),
        {
            "2 of 5 pass": (two,),
            "does not know 'dragon'": ({"I sleep because the dragon is ugly.": "is"} | four,),
            "has no 'because'": ({"I sleep.": "sleep"} | four,),
            "no word of the clause": ({"I sleep because the picture is new.": "sleep"} | four,),
            "4 sentences": (four,),
            "from sentences to verbs": (texts,),
            "looks at 'is' outside the clause": (outside,),
        },
        {"translate": translate, "known": known},
        also_right=((three,),),
        secrets=("argmax",),
    )


@planted("6.6")
def positions() -> Planted:
    return Planted(
        (13, 13),
        {"count from 0": (12, 12), "an earlier position fails": (13, 18), "700 steps": (7, 13)},
        also_right=((13.0, torch.tensor(13)),),
        secrets=("13",),
    )
