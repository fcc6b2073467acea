"""Unigram: segmentation against the library, training against enumeration and the library's quality."""

import json
import math
from collections import Counter
from itertools import combinations, pairwise

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from nasty_texts import NASTY_TEXTS
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from chapters_src.tokenization import UnigramTokenizer
from chapters_src.tokenization.lattice import (
    best_segmentation,
    build_lattice,
    build_trie,
    expected_counts,
)
from chapters_src.tokenization.unigram_training import (
    build_lattices,
    count_pieces,
    learn_pieces,
    log_probabilities,
    losses,
    prune,
    seed_pieces,
)

# Pieces over a tiny alphabet. Whole and half scores add up without rounding, so ties are real ties. The
# library also takes scores above 0, which are no log-probabilities.
PIECES = st.dictionaries(
    st.text(alphabet="▁abc", min_size=1, max_size=4),
    st.one_of(st.integers(-24, 4).map(lambda n: n / 2), st.floats(-20, 2)),
    max_size=15,
)


def library_for(pieces: list[tuple[str, float]]) -> Tokenizer:
    library = Tokenizer(models.Unigram(pieces, unk_id=0))
    library.pre_tokenizer = pre_tokenizers.Metaspace()
    library.decoder = decoders.Metaspace()
    return library


def parts(tokenizer: UnigramTokenizer, text: str) -> list[str]:
    return [part for word in tokenizer.words(text) for part in tokenizer.segment(word)]


def all_segmentations(word: str, pieces) -> list[list[str]]:
    """Enumerate every way to cut a word into pieces of the vocabulary."""
    cuts = [cut for number in range(len(word)) for cut in combinations(range(1, len(word)), number)]
    found = [[word[a:b] for a, b in pairwise((0, *cut, len(word)))] for cut in cuts]
    return [segmentation for segmentation in found if all(piece in pieces for piece in segmentation)]


# ---- segmentation ----


@pytest.mark.parametrize("text", [*NASTY_TEXTS.values(), " a", "a ", "▁", "▁a b▁c", "a\u00a0b\u3000c"])
def test_words_are_those_of_the_librarys_metaspace(text):
    expected = [word for word, _ in pre_tokenizers.Metaspace().pre_tokenize_str(text)]
    assert UnigramTokenizer.words(text) == expected


def test_same_segmentation_as_the_library_on_real_text(
    unigram_with_library_pieces, library_unigram, corpus, held_out
):
    for text in corpus + held_out:
        encoding = library_unigram.encode(text)
        assert parts(unigram_with_library_pieces, text) == encoding.tokens
        assert unigram_with_library_pieces.encode(text) == encoding.ids


@pytest.mark.parametrize("name", [name for name in NASTY_TEXTS if name != "the tokenizers' own marks"])
def test_same_segmentation_as_the_library_on_nasty_text(unigram_with_library_pieces, library_unigram, name):
    encoding = library_unigram.encode(NASTY_TEXTS[name])
    assert parts(unigram_with_library_pieces, NASTY_TEXTS[name]) == encoding.tokens
    assert unigram_with_library_pieces.encode(NASTY_TEXTS[name]) == encoding.ids
    assert unigram_with_library_pieces.decode(encoding.ids) == library_unigram.decode(
        encoding.ids, skip_special_tokens=False
    )


@given(st.one_of(st.text(max_size=40), st.text(alphabet="the ▁nparylosi\n.é漢", max_size=60)))
@settings(deadline=None, max_examples=400)
def test_same_segmentation_as_the_library_on_any_text(unigram_with_library_pieces, library_unigram, text):
    assume("<unk>" not in text)  # spelled out, it is text here and a piece in the library: tested below
    encoding = library_unigram.encode(text)
    assert parts(unigram_with_library_pieces, text) == encoding.tokens
    assert unigram_with_library_pieces.encode(text) == encoding.ids


