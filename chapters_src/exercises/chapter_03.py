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
    Wrong,
    as_function,
    as_ids,
    as_kind,
    as_number,
    exercise,
    required,
    sequence_of,
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
NUM_CALLS, RATE = 2_000, 0.3  # of 3.3
MENTION = "Does auto_place look at the size of the figure before it moves the legend?"
NEW = "auto_place"
LEAST_BYTES = 20_000  # of the held-out texts of 3.5
ALPHABET = "abc ABC 019 .,\n\t öß 猫 क 👍 \u0301\u200d"


@exercise("3.1")
def cut_into_windows(windows: object) -> str:
    """Count the windows of a long text, then compare with the library's on 200 lengths."""
    asked = as_function(windows, "windows(ids, limit, overlap)")
    ids = list(range(1_000, 1_000 + NUM_IDS))
    expected = _library_windows(ids, LIMIT, OVERLAP)
    found, _ = _as_windows(asked, ids, LIMIT, OVERLAP)
    count = "1 window" if len(found) == 1 else f"{len(found):,} windows"
    label = f"{NUM_IDS:,} ids at a limit of {LIMIT} and an overlap of {OVERLAP} give {count}"
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
        ids, limit, overlap = list(range(1_000, 1_000 + length)), 8 + length % 9, length % 5
        found, call = _as_windows(asked, ids, limit, overlap)
        if found == _library_windows(ids, limit, overlap):
            continue
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


