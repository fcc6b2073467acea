"""WordPiece: encoding against the encoder's own tokenizer, training against the naive way.

The library's WordPiece *trainer* is no oracle for training by likelihood: it merges by frequency.
"""

from collections import Counter
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nasty_texts import NASTY_TEXTS

from chapters_src.tokenization import WordPieceTokenizer
from chapters_src.tokenization.wordpiece import BERT_SPECIAL_TOKENS, learn_pieces, spell

# All code points of the planes in use, but for the insides of large uniform blocks (Chinese, Korean, private
# use), and samples of the private and the empty planes.
CODE_POINTS = [
    *range(0x3500),
    *range(0x4D00, 0x4F00),
    *range(0x9F00, 0xAD00),
    *range(0xD700, 0xD800),
    *range(0xE000, 0xE100),
    *range(0xF800, 0x20000),
    *range(0x2A6D0, 0x2A710),
    *range(0x2B730, 0x2B930),
    *range(0x2CE90, 0x2CEC0),
    *range(0x2F7F0, 0x2FA30),
    *range(0xE0000, 0xE0200),
    *range(0xFFFF0, 0x100010),
    *range(0x10FFF0, 0x110000),
]


# ---- encoding ----


def test_the_sentence_of_the_chapter(wordpiece):
    text = "Tokenizing text is a core task of NLP."
    ids = [101, 19204, 6026, 3793, 2003, 1037, 4563, 4708, 1997, 17953, 2361, 1012, 102]
    assert wordpiece.encode(text, add_special_tokens=True) == ids
    assert wordpiece.encode(text) == ids[1:-1]
    assert wordpiece.decode(ids) == "[CLS] tokenizing text is a core task of nlp . [SEP]"


def test_same_ids_as_the_encoders_tokenizer_on_real_text(wordpiece, library_wordpiece, corpus, held_out):
    for text in corpus + held_out:
        assert wordpiece.encode(text, add_special_tokens=True) == library_wordpiece.encode(text).ids


@pytest.mark.parametrize("name", NASTY_TEXTS)
def test_same_pieces_on_nasty_text(wordpiece, library_wordpiece, name):
    encoding = library_wordpiece.encode(NASTY_TEXTS[name], add_special_tokens=False)
    assert wordpiece.tokenize(NASTY_TEXTS[name]) == encoding.tokens
    assert wordpiece.encode(NASTY_TEXTS[name]) == encoding.ids


@given(st.text(max_size=60))
@settings(deadline=None, max_examples=500)
def test_same_ids_on_any_text(wordpiece, library_wordpiece, text):
    assert wordpiece.encode(text, add_special_tokens=True) == library_wordpiece.encode(text).ids


def test_same_ids_for_every_character_inside_a_word(wordpiece, library_wordpiece):
    for first in range(0, len(CODE_POINTS), 1000):
        text = " . ".join(f"a{chr(code)}b" for code in CODE_POINTS[first : first + 1000])
        assert wordpiece.encode(text) == library_wordpiece.encode(text, add_special_tokens=False).ids, (
            f"between U+{CODE_POINTS[first]:04X} and the thousandth after it"
        )


def test_special_tokens_as_in_the_library(wordpiece, library_wordpiece):
    text = "The [MASK] sat.[SEP] [CLS][UNK] [mask] [ MASK ]"
    assert 103 not in wordpiece.encode(text)
    library_wordpiece.encode_special_tokens = False
    try:
        expected = library_wordpiece.encode(text).ids
    finally:
        library_wordpiece.encode_special_tokens = True
    assert wordpiece.encode(text, allow_special_tokens=True, add_special_tokens=True) == expected
    assert expected.count(103) == 1


def test_a_word_of_more_than_100_characters_is_unknown(wordpiece):
    assert "[UNK]" not in wordpiece.tokenize("a" * 100)
    assert wordpiece.tokenize("a" * 101) == ["[UNK]"]
    assert wordpiece.encode("a" * 1_000_000) == [100]
    assert wordpiece.encode("!" * 1_000_000) == [999] * 1_000_000


def test_a_word_is_known_as_a_whole_or_not_at_all():
    tokenizer = WordPieceTokenizer({"[UNK]": 0, "un": 1, "##able": 2, "##a": 3}, ("[UNK]",))
    assert tokenizer.tokenize("unable una unx able") == ["un", "##able", "un", "##a", "[UNK]", "[UNK]"]


