"""English sentences and their German translations, from a grammar written for this book: chapter 09.

A sentence is drawn once, as a language-neutral `Clause`: who does what to whom, when, in which tense. Two
small grammars render it, one in English and one in German. The words are in four tables in `english_german/`
beside this file. German cases, endings and word order come from the rules below, so a pair is right if the
tables and the rules are.

The card, `english_german.md`, describes what the grammar covers, its conventions, splits and limits.
"""

import csv
import functools
import hashlib
import itertools
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, TypedDict

FOLDER = Path(__file__).with_suffix("")
HELD_OUT_SPLITS = ("validation", "combinations", "structures", "longer")
SPLITS = ("train", *HELD_OUT_SPLITS)
LONGEST = 16  # Most words of a sentence, in either language, in all splits but "longer".
MOST = 1_000_000  # Most training pairs.
# No training sentence has a clause with all rules of a set. Each single rule occurs in training, and so does
# each pair of rules of a set, except for the last two sets (which are pairs) and "wh-question" with
# "auxiliary sein" (which occurs only with "perfect").
HELD_OUT_RULES = (
    frozenset({"verb-final", "modal", "separable"}),
    frozenset({"verb-final", "perfect", "kein"}),
    frozenset({"yes-no question", "modal", "separable"}),
    frozenset({"wh-question", "perfect", "auxiliary sein"}),
    frozenset({"fronted adverbial", "dative and accusative"}),
    frozenset({"relative clause", "preposition"}),
)
_HELD_OUT_BONDS = 12  # One in this many pairs of related words is kept out of training.
_SALT = 35  # Chosen so that every word is in training with other words.


class Pair(NamedTuple):
    """A sentence in both languages, and how it was generated."""

    english: str
    german: str
    clauses: tuple[frozenset[str], ...]  # The rules that each clause follows: names such as "verb-final".
    bonds: frozenset[tuple[str, str]]  # Pairs of related words: a verb or an adjective, and a noun.

    @property
    def rules(self) -> frozenset[str]:
        """The rules of all clauses."""
        return frozenset().union(*self.clauses)


# The lexicon ----------------------------------------------------------------------------------------------


class Noun(NamedTuple):
    """A row of nouns.csv. A noun without plural is uncountable if its classes say "mass"."""

    english: str
    english_plural: str
    german: str
    gender: str  # "m", "f" or "n".
    genitive: str
    german_plural: str
    classes: frozenset[str]  # What verbs and adjectives select: "person", "food", also the word itself.
    at: tuple[str, str]  # Prepositions of location, English and German ("at", "an"); empty if not a place.
    to: str  # German preposition of direction.

    @property
    def weak(self) -> bool:
        """Whether the singular ends in -(e)n in all cases but one: der Student, den Studenten."""
        return self.gender == "m" and self.genitive != self.german and self.genitive.endswith("n")


class Adjective(NamedTuple):
    """A row of adjectives.csv."""

    english: str
    german: str
    stem: str  # What endings are added to: teur- for teuer.
    classes: frozenset[str]


class Verb(NamedTuple):
    """A row of verbs.csv."""

    english: tuple[str, str, str]  # eat, ate, eaten.
    prefix: str  # Of a separable verb, else empty.
    infinitive: str  # Without that prefix.
    present: tuple[str, str, str]  # ich, du, er.
    participle: str  # With the prefix.
    auxiliary: str  # "haben" or "sein".
    frame: str  # What it takes: "acc", "dat+acc", "for=auf+acc", "to" ...
    place: str  # Class of the place for the frames "to", "put" and "loc".
    action: bool  # Whether it is done on purpose, so that it can be done slowly or alone.
    subjects: tuple[str, ...]  # Classes of nouns.
    objects: tuple[str, ...]


class Adverb(NamedTuple):
    """A row of adverbs.csv."""

    english: str
    german: str
    kind: str  # "past", "present", "future": a time; "often", "already", "manner".


def _rows(table: str) -> Iterator[dict[str, str]]:
    with (FOLDER / f"{table}.csv").open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file, delimiter=";")


@functools.cache
def nouns() -> tuple[Noun, ...]:
    """Read the nouns."""
    found = []
    for row in _rows("nouns"):
        article, german = row["german"].split()
        english = row["english"]
        english_at, _, german_at = row["at"].partition("=")
        plural = {"": _add_s(english), "-": ""}.get(row["english_plural"], row["english_plural"])
        gender = {"der": "m", "die": "f", "das": "n"}[article]
        classes = frozenset(row["classes"].split()) | {english}
        german_plural = row["plural"].strip("-")
        found.append(
            Noun(
                english,
                plural,
                german,
                gender,
                row["genitive"],
                german_plural,
                classes,
                (english_at, german_at),
                row["to"],
            )
        )
    return tuple(found)


@functools.cache
def adjectives() -> tuple[Adjective, ...]:
    """Read the adjectives."""
    return tuple(
        Adjective(row["english"], row["german"], row["stem"], frozenset(row["classes"].split()))
        for row in _rows("adjectives")
    )


@functools.cache
def adverbs() -> tuple[Adverb, ...]:
    """Read the adverbs."""
    return tuple(Adverb(**row) for row in _rows("adverbs"))


@functools.cache
def verbs() -> tuple[Verb, ...]:
    """Read the verbs, and fill in the regular forms that the table leaves out."""
    return tuple(_verb(row) for row in _rows("verbs"))


def _verb(row: dict[str, str]) -> Verb:
    base, *irregular = [form.replace("_", " ") for form in row["english"].split()]
    # A regular verb, with or without a particle: turn on, turned on.
    past, past_participle = irregular or 2 * [_add_ed(base)]
    prefix, _, infinitive = row["german"].rpartition("|")
    auxiliary, _, participle = row["perfect"].rpartition(" ")
    frame, *more = row["frame"].split()
    return Verb(
        (base, past, past_participle),
        prefix,
        infinitive,
        _present(infinitive, row["present"].split("/")),
        participle,
        "sein" if auxiliary else "haben",
        frame,
        "".join(word for word in more if word != "action"),
        "action" in more,
        tuple(row["subjects"].split()),
        tuple(row["objects"].split()),
    )


def _present(infinitive: str, given: list[str]) -> tuple[str, str, str]:
    """Complete ich and du: (er,), (du, er) or all three may be given."""
    er = given[-1]
    ending = "t" if er[-2] in "sßzx" else "st"
    du = given[-2] if len(given) > 1 else er[:-1] + ending
    stem = infinitive.removesuffix("n") if infinitive.endswith("ern") else infinitive.removesuffix("en")
    ich = given[0] if len(given) == 3 else f"{stem}e"
    return ich, du, er


def _add_s(word: str) -> str:
    """Form a plural or a third person: books, buses, cities; of several words the first one changes."""
    first, space, rest = word.partition(" ")
    if first == "have":
        first = "has"
    elif re.search("[^aeiou]y$", first):
        first = first[:-1] + "ies"
    else:
        first += "es" if re.search("(s|sh|ch|x|z|[^aeiou]o)$", first) else "s"
    return first + space + rest