def _count(room: int, step: int) -> int:
    """How many windows NUM_IDS ids give."""
    return 1 + max(0, -(-(NUM_IDS - room) // step))


def _as_windows(windows: Asked, ids: list[int], limit: int, overlap: int) -> tuple[list[list[int]], str]:
    """Return the windows, and the call that made them."""
    found, call = windows(ids, limit, overlap), f"windows(<{len(ids)} ids>, {limit}, {overlap})"
    if isinstance(found, str | dict) or not hasattr(found, "__iter__"):
        raise Wrong(f"{call} gives {show(found)}; wanted a list of windows, each a list of ids.")
    return [as_ids(window, f"A window of {call}") for window in found], call


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
def encode_what_a_user_typed(safe_encode: object, *, gemma: Tokenizer) -> str:
    """Look for special ids, read the ids back, and compare ordinary texts with the library's ids."""
    asked = as_function(safe_encode, "safe_encode(text)")
    added = gemma.get_added_tokens_decoder().items()
    special = {token_id: token.content for token_id, token in added if token.special}
    marks = [mark for mark in special.values() if mark in MARKS]
    for text in [frame.replace("{}", mark) for frame in TYPED for mark in reversed(marks)]:
        found, call = _ids_of(asked, text, gemma)
        if marks_found := [special[token_id] for token_id in found if token_id in special]:
            told = f"{len(found)} tokens, one of them {marks_found[0]}: to the model, that is not text."
            raise Wrong(f"{call} gives {told}")
        _check_it_is_kept(call, text, found, gemma)
    for text in ORDINARY:
        found, call = _ids_of(asked, text, gemma)
        if found[:1] and found[0] in special:
            raise Wrong(f"{call} begins with {special[found[0]]}, which nobody typed.")
        _check_it_is_kept(call, text, found, gemma)
        size = len(gemma.encode(text, add_special_tokens=False).ids)
        if len(found) != size:
            told = f"but gives {len(found)} tokens, and in training this text was {size}."
            raise Wrong(f"{call} is safe and keeps the text, {told}")
        if found != gemma.encode(text, add_special_tokens=False).ids:
            raise Wrong(f"{call} is safe and keeps the text, but its ids are not those of the training.")
    return "No special token, whatever is typed; every text comes back; ordinary texts are as in training."


def _ids_of(asked: Asked, text: str, gemma: Tokenizer) -> tuple[list[int], str]:
    """Return the ids, and the call that made them."""
    call = asked.called(text)
    found = as_ids(asked(text), call)
    if found and not 0 <= min(found) <= max(found) < gemma.get_vocab_size():
        raise Wrong(f"{call} gives ids that the vocabulary does not have.")
    return found, call


def _check_it_is_kept(call: str, text: str, found: list[int], gemma: Tokenizer) -> None:
    read = gemma.decode(found, skip_special_tokens=False)
    if read != text:
        does = "loses something that" if len(read) < len(text) else "changes what"
        raise Wrong(f"{call} {does} was typed: its ids read {show(read)}.")


@exercise("3.3")
def drop_joints(join_with_dropout: object) -> str:
    """Try rates 0 and 1, then compare the mean number of pieces, and single splits, with 2,000 draws."""
    asked = as_function(join_with_dropout, "join_with_dropout(word, vocabulary, rate, generator)")

    def pieces(word: str, rate: float, generator: random.Random) -> tuple[str, ...]:
        found = asked.gives(sequence_of(str), "a list of pieces", word, TOY, rate, generator)
        if "".join(found) != word:
            call = f"join_with_dropout({word!r}, <vocabulary>, {rate}, <generator>)"
            raise Wrong(f"{call} gives {show(found)}, which does not spell the word.")
        return tuple(found)

    _check_the_ends(pieces)
    twice = [random.Random(0), random.Random(0)]
    if any(len({pieces("training", 0.5, each) for each in twice}) > 1 for _ in range(40)):
        raise Wrong("Two generators in the same state give different pieces: draw from `generator` alone.")
    generator, oracle = random.Random(0), random.Random(1)
    found = Counter(pieces("training", RATE, generator) for _ in range(NUM_CALLS))
    start = f"{NUM_CALLS:,} calls at a rate of {RATE} all give the "
    if set(found) == {_joined("training", 0.0, oracle)}:
        raise Wrong(f"{start}usual pieces. When is a word done, if in a round every place is left out?")
    if len(found) == 1:
        raise Wrong(f"{start}same pieces, with one generator.")
    expected = Counter(_joined("training", RATE, oracle) for _ in range(5 * NUM_CALLS))
    shares, wanted = ({split: n / c.total() for split, n in c.items()} for c in (found, expected))
    mean, right = (sum(len(split) * share for split, share in each.items()) for each in (shares, wanted))
    start = f"At a rate of {RATE}, "
    if abs(mean - right) > 0.25:  # more than four standard errors
        more = "more" if mean > right else "fewer"
        raise Wrong(
            f"{start}'training' has {mean:.2f} pieces on average, {more} than it should. Is each place left "
            "out by a draw of its own, and can a place that was left out be joined in the next round?"
        )
    gaps = {split: shares.get(split, 0) - wanted.get(split, 0) for split in shares | wanted}
    if sum(map(abs, gaps.values())) > 0.24:
        split = max(gaps, key=lambda split: abs(gaps[split]))
        often = "too often" if gaps[split] > 0 else "too seldom"
        said = f"{' '.join(split)!r} comes out in {shares.get(split, 0):.0%} of the calls, {often}"
        raise Wrong(f"{start}{said}. When is a word done?")
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
    as_kind(my_tokenizer, "my_tokenizer", lambda it: hasattr(it, "convert_tokens_to_ids"), "a tokenizer")
    if my_tokenizer is pretrained or NEW in pretrained.get_vocab():
        raise Wrong("The chapter's own tokenizer was changed. Load it again, and another one for this.")
    new_id, before = len(pretrained), pretrained(NEW, add_special_tokens=False)["input_ids"]
    found, old = my_tokenizer(MENTION)["input_ids"], pretrained(MENTION)["input_ids"]
    if my_tokenizer.get_vocab().get(NEW) != new_id or len(my_tokenizer) != new_id + 1:
        wanted = f"Wanted: the {new_id:,} old ones, and then {NEW!r}."
        raise Wrong(f"`my_tokenizer` has {len(my_tokenizer):,} pieces. {wanted}")
    if len(found) != len(old) - len(before) + 1 or new_id not in found:
        raise Wrong(f"{MENTION!r} has {len(found)} tokens, with [CLS] and [SEP]; it had {len(old)}.")
    if new_id in my_tokenizer.all_special_ids:
        raise Wrong(f"{NEW!r} is a special token now: a decoder that skips those leaves the word out.")
    wanted = "a model of the library"
    as_kind(my_model, "my_model", lambda it: hasattr(it, "get_input_embeddings"), wanted)
    rows, old_rows = (it.get_input_embeddings().weight.detach().cpu() for it in (my_model, encoder))
    if my_model is encoder or len(old_rows) != new_id:
        raise Wrong("The chapter's own model was changed. Load it again, and another one for this.")
    if len(rows) <= new_id:
        raise Wrong(f"The embedding has {len(rows):,} rows, so id {new_id:,} would raise an IndexError.")
    if len(rows) > new_id + 1:
        raise Wrong(f"The embedding has {len(rows):,} rows, for {new_id + 1:,} pieces.")
    if changed := int((rows[:new_id] - old_rows).abs().amax(dim=1).gt(1e-6).sum()):
        raise Wrong(f"{changed:,} of the old rows have changed.")
    row, wanted_row = rows[new_id], old_rows[before].mean(dim=0)
    if (row - wanted_row).abs().max() > 1e-4:
        mean_length = old_rows.norm(dim=1).mean()
        start = f"The new row has length {row.norm():.2f}, the old ones {mean_length:.2f} on average"
        if (row - old_rows.mean(dim=0)).norm() < 0.5 * wanted_row.norm():
            raise Wrong(f"{start}: it is close to the mean of *all* rows.")
        if (row - old_rows[before].sum(dim=0)).abs().max() < 1e-4:
            raise Wrong(f"{start}: it is the sum of its old rows.")
        raise Wrong(f"{start}, and it is not the mean of the rows that {NEW!r} had before.")
    return f"{len(found)} tokens in place of {len(old)}, every old row as it was, and a row to start from."


@exercise("3.5", takes="a few seconds")
def tokenizer_of_your_own(
    my_folder: Any, my_training: Any, my_held_out: Any, factors: Any, *, bpe: BytePairTokenizer
) -> str:
    """Load the reader's tokenizer, try it on 200 texts, and measure it on the held-out ones."""
    required(my_folder, "my_folder")
    if not isinstance(my_folder, str | Path) or not (Path(my_folder) / "tokenizer.json").is_file():
        shown = show(str(my_folder))
        raise Wrong(f"`my_folder` has to be a folder with a `tokenizer.json`, and {shown} is none.")
    for name, texts in {"my_training": my_training, "my_held_out": my_held_out}.items():
        as_kind(texts, name, lambda it: sequence_of(str)(it) and len(it) > 0, "a list of texts")
    of_training, of_held_out = ({text.strip() for text in some} for some in (my_training, my_held_out))
    if shared := (of_training & of_held_out) - {""}:
        raise Wrong(f"{len(shared)} of your held-out texts are in the training too.")
    size = sum(len(text.encode()) for text in my_held_out)
    if size < LEAST_BYTES:
        raise Wrong(f"Your held-out texts have {size:,} bytes. Measure on {LEAST_BYTES:,} or more.")
    as_kind(factors, "factors", Mapping, "a dictionary with two numbers")
    encode = _loaded(Path(my_folder), bpe)
    squeezed = [" ".join(text.split()) for text in my_held_out]
    measured = []
    for name, texts in {"as it is": my_held_out, "squeezed": squeezed}.items():
        expected = sum(len(bpe.encode(text)) for text in texts) / sum(len(encode(text)) for text in texts)
        _check_factor(name, as_number(factors.get(name), f"factors[{name!r}]"), expected)
        measured.append(expected)
    if measured[0] <= 1:
        return "Every text comes back, but a token of yours holds no more than one of `bpe`."
    if measured[0] - 1 > 2 * (measured[1] - 1):
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
    large = "large" if found > expected else "small"
    raise Wrong(
        f"{label}, too {large} for these tokenizers and texts. Divide the characters of all texts together "
        "by their tokens, for each tokenizer."
    )