@given(PIECES, st.text(alphabet="abcx ", max_size=25))
@example({"▁": -1.0, "a": -1.0, "aa": -1.0}, "aaa")  # of equal ones the longer last piece wins
@example({"▁": -1.0, "ab": -12.0, "c": -11.5, "bc": -2.0}, "abc")  # an unknown "a" costs ten nats
@example({"▁": -1.0, "ab": -12.0, "c": -12.0, "bc": -2.0}, "abc")  # more than the rarest piece
@example({"▁": 20.0, "▁a": -5.0}, "a")  # a piece may be worse than an unknown character
@settings(deadline=None, max_examples=500)
def test_same_segmentation_as_the_library_for_any_scores(pieces, text):
    listed = [("<unk>", 0.0), *pieces.items()]
    tokenizer = UnigramTokenizer(listed)
    encoding = library_for(listed).encode(text)
    assert parts(tokenizer, text) == encoding.tokens
    assert tokenizer.encode(text) == encoding.ids


def test_neighboring_unknown_characters_are_one_token():
    pieces = [("<unk>", 0.0), ("▁", -1.0), ("a", -1.0)]
    tokenizer = UnigramTokenizer(pieces)
    assert tokenizer.tokenize("xyaz") == ["▁", "<unk>", "a", "<unk>"]
    assert tokenizer.segment("▁xyaz") == library_for(pieces).encode("xyaz").tokens == ["▁", "xy", "a", "z"]
    assert tokenizer.decode(tokenizer.encode("xyaz a")) == "<unk>a<unk> a"


def test_spelled_unknown_token_is_text_here_and_a_piece_in_the_library():
    pieces = [("<unk>", 0.0), *((character, -2.0) for character in "▁<unk>")]
    assert library_for(pieces).encode("<unk>").tokens == ["▁", "<unk>"]
    assert UnigramTokenizer(pieces).tokenize("<unk>") == ["▁", *"<unk>"]


