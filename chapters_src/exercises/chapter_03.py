"""Checks of the exercises of chapter 03, on tokenization."""

import random
from collections.abc import Callable, Sequence
from typing import Any

from chapters_src.exercises.checking import (
    Missing,
    Wrong,
    as_function,
    as_ids,
    as_number,
    exercise,
    is_missing,
    show,
)
from chapters_src.tokenization import BytePairTokenizer, UnigramTokenizer, WordPieceTokenizer
from chapters_src.tokenization.byte_pair import BYTE_OF

YEARS = range(1990, 2030)
TYPED = (
    "a plain line",
    "ignore this <|endoftext|> and this",
    "<|endoftext|><|endoftext|>",
    "<|endof|> text <",
    "",
)
MERGES = [("i", "n"), ("a", "in"), ("r", "ain"), ("t", "rain"), ("in", "g"), ("train", "ing")]
WORDS = ("training", "strain", "grain", "zebra")


@exercise("3.1")
def count_without_merges(num_tokens: Any) -> str:
    """Compare with a byte-level tokenizer that has no merges."""
    count = as_number(num_tokens, "num_tokens")
    tokenizer = BytePairTokenizer({character: i for i, character in enumerate(sorted(BYTE_OF))}, [])
    if count == len("über"):
        raise Wrong("That is the number of characters, which this tokenizer never gets to see.")
    if count == len(tokenizer.encode("u\u0308ber")):
        raise Wrong("That holds if ü is typed as a u and a combining mark. Here it is one character.")
    expected = len(tokenizer.encode("über"))
    if count < expected:
        raise Wrong(
            f"{show(count)} is too few: without merges, nothing is put together. What is the alphabet?"
        )
    if count > expected:
        raise Wrong(f"{show(count)} is too many: no token is added, and no unit of the alphabet takes two.")
    return "Without merges, a token is a byte."


@exercise("3.2")
def encode_what_a_user_typed(encode_user_text: Any, *, bpe: BytePairTokenizer) -> str:
    """Compare with our tokenizer, which reads a special token in a text as plain characters."""
    encode = as_function(encode_user_text, "encode_user_text(text)")
    special_ids = {bpe.vocabulary[token] for token in bpe.special_tokens}
    for text in TYPED:
        call = encode.called(text)
        found = as_ids(encode(text), call)
        if special_ids & set(found):
            raise Wrong(f"{call} contains the id of a special token: whoever types it can end the text.")
        if found and not 0 <= min(found) <= max(found) < len(bpe):
            raise Wrong(f"{call} gives ids that the chapter's tokenizer does not have.")
        if (read := bpe.decode(found)) != text:
            raise Wrong(f"{call} does not keep what was typed: its ids read {show(read)}.")
        if found != bpe.encode(text):
            raise Wrong(
                f"{call} is safe and keeps the text, but splits it differently from all other texts:"
                f" {len(found)} tokens instead of {len(bpe.encode(text))}."
            )
    return "No text that a user types gives the id of a special token, and each comes back as it was."


@exercise("3.3")
def characters_per_token(
    packed: Any,
    spaces_only: Any,
    *,
    bpe: BytePairTokenizer,
    unigram: UnigramTokenizer,
    held_out: Sequence[str],
) -> str:
    """Count anew, over all texts together, with the chapter's tokenizers and the reader's own."""
    if is_missing(packed) and is_missing(spaces_only):
        raise Missing("`packed`")
    if not isinstance(packed, dict):
        raise Wrong(f"`packed` has to be a dictionary with a number for each tokenizer, not {show(packed)}.")
    _check_packed(packed, "BPE", bpe.tokenize, held_out)
    _check_packed(packed, "Unigram", unigram.tokenize, held_out)
    if is_missing(spaces_only):
        raise Missing("`spaces_only`")
    if spaces_only.pre_tokenizer is None:
        raise Wrong("`spaces_only` has no pre-tokenizer, so its pieces go across spaces. Unigram's do not.")
    words = [word for word, _ in spaces_only.pre_tokenizer.pre_tokenize_str("a list, then")]
    if len(words) != 3:
        raise Wrong(f"`spaces_only` does not split at spaces only: 'a list, then' becomes {words}.")
    if spaces_only.get_vocab_size() != len(bpe):
        raise Wrong(
            f"`spaces_only` has {spaces_only.get_vocab_size():,} pieces and `bpe` {len(bpe):,}: "
            "a larger vocabulary packs more, whatever the algorithm."
        )
    _check_packed(packed, "BPE, split at spaces only", lambda text: spaces_only.encode(text).ids, held_out)
    return "Compare the gap between the two BPEs with the gap between BPE and Unigram."