def _add_ed(word: str) -> str:
    first, space, rest = word.partition(" ")
    if re.search("[^aeiou]y$", first):
        return first[:-1] + "ied" + space + rest
    return first + ("d" if first.endswith("e") else "ed") + space + rest


# Language-neutral sentences -------------------------------------------------------------------------------


class Person(NamedTuple):
    """A pronoun: forms by case."""

    english: tuple[str, str]  # I, me.
    german: dict[str, str]
    number: str  # Row of the verb's forms: "ich", "du", "er" or "wir".


class Phrase(NamedTuple):
    """A noun phrase: my old friends; the teacher's car."""

    noun: Noun
    plural: bool
    determiner: str  # A key of `_DETERMINERS`, or empty.
    adjective: Adjective | None = None
    owner: "Phrase | None" = None
    relative: "Clause | None" = None

    @property
    def number(self) -> str:
        """The row of the verb's forms."""
        return "wir" if self.plural else "er"

    @property
    def definite(self) -> bool:
        """Whether the phrase is definite."""
        return self.determiner not in ("a", "")


class Gap(NamedTuple):
    """A question word or relative pronoun that opens a clause: who, which, whom."""

    english: str
    german: dict[str, str]
    number: str
    noun: Noun | None = None  # What a relative pronoun stands for.


class Prepositional(NamedTuple):
    """A preposition with its phrase; the case is the German one."""

    english: str
    german: str
    case: str
    phrase: Phrase | Person


Nominal = Phrase | Person | Gap


@dataclass(frozen=True)
class Clause:
    """Who does what: everything that both languages need."""

    subject: Nominal
    verb: Verb | None  # None is "to be" with a predicate.
    tense: str = "present"  # Or "past", "perfect", "like", or a key of `_MODALS`.
    negated: bool = False
    predicate: Adjective | None = None
    recipient: Nominal | None = None
    object: Nominal | None = None
    complement: Prepositional | None = None  # Required by the verb: wait for the bus, lay on the table.
    time: Adverb | None = None
    often: Adverb | None = None
    cause: Prepositional | None = None
    manner: Adverb | None = None
    company: Prepositional | None = None
    place: Prepositional | None = None
    front: str = ""  # Which of these comes first: "time" or "place".
    asked: tuple[str, str] | None = None  # Question word: when, wann.
    inner: "tuple[tuple[str, str], Clause] | None" = None  # Conjunction and clause: that he sleeps.
    infinitive: "Clause | None" = None  # To open the door; its subject is that of this clause.


class _Arguments(TypedDict, total=False):
    """The arguments of a verb, by field of `Clause`."""

    recipient: Phrase | Person
    object: Phrase | Person
    complement: Prepositional


class _Adverbials(TypedDict, total=False):
    """When, how, with whom, where and why, by field of `Clause`."""

    time: Adverb
    often: Adverb
    cause: Prepositional
    manner: Adverb
    company: Prepositional
    place: Prepositional


class Part(NamedTuple):
    """A top-level clause of a sentence."""

    clause: Clause
    order: str  # Of the German verb: "second", "first" or "final".
    conjunction: tuple[str, str] | None = None  # English and German.


# German ---------------------------------------------------------------------------------------------------

CASES = ("nom", "acc", "dat", "gen")
_THE = {  # By case; then masculine, feminine, neuter, plural.
    "nom": {"m": "der", "f": "die", "n": "das", "p": "die"},
    "acc": {"m": "den", "f": "die", "n": "das", "p": "die"},
    "dat": {"m": "dem", "f": "der", "n": "dem", "p": "den"},
    "gen": {"m": "des", "f": "der", "n": "des", "p": "der"},
}
_STRONG = {  # What a determiner ends in, and an adjective that has none before it.
    "nom": {"m": "er", "f": "e", "n": "es", "p": "e"},
    "acc": {"m": "en", "f": "e", "n": "es", "p": "e"},
    "dat": {"m": "em", "f": "er", "n": "em", "p": "en"},
    "gen": {"m": "es", "f": "er", "n": "es", "p": "er"},
}
_BARE = {("nom", "m"), ("nom", "n"), ("acc", "n")}  # Where ein-words have no ending.
_DETERMINERS = {  # English: German stem.
    "the": "d", "this": "dies", "a": "ein", "no": "kein", "my": "mein", "your": "dein", "his": "sein",
    "her": "ihr", "our": "unser", "their": "ihr",
}  # fmt: skip
_RELATIVE = {
    **{case: dict(_THE[case]) for case in ("nom", "acc")},
    "dat": _THE["dat"] | {"p": "denen"},
}
_CONTRACTIONS = {
    "in dem": "im", "in das": "ins", "an dem": "am", "an das": "ans", "von dem": "vom", "zu dem": "zum",
    "zu der": "zur",
}  # fmt: skip
_PERSONS = (
    Person(("I", "me"), {"nom": "ich", "acc": "mich", "dat": "mir"}, "ich"),
    Person(("you", "you"), {"nom": "du", "acc": "dich", "dat": "dir"}, "du"),
    Person(("he", "him"), {"nom": "er", "acc": "ihn", "dat": "ihm"}, "er"),
    Person(("she", "her"), {"nom": "sie", "acc": "sie", "dat": "ihr"}, "er"),
    Person(("we", "us"), {"nom": "wir", "acc": "uns", "dat": "uns"}, "wir"),
    Person(("they", "them"), {"nom": "sie", "acc": "sie", "dat": "ihnen"}, "wir"),
)
_NUMBERS = ("ich", "du", "er", "wir")
_MODALS = {  # English, as a key: German ich, du, er, wir.
    "can": ("kann", "kannst", "kann", "können"),
    "have to": ("muss", "musst", "muss", "müssen"),
    "want to": ("will", "willst", "will", "wollen"),
    "be allowed to": ("darf", "darfst", "darf", "dürfen"),
    "should": ("sollte", "solltest", "sollte", "sollten"),
    "would like to": ("möchte", "möchtest", "möchte", "möchten"),
    "will": ("werde", "wirst", "wird", "werden"),
}
_HABEN = ("habe", "hast", "hat", "haben")
_SEIN = ("bin", "bist", "ist", "sind")
_WAR = ("war", "warst", "war", "waren")


def decline(phrase: Phrase | Person, case: str, *, negated: bool = False) -> str:
    """Put a noun phrase into a German case.

    Args:
        phrase: a noun with determiner, adjective and owner, or a pronoun.
        case: "nom", "acc", "dat" or "gen"; pronouns have no genitive.
        negated: with kein instead of ein or nothing.

    Returns:
        The words, without the relative clause.
    """
    if isinstance(phrase, Person):
        return phrase.german[case]
    gender = "p" if phrase.plural else phrase.noun.gender
    determiner = "no" if negated else "the" if phrase.owner else phrase.determiner
    words = [_determiner(determiner, case, gender)] if determiner else []
    if phrase.adjective:
        words.append(phrase.adjective.stem + _adjective_ending(determiner, case, gender))
    words.append(_noun_form(phrase.noun, case, phrase.plural))
    if phrase.owner:
        words.append(decline(phrase.owner, "gen"))
    return " ".join(words)


