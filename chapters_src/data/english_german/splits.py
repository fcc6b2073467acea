"""Splits: what training never has, and sets of new sentences that ask different things."""

import functools
import hashlib
import itertools
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from chapters_src.data.english_german.lexicon import Lexicon, lexicon
from chapters_src.data.english_german.sentences import Draft, Pair, Writer

HELD_OUT_SPLITS = ("validation", "combinations", "structures", "longer", "clauses", "both")
SPLITS = ("train", *HELD_OUT_SPLITS)
LONGEST = 16  # Most words of a sentence, in either language, in all splits but "longer" and "both".
MOST = 1_000_000  # Most training pairs.
FIRST, OFTEN = 10_000, 3  # What a held-out sentence is made of, the first training pairs have so often.
# No training sentence has a clause with all rules of a set. Each single rule occurs in training, and so does
# each pair of rules of a set, except for the last two sets (which are pairs) and "wh-question" with
# "auxiliary sein" (which occurs only with "perfect").
HELD_OUT_RULES = (
    frozenset({"verb-final", "separable", "perfect"}),
    frozenset({"verb-final", "perfect", "nicht"}),
    frozenset({"wh-question", "separable", "present"}),
    frozenset({"wh-question", "perfect", "auxiliary sein"}),
    frozenset({"fronted adverbial", "dative and accusative"}),
    frozenset({"relative clause", "preposition"}),
)
PLACES_OF_VERBS = frozenset(
    {"verb-second", "verb-first main clause", "verb-final", "yes-no question", "wh-question"}
    | {"relative clause", "zu-infinitive", "coordination", "subordination"}
)
_HELD_OUT_BONDS = 12  # One in this many pairs of related words is kept out of training.
_SALT = 35


def is_held_out(bond: tuple[str, str]) -> bool:
    """Return whether two words, a German verb or adjective and a noun, never occur together in training.

    It is the same for every seed: it depends on a hash of the two words.
    """
    return _hash(bond) % _HELD_OUT_BONDS == 0


@functools.cache
def _hash(bond: tuple[str, str]) -> int:
    return int(hashlib.sha256(f"{_SALT} {' '.join(bond)}".encode()).hexdigest(), 16)


def forms(pair: Pair) -> set[str]:
    """List the words of a pair in both languages, as they are written: "en sleeps", "de schläft"."""
    texts = (("en", pair.english), ("de", pair.german))
    return {f"{name} {word}" for name, text in texts for word in re.findall(r"[\w'-]+", text)}


def pattern(clauses: Iterable[frozenset[str]]) -> tuple[frozenset[str], ...]:
    """Return how a sentence is built: of each clause only where its verb stands and how it is joined."""
    return tuple(clause & PLACES_OF_VERBS for clause in clauses)


def _pairs_of(clause: Iterable[str]) -> list[tuple[str, str]]:
    return list(itertools.combinations(sorted(clause), 2))


class _Known:
    """What occurs often enough in the first training pairs."""

    def __init__(self, pairs: Iterable[Pair]) -> None:
        counts: Counter[str] = Counter()
        met: Counter[tuple[str, str]] = Counter()
        patterns: Counter[tuple[frozenset[str], ...]] = Counter()
        for pair in pairs:
            counts.update(forms(pair))
            patterns[pattern(pair.clauses)] += 1
            for clause in pair.clauses:
                met.update(_pairs_of(clause))
        self.forms = {form for form, count in counts.items() if count >= OFTEN}
        self.met = {pair for pair, count in met.items() if count >= OFTEN}
        self.patterns = {found for found, count in patterns.items() if count >= OFTEN}

    def has(self, pair: Pair, split: str) -> bool:
        """Return whether a pair is new only in what its split is for."""
        if not forms(pair) <= self.forms:
            return False
        if split != "structures" and any(
            not self.met.issuperset(_pairs_of(clause)) for clause in pair.clauses
        ):
            return False
        return split in ("clauses", "both") or pattern(pair.clauses) in self.patterns


def _may_belong(draft: Draft, split: str) -> bool:
    """Return whether the rules and words of a sentence fit a split; its length is not known yet."""
    new_structure = any(rules <= clause for rules in HELD_OUT_RULES for clause in draft.clauses)
    if new_structure != (split == "structures"):
        return False
    return any(map(is_held_out, draft.bonds)) == (split == "combinations")


def _has_length(pair: Pair, split: str) -> bool:
    return min(pair.words) > LONGEST if split in ("longer", "both") else max(pair.words) <= LONGEST


def pairs(
    num_train: int = 50_000,
    *,
    num_held_out: int = 1000,
    seed: int = 0,
    more: Mapping[str, Iterable[str]] | None = None,
) -> dict[str, list[Pair]]:
    """Draw pairs of sentences, no sentence twice.

    Args:
        num_train: pairs in "train", at most `MOST`.
        num_held_out: pairs in each other split.
        seed: decides the sentences; the held-out structures and words do not depend on it.
        more: words of your own: rows as in the tables of the lexicon, by table. Columns after the bar may be
            left out: nouns `english;english_plural;german;genitive;plural;classes|;at;to`, adjectives
            `english;german;stem;classes|;lasts`, verbs
            `english;german;present;perfect;frame;subjects;objects|;where;how`, adverbs `english;german;kind`.

    Returns:
        Pairs by split (see `SPLITS`): "train"; "validation", which is like it; "combinations", with pairs of
        words that never occur together in training; "structures", with rules that never meet in training;
        "longer", sentences built like those of training, with more words; "clauses", three clauses instead of
        at most two, not longer than in training; "both", three clauses and more words. The held-out splits do
        not depend on `num_train`. Each word in them occurs at least `OFTEN` times, as it is written there,
        in the first `FIRST` training pairs.

    Raises:
        ValueError: a number of pairs is below 1 or above `MOST`, or a row is not like those of its table.
    """
    for name, number in (("num_train", num_train), ("num_held_out", num_held_out)):
        if not 1 <= number <= MOST:
            raise ValueError(f"{name}={number}: it must be from 1 to {MOST:,}")
    words, seen = lexicon(more), set()
    stream = _drawn("train", seed, words, seen)
    train = list(itertools.islice(stream, FIRST))
    known = _Known(train)
    held_out = {
        split: list(itertools.islice(_drawn(split, seed, words, seen, known), num_held_out))
        for split in HELD_OUT_SPLITS
    }
    train += itertools.islice(stream, max(0, num_train - FIRST))
    return {"train": train[:num_train]} | held_out


def _drawn(
    split: str, seed: int, words: Lexicon, seen: set[str], known: _Known | None = None
) -> Iterator[Pair]:
    """Draw new pairs for a split without end, and add their sentences, of both languages, to `seen`."""
    writer = Writer(random.Random(f"{seed} {split}"), words, rich=split in ("longer", "both"))
    sets: Counter[frozenset[str]] = Counter()  # Of "structures": none has more than a third.
    while True:
        draft = writer.draft(three=split in ("clauses", "both"))
        if not _may_belong(draft, split):
            continue
        held = [rules for rules in HELD_OUT_RULES if any(rules <= clause for clause in draft.clauses)]
        if any(sets[rules] > sets.total() / 3 for rules in held):
            continue
        pair = draft.pair()
        if _has_length(pair, split) and seen.isdisjoint(pair[:2]) and (not known or known.has(pair, split)):
            seen.update(pair[:2])
            sets.update(held)
            yield pair