def _check_packed(packed: dict, name: str, tokenize: Callable[[str], Sequence], texts: Sequence[str]) -> None:
    """Compare a number of characters per token, which may be rounded to two decimals."""
    found, label = as_number(packed.get(name), f"packed[{name!r}]"), f"packed[{name!r}] is"
    counts = [len(tokenize(text)) for text in texts]
    lengths = [len(text) for text in texts]
    expected = sum(lengths) / sum(counts)

    def equals(value: float) -> bool:
        return abs(found - value) < 0.006

    if equals(expected):
        return
    if equals(1 / expected):
        raise Wrong(f"{label} {show(found)}: that is tokens per character, upside down.")
    if equals(sum(length / count for length, count in zip(lengths, counts, strict=True)) / len(texts)):
        raise Wrong(
            f"{label} the mean of each paragraph's own ratio, in which a short paragraph counts as much as a "
            "long one. Divide all characters by all tokens."
        )
    if equals(sum(len(text.encode()) for text in texts) / sum(counts)):
        raise Wrong(f"{label} bytes per token; the exercise asks for characters.")
    if equals(sum(counts) / len(texts)):
        raise Wrong(f"{label} tokens per paragraph; the exercise asks for characters per token.")
    if abs(found - expected) < 0.06:
        raise Wrong(f"{label} {show(found)}, which is close. Is it rounded, or is something not counted?")
    size = "too large" if found > expected else "too small"
    raise Wrong(f"{label} {show(found)}, which is {size}. Divide all characters of `held_out` by all tokens.")


@exercise("3.4")
def years_of_one_token(whole_years: Any, *, wordpiece: WordPieceTokenizer) -> str:
    """Tokenize each year."""
    if is_missing(whole_years):
        raise Missing("`whole_years`")
    if isinstance(whole_years, str | int | float) or not hasattr(whole_years, "__iter__"):
        raise Wrong(f"Wanted a list of years, such as [1848, 1989], not {show(whole_years)}.")
    found = {int(year) for year in whole_years}
    if not found:
        raise Wrong("Not a single year? Tokens like [CLS] and [SEP], where they are added, do not count.")
    if outside := found - set(YEARS):
        raise Wrong(f"{min(outside)} is in your list, and not among the years {YEARS[0]} to {YEARS[-1]}.")
    num_pieces = {year: len(wordpiece.tokenize(str(year))) for year in YEARS}
    split = [year for year in sorted(found) if num_pieces[year] > 1]
    if split:
        raise Wrong(f"{split[-1]} is in your list, and it becomes {num_pieces[split[-1]]} tokens.")
    if missing := [year for year in YEARS if num_pieces[year] == 1 and year not in found]:
        some = "another year" if len(missing) == 1 else "other years"
        raise Wrong(
            f"Every year in your list is one token, but so {'is' if len(missing) == 1 else 'are'} {some}."
        )
    return "Now look at the pieces of 20260115: how many digits does each have?"


@exercise("3.5")
def drop_merges(encode_with_dropout: Any) -> str:
    """Try rates 0 and 1, then count how often merges are skipped, each alone and together."""
    encode = as_function(encode_with_dropout, "encode_with_dropout(word, merges, rate, generator)")

    def pieces(word: str, merges: list, rate: float, generator: random.Random) -> tuple[str, ...]:
        found = encode(word, merges, rate, generator)
        call = encode.called(word, merges, rate, generator)
        if not isinstance(found, list | tuple) or not all(isinstance(piece, str) for piece in found):
            raise Wrong(f"{call} gives {show(found)}; wanted a list of pieces.")
        if "".join(found) != word:
            raise Wrong(f"{call} gives {show(found)}, which does not spell the word.")
        return tuple(found)

    _check_the_ends(pieces)
    twice = [random.Random(0), random.Random(0)]
    if any(len({pieces("training", MERGES, 0.5, each) for each in twice}) > 1 for _ in range(40)):
        raise Wrong("Two generators in the same state give different pieces: draw from `generator` alone.")
    generator = random.Random(0)
    rate, num_calls = 0.3, 1_000
    both = [("a", "b"), ("c", "d")]
    drawn = [pieces("abcd", both, rate, generator) for _ in range(num_calls)]
    first, second = ([p in found for found in drawn] for p in ("a", "c"))
    for which, skipped in (("first", first), ("second", second)):
        share = sum(skipped) / num_calls
        if abs(share - rate) > 0.08:  # more than five standard errors
            raise Wrong(
                f"Of {num_calls:,} calls with two merges and a rate of {rate}, {share:.0%} skip the {which} "
                f"merge. It should be skipped about as often as the rate says, whatever became of the other."
            )
    together = sum(map(all, zip(first, second, strict=True))) / num_calls
    if abs(together - rate**2) > 0.06:
        raise Wrong(
            f"Each of two merges is skipped as often as the rate of {rate} says, but {together:.0%} of the "
            "calls skip both. Does each get a draw of its own?"
        )
    again = {pieces("abab", both, 0.5, generator) for _ in range(50)}
    if {("ab", "a", "b"), ("a", "b", "ab")} & again:
        return "Yours even draws anew at each place in the word, as the paper does."
    return "Every segmentation spells the word, and rate 0 gives the usual one."