def test_greedy_may_miss_a_segmentation():
    tokenizer = WordPieceTokenizer({"[UNK]": 0, "ab": 1, "a": 2, "##bc": 3}, ("[UNK]",))
    assert tokenizer.tokenize("abc") == ["[UNK]"]  # although "a" and "##bc" would do


def test_special_tokens_to_add_have_to_be_there():
    tokenizer = WordPieceTokenizer({"[UNK]": 0, "a": 1}, ())
    assert tokenizer.encode("a") == [1]
    with pytest.raises(ValueError, match=r"\[CLS\] and \[SEP\] are not among"):
        tokenizer.encode("a", add_special_tokens=True)


def test_from_file(tmp_path):
    file = tmp_path / "vocab.txt"
    file.write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\u2028\n##b\n", encoding="utf-8")
    assert WordPieceTokenizer.from_file(file).vocabulary["##b"] == 6
    file.write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\na\n", encoding="utf-8")
    with pytest.raises(ValueError, match="holds the token 'a' twice"):
        WordPieceTokenizer.from_file(file)
    file.write_text("[PAD]\n[UNK]\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"missing from the vocabulary: \['\[CLS\]', '\[SEP\]', "):
        WordPieceTokenizer.from_file(file)


# ---- training ----


def learn_naively(
    words: dict[str, int], start: dict[str, int], vocab_size: int, min_frequency: int
) -> list[str]:
    """Count everything again before each merge, with exact fractions; return the pieces made."""
    vocabulary, merges = dict(start), []
    spelled = {word: spell(word) for word in words}
    while len(vocabulary) < vocab_size:
        symbols = Counter(symbol for word in words for symbol in spelled[word] * words[word])
        pairs = Counter(pair for word in words for pair in [*pairwise(spelled[word])] * words[word])
        candidates = [pair for pair in pairs if pairs[pair] >= min_frequency]
        if not candidates:
            break
        best = min(
            candidates,
            key=lambda p: (
                -Fraction(pairs[p], symbols[p[0]] * symbols[p[1]]),
                -pairs[p],
                vocabulary[p[0]],
                vocabulary[p[1]],
            ),
        )
        merged = best[0] + best[1].removeprefix("##")
        merges.append(merged)
        vocabulary[merged] = len(vocabulary)
        for word, pieces in spelled.items():
            spelled[word] = merge(pieces, best, merged)
    return merges


def merge(pieces: list[str], pair: tuple[str, str], merged: str) -> list[str]:
    result = []
    while pieces:
        if tuple(pieces[:2]) == pair:
            result, pieces = [*result, merged], pieces[2:]
        else:
            result, pieces = [*result, pieces[0]], pieces[1:]
    return result


TINY_WORDS = st.text(alphabet="abc", min_size=1, max_size=10)


@given(
    st.dictionaries(TINY_WORDS, st.integers(1, 9), min_size=1, max_size=8),
    st.integers(1, 40),
    st.integers(1, 4),
)
@settings(deadline=None, max_examples=300)
def test_training_equals_the_naive_way(words, additional, min_frequency):
    alphabet = sorted({symbol for word in words for symbol in spell(word)})
    start = {symbol: number for number, symbol in enumerate(alphabet)}
    learned = learn_pieces(words, start, len(start) + additional, min_frequency)
    expected = learn_naively(words, start, len(start) + additional, min_frequency)
    assert list(learned)[len(start) :] == expected
    assert list(learned.values()) == list(range(len(learned)))


def test_training_equals_the_naive_way_on_real_text(corpus):
    words = Counter(word for text in corpus[:40] for word in WordPieceTokenizer.words(text))
    tokenizer = WordPieceTokenizer.train(corpus[:40], 300, min_frequency=10)
    alphabet = list(tokenizer.vocabulary)[: len({s for word in words for s in spell(word)}) + 5]
    assert tuple(alphabet[:5]) == BERT_SPECIAL_TOKENS
    start = {token: number for number, token in enumerate(alphabet)}
    assert list(tokenizer.vocabulary)[len(start) :] == learn_naively(words, start, 300, 10)
    assert len(tokenizer) == 300


def test_trained_tokenizer_knows_its_corpus(corpus):
    tokenizer = WordPieceTokenizer.train(corpus, 1000, min_frequency=20)
    too_long = sum(len(word) > 100 for text in corpus for word in WordPieceTokenizer.words(text))
    assert sum(tokenizer.tokenize(text).count("[UNK]") for text in corpus) == too_long