def _determiner(determiner: str, case: str, gender: str) -> str:
    if determiner == "the":
        return _THE[case][gender]
    bare = determiner != "this" and (case, gender) in _BARE
    return _DETERMINERS[determiner] + ("" if bare else _STRONG[case][gender])


def _adjective_ending(determiner: str, case: str, gender: str) -> str:
    if not determiner:  # Strong: the adjective shows the case, except where the noun does.
        return "en" if case == "gen" and gender in "mn" else _STRONG[case][gender]
    if determiner not in ("the", "this") and (case, gender) in _BARE:  # Mixed: ein shows nothing here.
        return _STRONG[case][gender]
    if gender != "p" and (case == "nom" or (case == "acc" and gender != "m")):  # Weak.
        return "e"
    return "en"


def _noun_form(noun: Noun, case: str, plural: bool) -> str:
    if plural:
        more = "n" if case == "dat" and noun.german_plural[-1] not in "ns" else ""
        return noun.german_plural + more
    return noun.genitive if case == "gen" or (noun.weak and case != "nom") else noun.german


def _german_prepositional(part: Prepositional) -> str:
    words = f"{part.german} {decline(part.phrase, part.case)}"
    first_two = " ".join(words.split(" ", 2)[:2])
    return _CONTRACTIONS.get(first_two, first_two) + words[len(first_two) :]


def _german_verb(clause: Clause) -> tuple[str, str]:
    """Return the finite verb and the end of the clause: ("hat", "aufgemacht"), ("macht", "auf")."""
    row = _NUMBERS.index(clause.subject.number)
    verb = clause.verb
    if clause.tense in _MODALS:
        return _MODALS[clause.tense][row], f"{verb.prefix}{verb.infinitive}" if verb else "sein"
    if verb is None:
        return (_WAR if clause.tense == "past" else _SEIN)[row], ""
    if clause.tense in ("past", "perfect"):
        return (_SEIN if verb.auxiliary == "sein" else _HABEN)[row], verb.participle
    return (*verb.present, verb.infinitive)[row], verb.prefix


def _german_middle(clause: Clause) -> list[str]:
    """Order the words between the verbs: what is known, adverbials, what is new, goals."""
    kein = takes_kein(clause)
    persons, known, new = [], [], []  # "persons" are pronouns and recipients, which come first.
    for nominal, case in ((clause.recipient, "dat"), (clause.object, object_case(clause))):
        if nominal is None or isinstance(nominal, Gap):
            continue
        if isinstance(nominal, Person) or nominal is clause.recipient:
            persons.append(decline(nominal, case))
        else:
            text = decline(nominal, case, negated=kein)
            (known if nominal.definite else new).append(text)
    first = ("time", "often", "cause") if clause.recipient else ()
    if clause.often and clause.often.kind == "often":
        first = ("often",)
    gern = ["gern"] if clause.tense == "like" else []
    if gern and not clause.negated:
        first = ("time",)
        known = [*gern, *known]
        gern = []
    words = persons + _german_adverbials(clause, first) + known
    words += _german_adverbials(clause, [name for name in ("time", "often", "cause") if name not in first])
    words += ["nicht"] if clause.negated and not kein else []
    words += gern + _german_adverbials(clause, ("manner", "company", "place")) + new
    words += [_german_prepositional(clause.complement)] if clause.complement else []
    return words + ([clause.predicate.german] if clause.predicate else [])


def object_case(clause: Clause) -> str:
    """Return the case of a clause's object."""
    return "dat" if clause.verb and clause.verb.frame == "dat" else "acc"


def _german_adverbials(clause: Clause, names: Iterable[str]) -> list[str]:
    """Render some adverbials, except the one that comes first in the clause."""
    parts = [getattr(clause, name) for name in names if name != clause.front]
    return [_german_adverbial(part) for part in parts if part]


def _german_adverbial(part: Adverb | Prepositional) -> str:
    return part.german if isinstance(part, Adverb) else _german_prepositional(part)


def takes_kein(clause: Clause) -> bool:
    """Return whether a clause is negated by kein: its object is indefinite, and it does not say "like to".

    Args:
        clause: any clause.

    Returns:
        True or False; False also if the clause is not negated.
    """
    indefinite = isinstance(clause.object, Phrase) and not clause.object.definite
    return clause.negated and indefinite and clause.tense != "like"


def german(clause: Clause, order: str) -> str:
    """Render a clause in German.

    Args:
        clause: any clause.
        order: where the verb stands: "second", "first", "final", or "zu" for the infinitive.

    Returns:
        The words, without a capital letter or a period. Commas are set.
    """
    finite, end = _german_verb(clause)
    middle = _german_middle(clause)
    lead, subject = _german_lead(clause), _german_subject(clause)
    if order == "zu":
        prefix, infinitive = (clause.verb.prefix, clause.verb.infinitive) if clause.verb else ("", "sein")
        words = [*middle, f"{prefix}zu{infinitive}" if prefix else f"zu {infinitive}"]
    elif order == "final":
        joined = end + finite if clause.verb and end == clause.verb.prefix else f"{end} {finite}"
        words = [lead, subject, *middle, joined]
    elif order == "first":
        words = [finite, subject, *middle, end]
    elif lead:
        words = [lead, finite, subject, *middle, end]
    else:
        words = [subject, finite, *middle, end]
    return " ".join(word.strip() for word in words if word.strip()) + _german_tail(clause)


def _german_lead(clause: Clause) -> str:
    """Return the first words: a question word, a relative pronoun, an adverbial, or nothing."""
    if isinstance(clause.subject, Gap):
        return clause.subject.german["nom"]
    if isinstance(clause.object, Gap):
        return clause.object.german[object_case(clause)]
    if clause.asked:
        return clause.asked[1]
    return _german_adverbial(getattr(clause, clause.front)) if clause.front else ""


def _german_subject(clause: Clause) -> str:
    if isinstance(clause.subject, Gap):
        return ""
    text = decline(clause.subject, "nom")
    relative = getattr(clause.subject, "relative", None)
    return f"{text}, {german(relative, 'final')}," if relative else text


def _german_tail(clause: Clause) -> str:
    """Return the clauses that follow the last verb."""
    tail = ""
    if relative := getattr(clause.object, "relative", None):
        tail += f", {german(relative, 'final')}"
    if clause.inner:
        (_, conjunction), inner = clause.inner
        tail += f", {conjunction} {german(inner, 'final')}"
    if clause.infinitive:
        tail += f", {german(clause.infinitive, 'zu')}"
    return tail


# English --------------------------------------------------------------------------------------------------


