"""Words as diagrams: what is a kind of what, a window around a word, and a guess against noise. Chapter 02.

Read all of them from top to bottom; in the tree, arrows lead from the specific to the general. The two
window models are after figure 1 of Mikolov et al. (2013a), https://arxiv.org/abs/1301.3781.
"""

import math
from collections.abc import Sequence

from chapters_src.plots.drawing import Box, Diagram

_WIDTH = 420
_LEFT, _RIGHT = 4, 416
_GAP = 22  # Vertical gap between boxes, for an arrow.


def hypernym_tree(chains: Sequence[Sequence[str]]) -> Diagram:
    """Draw a tree of hypernyms: chains that begin with the same word.

    Args:
        chains: one to three chains from the most general word down to a specific one, as returned by
            `WordNet.chains`, without the ends of their names. Chains that diverge do not meet again, and a
            prefix of another chain is part of it.

    Returns:
        A diagram that a notebook draws, and that readers of the site can zoom.

    Raises:
        ValueError: there are no chains, or more than three, or they do not begin with the same word.
    """
    paths = [tuple(chain) for chain in chains]
    paths = [p for p in paths if not any(p != other and other[: len(p)] == p for other in paths)]
    if not 0 < len(paths) <= 3 or len({path[0] for path in paths}) > 1:
        raise ValueError(
            f"{len(paths)} chains that begin with {sorted({p[0] for p in paths})}: pass 1 to 3 with one root"
        )
    told = "; ".join(f"{path[-1]}, above it {', '.join(reversed(path[:-1]))}" for path in paths)
    sheet = Diagram(
        title="What is a kind of what",
        description=f"A tree with {paths[0][0]} at the top. Every arrow says: is a kind of. {told}.",
        caption=(
            "Each arrow says: is a kind of. The chains part where their last common word is; how many steps "
            "that takes depends on how finely the dictionary divides there."
        ),
        width=_WIDTH,
    )
    column = (_RIGHT - _LEFT + 8) / len(paths)
    width = min(column - 8, 130)
    boxes: dict[tuple[str, ...], Box] = {}
    prefixes = dict.fromkeys(path[: n + 1] for path in paths for n in range(len(path)))
    for prefix in sorted(prefixes, key=len):
        under = [i for i, path in enumerate(paths) if path[: len(prefix)] == prefix]
        middle = _LEFT + column * (under[0] + under[-1] + 1) / 2 - 4
        span, top = (middle - width / 2, middle + width / 2), 4 + (29 + _GAP) * (len(prefix) - 1)
        kind = "feed_forward" if prefix in paths else "data"
        boxes[prefix] = sheet.box(kind, span, top, (prefix[-1], ""))
    for prefix, box in boxes.items():
        if above := boxes.get(prefix[:-1]):
            (x, _), (to_x, _) = box.middle, above.middle
            turn = () if x == to_x else ((x, box.top - 7), (to_x, box.top - 7))
            sheet.arrow("flow", (x, box.top), *turn, (to_x, above.bottom))
    return sheet


def window(words: Sequence[str]) -> Diagram:
    """Draw what skip-gram and CBOW predict from a window of two words on each side.

    Args:
        words: five words; the third is the center.

    Returns: as for `hypernym_tree`.

    Raises:
        ValueError: there are not five words.
    """
    if len(words) != 5:
        raise ValueError(f"the sheet has room for 5 words, not {len(words)}")
    center, around = words[2], [*words[:2], *words[3:]]
    told = ", ".join(around)
    sheet = Diagram(
        title="A window, and who guesses whom",
        description=(
            f"The word {center} stands between {' '.join(words[:2])} and {' '.join(words[3:])}. Skip-gram, "
            f"above: the input vector of {center} leads to four guesses, the output vectors of {told}. The "
            "two next to it have the weight 1, the two others 1/2. CBOW, below: the input vectors of "
            f"{told}, with the same weights, lead to their mean, and the mean guesses the output vector of "
            f"{center}."
        ),
        caption=(
            f"A window of two words on each side of “{center}”. Skip-gram guesses each neighbor from the "
            "word; CBOW guesses the word from the mean of its neighbors. Near neighbors count for more."
        ),
        width=_WIDTH,
    )
    weights = ("weight 1/2", "weight 1", "weight 1", "weight 1/2")
    lefts = [16 + 99 * i for i in range(4)]
    spans, middle = [(left, left + 90) for left in lefts], (160, 260)
    given = sheet.box("lookup", middle, 34, (center, "input"))
    for span, word, weight in zip(spans, around, weights, strict=True):
        guess = sheet.box("attention", span, given.bottom + 34, (word, "output"), ("", weight))
        _spread(sheet, given, guess)
    first = guess.bottom + 14
    sheet.box("frame", (_LEFT, _RIGHT), 4, ("Skip-gram", ""), height=first - 4, indent=10)
    top = first + 46
    mean_top = top + 44 + 34
    mean = Box("feed_forward", middle[0], mean_top, middle[1] - middle[0], 29)
    for span, word, weight in zip(spans, around, weights, strict=True):
        from_word = sheet.box("lookup", span, top, (word, "input"), ("", weight))
        _gather(sheet, from_word, mean)
    mean = sheet.box("feed_forward", middle, mean_top, ("mean", ""))
    guess = sheet.box("attention", middle, mean.bottom + _GAP, (center, "output"))
    sheet.arrow("flow", (mean.middle[0], mean.bottom), (mean.middle[0], guess.top))
    height = guess.bottom + 10 - (first + 12)
    sheet.box("frame", (_LEFT, _RIGHT), first + 12, ("CBOW", ""), height=height, indent=10)
    return sheet


