"""The two tokenizers without parts."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from nasty_texts import NASTY_TEXTS

from chapters_src.tokenization import CharacterTokenizer, WordTokenizer


def test_characters_round_trip_when_all_are_known():
    texts = list(NASTY_TEXTS.values())
    tokenizer = CharacterTokenizer.train(texts)
    assert len(tokenizer) == len(set("".join(texts))) + 1
    for text in texts:
        assert tokenizer.tokenize(text) == list(text)
        assert tokenizer.decode(tokenizer.encode(text)) == text


@given(st.text(alphabet="abcxyz"), st.text(alphabet="abcxyz", min_size=1))
@settings(deadline=None)
def test_characters_that_were_not_in_the_corpus_are_unknown(text, corpus):
    tokenizer = CharacterTokenizer.train([corpus])
    expected = [character if character in corpus else "<unk>" for character in text]
    assert tokenizer.tokenize(text) == expected
    assert tokenizer.decode(tokenizer.encode(text)) == "".join(expected)


def test_words_and_punctuation():
    tokenizer = WordTokenizer.train(["It's 5 o'clock: don't_wait, Élodie!"])
    assert tokenizer.tokenize("Élodie, it's  5!\n") == ["Élodie", ",", "<unk>", "'", "s", "5", "!"]
    assert tokenizer.decode(tokenizer.encode("It's 5!")) == "It ' s 5 !"


def test_most_frequent_words_stay(corpus):
    tokenizer = WordTokenizer.train(corpus, vocab_size=500, special_tokens=("<pad>",), min_frequency=3)
    counts = Counter(word for text in corpus for word in WordTokenizer.units(text))
    kept = list(tokenizer.vocabulary)[2:]
    assert len(tokenizer) == 500
    assert tokenizer.special_tokens == ("<unk>", "<pad>")
    assert min(counts[word] for word in kept) >= max(
        counts[word] for word in counts if word not in tokenizer.vocabulary
    )
    assert [counts[word] for word in kept] == sorted((counts[word] for word in kept), reverse=True)


def test_rare_units_become_unknown():
    tokenizer = WordTokenizer.train(["a a b", "a b c"], min_frequency=2)
    assert tokenizer.tokenize("a b c") == ["a", "b", "<unk>"]
    assert CharacterTokenizer.train(["aab"], min_frequency=2).tokenize("ab") == ["a", "<unk>"]


def test_unknown_token_may_have_another_name_and_place():
    tokenizer = WordTokenizer.train(["a"], special_tokens=("<pad>", "[UNK]"), unknown_token="[UNK]")
    assert tokenizer.vocabulary == {"<pad>": 0, "[UNK]": 1, "a": 2}
    assert tokenizer.encode("a z") == [2, 1]


def test_a_megabyte_of_one_letter():
    text = "a" * 1_000_000
    assert CharacterTokenizer.train(["ab"]).encode(text) == [1] * 1_000_000
    assert WordTokenizer.train([text]).encode(text) == [1]