def english_phrase(phrase: Phrase | Person, *, subject: bool = False) -> str:
    """Render a noun phrase in English, without its relative clause.

    Args:
        phrase: a noun with determiner, adjective and owner, or a pronoun.
        subject: whether it is the subject: I or me.

    Returns:
        The words.
    """
    if isinstance(phrase, Person):
        return phrase.english[0 if subject else 1]
    noun = phrase.noun.english_plural if phrase.plural else phrase.noun.english
    words = [phrase.adjective.english] if phrase.adjective else []
    words.append(noun)
    if phrase.owner:
        owner = english_phrase(phrase.owner)
        apostrophe = "'" if phrase.owner.plural and owner.endswith("s") else "'s"
        return " ".join([owner + apostrophe, *words])
    determiner = phrase.determiner
    if determiner == "a":
        determiner = "an" if words[0][0] in "aeiou" or words[0] == "honest" else "a"
    if determiner == "this" and phrase.plural:
        determiner = "these"
    return " ".join([determiner, *words]).strip()


def _english_verb(clause: Clause) -> tuple[str, str, str]:
    """Return an operator (maybe empty), the finite form without an operator, and the rest with one."""
    third = clause.subject.number == "er"
    be = {"ich": "am", "er": "is"}.get(clause.subject.number, "are")
    base, past, participle = clause.verb.english if clause.verb else ("be", "", "")
    tense = clause.tense
    if tense in ("can", "should", "will"):
        return tense, "", base
    if tense == "would like to":
        return "would", "", f"like to {base}"
    if tense == "be allowed to":
        return be, "", f"allowed to {base}"
    if clause.verb is None and tense != "have to" and tense != "want to":
        return (
            (("was" if clause.subject.number in ("ich", "er") else "were") if tense == "past" else be),
            "",
            "",
        )
    if tense == "perfect":
        return ("has" if third else "have"), "", participle
    if tense == "past":
        return "", past, base
    base = {"like": f"like to {base}", "have to": f"have to {base}", "want to": f"want to {base}"}.get(
        tense, base
    )
    return "", _add_s(base) if third else base, base


def english(clause: Clause, order: str) -> str:
    """Render a clause in English.

    Args:
        clause: any clause.
        order: "statement", "question", or "to" for the infinitive.

    Returns:
        The words, without a capital letter or a period.
    """
    operator, finite, rest = _english_verb(clause)
    gap = isinstance(clause.subject, Gap)
    subject = "" if isinstance(clause.subject, Gap) else english_phrase(clause.subject, subject=True)
    often = clause.often.english if clause.often else ""
    if not operator and (clause.negated or (order == "question" and not gap)):
        third = clause.subject.number == "er"
        operator, finite = "did" if clause.tense == "past" else "does" if third else "do", ""
    negation = "not" if clause.negated else ""
    verbs = [operator, negation, often, rest] if operator else [often, finite]
    if relative := getattr(clause.subject, "relative", None):
        subject += f" {english(relative, 'statement')}"
    if order == "to":
        words = ["to", clause.verb.english[0] if clause.verb else "be"]
    elif order == "question" and not gap:
        words = [operator, subject, *verbs[1:]]
    else:
        words = [subject, *verbs]
    words = [_english_lead(clause), *words, *_english_objects(clause), *_english_adverbials(clause)]
    if clause.inner:
        words += [clause.inner[0][0], english(clause.inner[1], "statement")]
    if clause.infinitive:
        words.append(english(clause.infinitive, "to"))
    return re.sub(r"\bcan not\b", "cannot", " ".join(word for word in words if word))


def _english_lead(clause: Clause) -> str:
    for nominal in (clause.subject, clause.object):
        if isinstance(nominal, Gap):
            return nominal.english
    if clause.asked:
        return clause.asked[0]
    return _english_adverbial(getattr(clause, clause.front)) if clause.front else ""


def _english_objects(clause: Clause) -> list[str]:
    words = [clause.predicate.english] if clause.predicate else []
    nominals = [part for part in (clause.recipient, clause.object) if part and not isinstance(part, Gap)]
    words += [english_phrase(nominal) for nominal in nominals]
    if clause.recipient and clause.verb and clause.verb.place == "to":  # Explains the plan to the man.
        words = [words[1], f"to {words[0]}"] if len(words) > 1 else [f"to {words[0]}"]
    if relative := getattr(clause.object, "relative", None):
        words.append(english(relative, "statement"))
    if clause.complement:
        words.append(_english_adverbial(clause.complement))
    return words


def _english_adverbials(clause: Clause) -> list[str]:
    names = ("manner", "company", "place", "cause", "time")
    parts = [getattr(clause, name) for name in names if name != clause.front]
    return [_english_adverbial(part) for part in parts if part]


def _english_adverbial(part: Adverb | Prepositional) -> str:
    return part.english if isinstance(part, Adverb) else f"{part.english} {english_phrase(part.phrase)}"


# Sentences ------------------------------------------------------------------------------------------------

_AND, _BUT = ("and", "und"), ("but", "aber")
_ANY_TENSE = (("because", "weil"), ("although", "obwohl"))
_ONCE = (("before", "bevor"), ("as soon as", "sobald"))
_PRESENT_TENSE = (("if", "wenn"), ("while", "während"), *_ONCE)
_THAT, _WHETHER = ("that", "dass"), ("whether", "ob")


def render(parts: Iterable[Part], *, question: bool = False) -> tuple[str, str]:
    """Render a sentence in both languages.

    Args:
        parts: its clauses in order.
        question: whether it is a question.

    Returns:
        English and German, with capital letter and period or question mark.
    """
    parts = list(parts)
    in_english, in_german = "", ""
    for number, (clause, order, conjunction) in enumerate(parts):
        said = english(clause, "question" if question else "statement"), german(clause, order)
        if conjunction:
            said = tuple(f"{word} {words}" for word, words in zip(conjunction, said, strict=True))
        before = parts[number - 1] if number else None
        comma = before is not None and (before.order == "final" or conjunction == _BUT)
        in_english += ("," if comma else "") + (" " if number else "") + said[0]
        comma = comma or (before is not None and (conjunction != _AND or _german_tail(before.clause)))
        in_german += ("," if comma else "") + (" " if number else "") + said[1]
    mark = "?" if question else "."
    in_german = in_german.removesuffix(",").replace(",,", ",")
    return in_english[0].upper() + in_english[1:] + mark, in_german[0].upper() + in_german[1:] + mark


def _clauses(clause: Clause, rule: str) -> Iterator[tuple[Clause, str]]:
    """Yield a clause and the clauses inside it, each with the rule for its German verb's position."""
    yield clause, rule
    for nominal in (clause.subject, clause.object):
        if relative := getattr(nominal, "relative", None):
            yield from _clauses(relative, "relative clause")
    if clause.inner:
        yield from _clauses(clause.inner[1], "verb-final")
    if clause.infinitive:
        yield from _clauses(clause.infinitive, "zu-infinitive")


_TENSE_RULES = {
    "present": {"present"}, "past": {"perfect", "English past"}, "perfect": {"perfect"}, "like": {"gern"},
    "will": {"future"},
}  # fmt: skip
_FRAME_RULES = {
    "none": "no object", "acc": "accusative", "dat": "dative", "dat+acc": "dative and accusative",
    "to": "direction", "put": "direction", "loc": "position", "zu": "infinitive clause",
    "that": "that-clause", "whether": "whether-clause",
}  # fmt: skip


