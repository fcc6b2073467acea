"""The drawings of chapter 03 show what its code computes."""

import ast
import re
from collections import Counter
from itertools import pairwise
from math import log
from xml.etree import ElementTree

import nbformat
from drawing_checks import SVG

from chapters_src.plots.drawings import FOLDER
from paths import NOTEBOOKS

COUNTS = {"train": 5, "trains": 3, "training": 4, "rain": 2, "brain": 1}


def of_the_chapter(*names: str) -> list:
    """What the notebook defines under these names, the first of each."""
    known: dict = {"Counter": Counter, "pairwise": pairwise}
    for cell in nbformat.read(NOTEBOOKS / "03_tokenization.ipynb", 4).cells:
        for node in ast.parse(cell.source).body if cell.cell_type == "code" else ():
            targets = {ast.unparse(target) for target in getattr(node, "targets", [])}
            if ({getattr(node, "name", None)} | targets) & set(names) - known.keys():
                exec(compile(ast.Module([node], []), "chapter", "exec"), known)
    return [known[name] for name in names]


def texts(name: str) -> list[str]:
    root = ElementTree.parse(FOLDER / f"{name}.svg").getroot()
    return ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]


def test_the_merges_and_their_ids_are_those_of_the_chapter():
    count_pairs, _, train = of_the_chapter("count_pairs", "merge", "train_pieces")
    said = texts("six_merges_by_hand")
    assert [text for text in said if text.endswith(" ×")] == [f"{n} ×" for n in COUNTS.values()]
    wanted: list[str] = []
    for number in range(7):
        vocabulary, splits = train(COUNTS, number)
        assert f"letters, ids 0–{len(vocabulary) - number - 1}" in said
        wanted += [piece for pieces in splits.values() for piece in pieces]
        if number == 6:
            break
        after, _ = train(COUNTS, number + 1)
        piece = list(after)[-1]
        pair = next(pair for pair, _ in count_pairs(splits, COUNTS).most_common() if "".join(pair) == piece)
        place = said.index(" + ".join(pair))
        assert said[place + 1] == f"{count_pairs(splits, COUNTS)[pair]} times, id {after[piece]}"
    boxes = [text for text in said if re.fullmatch("[a-z]+", text)]
    assert boxes == wanted


def test_the_best_sums_are_those_of_the_chapter():
    (probability,) = of_the_chapter("probability")
    probability |= dict.fromkeys("abginrst", 0.05)
    word, best = "training", [0.0]
    for end in range(1, 9):
        ways = [
            best[start] + log(probability[word[start:end]])
            for start in range(end)
            if word[start:end] in probability
        ]
        best.append(max(ways))
    said = texts("most_probable_split")
    numbers = [text for text in said if re.fullmatch(r"−\d\.\d", text)]
    assert numbers == [f"{value:.1f}".replace("-", "−") for value in best[1:]]
    arcs = dict(text.split() for text in said if re.fullmatch(r"[a-z]+ −\d\.\d", text))
    assert arcs == {
        piece: f"{log(p):.1f}".replace("-", "−") for piece, p in probability.items() if len(piece) > 1
    }


def test_positions_are_counted_from_the_edge_and_from_the_mask():
    said = [text for text in texts("where_padding_stands") if re.fullmatch(r"\[?\w+\]?|\.", text)]
    rows = [said[i : i + 12] for i in range(0, 60, 12)]
    right, first, left, second, third = rows
    assert right[:6] == left[6:] and set(right[6:]) == set(left[:6]) == {"[PAD]"}
    assert first == second == [str(i) for i in range(12)]
    from_mask = [max(sum(token != "[PAD]" for token in left[: i + 1]) - 1, 0) for i in range(12)]
    assert third == [str(position) for position in from_mask]
