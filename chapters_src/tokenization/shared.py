"""Helpers of all tokenizers of chapter 03: input checks, word counts, one JSON file on disk.

The checks come first, so that the algorithms can trust their input: text is a `str` without lone surrogates,
special tokens are distinct, ids exist.
"""

import json
import operator
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from chapters_src.files import write_text


def check_text(text: str) -> None:
    """Reject text that no tokenizer can read: not a `str`, or with half of a character.

    Python strings may hold *lone surrogates* (U+D800 to U+DFFF): halves of a UTF-16 pair without a UTF-8
    form. They come from broken JSON or file names, and would otherwise surface much later, as an encoding
    error far from its cause.

    Raises:
        TypeError: it is not a `str`.
        ValueError: it holds a lone surrogate. The message names it, its position and a way to repair it.
    """
    if not isinstance(text, str):
        hint = ": decode it first, text.decode('utf-8')" if isinstance(text, bytes) else ""
        raise TypeError(f"a tokenizer reads a str, not {type(text).__name__}{hint}")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"character U+{ord(text[error.start]):04X} at position {error.start} is a lone surrogate, half "
            "of a character. Repair the text first: "
            "text.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace') joins halves that belong "
            "together and puts U+FFFD for the others."
        ) from None


def check_special_tokens(special_tokens: Sequence[str]) -> tuple[str, ...]:
    """Return special tokens as a tuple, after checking that they are distinct, non-empty strings.

    Raises:
        TypeError: they are one string, not a sequence of strings.
        ValueError: a token is empty, repeated, or holds a lone surrogate.
    """
    if isinstance(special_tokens, str):
        raise TypeError(f"special_tokens={special_tokens!r} is one string: write ({special_tokens!r},)")
    tokens = tuple(special_tokens)
    for token in tokens:
        check_text(token)
        if not token:
            raise ValueError("a special token is empty: give it a name, such as '<pad>'")
    if twice := [token for token, count in Counter(tokens).items() if count > 1]:
        raise ValueError(f"special tokens are repeated: {twice}. List each of them once.")
    return tokens


def with_unknown(special_tokens: Sequence[str], unknown_token: str) -> tuple[str, ...]:
    """Check special tokens, and put the unknown token in front of them unless it is among them."""
    special_tokens = check_special_tokens(special_tokens)
    return special_tokens if unknown_token in special_tokens else (unknown_token, *special_tokens)


def check_alphabet(alphabet: Collection[str], vocab_size: int, special_tokens: Sequence[str]) -> None:
    """Reject a vocabulary that cannot hold its special tokens and its alphabet, the characters or bytes.

    Raises:
        ValueError: `vocab_size` is too small, or a special token is one of the characters.
    """
    if both := sorted(set(special_tokens).intersection(alphabet)):
        raise ValueError(f"special tokens {both} are single characters of text: write them like <|name|>")
    needed = len(special_tokens) + len(alphabet)
    if vocab_size < needed:
        raise ValueError(
            f"vocab_size={vocab_size} is too small: {len(special_tokens)} special tokens and an alphabet of "
            f"{len(alphabet)} need {needed} at least"
        )


def count_words(texts: Iterable[str], words_of: Callable[[str], Iterable[str]]) -> Counter[str]:
    """Count the distinct words of a corpus, which is all that training needs.

    The texts may be a generator; `words_of` splits one into words.

    Raises:
        TypeError: `texts` is a string (which would be read as a corpus of single characters).
        ValueError: the corpus has no words, or a text holds a lone surrogate.
    """
    if isinstance(texts, str):
        raise TypeError("texts is one string: pass a list of texts, such as [text]")
    counts: Counter[str] = Counter()
    for text in texts:
        check_text(text)
        counts.update(words_of(text))
    if not counts:
        raise ValueError("the corpus is empty: there is no word in it to learn from")
    return counts


def most_frequent(
    counts: Mapping[str, int], vocab_size: int | None, special_tokens: Sequence[str], min_frequency: int
) -> dict[str, int]:
    """Return a vocabulary: special tokens, then the most frequent tokens, ties in alphabetical order.

    Raises:
        ValueError: `vocab_size` leaves no room beside the special tokens.
    """
    if vocab_size is not None and vocab_size <= len(special_tokens):
        raise ValueError(
            f"vocab_size={vocab_size} leaves no room beside {len(special_tokens)} special tokens"
        )
    frequent = [token for token in counts if counts[token] >= min_frequency and token not in special_tokens]
    frequent.sort(key=lambda token: (-counts[token], token))
    return {token: number for number, token in enumerate([*special_tokens, *frequent][:vocab_size])}


def check_vocabulary(vocabulary: Mapping[str, int], special_tokens: Sequence[str]) -> None:
    """Reject a vocabulary with gaps or repeats in its ids, or with a special token missing."""
    if sorted(vocabulary.values()) != list(range(len(vocabulary))):
        raise ValueError(
            f"the ids of {len(vocabulary)} tokens have to be 0 to {len(vocabulary) - 1}, each once"
        )
    if missing := [token for token in special_tokens if token not in vocabulary]:
        raise ValueError(f"special tokens missing from the vocabulary: {missing}")


def check_ids(ids: Iterable[int], vocab_size: int) -> list[int]:
    """Return ids as a list, after checking that they are below `vocab_size`.

    They are integers of any kind: a list, a NumPy array, a one-dimensional tensor.

    Raises:
        TypeError: an id is not an integer.
        ValueError: an id is out of range, or negative; the message names it and its position.
    """
    checked = [operator.index(token_id) for token_id in ids]
    for position, token_id in enumerate(checked):
        if not 0 <= token_id < vocab_size:
            raise ValueError(
                f"id {token_id} at position {position} is not in the vocabulary: its {vocab_size} tokens "
                f"have the ids 0 to {vocab_size - 1}. Was the text encoded with another tokenizer?"
            )
    return checked


def write_json(path: str | os.PathLike[str], content: Mapping[str, Any]) -> None:
    """Write a JSON file atomically; its folder has to exist."""
    if not Path(path).parent.is_dir():
        raise FileNotFoundError(f"the folder {Path(path).parent} does not exist: create it first")
    write_text(path, json.dumps(content, ensure_ascii=False, indent=1) + "\n")


def read_json(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a file that `write_json` wrote.

    Raises:
        FileNotFoundError: the file does not exist.
        ValueError: it is not one JSON object: it is damaged, or not a saved tokenizer.
    """
    try:
        content = json.loads(Path(path).read_bytes())
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {path}: write one with tokenizer.save(path)") from None
    except ValueError as error:
        raise ValueError(f"{path} is damaged, or not a saved tokenizer: {error}. Save it again.") from error
    if not isinstance(content, dict):
        raise ValueError(
            f"{path} is not a saved tokenizer: it holds a JSON {type(content).__name__}, not an object"
        )
    return content