def rules_of(clause: Clause, rule: str) -> frozenset[str]:
    """List the rules that a clause follows, without the clauses inside it.

    Args:
        clause: any clause.
        rule: one rule that is already known, such as "verb-final".

    Returns:
        Names of rules.
    """
    found = {rule} | _TENSE_RULES.get(clause.tense, {"modal"})
    if rule == "relative clause":
        found.add("verb-final")
    if clause.verb is None:
        found.add("predicate")
        found -= {"perfect"}  # "was" is war.
    else:
        found.add(_FRAME_RULES.get(clause.verb.frame, "preposition"))
        if clause.verb.prefix:
            found.add("separable")
        if "perfect" in found:
            found.add(f"auxiliary {clause.verb.auxiliary}")
    if clause.negated:
        found.add("kein" if takes_kein(clause) else "nicht")
    if clause.front:
        found.add("fronted adverbial")
    found |= {
        name for name in ("time", "often", "cause", "manner", "company", "place") if getattr(clause, name)
    }
    for phrase, case in _phrases(clause):
        found.update(_phrase_rules(phrase, case))
    return frozenset(found)


def _phrases(clause: Clause) -> Iterator[tuple[Nominal, str]]:
    """Yield the noun phrases of a clause with their German cases."""
    yield clause.subject, "nom"
    if clause.recipient:
        yield clause.recipient, "dat"
    if clause.object:
        yield clause.object, object_case(clause)
    for part in (clause.complement, clause.cause, clause.company, clause.place):
        if part:
            yield part.phrase, part.case


def _phrase_rules(phrase: Nominal, case: str) -> Iterator[str]:
    if isinstance(phrase, Person):
        yield f"pronoun, {case}"
    if not isinstance(phrase, Phrase):
        return
    yield f"noun, {case}"
    if phrase.adjective:
        kind = (
            "strong" if not phrase.determiner else "weak" if phrase.determiner in ("the", "this") else "mixed"
        )
        yield f"{kind} adjective, {case}"
    if phrase.noun.weak and case != "nom" and not phrase.plural:
        yield "n-declension"
    if phrase.plural and case == "dat":
        yield "dative plural"
    if phrase.owner:
        yield "owner in the genitive"
    if not phrase.plural and not phrase.noun.german_plural:
        yield "uncountable"


def _bonds(clause: Clause) -> Iterator[tuple[str, str]]:
    """Yield pairs of related words: verb and noun, adjective and noun."""
    if clause.verb:
        verb = clause.verb.prefix + clause.verb.infinitive
    else:
        verb = clause.predicate.german if clause.predicate else "sein"
    for phrase, _ in _phrases(clause):
        if isinstance(phrase, Gap) and phrase.noun:
            yield verb, phrase.noun.german
        if isinstance(phrase, Phrase):
            yield verb, phrase.noun.german
            if phrase.adjective:
                yield phrase.adjective.german, phrase.noun.german


@functools.cache
def is_held_out(bond: tuple[str, str]) -> bool:
    """Return whether two words never occur together in training.

    Args:
        bond: a German verb or adjective, and a noun.

    Returns:
        True or False, the same for every seed: it depends on a hash of the two words.
    """
    return int(hashlib.sha256(f"{_SALT} {' '.join(bond)}".encode()).hexdigest(), 16) % _HELD_OUT_BONDS == 0


# Drawing --------------------------------------------------------------------------------------------------


@functools.cache
def _nouns_of(classes: tuple[str, ...]) -> tuple[Noun, ...]:
    return tuple(noun for noun in nouns() if not noun.classes.isdisjoint(classes))


@functools.cache
def _adjectives_of(noun: Noun) -> tuple[Adjective, ...]:
    return tuple(adjective for adjective in adjectives() if not noun.classes.isdisjoint(adjective.classes))


@functools.cache
def _adverbs_of(kind: str) -> tuple[Adverb, ...]:
    return tuple(adverb for adverb in adverbs() if adverb.kind == kind)


@functools.cache
def _verbs_of(
    frames: tuple[str, ...], subject: Noun | None = None, object: Noun | None = None
) -> tuple[Verb, ...]:
    """Find verbs with one of these frames ("preposition" for all such) that allow these nouns."""
    return tuple(
        verb
        for verb in verbs()
        if ("preposition" if "=" in verb.frame else verb.frame) in frames
        and (subject is None or not subject.classes.isdisjoint(verb.subjects))
        and (object is None or not object.classes.isdisjoint(verb.objects))
    )


_PLAIN_FRAMES = ("none", "acc", "dat", "dat+acc", "preposition", "to", "loc", "put")
_NEAR = (("behind", "hinter"), ("next to", "neben"), ("in front of", "vor"))
_ON = (("on", "auf"), ("under", "unter"), *_NEAR)
_POSSESSIVES = ("my", "your", "his", "her", "our", "their")
_TOGETHER = {"I": ("I", "we"), "we": ("I", "we"), "you": ("you",), "he": (), "she": (), "they": ()}


