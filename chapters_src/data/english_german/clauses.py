"""Sentences without a language: clauses, their parts, and the rules that they follow."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypedDict

from chapters_src.data.english_german.lexicon import Adjective, Adverb, Noun, Verb


class Person(NamedTuple):
    """A pronoun: forms by case."""

    english: tuple[str, str]  # I, me.
    german: dict[str, str]
    number: str  # Row of the verb's forms: "ich", "du", "er" or "wir".


class Phrase(NamedTuple):
    """A noun phrase: my old friends; the teacher's car."""

    noun: Noun
    plural: bool
    determiner: str  # A key of `DETERMINERS`, or empty.
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
    tense: str = "present"  # Or "past", "perfect", "like", or a key of `MODALS`.
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

    @property
    def base(self) -> str:
        """The English verb as a dictionary has it, or nothing."""
        return self.verb.base if self.verb else ""


class Arguments(TypedDict, total=False):
    """The arguments of a verb, by field of `Clause`."""

    recipient: Phrase | Person
    object: Phrase | Person
    complement: Prepositional


class Adverbials(TypedDict, total=False):
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


PERSONS = (
    Person(("I", "me"), {"nom": "ich", "acc": "mich", "dat": "mir"}, "ich"),
    Person(("you", "you"), {"nom": "du", "acc": "dich", "dat": "dir"}, "du"),
    Person(("he", "him"), {"nom": "er", "acc": "ihn", "dat": "ihm"}, "er"),
    Person(("she", "her"), {"nom": "sie", "acc": "sie", "dat": "ihr"}, "er"),
    Person(("we", "us"), {"nom": "wir", "acc": "uns", "dat": "uns"}, "wir"),
    Person(("they", "them"), {"nom": "sie", "acc": "sie", "dat": "ihnen"}, "wir"),
)


def object_case(clause: Clause) -> str:
    """Return the case of a clause's object."""
    return "dat" if clause.verb and clause.verb.frame == "dat" else "acc"


def takes_kein(clause: Clause) -> bool:
    """Return whether a clause is negated by kein: its object is indefinite, and it does not say "like to"."""
    indefinite = isinstance(clause.object, Phrase) and not clause.object.definite
    return clause.negated and indefinite and clause.tense != "like"


def clauses_of(clause: Clause, rule: str) -> Iterator[tuple[Clause, str]]:
    """Yield a clause and the clauses inside it, each with the rule for its German verb's position."""
    yield clause, rule
    for nominal in (clause.subject, clause.object):
        if relative := getattr(nominal, "relative", None):
            yield from clauses_of(relative, "relative clause")
    if clause.inner:
        yield from clauses_of(clause.inner[1], "verb-final")
    if clause.infinitive:
        yield from clauses_of(clause.infinitive, "zu-infinitive")


_TENSE_RULES = {
    "present": {"present"}, "past": {"perfect", "English past"}, "perfect": {"perfect"},
    "like": {"present", "gern"}, "will": {"future"},
}  # fmt: skip
_FRAME_RULES = {
    "none": "no object", "acc": "accusative", "dat": "dative", "dat+acc": "dative and accusative",
    "to": "direction", "put": "direction", "loc": "position", "zu": "infinitive clause",
    "that": "that-clause", "whether": "whether-clause",
}  # fmt: skip


def rules_of(clause: Clause, rule: str) -> frozenset[str]:
    """List the rules that a clause follows, with one that is known already, without the clauses inside it."""
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
    for phrase, case in phrases_of(clause):
        found.update(_phrase_rules(phrase, case))
    return frozenset(found)


def phrases_of(clause: Clause) -> Iterator[tuple[Nominal, str]]:
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


def bonds_of(clause: Clause) -> Iterator[tuple[str, str]]:
    """Yield pairs of related words: verb and noun, adjective and noun."""
    if clause.verb:
        verb = clause.verb.prefix + clause.verb.infinitive
    else:
        verb = clause.predicate.german if clause.predicate else "sein"
    for phrase, _ in phrases_of(clause):
        if isinstance(phrase, Gap) and phrase.noun:
            yield verb, phrase.noun.german
        if isinstance(phrase, Phrase):
            yield verb, phrase.noun.german
            if phrase.adjective:
                yield phrase.adjective.german, phrase.noun.german