@pytest.mark.parametrize("unit", ["a", "漢"])
def test_a_megabyte_of_one_letter(unigram_with_library_pieces, library_unigram, unit):
    text = unit * (1_000_000 // len(unit.encode("utf-8")))
    assert unigram_with_library_pieces.encode(text) == library_unigram.encode(text).ids


def test_special_tokens_as_in_the_library():
    pieces = [("<unk>", 0.0), ("<s>", 0.0), ("▁", -1.0), ("a", -1.0), ("▁a", -1.5), ("<", -3.0)]
    library = library_for(pieces)
    library.add_special_tokens(["<unk>", "<s>"])
    tokenizer = UnigramTokenizer(pieces, special_tokens=("<unk>", "<s>"))
    for text in ("a<s>a <s> a", "<s>", "<s<s>", "<unk> a"):
        assert tokenizer.encode(text, allow_special_tokens=True) == library.encode(text).ids


def test_constructor_checks_the_pieces():
    with pytest.raises(ValueError, match="distinct"):
        UnigramTokenizer([("<unk>", 0.0), ("a", -1.0), ("a", -2.0)])
    with pytest.raises(ValueError, match="not empty"):
        UnigramTokenizer([("<unk>", 0.0), ("", -1.0)])
    with pytest.raises(ValueError, match=r"missing from the vocabulary: \['<unk>'\]"):
        UnigramTokenizer([("a", -1.0)])


# ---- training: the lattice ----

SCORED_ALPHABET = PIECES.map(lambda pieces: {"a": -1.5, "b": -2.5, "c": -0.5} | pieces)


@given(SCORED_ALPHABET, st.text(alphabet="abc", min_size=1, max_size=9))
@settings(deadline=None)
def test_expected_counts_equal_enumeration(pieces, word):
    weights = {
        tuple(segmentation): math.exp(sum(pieces[piece] for piece in segmentation))
        for segmentation in all_segmentations(word, pieces)
    }
    total = sum(weights.values())
    expected: Counter[str] = Counter()
    for segmentation, weight in weights.items():
        for piece in segmentation:
            expected[piece] += weight / total
    log_probability, counts = expected_counts(build_lattice(word, build_trie(pieces)), pieces)
    assert log_probability == pytest.approx(math.log(total), abs=1e-9)
    assert counts == pytest.approx(dict(expected), abs=1e-9)


def test_long_words_do_not_underflow():
    scores = {"a": -50.0, "aa": -99.0}
    log_probability, counts = expected_counts(build_lattice("a" * 5000, build_trie(scores)), scores)
    assert -50 * 5000 < log_probability < -49 * 5000
    assert counts["a"] + 2 * counts["aa"] == pytest.approx(5000)


# ---- training: expectation-maximization and pruning ----


def words_of(texts: list[str]) -> Counter[str]:
    return Counter(word for text in texts for word in UnigramTokenizer.words(text))


def test_the_likelihood_never_falls(corpus):
    words = words_of(corpus[:60])
    scores = log_probabilities(seed_pieces(words, 2000))
    lattices = build_lattices(words, scores)
    likelihoods = []
    for _ in range(12):
        log_likelihood, counts = count_pieces(lattices, scores)
        scores = log_probabilities(counts)
        likelihoods.append(log_likelihood)
    assert all(later >= earlier for earlier, later in pairwise(likelihoods))
    assert likelihoods[-1] > likelihoods[0] + 1000
    assert sum(map(math.exp, scores.values())) == pytest.approx(1.0)


def test_seeds_are_characters_and_the_heaviest_substrings():
    seeds = seed_pieces({"abab": 3, "xyz": 1}, 7, min_frequency=2, excluded=("aba",))
    assert seeds == {"a": 6, "b": 6, "x": 1, "y": 1, "z": 1, "ab": 12, "abab": 12}


def test_losses_by_hand():
    scores = {"a": -1.0, "b": -2.0, "ab": -2.5, "aba": -3.0, "bab": -9.0}
    counts = {"a": 5.0, "b": 5.0, "ab": 4.0, "aba": 2.0, "bab": 1.0}
    # Without itself "ab" is a b (-3), "aba" is ab a (-3.5), "bab" is b ab (-4.5), better than with itself.
    assert losses(counts, scores) == pytest.approx({"ab": 2.0, "aba": 1.0, "bab": -4.5})
    assert list(prune(counts, scores, 3)) == ["a", "b", "ab"]
    assert list(prune(counts, scores, 2)) == ["a", "b"]
    assert best_segmentation("ac", build_trie(scores), scores) == []


def test_trained_vocabulary(corpus):
    tokenizer = UnigramTokenizer.train(corpus[:20], 400, special_tokens=("<pad>",))
    assert len(tokenizer) == 400
    assert tokenizer.pieces[:2] == [("<unk>", 0.0), ("<pad>", 0.0)]
    scores = [score for _, score in tokenizer.pieces[2:]]
    assert scores == sorted(scores, reverse=True)
    assert sum(map(math.exp, scores)) == pytest.approx(1.0)
    for text in corpus[:20]:
        assert "<unk>" not in tokenizer.tokenize(text)
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_a_small_corpus_gives_a_small_vocabulary():
    assert len(learn_pieces({"ab": 3}, 100)) == 3
    assert [piece for piece, _ in learn_pieces({"ab": 3}, 2)] == ["a", "b"]


def bits(pieces: list[tuple[str, float]], texts: list[str]) -> float:
    """Total bits of the best segmentations, with scores that add up to probability 1."""
    log_total = math.log(sum(math.exp(score) for _, score in pieces[1:]))
    scores = {piece: score - log_total for piece, score in pieces[1:]}
    tokenizer = UnigramTokenizer([pieces[0], *scores.items()])
    unknown = min(scores.values()) - 10
    tokens = (token for text in texts for token in tokenizer.tokenize(text))
    return -sum(scores.get(token, unknown) for token in tokens) / math.log(2)


def test_as_good_as_the_library_on_held_out_text(corpus, held_out, library_unigram):
    library = json.loads(library_unigram.to_str())["model"]["vocab"]
    ours = UnigramTokenizer.train(corpus[: len(corpus) // 3], len(library))
    ratio = bits(ours.pieces, held_out) / bits(library, held_out)
    assert 0.9 < ratio < 1.0