class _Writer:
    """Draws clauses and sentences."""

    def __init__(self, rng: random.Random):
        self.rng = rng

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def phrase(self, classes: tuple[str, ...], *, definite: bool = False, plain: bool = False) -> Phrase:
        """Draw a noun phrase; `plain` ones have no adjective and no owner."""
        noun = self.rng.choice(_nouns_of(classes))
        plural = bool(noun.german_plural) and self.chance(0.3)
        draw = self.rng.random()
        if "only-the" in noun.classes or draw < 0.4:
            determiner = "the"
        elif draw < 0.6:
            determiner = self.rng.choice(_POSSESSIVES)
        elif draw < 0.67 and noun.german_plural:
            determiner = "this"
        elif definite:
            determiner = "the"
        else:
            determiner = "" if plural or not noun.german_plural else "a"
        adjective = owner = None
        if not plain and _adjectives_of(noun) and self.chance(0.25):
            adjective = self.rng.choice(_adjectives_of(noun))
        if not plain and determiner == "the" and "person" not in noun.classes and self.chance(0.12):
            owner = self.phrase(("person",), definite=True, plain=True)
        return Phrase(noun, plural, determiner, adjective, owner)

    def nominal(
        self, classes: tuple[str, ...], subject: Nominal, pronoun: float, **options: bool
    ) -> Phrase | Person:
        """Draw an object: a pronoun, if persons are allowed, or a phrase whose noun is not the subject's."""
        if "person" in classes and self.chance(pronoun):
            taken = _TOGETHER[subject.english[0]] if isinstance(subject, Person) else ()
            return self.rng.choice([person for person in _PERSONS if person.english[0] not in taken])
        phrase = self.phrase(classes, **options)
        while phrase.noun == getattr(subject, "noun", None) and len(_nouns_of(classes)) > 1:
            phrase = self.phrase(classes, **options)
        return phrase

    def subject(self, verb: Verb) -> Nominal:
        if "person" in verb.subjects and self.chance(0.4):
            return self.rng.choice(_PERSONS)
        return self.phrase(verb.subjects)

    def tense(self, verb: Verb | None, subject: Nominal, calm: bool) -> str:
        """Draw a tense. `calm` leaves out those that do not go with "if" or "before"."""
        willing = isinstance(subject, Person) or "person" in getattr(subject.noun, "classes", {"person"})
        modals = [*_MODALS] if willing else ["can", "should", "will"]
        if calm:
            modals = [modal for modal in modals if modal in ("can", "have to", "want to", "be allowed to")]
        if verb is None:
            return self.rng.choice(["present"] * 4 + (["past", "will"] if not calm else []))
        draw = self.rng.random()
        if draw < 0.35 and modals and not (calm and not willing):
            return self.rng.choice(modals)
        if draw < 0.42 and willing and verb.action and verb.frame in ("none", "acc"):
            return "like"
        if draw < 0.72 and not calm:
            return self.rng.choice(["past", "perfect"])
        return "present"

    def clause(
        self,
        frames: tuple[str, ...] = _PLAIN_FRAMES,
        *,
        subject: Nominal | None = None,
        verb: Verb | None = None,
        calm: bool = False,
        brief: bool = False,
    ) -> Clause:
        """Draw a clause. A `brief` one has a time where it must, and no other adverbials."""
        if verb is None and subject is None and frames == _PLAIN_FRAMES and self.chance(0.1):
            return self.predicate(calm)
        verb = verb or self.rng.choice(_verbs_of(frames, getattr(subject, "noun", None)))
        subject = subject or self.subject(verb)
        tense = self.tense(verb, subject, calm)
        clause = Clause(subject, verb, tense, negated=self.chance(0.2), **self.arguments(verb, subject))
        return replace(clause, **self.adverbials(clause, verb, brief))

    def predicate(self, calm: bool) -> Clause:
        """Draw a clause like "the house is old"."""
        subject = self.phrase(("person", "animal", "thing", "place", "text", "idea"), plain=True)
        predicate = self.rng.choice(_adjectives_of(subject.noun))
        tense = self.tense(None, subject, calm)
        time = self.rng.choice(_adverbs_of("past")) if tense == "past" else None
        return Clause(subject, None, tense, self.chance(0.2), predicate, time=time)

    def arguments(self, verb: Verb, subject: Nominal) -> _Arguments:
        """Draw the arguments of a verb."""
        drawn: _Arguments = {}
        if verb.frame == "dat+acc":
            drawn["recipient"] = self.nominal(("person",), subject, 0.4, definite=True, plain=True)
        if verb.frame in ("acc", "dat", "dat+acc", "put"):
            pronoun = 0.0 if verb.frame == "dat+acc" else 0.3
            drawn["object"] = self.nominal(verb.objects, subject, pronoun)
        if "=" in verb.frame:
            english, german, case = re.split("[=+]", verb.frame)
            drawn["complement"] = Prepositional(
                english, german, case, self.nominal(verb.objects, subject, 0.2)
            )
        if verb.frame == "to":
            drawn["complement"] = self.destination(verb)
        if verb.frame in ("loc", "put"):
            pairs = (("on", "an"),) if verb.place == "wall" else _ON
            case = "acc" if verb.frame == "put" else "dat"
            phrase = self.nominal((verb.place,), subject, 0, definite=True, plain=True)
            drawn["complement"] = Prepositional(*self.rng.choice(pairs), case, phrase)
        return drawn

    def destination(self, verb: Verb) -> Prepositional:
        phrase = self.phrase((verb.place or "place",), definite=True)
        german = phrase.noun.to
        return Prepositional("to", german, "dat" if german == "zu" else "acc", phrase)

    def adverbials(self, clause: Clause, verb: Verb, brief: bool) -> _Adverbials:
        """Draw when, how, with whom, where and why."""
        tense = clause.tense
        drawn: _Adverbials = {}
        kind = {"past": "past", "present": "present", "like": "present"}.get(tense, "future")
        if tense == "past" or (tense != "perfect" and not brief and self.chance(0.35)):
            drawn["time"] = self.rng.choice(_adverbs_of(kind))
        elif tense in ("present", "perfect") and not clause.negated and self.chance(0.3):
            drawn["often"] = self.rng.choice(_adverbs_of("often" if tense == "present" else "already"))
        if brief or tense == "like":
            return drawn
        if verb.frame != "loc" and "often" not in drawn and self.chance(0.06):
            preposition = self.rng.choice((("because of", "wegen"), ("despite", "trotz")))
            phrase = self.phrase(("weather",), definite=True)._replace(owner=None, determiner="the")
            drawn["cause"] = Prepositional(*preposition, "gen", phrase)
        moving = "vehicle" in getattr(getattr(clause.subject, "noun", None), "classes", ())
        if verb.action and not clause.negated and "often" not in drawn and self.chance(0.2):
            drawn["manner"] = self.rng.choice(_adverbs_of("manner"))
        elif verb.action and verb.frame in ("none", "acc") and self.chance(0.1):
            drawn["company"] = self.company(clause.subject)
        elif ((verb.frame == "none" and not moving) or (verb.frame == "acc" and verb.action)) and self.chance(
            0.25
        ):
            drawn["place"] = self.location()
        return drawn

    def company(self, subject: Nominal) -> Prepositional:
        choices = (("with", "mit", "dat"), ("without", "ohne", "acc"), ("for", "für", "acc"))
        return Prepositional(*self.rng.choice(choices), self.nominal(("person",), subject, 0.3, plain=True))

    def location(self) -> Prepositional:
        if self.chance(0.3):
            phrase = self.phrase(("building",), definite=True)
            return Prepositional(*self.rng.choice(_NEAR), "dat", phrase)
        phrase = self.phrase(("place",), definite=True)
        return Prepositional(*phrase.noun.at, "dat", phrase)

    def statement(self, *, last: bool = True, calm: bool = False) -> Clause:
        """Draw a main clause; only the `last` one of a sentence takes a clause at its end."""
        draw = self.rng.random()
        if draw < 0.07:
            return self.with_infinitive(calm)
        if draw < 0.17 and last:
            return self.report()
        clause = self.clause(calm=calm)
        if clause.place and self.chance(0.3):
            clause = replace(clause, front="place")
        elif clause.time and self.chance(0.5):
            clause = replace(clause, front="time")
        return self.with_relative(clause, last) if self.chance(0.15) else clause

    def with_infinitive(self, calm: bool = False) -> Clause:
        """Draw a clause like "he tries to open the door"."""
        clause = self.clause(("zu",), calm=calm, brief=True)
        verb = self.rng.choice([verb for verb in _verbs_of(_PLAIN_FRAMES) if "person" in verb.subjects])
        inner = Clause(clause.subject, verb, **self.arguments(verb, clause.subject))
        return replace(clause, infinitive=inner)

    def report(self) -> Clause:
        """Draw a clause like "he knows that she sleeps"."""
        conjunction = self.rng.choice((_THAT, _THAT, _WHETHER))
        clause = self.clause((conjunction[0],), brief=True)
        return replace(clause, inner=(conjunction, self.clause(brief=self.chance(0.5))))

    def with_relative(self, clause: Clause, last: bool) -> Clause:
        """Attach a relative clause to the subject, or to an object that nothing follows."""
        following = any(
            getattr(clause, name) for name in ("complement", "cause", "manner", "company", "place")
        )
        free = last and not following and (not clause.time or clause.front == "time")
        if (
            free
            and isinstance(clause.object, Phrase)
            and not (clause.recipient and clause.verb and clause.verb.place)
        ):
            return replace(clause, object=self.related(clause.object, clause.verb))
        if isinstance(clause.subject, Phrase):
            return replace(clause, subject=self.related(clause.subject, clause.verb))
        return clause

    def related(self, phrase: Phrase, other: Verb | None) -> Phrase:
        """Add a relative clause with another verb; the pronoun is its subject or its object."""
        noun = phrase.noun
        gender = "p" if phrase.plural else noun.gender
        forms = {case: genders[gender] for case, genders in _RELATIVE.items()}
        person = "person" in noun.classes
        as_object = [verb for verb in _verbs_of(("acc", "dat"), None, noun) if verb != other]
        as_subject = [verb for verb in _verbs_of(_PLAIN_FRAMES, noun) if verb != other]
        if as_object and (not as_subject or self.chance(0.4)):
            gap = Gap("whom" if person else "that", forms, phrase.number, noun)
            relative = self.clause(verb=self.rng.choice(as_object), brief=True)
            relative = replace(relative, object=gap)
            if getattr(relative.subject, "noun", None) == noun:
                relative = replace(relative, subject=_PERSONS[2 + self.rng.randrange(2)])
        elif as_subject:
            gap = Gap("who" if person else "that", forms, phrase.number, noun)
            relative = self.clause(subject=gap, verb=self.rng.choice(as_subject), brief=True)
        else:
            return phrase
        return phrase._replace(relative=relative)

    def wh_question(self) -> Clause:
        """Draw a question that begins with who, whom, what, when, where or why."""
        draw = self.rng.random()
        if draw < 0.2:
            who = Gap("who", {"nom": "wer"}, "er")
            verb = self.rng.choice([verb for verb in _verbs_of(_PLAIN_FRAMES) if "person" in verb.subjects])
            return self.clause(subject=who, verb=verb)
        if draw < 0.45:
            return self.object_question(self.clause(("acc", "dat", "dat+acc")))
        if draw < 0.6:
            clause = self.clause()
            if clause.tense in ("perfect", "past"):
                clause = replace(clause, tense="past")
            return replace(clause, time=None, often=None, asked=("when", "wann"))
        if draw < 0.7:
            clause = self.clause(("none", "acc"))
            return replace(clause, place=None, company=None, asked=("where", "wo"))
        if draw < 0.8:
            clause = self.clause(("to", "put"))
            return replace(clause, complement=None, asked=("where", "wohin"))
        return replace(self.clause(), asked=("why", "warum"))

    def object_question(self, clause: Clause) -> Clause:
        """Ask for the object of a clause."""
        noun = getattr(clause.object, "noun", None)  # A pronoun has none.
        if noun is None or "person" in noun.classes:
            return replace(clause, object=Gap("whom", {"acc": "wen", "dat": "wem"}, "er"))
        if object_case(clause) == "dat":
            return clause  # "What does he follow?" would need another pronoun.
        return replace(clause, object=Gap("what", {"acc": "was"}, "er"))

    def subordinate(self, calm: bool) -> Part:
        """Draw a clause that begins with because, if ..."""
        conjunction = self.rng.choice(_PRESENT_TENSE if calm else _ANY_TENSE)
        clause = self.with_infinitive(calm) if self.chance(0.05) else self.clause(calm=calm)
        if conjunction in _ONCE:
            clause = replace(clause, negated=False, often=None)
        return Part(clause, "final", conjunction)

    def sentence(self, longer: bool = False) -> tuple[list[Part], bool]:
        """Draw a sentence, and whether it is a question."""
        if longer:
            return self.long_sentence(), False
        draw = self.rng.random()
        if draw < 0.5:
            return [Part(self.statement(), "second")], False
        if draw < 0.62:
            return [Part(self.clause(), "first")], True
        if draw < 0.74:
            clause = self.wh_question()
            return [Part(clause, "second" if _german_lead(clause) else "first")], True
        calm, brief = self.chance(0.5), self.chance(0.5)
        if draw < 0.84:
            return [Part(self.clause(calm=calm, brief=brief), "second"), self.subordinate(calm)], False
        if draw < 0.92:
            return [self.subordinate(calm), Part(self.clause(calm=calm, brief=brief), "first")], False
        return [
            Part(self.clause(brief=brief), "second"),
            Part(self.clause(brief=brief), "second", self.rng.choice((_AND, _BUT))),
        ], False

    def long_sentence(self) -> list[Part]:
        """Draw two main clauses and a subordinate one, or three main clauses with or without one."""
        calm, third = self.chance(0.5), self.chance(0.3)
        conjunctions = (None, _AND, _BUT) if third else (None, self.rng.choice((_AND, _BUT)))
        parts = [Part(self.statement(last=False, calm=calm), "second", word) for word in conjunctions]
        if not third or self.chance(0.3):
            parts.append(self.subordinate(calm))
        return parts

    def draft(self, longer: bool = False) -> "_Draft":
        """Draw a sentence without rendering it."""
        parts, question = self.sentence(longer)
        clauses, bonds = [], set()
        for part in parts:
            for clause, rule in _clauses(part.clause, _order_rule(part, question)):
                clauses.append(rules_of(clause, rule))
                bonds.update(_bonds(clause))
        if len(parts) > 1:
            clauses[0] |= {"coordination" if parts[-1].conjunction in (_AND, _BUT) else "subordination"}
        return _Draft(parts, question, tuple(clauses), frozenset(bonds))


