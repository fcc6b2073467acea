"""Byte-pair encoding against the Tokenizers library."""

import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nasty_texts import NASTY_TEXTS
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from chapters_src.tokenization import BytePairTokenizer
from chapters_src.tokenization.byte_pair import BYTE_OF, byte_alphabet, learn_merges

MEGABYTE = 1_000_000
TINY_WORDS = st.lists(
    st.one_of(
        st.text(alphabet="ab", min_size=1, max_size=12),
        st.text(alphabet="abc", min_size=1, max_size=30),
        st.text(alphabet="a", min_size=1, max_size=40),
    ),
    min_size=1,
    max_size=12,
)


def merges_of(library: Tokenizer) -> list[tuple[str, str]]:
    return [tuple(pair) for pair in json.loads(library.to_str())["model"]["merges"]]


# ---- the byte alphabet ----


def test_byte_alphabet_is_the_librarys():
    alphabet = byte_alphabet()
    assert set(alphabet.values()) == set(pre_tokenizers.ByteLevel.alphabet())
    assert len(set(alphabet.values())) == 256
    pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    for text in (*map(chr, range(0x800)), *map(chr, range(0x800, 0xD800, 97)), "\U00010000", "\U0010ffff"):
        [(seen, _)] = pre_tokenizer.pre_tokenize_str(text)
        assert "".join(alphabet[byte] for byte in text.encode("utf-8")) == seen
    assert (alphabet[ord(" ")], alphabet[ord("\n")], alphabet[ord("A")]) == ("Ġ", "Ċ", "A")


# ---- training ----


def test_same_merges_in_the_same_order_as_the_library(byte_pair, library_byte_pair):
    assert byte_pair.merges == merges_of(library_byte_pair)
    assert byte_pair.vocabulary == library_byte_pair.get_vocab()
    assert len(byte_pair) == 2000
    assert len(byte_pair.merges) == 2000 - 256 - 2


def test_training_stops_for_want_of_frequent_pairs():
    assert BytePairTokenizer.train(["abab cab"], 1000, min_frequency=3).merges == [("a", "b")]


@given(TINY_WORDS, st.integers(3, 60), st.integers(1, 3))
@settings(deadline=None, max_examples=400)
def test_tiny_corpora_give_the_merges_of_the_library(words, vocab_size, min_frequency):
    counts = Counter(words)
    alphabet = {symbol: number for number, symbol in enumerate(sorted(set("".join(words))))}
    vocabulary, merges = learn_merges(counts, alphabet, vocab_size, min_frequency)
    library = Tokenizer(models.BPE())
    library.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, min_frequency=min_frequency, show_progress=False)
    library.train_from_iterator([" ".join(words)], trainer)
    assert merges == merges_of(library)
    assert vocabulary == library.get_vocab()


def test_a_special_tokens_name_is_never_learned():
    vocabulary, merges = learn_merges({"abab": 5, "abc": 1}, {"ab": 0, "a": 1, "b": 2, "c": 3}, 20)
    assert ("a", "b") not in merges
    assert vocabulary["ab"] == 0
    assert [piece for piece, number in vocabulary.items() if number > 3] == list(map("".join, merges))


# ---- encoding ----


def test_same_ids_as_the_library_on_real_text(byte_pair, library_byte_pair, corpus, held_out):
    for text in corpus + held_out:
        assert byte_pair.encode(text) == library_byte_pair.encode(text).ids


@pytest.mark.parametrize("name", NASTY_TEXTS)
def test_same_ids_as_the_library_on_nasty_text(byte_pair, library_byte_pair, name):
    encoding = library_byte_pair.encode(NASTY_TEXTS[name])
    assert byte_pair.encode(NASTY_TEXTS[name]) == encoding.ids
    assert byte_pair.tokenize(NASTY_TEXTS[name]) == encoding.tokens
    assert byte_pair.decode(encoding.ids) == NASTY_TEXTS[name]


