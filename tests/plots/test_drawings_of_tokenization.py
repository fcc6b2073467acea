"""The drawings of chapter 03 show what its code computes."""

import re
from math import log

from drawing_checks import made_by, texts_of

CHAPTER = "03_tokenization"


def test_the_merges_and_their_ids_are_those_of_the_chapter():
    given = made_by(CHAPTER, "def (count_pairs|merge|train_pieces)")
    counts, count_pairs, train = (given[name] for name in ("word_counts", "count_pairs", "train_pieces"))
    said = texts_of("six_merges_by_hand")
    assert [text for text in said if text.endswith(" ×")] == [f"{n} ×" for n in counts.values()]
    wanted: list[str] = []
    for number in range(7):
        vocabulary, splits = train(counts, number)
        assert f"letters, ids 0–{len(vocabulary) - number - 1}" in said
        wanted += [piece for pieces in splits.values() for piece in pieces]
        if number == 6:
            break
        after, _ = train(counts, number + 1)
        piece = list(after)[-1]
        pair = next(pair for pair, _ in count_pairs(splits, counts).most_common() if "".join(pair) == piece)
        place = said.index(" + ".join(pair))
        assert said[place + 1] == f"{count_pairs(splits, counts)[pair]} times, id {after[piece]}"
    boxes = [text for text in said if re.fullmatch("[a-z]+", text)]
    assert boxes == wanted


def test_the_best_sums_are_those_of_the_chapter():
    probability = made_by(CHAPTER, "probability = ")["probability"]
    word, best = "training", [0.0]
    for end in range(1, 9):
        ways = [
            best[start] + log(probability[word[start:end]])
            for start in range(end)
            if word[start:end] in probability
        ]
        best.append(max(ways))
    said = texts_of("most_probable_split")
    numbers = [text for text in said if re.fullmatch(r"-\d\.\d", text)]
    assert numbers == [f"{value:.1f}" for value in best[1:]]
    arcs = dict(text.split() for text in said if re.fullmatch(r"[a-z]+ -\d\.\d", text))
    assert arcs == {piece: f"{log(p):.1f}" for piece, p in probability.items() if len(piece) > 1}


def test_positions_are_counted_from_the_edge_and_from_the_mask():
    said = [text for text in texts_of("where_padding_stands") if re.fullmatch(r"\[?\w+\]?|\.", text)]
    rows = [said[i : i + 12] for i in range(0, 60, 12)]
    right, first, left, second, third = rows
    assert right[:6] == left[6:] and set(right[6:]) == set(left[:6]) == {"[PAD]"}
    assert first == second == [str(i) for i in range(12)]
    from_mask = [max(sum(token != "[PAD]" for token in left[: i + 1]) - 1, 0) for i in range(12)]
    assert third == [str(position) for position in from_mask]