class _Draft(NamedTuple):
    """A sentence that is not rendered yet: many drafts fit no split."""

    parts: list[Part]
    question: bool
    clauses: tuple[frozenset[str], ...]
    bonds: frozenset[tuple[str, str]]

    def pair(self) -> Pair:
        """Render it in both languages."""
        return Pair(*render(self.parts, question=self.question), self.clauses, self.bonds)


def _order_rule(part: Part, question: bool) -> str:
    if question:
        return "wh-question" if part.order == "second" else "yes-no question"
    return {"second": "verb-second", "first": "verb-first main clause", "final": "verb-final"}[part.order]


# Splits ---------------------------------------------------------------------------------------------------


def _may_belong(draft: _Draft, split: str) -> bool:
    """Return whether the rules and words of a sentence fit a split; its length is not known yet."""
    new_structure = any(rules <= clause for rules in HELD_OUT_RULES for clause in draft.clauses)
    if new_structure != (split == "structures"):
        return False
    return any(map(is_held_out, draft.bonds)) == (split == "combinations")


def _has_length(pair: Pair, split: str) -> bool:
    lengths = [len(words.split()) for words in (pair.english, pair.german)]
    return min(lengths) > LONGEST if split == "longer" else max(lengths) <= LONGEST


def load(num_train: int = 50_000, *, num_held_out: int = 1000, seed: int = 0) -> dict[str, list[Pair]]:
    """Draw pairs of sentences, no sentence twice.

    Args:
        num_train: pairs in "train", at most `MOST`.
        num_held_out: pairs in each other split.
        seed: decides the sentences; the held-out structures and words do not depend on it.

    Returns:
        Pairs by split (see `SPLITS`): "train"; "validation", which is like it; "combinations", with pairs of
        words that never occur together in training; "structures", with rules that never meet in training;
        "longer", with more words than any other split. The held-out splits do not depend on `num_train`.

    Raises:
        ValueError: a number of pairs is below 1 or above `MOST`.
    """
    for name, number in (("num_train", num_train), ("num_held_out", num_held_out)):
        if not 1 <= number <= MOST:
            raise ValueError(f"{name}={number}: it must be from 1 to {MOST:,}")
    seen: set[str] = set()
    drawn = {split: _draw(split, num_held_out, seed, seen) for split in HELD_OUT_SPLITS}
    return {"train": _draw("train", num_train, seed, seen)} | drawn


