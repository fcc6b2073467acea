"""What holds for all five tokenizers: the interface, refusals, files."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from conftest import SMALL_CORPUS
from hypothesis import given, settings
from hypothesis import strategies as st
from nasty_texts import NASTY_TEXTS

from chapters_src.tokenization import (
    BytePairTokenizer,
    CharacterTokenizer,
    UnigramTokenizer,
    WordPieceTokenizer,
    WordTokenizer,
)

SPELLED = ["<|x|>", "[MASK]", "<unk>", "[UNK]"]


@pytest.mark.parametrize("name", NASTY_TEXTS)
def test_ids_are_those_of_the_pieces(small, name):
    pieces = small.tokenize(NASTY_TEXTS[name])
    ids = small.encode(NASTY_TEXTS[name])
    assert ids == [small.vocabulary[piece] for piece in pieces]
    assert all(0 <= token_id < len(small) == len(small.vocabulary) for token_id in ids)


def test_special_tokens_have_the_first_ids(small):
    first = sorted(small.vocabulary, key=small.vocabulary.__getitem__)[: len(small.special_tokens)]
    assert tuple(first) == small.special_tokens
    assert {"<|x|>", "[MASK]", small.unknown_token} - {None} == set(first)


@given(st.lists(st.one_of(st.sampled_from(SPELLED), st.text(alphabet="low<|x>[MASKU]unk ", max_size=6))))
@settings(deadline=None)
def test_text_never_gives_a_special_token(small, parts):
    pieces = small.tokenize("".join(parts))
    assert not (set(small.special_tokens) - {small.unknown_token}).intersection(pieces)


def test_a_special_token_in_the_corpus_is_text(kind):
    tokenizer = kind.train(["<unk> [UNK] <|x|>"] * 9, 300, special_tokens=("<|x|>", "<unk>"))
    for spelled in ("<unk>", "<|x|>"):
        assert not set(tokenizer.special_tokens).intersection(tokenizer.tokenize(spelled))
        assert tokenizer.tokenize(spelled, allow_special_tokens=True) == [spelled]


def test_special_tokens_count_where_they_are_allowed(small):
    ids = small.encode("low<|x|>[MASK] wide", allow_special_tokens=True)
    assert [i for i in ids if i in (small.vocabulary["<|x|>"], small.vocabulary["[MASK]"])] == [
        small.vocabulary["<|x|>"],
        small.vocabulary["[MASK]"],
    ]
    assert small.decode(ids).replace(" ", "") == "low<|x|>[MASK]wide"


def test_longest_special_token_wins():
    tokenizer = WordTokenizer.train(["a"], special_tokens=("<x", "<x>"))
    assert tokenizer.tokenize("a<x>a<x", allow_special_tokens=True) == ["a", "<x>", "a", "<x"]


@pytest.mark.parametrize(("text", "code", "position"), [("ab\ud83dc", "D83D", 2), ("\ude00", "DE00", 0)])
def test_lone_surrogates_are_refused(small, kind, text, code, position):
    for read in (small.tokenize, small.encode, lambda text: kind.train([text], 300)):
        with pytest.raises(ValueError, match=rf"U\+{code} at position {position} .*surrogatepass"):
            read(text)


@pytest.mark.parametrize("text", [b"low", None, 5, ["low"]])
def test_only_str_is_read(small, text):
    with pytest.raises(TypeError, match="reads a str, not"):
        small.encode(text)


def test_ids_out_of_range_are_refused(small):
    for bad in (-1, len(small)):
        with pytest.raises(ValueError, match=f"id {bad} at position 1 .* 0 to {len(small) - 1}"):
            small.decode([len(small) - 1, bad])


def test_ids_may_be_of_any_integer_type(small):
    ids = small.encode("lower newest")
    assert small.decode(np.array(ids)) == small.decode(ids)
    with pytest.raises(TypeError):
        small.decode([1.5])


def test_training_refuses_what_it_cannot_use(kind):
    with pytest.raises(ValueError, match="corpus is empty"):
        kind.train([], 300)
    with pytest.raises(ValueError, match="corpus is empty"):
        kind.train(["", ""], 300)
    with pytest.raises(TypeError, match="pass a list of texts"):
        kind.train("one text", 300)
    with pytest.raises(ValueError, match=r"repeated: \['<pad>'\]"):
        kind.train(["a"], 300, special_tokens=("<pad>", "<s>", "<pad>"))
    with pytest.raises(TypeError, match="is one string"):
        kind.train(["a"], 300, special_tokens="<pad>")
    with pytest.raises(ValueError, match="empty"):
        kind.train(["a"], 300, special_tokens=("",))
    with pytest.raises(ValueError, match="vocab_size=1 "):
        kind.train(["abc"], 1)


@pytest.mark.parametrize(
    ("kind", "needed"),
    # 2 special tokens and: 256 bytes; [UNK], a, ##b, ##c; <unk>, "▁", a, b, c
    [(BytePairTokenizer, 2 + 256), (WordPieceTokenizer, 2 + 4), (UnigramTokenizer, 2 + 5)],
)
def test_training_leaves_room_for_the_alphabet(kind, needed):
    special_tokens = ("<x>", "<y>")
    assert len(kind.train(["abc"], needed, special_tokens)) == needed
    with pytest.raises(ValueError, match=f"vocab_size={needed - 1} is too small: .* need {needed} at least"):
        kind.train(["abc"], needed - 1, special_tokens)


@pytest.mark.parametrize("kind", [CharacterTokenizer, WordTokenizer])
def test_training_leaves_room_for_one_unit(kind):
    assert len(kind.train(["a b"], 4, special_tokens=("<x>", "<y>"))) == 4
    with pytest.raises(ValueError, match="vocab_size=3 leaves no room beside 3 special tokens"):
        kind.train(["a b"], 3, special_tokens=("<x>", "<y>"))


def test_a_special_token_is_no_single_character(kind):
    if kind.__name__ in ("CharacterTokenizer", "WordTokenizer"):  # there it only makes that character unknown
        assert kind.train(["a b"], special_tokens=("a",)).tokenize("a") == ["<unk>"]
        return
    with pytest.raises(ValueError, match=r"special tokens \['a'\] are single characters"):
        kind.train(["a b"], 300, special_tokens=("a",))


def test_a_corpus_may_be_a_generator_in_any_order(kind, small):
    again = kind.train((text for text in SMALL_CORPUS[::-1]), 300, special_tokens=["<|x|>", "[MASK]"])
    assert again.vocabulary == small.vocabulary


def test_vocabulary_is_checked(small):
    state = json.loads(json.dumps(small._state()))
    if "vocabulary" in state:
        state["vocabulary"][small.special_tokens[0]] = 99_999
        with pytest.raises(ValueError, match="each once"):
            type(small)(**state)
    state = json.loads(json.dumps(small._state())) | {"special_tokens": ["<missing>"]}
    with pytest.raises(ValueError, match="<missing>"):
        type(small)(**state)


def test_the_callers_vocabulary_is_not_changed(small):
    state = small._state()
    before = json.dumps(state)
    other = type(small)(**state)
    other.vocabulary["new"] = 1
    assert json.dumps(small._state()) == before


# ---- files ----


@pytest.fixture
def saved(small, tmp_path: Path) -> Path:
    small.save(tmp_path / "tokenizer.json")
    return tmp_path / "tokenizer.json"


def test_loaded_tokenizer_gives_the_same_ids(small, kind, saved, held_out):
    loaded = kind.load(saved)
    assert loaded.vocabulary == small.vocabulary
    assert (loaded.special_tokens, loaded.unknown_token) == (small.special_tokens, small.unknown_token)
    for text in [*NASTY_TEXTS.values(), *held_out[:50]]:
        assert loaded.encode(text) == small.encode(text)
        assert loaded.encode(text, allow_special_tokens=True) == small.encode(text, allow_special_tokens=True)
        assert loaded.decode(small.encode(text)) == small.decode(small.encode(text))


def test_pickled_tokenizer_gives_the_same_ids(kind):
    fresh = kind.train(SMALL_CORPUS, 300)
    before = pickle.dumps(fresh)
    ids = fresh.encode("lower newest")
    assert pickle.loads(before).encode("lower newest") == ids
    assert pickle.dumps(fresh) == before  # use does not change it, so a fingerprint of it stays the same


def test_missing_file(kind, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file .*nothing.json: write one with tokenizer.save"):
        kind.load(tmp_path / "nothing.json")


@pytest.mark.parametrize("length", [0, -3])
def test_half_a_file(kind, saved, length):
    saved.write_bytes(saved.read_bytes()[:length])
    with pytest.raises(ValueError, match="is damaged"):
        kind.load(saved)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"[1, 2]", b"{}", b'{"tokenizer": 5}', b"null"])
def test_some_other_file(kind, saved, content):
    saved.write_bytes(content)
    with pytest.raises(ValueError, match=r"(holds no|not a) saved tokenizer"):
        kind.load(saved)


def test_tokenizer_of_another_kind(kind, tmp_path):
    other = WordTokenizer if kind is BytePairTokenizer else BytePairTokenizer
    other.train(["abc"], 300).save(tmp_path / "other.json")
    with pytest.raises(ValueError, match=f"holds a {other.__name__}: read it with {other.__name__}.load"):
        kind.load(tmp_path / "other.json")


def test_missing_and_wrong_entries(small, kind, saved):
    whole = json.loads(saved.read_text(encoding="utf-8"))
    keys = whole.keys() - {"tokenizer", "special_tokens", "unknown_token"}
    assert keys
    for key in keys:
        saved.write_text(json.dumps({k: v for k, v in whole.items() if k != key}))
        with pytest.raises(ValueError, match="is damaged"):
            kind.load(saved)
        saved.write_text(json.dumps(whole | {key: [1, 2, 3]}))
        with pytest.raises(ValueError, match="is damaged"):
            kind.load(saved)


def test_saving_into_a_missing_folder(small, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"the folder .*nowhere does not exist"):
        small.save(tmp_path / "nowhere" / "tokenizer.json")