@given(st.text(alphabet=st.characters(exclude_categories=["Cs", "Cn"]), max_size=60))
@settings(deadline=None, max_examples=300)
def test_same_ids_as_the_library_on_any_assigned_characters(byte_pair, library_byte_pair, text):
    assert byte_pair.encode(text) == library_byte_pair.encode(text).ids


@given(st.text())
@settings(deadline=None, max_examples=500)
def test_round_trip_on_any_text(byte_pair, text):
    assert byte_pair.decode(byte_pair.encode(text)) == text
    assert "".join(BytePairTokenizer.words(text)) == text


@pytest.mark.parametrize("unit", ["a", " ", "é"])
def test_a_megabyte_of_one_letter(byte_pair, library_byte_pair, unit):
    text = unit * (MEGABYTE // len(unit.encode("utf-8")))
    ids = byte_pair.encode(text)
    assert ids == library_byte_pair.encode(text).ids
    assert byte_pair.decode(ids) == text


def test_special_tokens_as_in_the_library(byte_pair, library_byte_pair):
    text = "end<|endoftext|><pad><|endoftext|> <|endoftext start"
    library_byte_pair.encode_special_tokens = False
    try:
        assert byte_pair.encode(text, allow_special_tokens=True) == library_byte_pair.encode(text).ids
    finally:
        library_byte_pair.encode_special_tokens = True
    assert byte_pair.decode(byte_pair.encode(text, allow_special_tokens=True)) == text
    assert byte_pair.decode(byte_pair.encode(text)) == text


# ---- decoding ----


@given(st.data())
@settings(deadline=None, max_examples=300)
def test_any_ids_decode_as_in_the_library(byte_pair, library_byte_pair, data):
    ids = data.draw(st.lists(st.one_of(st.integers(2, 257), st.integers(2, len(byte_pair) - 1)), max_size=30))
    assert byte_pair.decode(ids) == library_byte_pair.decode(ids)


def test_half_a_character_is_replaced(byte_pair):
    euro = [byte_pair.vocabulary[byte_alphabet()[byte]] for byte in "€".encode()]
    assert byte_pair.decode(euro) == "€"
    assert byte_pair.decode(euro[:2]) == "\ufffd"
    assert byte_pair.decode([*euro[:2], byte_pair.vocabulary["<pad>"]]) == "\ufffd<pad>"


# ---- the constructor ----


def test_constructor_checks_the_merges():
    bytes_only = {character: number for number, character in enumerate(sorted(BYTE_OF))}
    with pytest.raises(ValueError, match=r"not in the vocabulary: \['ab'\]"):
        BytePairTokenizer(bytes_only, [("a", "b")])
    with pytest.raises(ValueError, match=r"1 bytes or merged pieces are not in the vocabulary: \['ÿ'\]"):
        BytePairTokenizer({c: n for c, n in bytes_only.items() if c != "ÿ"} | {"x1": bytes_only["ÿ"]}, [])
    with pytest.raises(ValueError, match="merge 0 joins 'ab' and 'c', but no earlier merge"):
        BytePairTokenizer(bytes_only | {"abc": 256, "ab": 257}, [("ab", "c"), ("a", "b")])
    with pytest.raises(ValueError, match="merge 1 makes 'ab', which is already a piece"):
        BytePairTokenizer(bytes_only | {"ab": 256}, [("a", "b"), ("a", "b")])
    with pytest.raises(ValueError, match=r"special tokens \['ab'\] are pieces of text"):
        BytePairTokenizer(bytes_only | {"ab": 256}, [("a", "b")], special_tokens=("ab",))


def test_a_small_corpus_gives_a_small_vocabulary():
    tokenizer = BytePairTokenizer.train(["abab"], 1000)
    assert tokenizer.merges == [("a", "b"), ("ab", "ab")]
    assert len(tokenizer) == 258