def _check_the_ends(pieces: Callable[..., tuple[str, ...]]) -> None:
    """Compare with all merges where none is skipped, and with characters where all are."""
    for word in WORDS:
        found, all_merged = pieces(word, MERGES, 0.0, random.Random(0)), _replay(word, MERGES)
        if found != all_merged and found == tuple(word):
            raise Wrong(f"With a rate of 0, {word!r} stays characters: at this rate no merge may be skipped.")
        if found != all_merged:
            raise Wrong(
                f"With a rate of 0, {word!r} becomes {show(found)}, not what `encode_word` makes of it."
            )
        found = pieces(word, MERGES, 1.0, random.Random(0))
        if found != tuple(word):
            raise Wrong(f"With a rate of 1, {word!r} becomes {show(found)}: some merge was not skipped.")


def _replay(word: str, merges: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Merge one pair after the other, from left to right."""
    pieces = list(word)
    for left, right in merges:
        i = 0
        while i < len(pieces) - 1:
            if (pieces[i], pieces[i + 1]) == (left, right):
                pieces[i : i + 2] = [left + right]
            i += 1
    return tuple(pieces)


@exercise("3.6", takes="a second or two")
def tokenizer_for_code(
    code_bpe: Any,
    factors: Any,
    training_code: Any,
    held_out_code: Any,
    *,
    bpe: BytePairTokenizer,
    prose: Sequence[str],
) -> str:
    """Encode the held-out texts with both tokenizers."""
    if is_missing(code_bpe):
        raise Missing("`code_bpe`")
    if not all(hasattr(code_bpe, name) for name in ("encode", "decode", "__len__")):
        raise Wrong(f"`code_bpe` has to be a tokenizer like `bpe`, not {show(code_bpe)}.")
    if len(code_bpe) != len(bpe):
        raise Wrong(f"`code_bpe` has {len(code_bpe):,} tokens and `bpe` {len(bpe):,}: the larger would win.")
    line = 'def größe(x):\n\treturn f"{x:>8}"  # 猫\n'
    if code_bpe.decode(code_bpe.encode(line)) != line:
        raise Wrong(f"`code_bpe` does not give this text back: {line!r}. Is it byte-level?")
    for name, texts in {"training_code": training_code, "held_out_code": held_out_code}.items():
        if is_missing(texts):
            raise Missing(f"`{name}`")
        is_list = isinstance(texts, list | tuple) and len(texts) > 0
        if not is_list or not all(isinstance(text, str) for text in texts):
            raise Wrong(f"`{name}` has to be a list of texts, each the source code of a module.")
    if shared := {text for text in training_code if text.strip()} & set(held_out_code):
        raise Wrong(
            f"{len(shared)} of your held-out modules are in the training code too: what a tokenizer was "
            "trained on says little about what it packs elsewhere."
        )
    if is_missing(factors):
        raise Missing("`factors`")
    for name, texts, home, guest in (("prose", prose, bpe, code_bpe), ("code", held_out_code, code_bpe, bpe)):
        found = as_number(factors.get(name), f"factors[{name!r}]")
        counts = [(len(home.encode(text)), len(guest.encode(text))) for text in texts]
        at_home, away = (sum(column) for column in zip(*counts, strict=True))
        _check_factor(name, found, away / at_home, counts)
    return "Each tokenizer wins where it was trained, by the factors that you measured."


def _check_factor(name: str, found: float, expected: float, counts: Sequence[tuple[int, int]]) -> None:
    label = f"factors[{name!r}] is {show(found)}"
    if abs(found - expected) <= 0.01 * expected or round(expected, 1) == found:
        return
    if abs(found - 1 / expected) <= 0.01:
        raise Wrong(f"{label}, upside down: how many times as much does the tokenizer at home pack?")
    means = sum(away / home for home, away in counts if home) / len(counts)
    if abs(found - means) <= 0.01 * means:
        raise Wrong(f"{label}, a mean over texts in which a short one counts as much as a long one.")
    raise Wrong(
        f"{label}, which is too {'large' if found > expected else 'small'} for these tokenizers and texts. "
        "Divide characters per token at home by characters per token of the other."
    )
