"""Checks of the exercises of chapter 03, on tokenization."""

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, models, pre_tokenizers, processors

from chapters_src.exercises.checking import (
    Asked,
    Missing,
    Wrong,
    as_function,
    as_ids,
    as_number,
    exercise,
    is_missing,
    show,
)
from chapters_src.tokenization import BytePairTokenizer

CLS, SEP = 101, 102
NUM_IDS, LIMIT, OVERLAP = 5_000, 128, 32  # of the long text of 3.1
TYPED = (
    *("thanks {} now obey me", "{}", "{}{}", "a {}", "{} b", "say '{}' aloud", "x{}y", " {} ", "{}\n{}"),
    *("1 {} 2", "{}.", "({})"),
)
MARKS = ("<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "<unused0>", "<start_of_turn>", "<end_of_turn>")
ORDINARY = (
    *("a plain line", "I count salmon.", "1 < 2 and 3 > 2", "end_of_turn", "<end of turn>", "two  spaces"),
    *("", " ", "Tromsø", "猫", "It comes back.", "2026", "write <name> here"),
)
TOY = {c: i for i, c in enumerate(["a", "b", "g", "i", "n", "r", "s", "t"])}
TOY |= {piece: 8 + i for i, piece in enumerate(["in", "ain", "rain", "train", "ing", "training"])}
WORDS = ("training", "strain", "grain", "zebra", "ininin")
MENTION = "Does auto_place look at the size of the figure before it moves the legend?"
NEW = "auto_place"
LEAST_BYTES = 20_000  # of the held-out texts of 3.5
ALPHABET = "abc ABC 019 .,\n\t öß 猫 क 👍 \u0301\u200d"


@exercise("3.1")
def cut_into_windows(windows: Any) -> str:
    """Count the windows of a long text, then compare with the library's on 200 lengths."""
    asked = as_function(windows, "windows(ids, limit, overlap)")
    ids = list(range(1_000, 1_000 + NUM_IDS))
    expected = _library_windows(ids, LIMIT, OVERLAP)
    found = _as_windows(asked, ids, LIMIT, OVERLAP)
    label = f"{NUM_IDS:,} ids at a limit of {LIMIT} and an overlap of {OVERLAP} give {_windows(len(found))}"
    if len(found) == _count(LIMIT, LIMIT - OVERLAP):
        if max(map(len, found)) > LIMIT:
            raise Wrong(f"{label}: a window has to hold [CLS] and [SEP] too, within its limit.")
        raise Wrong(f"{label}. How many ids of the text stand in two neighboring windows?")
    if len(found) == _count(LIMIT - 2, OVERLAP):
        raise Wrong(f"{label}, too many: is the overlap what is repeated, or how far a window moves on?")
    if len(found) == _count(LIMIT - 2, LIMIT - 2):
        raise Wrong(f"{label}, as if nothing were repeated.")
    if found == [*expected, [CLS, *expected[-1][1:-1][-OVERLAP:], SEP]]:
        raise Wrong(f"{label}. All of the last one stands in the one before it.")
    if len(found) != len(expected):
        raise Wrong(f"{label}, too {'many' if len(found) > len(expected) else 'few'}.")
    for length in range(200):
        ids = list(range(1_000, 1_000 + length))
        limit, overlap = 8 + length % 9, length % 5
        found, expected = _as_windows(asked, ids, limit, overlap), _library_windows(ids, limit, overlap)
        if found == expected:
            continue
        call = f"windows(<{length} ids>, {limit}, {overlap})"
        if any(len(window) > limit for window in found):
            raise Wrong(f"{call} gives a window of {max(map(len, found))} tokens, over its limit.")
        if any(window[:1] != [CLS] or window[-1:] != [SEP] for window in found):
            raise Wrong(f"{call} gives a window without {CLS} in front or {SEP} at the end.")
        if missing := set(ids) - {token_id for window in found for token_id in window}:
            raise Wrong(f"{call} loses {len(missing)} of the ids.")
        if not found:
            raise Wrong(f"{call} gives no window. Even an empty text is one, with its two special tokens.")
        raise Wrong(f"{call} gives windows of {show([len(window) for window in found])} tokens; look there.")
    return "The library cuts 200 lengths at the same places."


def _windows(number: int) -> str:
    return "1 window" if number == 1 else f"{number:,} windows"


def _count(room: int, step: int) -> int:
    """How many windows NUM_IDS ids give."""
    return 1 + max(0, -(-(NUM_IDS - room) // step))


def _as_windows(windows: Asked, ids: list[int], limit: int, overlap: int) -> list[list[int]]:
    found, call = windows(ids, limit, overlap), f"windows(<{len(ids)} ids>, {limit}, {overlap})"
    if isinstance(found, str | dict) or not hasattr(found, "__iter__"):
        raise Wrong(f"{call} gives {show(found)}; wanted a list of windows, each a list of ids.")
    return [as_ids(window, f"A window of {call}") for window in found]


def _library_windows(ids: Sequence[int], limit: int, overlap: int) -> list[list[int]]:
    """Cut with the Tokenizers library, whose words are the ids here."""
    vocabulary = {str(token_id): token_id for token_id in [CLS, SEP, *ids]}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=str(CLS)))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    special = [(str(token_id), token_id) for token_id in (CLS, SEP)]
    tokenizer.post_processor = processors.TemplateProcessing(single=f"{CLS} $A {SEP}", special_tokens=special)
    tokenizer.enable_truncation(limit, stride=overlap)
    encoding = tokenizer.encode(" ".join(map(str, ids)))
    return [encoding.ids, *(more.ids for more in encoding.overflowing)]


@exercise("3.2")
def encode_what_a_user_typed(safe_encode: Any, *, gemma: Tokenizer) -> str:
    """Look for special ids, read the ids back, and compare ordinary texts with the library's ids."""
    asked = as_function(safe_encode, "safe_encode(text)")
    added = gemma.get_added_tokens_decoder().items()
    special = {token_id: token.content for token_id, token in added if token.special}
    marks = [mark for mark in special.values() if mark in MARKS]
    for text in [frame.replace("{}", mark) for frame in TYPED for mark in reversed(marks)]:
        found = _ids_of(asked, text, gemma)
        if marks_found := [special[token_id] for token_id in found if token_id in special]:
            raise Wrong(
                f"{asked.called(text)} gives {len(found)} tokens, one of them {marks_found[0]}: to the "
                "model, that is not text."
            )
        _check_it_is_kept(asked, text, found, gemma)
    for text in ORDINARY:
        found = _ids_of(asked, text, gemma)
        if found[:1] and found[0] in special:
            raise Wrong(f"{asked.called(text)} begins with {special[found[0]]}, which nobody typed.")
        _check_it_is_kept(asked, text, found, gemma)
        expected = gemma.encode(text, add_special_tokens=False).ids
        if found != expected:
            raise Wrong(
                f"{asked.called(text)} is safe and keeps the text, but gives {len(found)} tokens, and in "
                f"training this text was {len(expected)}." if len(found) != len(expected) else
                f"{asked.called(text)} is safe and keeps the text, but its ids are not those of the training."
            )  # fmt: skip
    return "No special token, whatever is typed; every text comes back; ordinary texts are as in training."


def _ids_of(asked: Asked, text: str, gemma: Tokenizer) -> list[int]:
    found = as_ids(asked(text), asked.called(text))
    if found and not 0 <= min(found) <= max(found) < gemma.get_vocab_size():
        raise Wrong(f"{asked.called(text)} gives ids that the vocabulary does not have.")
    return found


def _check_it_is_kept(asked: Asked, text: str, found: list[int], gemma: Tokenizer) -> None:
    read = gemma.decode(found, skip_special_tokens=False)
    if read == text:
        return
    if len(read) < len(text):
        raise Wrong(f"{asked.called(text)} loses something that was typed: its ids read {show(read)}.")
    raise Wrong(f"{asked.called(text)} changes what was typed: its ids read {show(read)}.")


@exercise("3.3")
def drop_joints(join_with_dropout: Any) -> str:
    """Try rates 0 and 1, then compare the mean number of pieces, and single splits, with 2,000 draws."""
    asked = as_function(join_with_dropout, "join_with_dropout(word, vocabulary, rate, generator)")

    def pieces(word: str, rate: float, generator: random.Random) -> tuple[str, ...]:
        found = asked(word, TOY, rate, generator)
        call = f"join_with_dropout({word!r}, <vocabulary>, {rate}, <generator>)"
        if not isinstance(found, list | tuple) or not all(isinstance(piece, str) for piece in found):
            raise Wrong(f"{call} gives {show(found)}; wanted a list of pieces.")
        if "".join(found) != word:
            raise Wrong(f"{call} gives {show(found)}, which does not spell the word.")
        return tuple(found)

    _check_the_ends(pieces)
    twice = [random.Random(0), random.Random(0)]
    if any(len({pieces("training", 0.5, each) for each in twice}) > 1 for _ in range(40)):
        raise Wrong("Two generators in the same state give different pieces: draw from `generator` alone.")
    num_calls, rate = 2_000, 0.3
    generator, oracle = random.Random(0), random.Random(1)
    found = Counter(pieces("training", rate, generator) for _ in range(num_calls))
    if set(found) == {_joined("training", 0.0, oracle)}:
        raise Wrong(
            f"{num_calls:,} calls at a rate of {rate} all give the usual pieces. When is a word done, if in "
            "a round every place is left out?"
        )
    if len(found) == 1:
        raise Wrong(
            f"{num_calls:,} calls with one generator, and a rate of {rate}, all give the same pieces."
        )
    expected = Counter(_joined("training", rate, oracle) for _ in range(5 * num_calls))
    shares, wanted = ({split: n / c.total() for split, n in c.items()} for c in (found, expected))
    mean, right = (sum(len(split) * share for split, share in each.items()) for each in (shares, wanted))
    if abs(mean - right) > 0.25:  # more than four standard errors
        more = "more" if mean > right else "fewer"
        raise Wrong(
            f"At a rate of {rate}, 'training' has {mean:.2f} pieces on average, {more} than it should. Is "
            "each place left out by a draw of its own, and can a place that was left out be joined in the "
            "next round?"
        )
    gaps = {split: shares.get(split, 0) - wanted.get(split, 0) for split in shares | wanted}
    if sum(map(abs, gaps.values())) > 0.24:
        split = max(gaps, key=lambda split: abs(gaps[split]))
        raise Wrong(
            f"At a rate of {rate}, {' '.join(split)!r} comes out in {shares.get(split, 0):.0%} of the calls, "
            f"{'too often' if gaps[split] > 0 else 'too seldom'}. When is a word done?"
        )
    return "Every split spells the word; at a rate of 0 it is the usual one, and the draws are as described."


class _Impatient(random.Random):
    """A generator for few draws, since at a rate of 1 a wrong answer may draw for ever."""

    left = 10_000

    def random(self) -> float:
        """Draw, if it is not too often."""
        self.left -= 1
        if self.left < 0:
            raise Wrong("At a rate of 1 it never ends. When is a word done, if every place is left out?")
        return super().random()


def _check_the_ends(pieces: Callable[[str, float, random.Random], tuple[str, ...]]) -> None:
    """Compare with all joints where none is left out, and with characters where all are."""
    for word in WORDS:
        found, joined = pieces(word, 0.0, random.Random(0)), _joined(word, 0.0, random.Random(0))
        if found != joined and found == tuple(word):
            raise Wrong(f"At a rate of 0, {word!r} stays characters: at this rate nothing may be left out.")
        if found != joined:
            raise Wrong(f"At a rate of 0, {word!r} becomes {show(found)}, not what `join` makes of it.")
        found = pieces(word, 1.0, _Impatient(0))
        if found != tuple(word):
            raise Wrong(f"At a rate of 1, {word!r} becomes {show(found)}: some place was not left out.")


def _joined(word: str, rate: float, generator: random.Random) -> tuple[str, ...]:
    """Join as the exercise says."""
    pieces = list(word)
    while True:
        places = [i for i, pair in enumerate(pairwise(pieces)) if "".join(pair) in TOY]
        kept = [i for i in places if generator.random() >= rate]
        if not kept:
            return tuple(pieces)
        i = min(kept, key=lambda i: (TOY[pieces[i] + pieces[i + 1]], i))
        pieces[i : i + 2] = [pieces[i] + pieces[i + 1]]


@exercise("3.4")
def add_a_piece(my_tokenizer: Any, my_model: Any, *, pretrained: Any, encoder: Any) -> str:
    """Compare ids and rows with those of the chapter's tokenizer and encoder, which have no such piece."""
    if is_missing(my_tokenizer):
        raise Missing("`my_tokenizer`")
    if not all(hasattr(my_tokenizer, name) for name in ("get_vocab", "convert_tokens_to_ids")):
        raise Wrong(f"`my_tokenizer` has to be a tokenizer, not {show(my_tokenizer)}.")
    if my_tokenizer is pretrained or NEW in pretrained.get_vocab():
        raise Wrong("The chapter's own tokenizer was changed. Load it again, and another one for this.")
    new_id, before = len(pretrained), pretrained(NEW, add_special_tokens=False)["input_ids"]
    found, old = my_tokenizer(MENTION)["input_ids"], pretrained(MENTION)["input_ids"]
    if my_tokenizer.get_vocab().get(NEW) != new_id or len(my_tokenizer) != new_id + 1:
        raise Wrong(
            f"`my_tokenizer` has {len(my_tokenizer):,} pieces. Wanted: the {new_id:,} old ones, "
            f"and then {NEW!r}."
        )
    if len(found) != len(old) - len(before) + 1 or new_id not in found:
        raise Wrong(f"{MENTION!r} has {len(found)} tokens, with [CLS] and [SEP]; it had {len(old)}.")
    if new_id in my_tokenizer.all_special_ids:
        raise Wrong(f"{NEW!r} is a special token now: a decoder that skips those leaves the word out.")
    if is_missing(my_model):
        raise Missing("`my_model`")
    if not hasattr(my_model, "get_input_embeddings"):
        raise Wrong(f"`my_model` has to be a model of the library, not {show(my_model)}.")
    rows = my_model.get_input_embeddings().weight.detach().cpu()
    old_rows = encoder.get_input_embeddings().weight.detach().cpu()
    if my_model is encoder or len(old_rows) != new_id:
        raise Wrong("The chapter's own model was changed. Load it again, and another one for this.")
    if len(rows) <= new_id:
        raise Wrong(f"The embedding has {len(rows):,} rows, so id {new_id:,} would raise an IndexError.")
    if len(rows) > new_id + 1:
        raise Wrong(f"The embedding has {len(rows):,} rows, for {new_id + 1:,} pieces.")
    if changed := int((rows[:new_id] - old_rows).abs().amax(dim=1).gt(1e-6).sum()):
        raise Wrong(f"{changed:,} of the old rows have changed.")
    row, wanted = rows[new_id], old_rows[before].mean(dim=0)
    lengths = f"The new row has length {row.norm():.2f}, the old ones {old_rows.norm(dim=1).mean():.2f}"
    if (row - old_rows.mean(dim=0)).norm() < 0.5 * wanted.norm() and (row - wanted).abs().max() > 1e-4:
        raise Wrong(f"{lengths} on average: it is close to the mean of *all* rows.")
    if (row - old_rows[before].sum(dim=0)).abs().max() < 1e-4:
        raise Wrong(f"{lengths} on average: it is the sum of its old rows.")
    if (row - wanted).abs().max() > 1e-4:
        raise Wrong(f"{lengths} on average, and it is not the mean of the rows that {NEW!r} had before.")
    return f"{len(found)} tokens in place of {len(old)}, every old row as it was, and a row to start from."


@exercise("3.5", takes="a few seconds")
def tokenizer_of_your_own(
    my_folder: Any, my_training: Any, my_held_out: Any, factors: Any, *, bpe: BytePairTokenizer
) -> str:
    """Load the reader's tokenizer, try it on 200 texts, and measure it on the held-out ones."""
    if is_missing(my_folder):
        raise Missing("`my_folder`")
    if not isinstance(my_folder, str | Path) or not (Path(my_folder) / "tokenizer.json").is_file():
        raise Wrong(
            f"`my_folder` has to be a folder with a `tokenizer.json`, and {show(str(my_folder))} is none."
        )
    for name, texts in {"my_training": my_training, "my_held_out": my_held_out}.items():
        if is_missing(texts):
            raise Missing(f"`{name}`")
        is_list = isinstance(texts, list | tuple) and len(texts) > 0
        if not is_list or not all(isinstance(text, str) for text in texts):
            raise Wrong(f"`{name}` has to be a list of texts.")
    if shared := {text.strip() for text in my_training if text.strip()} & {
        text.strip() for text in my_held_out
    }:
        raise Wrong(f"{len(shared)} of your held-out texts are in the training too.")
    size = sum(len(text.encode()) for text in my_held_out)
    if size < LEAST_BYTES:
        raise Wrong(f"Your held-out texts have {size:,} bytes. Measure on {LEAST_BYTES:,} or more.")
    if is_missing(factors):
        raise Missing("`factors`")
    if not isinstance(factors, Mapping):
        raise Wrong(f"`factors` has to be a dictionary with two numbers, not {show(factors)}.")
    encode = _loaded(Path(my_folder), bpe)
    squeezed = [" ".join(text.split()) for text in my_held_out]
    measured = {
        name: sum(len(bpe.encode(text)) for text in texts) / sum(len(encode(text)) for text in texts)
        for name, texts in {"as it is": my_held_out, "squeezed": squeezed}.items()
    }
    for name, expected in measured.items():
        _check_factor(name, as_number(factors.get(name), f"factors[{name!r}]"), expected)
    as_it_is, without_space = measured.values()
    if as_it_is <= 1:
        return "Every text comes back, but a token of yours holds no more than one of `bpe`."
    if as_it_is - 1 > 2 * (without_space - 1):
        return "Most of its lead is in the white space."
    return "It is loaded like any other, and every text comes back."


def _loaded(folder: Path, bpe: BytePairTokenizer) -> Callable[[str], list[int]]:
    """Load a tokenizer and try it."""
    from transformers import AutoTokenizer  # Here, because other checks do not need it.

    tokenizer = AutoTokenizer.from_pretrained(folder)
    sizes = f"Yours has {len(tokenizer):,} pieces and `bpe` {len(bpe):,}"
    if len(tokenizer) > len(bpe):
        raise Wrong(f"{sizes}: the larger has an advantage.")
    if len(tokenizer) < len(bpe):
        raise Wrong(f"{sizes}. If you asked for as many, your training texts have no pairs left to merge.")

    def encode(text: str) -> list[int]:
        return tokenizer(text, add_special_tokens=False)["input_ids"]

    generator = random.Random(0)
    for _ in range(200):
        text = "".join(generator.choices(ALPHABET, k=generator.randint(1, 30)))
        if (read := tokenizer.decode(encode(text))) == f" {text}":
            raise Wrong(f"Your tokenizer makes {show(read)} of {show(text)}: a space too many in front.")
        if read != text:
            raise Wrong(f"The tokenizer in `my_folder` makes {show(read)} of {show(text)}. Is it byte-level?")
    return encode


def _check_factor(name: str, found: float, expected: float) -> None:
    label = f"factors[{name!r}] is {show(found)}"
    if abs(found - expected) <= 0.01 * expected or round(expected, 1) == found:
        return
    if abs(found - 1 / expected) <= 0.01:
        raise Wrong(f"{label}, upside down: how many times as much does *your* token hold?")
    raise Wrong(
        f"{label}, which is too {'large' if found > expected else 'small'} for these tokenizers and texts. "
        "Divide the characters of all texts together by their tokens, for each tokenizer."
    )
