"""End ids, stop strings and texts: against the library's `stop_strings`, and the rules that are stated."""

import pytest
import torch
from beside_library import generate, random_prompts, seeded, targets
from hypothesis import given, settings
from hypothesis import strategies as st
from library_models import END, PADDING, START, VOCAB_SIZE, library_model
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from chapters_src.decoding import Stop, beam_sample, beam_search, greedy, sample, speculative, stream
from chapters_src.tokenization import BytePairTokenizer
from chapters_src.transformer import Config, LanguageModel

pytestmark = pytest.mark.usefixtures("quiet_library")
# Pieces on bytes, for models with 40 tokens: "Ã©" is é, "âĤ¬" is €, Ġ a space, Ċ a newline.
SPELLED = (
    "a <pad> <start> <end> b c d e f ab bc cab s t o p st op stop topper las sto Ġ Ġa Ġstop Ċ . ! ? Ã © "
    "â Ĥ ¬ âĤ ¬a Ã© xy x y"
)
PIECES = SPELLED.split()
NEWLINE = PIECES.index("Ċ")
STOPS = ["ab", "stop", "é", "€a", "xyx"]


def library_tokenizer():
    tokenizer = Tokenizer(models.BPE({piece: number for number, piece in enumerate(PIECES)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, clean_up_tokenization_spaces=False)


TOKENIZER = library_tokenizer()


class Pieces:
    """A tokenizer whose ids are places in a list of strings."""

    def __init__(self, *pieces):
        self.pieces = pieces

    def decode(self, ids):
        return "".join(self.pieces[each] for each in ids)


def test_there_is_a_piece_for_each_token():
    assert len(PIECES) == len(set(PIECES)) == VOCAB_SIZE
    assert [PIECES[each] for each in (PADDING, START, END)] == ["<pad>", "<start>", "<end>"]
    assert TOKENIZER.decode([PIECES.index("Ã"), PIECES.index("©"), PIECES.index("âĤ")]) == "é\ufffd"


# Against generate()


@pytest.mark.parametrize("kind", ["gpt2", "llama", "bart"])
@pytest.mark.parametrize("num_beams", [1, 3])
def test_stop_strings_are_those_of_generate(kind, num_beams):
    """Prompts end with a newline, because the library also finds strings that begin in the prompt."""
    reasons = []
    for seed in range(10):
        model = library_model(kind, seed)
        prompts = [[*prompt, NEWLINE] for prompt in random_prompts(seed)]
        expected = generate(
            model,
            kind,
            prompts,
            num_beams=num_beams,
            stop_strings=STOPS,
            tokenizer=TOKENIZER,
            max_new_tokens=20,
        )
        options = {"max_new_tokens": 20, "stop": Stop(END, STOPS, TOKENIZER), **targets(kind)}
        if num_beams == 1:
            found = greedy(model, prompts, **options)
        else:
            found = [best for (best,) in beam_search(model, prompts, num_beams=num_beams, **options)]
        for each, row in zip(found, expected, strict=True):
            assert list(each.ids) == row[: len(each.ids)]
            assert set(row[len(each.ids) :]) <= {PADDING}
            whole = TOKENIZER.decode([token for token in each.ids if token != END])
            assert (each.finished == "stop") == any(string in whole for string in STOPS)
            assert not any(string in each.text for string in STOPS) and whole.startswith(each.text)
        reasons += [each.finished for each in found]
    assert min(reasons.count(reason) for reason in ("end", "stop", "length")) >= 2


# The rules


@pytest.mark.parametrize(
    ("pieces", "strings", "ids", "text"),
    [
        (("st", "op"), "stop", 2, ""),
        (("a ", "st", "opera", "tion"), "stop", 3, "a "),
        (("las", "topper"), "stop", 2, "la"),
        (("s", "to", "pped", "x"), ["stop", "nothing"], 3, ""),
        (("ab", "c\nd", "\n"), "\n", 2, "abc"),
        (("x", "aab"), ["b", "ab", "aab"], 2, "x"),  # the one that begins first counts
        (("stopstop",), "stop", 1, ""),
        (("never", "here"), "stop", 2, "neverhere"),
    ],
)
def test_ids_end_with_the_token_and_text_before_the_string(pieces, strings, ids, text):
    stop = Stop((), strings, Pieces(*pieces))
    whole = list(range(len(pieces)))
    ends = [length for length in range(1, len(whole) + 1) if stop.reason(whole[:length])]
    assert (ends or [len(whole)])[0] == ids
    assert stop.text(whole[:ids]) == text


def test_an_end_id_is_in_the_ids_and_not_in_the_text():
    stop = Stop(1, "b<", Pieces("a", "<end>", "b"))
    assert stop.reason([0, 2]) is None and stop.reason([0, 2, 1]) == "end"  # no part of a string either
    assert stop.text([0, 2, 1]) == "ab"
    assert Stop(1).text([0, 2, 1]) is None
    assert Stop((1, 2)).reason([2]) == "end" and Stop().reason([1]) is None


def test_every_method_follows_them():
    model = library_model("llama", 0)
    (plain,) = greedy(model, [[5, 6]], max_new_tokens=8)
    text = TOKENIZER.decode(list(plain.ids))
    string = text[3:5]
    stop = Stop((), string, TOKENIZER)
    (expected,) = greedy(model, [[5, 6]], max_new_tokens=8, stop=stop)
    assert expected.finished == "stop" and expected.text == text.partition(string)[0]
    found = speculative(model, [5, 6], draft=model, num_drafted=7, max_new_tokens=8, stop=stop)
    assert found.continuation.ids == expected.ids and found.continuation.text == expected.text
    for seed in range(20):
        drawn = {"generator": seeded(seed), "max_new_tokens": 8, "stop": stop}
        (sampled,) = sample(model, [[5, 6]], **drawn)
        ((searched,),) = beam_sample(model, [[5, 6]], num_beams=2, **drawn)
        for each in (sampled, searched):
            whole = TOKENIZER.decode(list(each.ids))
            assert (each.finished == "stop") == (string in whole)
            assert each.text == whole.partition(string)[0]
            assert string not in TOKENIZER.decode(list(each.ids[:-1]))


# Streams of text


@given(
    ids=st.lists(
        st.sampled_from([each for each in range(VOCAB_SIZE) if each not in (PADDING, START)]), max_size=15
    ),
    strings=st.lists(st.sampled_from([*STOPS, "stop.", "a", "abcab", "¬"]), max_size=3, unique=True),
)
@settings(max_examples=300, deadline=None)
def test_certain_text_is_never_taken_back(ids, strings):
    stop = Stop(END, strings, TOKENIZER)
    shown = ""
    for length in range(1, len(ids) + 1):
        if stop.reason(ids[:length]) is not None:
            ids = ids[:length]
            break
        certain = stop.certain_text(ids[:length])
        assert certain.startswith(shown)
        shown = certain
    assert not ids or stop.text(ids).startswith(shown)


def test_certain_text_is_all_that_is_certain():
    stop = Stop((), ["stop", "ab"], Pieces("xs", "t", "a", "op", "é"))
    assert [stop.certain_text(ids) for ids in ([0], [0, 1], [0, 1, 2], [0, 1, 2, 2], [4])] == [
        "x", "x", "xst", "xsta", "é",
    ]  # fmt: skip
    assert Stop((), "aab", Pieces("xaa")).certain_text([0]) == "x"  # of two beginnings the longer one
    assert Stop(()).certain_text([0, 1]) == ""


@pytest.mark.parametrize("seed", [None, 0])
@pytest.mark.parametrize("kind", ["gpt2", "bart"])
def test_the_pieces_of_a_stream_are_the_text(kind, seed):
    waited = 0
    for number in range(8):
        model, stop = library_model(kind, number), Stop(END, STOPS, TOKENIZER)
        for prompt in random_prompts(number):
            drawn = [{"generator": seeded(seed)} if seed is not None else {} for _ in "12"]
            same = {"max_new_tokens": 20, "stop": stop, **targets(kind)}
            (whole,) = (greedy if seed is None else sample)(model, [prompt], **same, **drawn[0])
            tokens = list(stream(model, prompt, **same, **drawn[1]))
            assert tuple(token.id for token in tokens) == whole.ids
            assert "".join(token.text for token in tokens) == whole.text
            assert tokens[-1].finished == whole.finished
            waited += sum(token.text == "" for token in tokens[:-1])
    assert waited  # Some token had to wait for the next.


def test_a_stream_does_not_split_the_characters_of_our_tokenizer():
    tokenizer = BytePairTokenizer.train(["é ñ € 한국어 naïve 😀"], vocab_size=260)
    config = Config(
        vocab_size=len(tokenizer), d_model=8, num_layers=1, num_heads=2, feed_forward_width=8, max_length=40
    )
    model = LanguageModel(config).eval()
    text = "a€é😀한"
    ids = tokenizer.encode(text)
    order = iter(ids)
    write_that = [
        lambda logits, seen: torch.full_like(logits, -torch.inf).index_fill(1, torch.tensor(next(order)), 0)
    ]
    tokens = list(
        stream(model, [0], max_new_tokens=len(ids), filters=write_that, stop=Stop(tokenizer=tokenizer))
    )
    assert [token.text for token in tokens if token.text] == list(text)
    assert len(tokens) > len(text) + 3


# What is refused


def test_settings_that_do_not_fit_are_refused():
    for make, message in [
        (lambda: Stop(-1), r"end_ids=-1 .*integer, at least 0"),
        (lambda: Stop([1, 2.0]), r"end_ids=2\.0 .*integer"),
        (lambda: Stop((), "", Pieces()), "stop_strings='' .*non-empty"),
        (lambda: Stop((), ["a", ""], Pieces()), r"stop_strings=\['a', ''\]"),
        (lambda: Stop((), [b"a"], Pieces()), r"stop_strings=\[b'a'\]"),
        (lambda: Stop((), "\n"), "need a tokenizer"),
    ]:
        with pytest.raises(ValueError, match=message):
            make()
    assert Stop([1, 2], ["a"], Pieces()).end_ids == (1, 2)