def _draw(split: str, number: int, seed: int, seen: set[str]) -> list[Pair]:
    """Draw new pairs for a split and add their sentences, of both languages, to `seen`."""
    writer = _Writer(random.Random(f"{seed} {split}"))
    pairs = []
    while len(pairs) < number:
        draft = writer.draft(longer=split == "longer")
        if not _may_belong(draft, split):
            continue
        pair = draft.pair()
        if _has_length(pair, split) and seen.isdisjoint(pair[:2]):
            seen.update(pair[:2])
            pairs.append(pair)
    return pairs


# The dictionary -------------------------------------------------------------------------------------------

_FUNCTION_WORDS = {
    "the": "der", "a": "ein", "an": "ein", "this": "dieser", "these": "diese", "i": "ich", "me": "mich",
    "you": "du", "he": "er", "him": "ihn", "she": "sie", "her": "ihr", "we": "wir", "us": "uns",
    "they": "sie", "them": "sie", "my": "mein", "your": "dein", "his": "sein", "our": "unser",
    "their": "ihr", "am": "bin", "is": "ist", "are": "sind", "was": "war", "were": "waren", "be": "sein",
    "do": "", "does": "", "did": "", "not": "nicht", "can": "kann", "cannot": "kann nicht",
    "will": "wird", "should": "sollte", "would like to": "möchte", "would": "", "like to": "gern",
    "likes to": "gern", "have to": "müssen", "has to": "muss", "want to": "wollen", "wants to": "will",
    "allowed to": "darf", "to": "zu", "who": "wer", "whom": "wen", "what": "was", "when": "wann",
    "where": "wo", "why": "warum", "from": "aus", "of": "von", "about": "über", "over": "über",
    "against": "gegen", "with": "mit", "without": "ohne", "for": "für", "in": "in", "at": "an",
    "because of": "wegen", "despite": "trotz", "that": "dass", "whether": "ob",
}  # fmt: skip


@functools.cache
def dictionary() -> dict[str, str]:
    """Return the German translation of each English word or expression by itself.

    Returns:
        From lowercase English to German. Nouns are in the nominative, verbs in the third person or the
        infinitive, adjectives and articles without the ending that a sentence requires. For ambiguous words,
        nouns come before verbs, and the first row of a table before later ones.
    """
    found = dict(_FUNCTION_WORDS)
    pairs = [*_ON, *_ANY_TENSE, *_PRESENT_TENSE, _AND, _BUT]
    pairs += [(noun.english, noun.german) for noun in nouns()]
    pairs += [(noun.english_plural, noun.german_plural) for noun in nouns()]
    pairs += [(word.english, word.german) for word in (*adjectives(), *adverbs())]
    for verb in verbs():
        base, past, participle = verb.english
        pairs += [(base, verb.prefix + verb.infinitive), (_add_s(base), f"{verb.present[2]} {verb.prefix}")]
        pairs += [(past, verb.participle), (participle, verb.participle)]
    for words, translation in pairs:
        found.setdefault(words.lower(), translation.strip())
    return found


def word_by_word(sentence: str) -> str:
    """Translate word by word with the dictionary.

    Args:
        sentence: English. The longest entry that fits is taken, from left to right.

    Returns:
        The entries in the order of the English words; unknown words stay as they are.
    """
    words = re.findall(r"[\w]+|[.,?]", sentence.replace("'s", "").replace("s'", "s"))
    translated = []
    while words:
        for length in (3, 2, 1):
            entry = dictionary().get(" ".join(words[:length]).lower())
            if entry is not None or length == 1:
                break
        translated.append(words[0] if entry is None else entry)
        words = words[length:]
    line = re.sub(r" +([.,?])", r"\1", " ".join(filter(None, translated)))
    return line[:1].upper() + line[1:]


# Checks ---------------------------------------------------------------------------------------------------


def noun_phrases(noun: Noun) -> Iterator[Phrase]:
    """Yield all phrases of a noun without owner and relative clause."""
    for plural in (False, True) if noun.german_plural else (False,):
        bare = "" if plural or not noun.german_plural else "a"
        demonstrative = ("this",) if noun.german_plural else ()
        determiners = ("the",) if "only-the" in noun.classes else ("the", bare, *demonstrative, *_POSSESSIVES)
        for determiner, adjective in itertools.product(determiners, (None, *_adjectives_of(noun))):
            yield Phrase(noun, plural, determiner, adjective)


def count_simple_sentences() -> int:
    """Count the sentences of one pattern: noun phrase, verb in the present, noun phrase in the accusative.

    Returns:
        Their number, without owners and relative clauses; all other patterns come on top.
    """
    sizes = {noun: sum(1 for _ in noun_phrases(noun)) for noun in nouns()}
    total = 0
    for verb in _verbs_of(("acc",)):
        for subject, patient in itertools.product(_nouns_of(verb.subjects), _nouns_of(verb.objects)):
            total += sizes[subject] * sizes[patient] * (subject != patient)
    return total


def checking_sample(number: int = 200) -> list[Pair]:
    """Draw the pairs that were read one by one; `checked.tsv` beside the tables holds the first 200.

    Args:
        number: how many.

    Returns:
        Pairs of all splits. A drawn pair is kept if it has a rule that fewer than three pairs have so far, or
        new words, so that all rules, nouns, verbs and adjectives occur; the last pairs are kept as drawn.
    """
    writer = _Writer(random.Random("checked"))
    rules: Counter[str | frozenset[str]] = Counter()
    missing = vocabulary()
    pairs: list[Pair] = []
    while len(pairs) < number:
        pair = writer.draft(longer=len(pairs) % 20 == 19).pair()
        new = {word for bond in pair.bonds for word in bond} & missing
        wanted = min(2 if len(pairs) < 0.75 * number else 1, len(missing))
        found = pair.rules | {
            held for held in HELD_OUT_RULES if any(held <= clause for clause in pair.clauses)
        }
        if len(new) >= wanted or any(rules[rule] < 3 for rule in found):
            rules.update(found)
            missing -= new
            pairs.append(pair)
    return pairs


def vocabulary() -> set[str]:
    """List the German nouns, adjectives and verbs in their base forms, as in bonds."""
    words = {word.german for word in (*nouns(), *adjectives())}
    return words | {verb.prefix + verb.infinitive for verb in verbs()}