def guess_against_noise(
    word: str, vector: Sequence[float], names: Sequence[str], outputs: Sequence[Sequence[float]]
) -> Diagram:
    """Draw negative sampling with its numbers: one word, its true neighbor, and two words of noise.

    Args:
        word: the center word.
        vector: its input vector v.
        names: three words; the first one is the true neighbor.
        outputs: their output vectors u, of the size of `vector`.

    Returns: as for `hypernym_tree`.

    Raises:
        ValueError: there are not three words, or the vectors do not fit.
    """
    if not len(names) == len(outputs) == 3 or any(len(each) != len(vector) for each in outputs):
        raise ValueError(
            f"the diagram needs 3 words with vectors of {len(vector)} numbers; got {len(names)} words "
            f"with vectors of {[len(each) for each in outputs]}"
        )
    products = [sum(a * b for a, b in zip(vector, each, strict=True)) for each in outputs]
    shares = [1 / (1 + math.exp(-product)) for product in products]
    wanted = (1, 0, 0)
    roles = ("true", "noise", "noise")
    told = "; ".join(
        f"{name}, {role}: u = {_vector(each)}, u · v = {product:.2f}, s = {share:.2f}, should be {target}, "
        f"error {share - target:+.2f}"
        for name, role, each, product, share, target in zip(
            names, roles, outputs, products, shares, wanted, strict=True
        )
    )
    sheet = Diagram(
        title="A guess against noise",
        description=(
            f"The input vector v of {word} is {_vector(vector)}. It is multiplied with the output vectors u "
            f"of three words, and the logistic function s makes a number from 0 to 1 of each product. {told}."
        ),
        caption=(
            "Negative sampling with numbers. The product with the true neighbor should become large, "
            "those with noise small. The errors below are the gradients of the products."
        ),
        width=_WIDTH,
    )
    asks = sheet.box("lookup", (_LEFT, _LEFT + 90), 4, (word, "v"), ("", _vector(vector)))
    for i, (name, role, each) in enumerate(zip(names, roles, outputs, strict=True)):
        span = (102 + 106 * i, 102 + 106 * i + 98)
        given = sheet.box("attention", span, 4, (name, role), ("", f"u {_vector(each)}"))
        product = ("", f"{products[i]:.2f}, s = {shares[i]:.2f}")
        score = sheet.box("feed_forward", span, given.bottom + 34, ("u · v", ""), product)
        error = ("", f"{shares[i] - wanted[i]:+.2f}")
        last = sheet.box(
            "data", span, score.bottom + _GAP, (f"should be {wanted[i]}", ""), ("error", error[1])
        )
        bus, enters = given.bottom + 12, span[0] + 18
        sheet.arrow(
            "flow", (asks.middle[0], asks.bottom), (asks.middle[0], bus), (enters, bus), (enters, score.top)
        )
        sheet.arrow("flow", (given.middle[0], given.bottom), (given.middle[0], score.top))
        sheet.arrow("flow", (score.middle[0], score.bottom), (score.middle[0], last.top))
    return sheet


def _spread(sheet: Diagram, above: Box, below: Box) -> None:
    """Lead from one box down to one of several in a row."""
    (x, _), (to_x, _) = above.middle, below.middle
    turn = above.bottom + 14
    sheet.arrow("flow", (x, above.bottom), (x, turn), (to_x, turn), (to_x, below.top))


def _gather(sheet: Diagram, above: Box, below: Box) -> None:
    """Lead from one of several boxes in a row down to one."""
    (x, _), (to_x, _) = above.middle, below.middle
    turn = below.top - 16
    sheet.arrow("flow", (x, above.bottom), (x, turn), (to_x, turn), (to_x, below.top))


def _vector(numbers: Sequence[float]) -> str:
    return f"({', '.join(f'{value:.1f}' for value in numbers)})"
