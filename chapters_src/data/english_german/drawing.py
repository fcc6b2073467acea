"""Draws clauses that make sense by themselves, also with another clause inside, and questions."""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from chapters_src.data.english_german.clauses import (
    PERSONS,
    Adverbials,
    Arguments,
    Clause,
    Gap,
    Nominal,
    Person,
    Phrase,
    Prepositional,
    object_case,
)
from chapters_src.data.english_german.in_german import MODALS, RELATIVE
from chapters_src.data.english_german.lexicon import Adverb, Lexicon, Noun, Verb
from chapters_src.data.english_german.sense import LISTS, TABLES, TRAITS, could_be, fits_relative

Found = TypeVar("Found")
THAT, WHETHER = ("that", "dass"), ("whether", "ob")
PLAIN_FRAMES = ("none", "acc", "dat", "dat+acc", "preposition", "to", "loc", "put")
POSSESSIVES = ("my", "your", "his", "her", "our", "their")
_NEAR = (("behind", "hinter"), ("next to", "neben"), ("in front of", "vor"))
POSITIONS = {
    "wall": (("on", "an"),),
    "seat": (("on", "auf"),),
    "surface": (("on", "auf"), ("under", "unter"), *_NEAR),
}
_TOGETHER = {"I": ("I", "we"), "we": ("I", "we"), "you": ("you",)}  # A sentence has one of these.
_WEIGHTS = {  # Of the tenses, by kind of verb; an action's modal is one of seven.
    "action": {"present": 30, "past": 17, "perfect": 17, "like": 6, **dict.fromkeys(MODALS, 4)},
    "event": {"present": 35, "past": 30, "perfect": 25, "will": 10},
    "sense": {"present": 30, "past": 25, "perfect": 20, "can": 25},
    "state": {"present": 1},
    "report": {"present": 50, "past": 25, "perfect": 25},
}
_WITHOUT_WILL = {"want to", "would like to", "be allowed to", "have to", "like"}  # No cow wants to.
_BEFORE_A_REPORT = ("tired", "sick", "sad", "angry", "hungry", "happy")


def pronoun_of(subject: Nominal) -> Person | None:
    """Return the pronoun for a person, or None for a child or a girl, whom German calls it."""
    if isinstance(subject, Person):
        return subject
    if not isinstance(subject, Phrase) or subject.noun.gender == "n":
        return None
    return PERSONS[5 if subject.plural else {"m": 2, "f": 3}[subject.noun.gender]]


def until(fits: Callable[[Found], object], draw: Callable[[], Found]) -> Found:
    """Draw again and again, until something fits."""
    while not fits(found := draw()):
        pass
    return found


def classes_of(subject: Nominal) -> frozenset[str]:
    """Return the classes of a subject; a pronoun or "who" is any person."""
    noun = getattr(subject, "noun", None)
    return noun.classes if noun else frozenset({"person", "adult"})


def definite(phrase: Phrase) -> Phrase:
    """Put "the" before a phrase that has no definite determiner."""
    return phrase if phrase.definite else phrase._replace(determiner="the")


def _indefinite_article(noun: Noun, plural: bool) -> str:
    return "" if plural or not noun.german_plural else "a"


def _with_definite_subject(clause: Clause) -> Clause:
    subject = clause.subject
    return replace(clause, subject=definite(subject)) if isinstance(subject, Phrase) else clause


def calm(person: Nominal) -> Nominal:
    """Drop an adjective of mood or health: it is said of the person in another clause."""
    if isinstance(person, Phrase) and person.adjective and person.adjective.lasts:
        return person._replace(adjective=None)
    return person


def _without_never(clause: Clause) -> Clause:
    """Drop what nobody asks."""
    never = clause.often and clause.often.english in ("never", "rarely")
    return replace(clause, often=None) if never else clause


class ClauseWriter:
    """Draws clauses; `rich` ones, for long sentences, have more adjectives and adverbials."""

    def __init__(self, rng: random.Random, words: Lexicon, *, rich: bool = False) -> None:
        self.rng, self.words, self.rich = rng, words, rich

    def chance(self, probability: float) -> bool:
        """Draw True with a probability."""
        return self.rng.random() < probability

    def extra(self, probability: float) -> bool:
        """Draw whether something is added that could be left out."""
        return self.chance(min(0.9, 4 * probability) if self.rich else probability)

    # Noun phrases -------------------------------------------------------------------------------------------

    def phrase(
        self, classes: tuple[str, ...], *, definite: bool = False, plain: bool = False, single: bool = False
    ) -> Phrase:
        """Draw a noun phrase; `plain` ones have no adjective and no owner, `single` ones no plural."""
        noun = self.rng.choice(self.words.nouns_of(classes))
        plural = noun.has_plural and not single and self.chance(0.25)
        if "place" in noun.classes:
            plural = plural and self.chance(0.3)
        plural = plural or "pair" in noun.classes
        determiner = self.determiner(noun, plural, definite)
        adjective = owner = None
        share = 0.12 if "person" in noun.classes else 0.35  # Of an adjective; rich sentences have fewer.
        if not plain and self.words.adjectives_of(noun) and self.chance(share / 2 if self.rich else share):
            adjective = self.rng.choice(self.words.adjectives_of(noun))
            # "Healthy" is a predicate only, and nobody has a friendly friend.
            if adjective.english == "healthy" or adjective.english.startswith(noun.english):
                adjective = None
        owned = determiner == "the" and "own" in noun.classes and "person" not in noun.classes
        if not plain and owned and self.extra(0.15):
            owner = self.phrase(("person",), definite=True, plain=True)
        return Phrase(noun, plural, determiner, adjective, owner)

    def determiner(self, noun: Noun, plural: bool, definite: bool) -> str:
        """Draw a determiner: uncles are mostly somebody's, trains are nobody's."""
        draw = self.rng.random()
        kin = "kin" in noun.classes or noun.english in ("friend", "colleague")
        if noun.english == "dress" and not plural:
            return self.rng.choice(("the", "a", "my", "your", "her")) if not definite else "the"
        if plural and {"teacher", "doctor", "lawyer", "queen"} & noun.classes:  # "Her doctors" are too many.
            return "this" if draw > 0.94 else "the"
        if "only-the" in noun.classes or (not kin and draw < 0.42):
            return "the"
        if kin or (draw < 0.62 and "own" in noun.classes):
            return self.rng.choice(POSSESSIVES[: 4 if "garment" in noun.classes and not plural else 6])
        if draw > 0.94 and noun.german_plural:
            return "this"
        return "the" if definite else _indefinite_article(noun, plural)

    def person(self, *, named: bool = False, apart_from: Nominal | None = None) -> Phrase | Person:
        """Draw somebody: a pronoun, or a definite phrase that has a pronoun if it is to be `named`."""
        if isinstance(apart_from, Phrase):  # "The man works and he sings" would be one man.
            also: tuple[str, ...] = ("they",) if apart_from.plural else ("he", "she")
        else:
            also = _TOGETHER.get(apart_from.english[0], ()) if apart_from else ()
        if not named and self.chance(0.45):
            return self.rng.choice([p for p in PERSONS if p.english[0] not in also and p != apart_from])
        return until(
            lambda found: (
                # "Because he ..., the cook is sad" would be one man, or another.
                not (isinstance(apart_from, Person) and could_be(apart_from, found))
                and found.noun != getattr(apart_from, "noun", None)
                and (not named or pronoun_of(found))
            ),
            lambda: self.phrase(("person",), definite=True),
        )

    def nominal(
        self, classes: tuple[str, ...], subject: Nominal, pronoun: float, **options: bool
    ) -> Phrase | Person:
        """Draw an object: a pronoun, if persons are allowed, or a phrase whose noun is not the subject's."""
        if {"person", "adult", "kin"} & {*classes} and self.chance(pronoun):
            taken = _TOGETHER.get(subject.english[0], ()) if isinstance(subject, Person) else ()
            return self.rng.choice([person for person in PERSONS if person.english[0] not in taken])
        other = len(self.words.nouns_of(classes)) > 1 and getattr(subject, "noun", None)
        return until(lambda found: found.noun != other, lambda: self.phrase(classes, **options))

    # Clauses ------------------------------------------------------------------------------------------------

    def verb(
        self,
        frames: tuple[str, ...] = PLAIN_FRAMES,
        subject: Nominal | None = None,
        kinds: tuple[str, ...] = (),
        bases: tuple[str, ...] = (),
    ) -> Verb:
        """Draw a verb of these frames and kinds that suits the subject."""
        # What a reader adds is among what people do anyway.
        bases = (*bases, *self.words.added) if "tidy" in bases else bases
        return self.rng.choice(
            [
                verb
                for verb in self.words.verbs_of(frames, classes_of(subject) if subject else None)
                if (not kinds or verb.kind in kinds) and (not bases or verb.base in bases)
            ]
        )

    def clause(
        self,
        verb: Verb | None = None,
        subject: Nominal | None = None,
        *,
        tenses: Sequence[str] = (),
        negated: bool | None = None,
        definite: bool = False,
        brief: bool = False,
        timed: bool = True,
    ) -> Clause:
        """Draw a clause.

        Args:
            verb: its verb; drawn if not given.
            subject: its subject; drawn if not given.
            tenses: those allowed; all if empty.
            negated: True or False; drawn if not given.
            definite: whether the subject is to be definite.
            brief: with a time where it must, and no other adverbials.
            timed: whether it may say when; if not, not even the past does.
        """
        verb = verb or self.verb(subject=subject)
        negated = self.chance(0.17) if negated is None else negated
        drawn = subject or self.subject(verb, definite or negated)
        tense = self.tense(verb, drawn, tenses)
        clause = Clause(drawn, verb, tense, negated, **self.arguments(verb, drawn, tense, negated))
        clause = replace(clause, **self.adverbials(clause, verb, brief, timed))
        food = clause.object
        if isinstance(food, Phrase) and food.noun.classes & {"food", "drink"}:
            often = clause.often and clause.often.kind == "often"
            custom = often or (clause.time and clause.time.kind == "present")
            made = verb.base in ("cook", "bake") and food.noun.english in ("potato", "egg", "roll")
            if custom or made or tense == "like" or verb.base in ("hate", "sell"):
                # Nobody eats the same apple every day, or cooks one egg.
                food = food._replace(plural=food.noun.has_plural, determiner="", owner=None)
                clause = replace(clause, object=food)
        return clause if subject else self.settled(clause)

    def short(self, verb: Verb, subject: Nominal | None, tenses: Sequence[str]) -> Clause:
        """Draw a clause that is not negated and says no more than it must."""
        return self.clause(verb, subject, tenses=tenses, negated=False, brief=True)

    def settled(self, clause: Clause) -> Clause:
        """Make the subject definite, except where somebody does something once: a man has called."""
        once = clause.tense in ("past", "perfect") or (clause.tense == "present" and not clause.time)
        known = clause.verb is None or clause.verb.kind in ("state", "report") or clause.often
        several = getattr(clause.subject, "plural", False)
        return _with_definite_subject(clause) if known or not once or clause.negated or several else clause

    def subject(self, verb: Verb, definite: bool) -> Phrase | Person:
        """Draw a subject for a verb."""
        if {"person", "adult"} & {*verb.subjects} and self.chance(0.45):
            return self.rng.choice(PERSONS)
        phrase = self.phrase(verb.subjects, definite=definite)
        if verb.frame == "dat" and verb.kind == "state" and "person" not in verb.subjects:  # Belong.
            return phrase._replace(determiner="the" if phrase.owner else self.rng.choice(("the", "this")))
        return phrase

    def tense(self, verb: Verb, subject: Nominal, allowed: Sequence[str]) -> str:
        """Draw one of the allowed tenses that the verb has; the present if there is none."""
        person = "person" in classes_of(subject)
        without = set() if person else {*_WITHOUT_WILL}
        if not (verb.habit and verb.frame in ("none", "acc")) or verb.base in LISTS["disliked"]:
            without.add("like")
        if verb.kind == "event" and (verb.frame != "none" or verb.often):  # Nobody knows what will be lost.
            without.add("will")
        if person and verb.base in LISTS["by chance"] and verb.frame == "acc":
            without.add("present")
        found = {
            tense: weight
            for tense, weight in _WEIGHTS[verb.kind].items()
            if tense not in without and (not allowed or tense in allowed)
        }
        return self.rng.choices([*found], [*found.values()])[0] if found else "present"

    def arguments(self, verb: Verb, subject: Nominal, tense: str = "", negated: bool = False) -> Arguments:
        """Draw the arguments of a verb."""
        drawn: Arguments = {}
        if verb.frame == "dat+acc":
            taker = "adult" if "drink" in verb.objects else "person"
            drawn["recipient"] = self.nominal((taker,), subject, 0.4, definite=True, plain=True)
        if verb.frame in ("acc", "dat", "dat+acc", "put"):
            pronoun = 0.0 if verb.frame == "dat+acc" else 0.3
            what = self.object(verb, self.nominal(verb.objects, subject, pronoun), negated)
            if "worn" in verb.objects and isinstance(what, Phrase):  # They put on their coats, each one.
                plural = "pair" in what.noun.classes or getattr(subject, "number", "") == "wir"
                whose = pronoun_of(subject)
                determiner = POSSESSIVES[PERSONS.index(whose)] if whose else "the"
                what = what._replace(plural=plural, determiner=determiner, owner=None)
            drawn["object"] = what
        if "=" in verb.frame:
            english, german, case = re.split("[=+]", verb.frame)
            single = verb.base in ("come", "live", "dream", "think")
            phrase = self.nominal(verb.objects, subject, 0.2, definite=negated, single=single)
            drawn["complement"] = Prepositional(english, german, case, self.object(verb, phrase))
        if verb.frame == "to":
            phrase = self.phrase((verb.place or "place",), definite=True, single=True)
            mine = phrase.noun.english in ("school", "office", "house", "garden") and not phrase.adjective
            if not mine or phrase.owner:  # Not "to the boss's kitchen".
                phrase = phrase._replace(owner=None, determiner="the")
            case = "dat" if phrase.noun.to == "zu" else "acc"
            drawn["complement"] = Prepositional("to", phrase.noun.to, case, phrase)
        if verb.frame in ("loc", "put"):
            case = "acc" if verb.frame == "put" else "dat"
            phrase = self.nominal((verb.place,), subject, 0, definite=True, plain=True, single=True)
            positions = POSITIONS[verb.place]
            positions = positions[:1] + positions[3:4] if verb.frame == "put" else positions  # On, next to.
            drawn["complement"] = Prepositional(*self.rng.choice(positions), case, phrase)
        return drawn

    def object(self, verb: Verb, phrase: Phrase | Person, negated: bool = False) -> Phrase | Person:
        """Make an object definite, unless the verb takes others: nobody tidies rooms, but many buy apples."""
        if isinstance(phrase, Person):
            return phrase
        classes, article = phrase.noun.classes, _indefinite_article(phrase.noun, phrase.plural)
        if verb.base in LISTS["not yet there"] or (verb.base == "hate" and "food" in classes):
            phrase = phrase._replace(adjective=None)
        if verb.base in LISTS["made"]:  # Nobody bakes the bread of others.
            determiner = phrase.determiner if phrase.determiner in ("", "a", "this") else "the"
            phrase = phrase._replace(owner=None, determiner=determiner)
        if negated and verb.articles == "any" and "only-the" not in classes and self.chance(0.6):
            phrase = phrase._replace(owner=None, determiner=article)
        if verb.base == "have":
            return phrase._replace(owner=None, determiner=article)
        any_article = verb.articles == "any" or (verb.articles and not phrase.plural)
        hated = verb.base == "hate" and "person" in classes
        return phrase if any_article and not hated else definite(phrase)

    def adverbials(self, clause: Clause, verb: Verb, brief: bool, timed: bool) -> Adverbials:
        """Draw when, how, with whom, where and why, as far as they go with the verb."""
        drawn: Adverbials = {}
        times = self.times(clause, verb)
        timed = timed and not (self.rich and clause.tense in ("present", "perfect"))
        if timed and times and (clause.tense == "past" or (not brief and self.extra(0.3))):
            drawn["time"] = self.rng.choice(times)
        elif timed and not clause.negated and self.extra(0.25):
            if clause.tense == "present" and verb.often:
                drawn["often"] = self.rng.choice(self.words.adverbs_of("often"))
            elif clause.tense == "perfect":
                lasting = verb.frame == "none" and verb.habit  # Nobody has "just slept".
                drawn["often"] = self.rng.choice(self.words.adverbs_of("already")[: 1 if lasting else None])
        if brief or clause.tense == "like":
            return drawn
        moves = verb.kind == "action" and verb.frame in ("none", "to")
        if moves and "often" not in drawn and self.chance(0.15) and (cause := self.cause(clause, verb)):
            drawn["cause"] = cause
        manners = [word for word in self.words.adverbs_of("manner") if word.english in verb.how]
        soon = "time" in drawn and drawn["time"].more == "soon"
        if manners and not clause.negated and not soon and "often" not in drawn and self.chance(0.2):
            drawn["manner"] = self.rng.choice(manners)
        elif {"with", "for"} & {*verb.how} and self.extra(0.2):
            drawn["company"] = self.company(clause, verb)
        elif verb.where and "cause" not in drawn and self.extra(0.3):
            drawn["place"] = self.location(verb)
        if verb.where and not {"cause", "place"} & {*drawn} and self.chance(0.9 if self.rich else 0.15):
            drawn["place"] = self.location(verb)
        return drawn

    def times(self, clause: Clause, verb: Verb) -> list[Adverb]:
        """List the adverbs of time that go with a clause."""
        kinds = {"past": "past", "present": "present", "like": "present", "perfect": ""}
        kind = kinds.get(clause.tense, "future")
        if (kind == "present" and not verb.habit) or (kind == "future" and verb.kind == "sense"):
            return []
        fits = {"", *(("long",) if verb.long else ())}
        if clause.tense == "will" and not clause.negated:
            fits.add("soon")
        without: tuple[str, ...] = ("on Sundays", "on Mondays") if verb.base == "sleep" else ()
        if verb.base in LISTS["moments"] or "person" not in classes_of(clause.subject):
            without += ("three days ago", "on Friday")  # Nobody knows after days when.
        ends = ("evening", "afternoon") if verb.base in ("get up", "wake up") else ()
        return [
            adverb
            for adverb in self.words.adverbs_of(kind)
            if adverb.more in fits
            and adverb.english not in without
            and not adverb.english.endswith(ends)
            # "Not every day" is another thing than "every day not".
            and not (clause.negated and adverb.english.startswith("every"))
        ]

    def cause(self, clause: Clause, verb: Verb) -> Prepositional | None:
        """Draw because of what somebody does not do something, or despite what they do it."""
        hindered = clause.tense == "can" and not clause.negated and self.chance(0.5)
        obstacles: list[tuple[str, ...]] = [("noise", "heat")] if verb.base in LISTS["quietly"] else []
        if verb.base in LISTS["outdoors"]:
            heat = () if verb.base == "swim" else ("heat",)
            obstacles.append(("rain", "snow", "storm", "wind", *heat))
        nouns = self.rng.choice(obstacles or [()])
        if not nouns or hindered:
            return None
        phrase = self.phrase(nouns, single=True, plain=True)._replace(determiner="the")
        words = ("because of", "wegen") if clause.negated else ("despite", "trotz")
        return Prepositional(*words, "gen", phrase)

    def company(self, clause: Clause, verb: Verb) -> Prepositional:
        """Draw with, without or for somebody."""
        choices = [("for", "für", "acc")] if "for" in verb.how else []
        if "with" in verb.how:
            choices.append(("with", "mit", "dat"))
        if "with" in verb.how and verb.frame == "to" and not clause.negated:
            choices.append(("without", "ohne", "acc"))
        pronoun = 0.0 if isinstance(clause.object, Person) else 0.35
        near = ("kin", "friend", "colleague", "child", "guest", "neighbor")
        person = self.nominal(near, clause.subject, pronoun, definite=True, plain=True)
        return Prepositional(*self.rng.choice(choices), person)

    def location(self, verb: Verb) -> Prepositional:
        """Draw one of a verb's places, or a place outdoors next to a building."""
        if verb.base in ("play", "meet") and self.chance(0.3):
            phrase = self.phrase(("landmark",), definite=True, single=True, plain=True)
            return Prepositional(*self.rng.choice(_NEAR), "dat", phrase._replace(determiner="the"))
        phrase = self.phrase(verb.where, definite=True, single=True)
        mine = phrase.noun.english in ("kitchen", "garden", "house", "room", "office")
        phrase = phrase._replace(owner=None, determiner=phrase.determiner if mine else "the")
        return Prepositional(*phrase.noun.at, "dat", phrase)

    def predicate(
        self,
        subject: Nominal | None = None,
        *,
        tense: str = "",
        timed: bool = True,
        moods: Sequence[str] = (),
    ) -> Clause:
        """Draw a clause like "the house is old"; of a given person it says a mood."""
        if subject is None and self.chance(0.3):
            subject = self.rng.choice(PERSONS)
        if subject is None or (isinstance(subject, Phrase) and not self.words.adjectives_of(subject.noun)):
            classes = ("person", "animal", "thing", "place", "text", "thought", "food", "drink", "plant")
            subject = until(
                lambda found: self.words.adjectives_of(found.noun),
                lambda: self.phrase(classes, definite=True, plain=True),
            )
        found = [
            word
            for word in self.words.adjectives
            if not classes_of(subject).isdisjoint(word.classes)
            and (not isinstance(subject, Person) or "person" in word.classes)
            and (not moods or word.english in moods)
            and (subject != PERSONS[0] or word.lasts == "mood")
        ]
        adjective = self.rng.choice(found)
        draw = self.rng.random()
        if not tense:
            tense = "past" if adjective.lasts and draw < 0.25 else "present"
            tense = "will" if adjective.lasts == "mood" and 0.25 < draw < 0.35 else tense
        days = [day for day in self.words.adverbs_of("past") if not day.more]
        dated = tense == "past" and timed and adjective.lasts == "mood"
        time = self.rng.choice(days) if dated else None
        return Clause(subject, None, tense, not moods and self.chance(0.2), adjective, time=time)

    # Sentences of one clause, or of one and a clause inside it ----------------------------------------------

    def statement(self) -> Clause:
        """Draw a main clause, maybe with another one inside."""
        draw = self.rng.random()
        if draw < 0.09:
            return self.with_infinitive()
        if draw < 0.24:
            return self.report()
        if draw < 0.38:
            return self.with_relative()
        return self.fronted(self.predicate() if draw > 0.92 else self.clause())

    def fronted(self, clause: Clause) -> Clause:
        """Begin with the place or the time, maybe."""
        free = clause.place and not clause.time and getattr(clause.place.phrase, "determiner", "") == "the"
        if free and self.chance(0.25) and clause.base != "arrive":
            return replace(clause, front="place")
        fronted = clause.time and self.chance(0.6 if clause.recipient else 0.4)
        return replace(clause, front="time") if fronted else clause

    def with_infinitive(self) -> Clause:
        """Draw a clause like "he tries to open the door"."""
        verb = self.verb(("zu",))
        clause = self.clause(verb, negated=False if verb.kind == "state" else None, definite=True, brief=True)
        if verb.kind == "report" and clause.tense == "present":
            clause = replace(clause, negated=False)
        bases = (*TABLES["infinitives"][verb.base], *self.words.added)
        inner = self.verb(subject=clause.subject, kinds=("action", "sense"), bases=bases)
        infinitive = Clause(clause.subject, inner, **self.arguments(inner, clause.subject))
        return replace(clause, often=None, front="time" if clause.time else "", infinitive=infinitive)

    def report(self) -> Clause:
        """Draw a clause like "he knows that she sleeps"."""
        conjunction = self.rng.choice((THAT, THAT, WHETHER))
        verb = self.verb((conjunction[0],))
        certain = verb.base in ("hope", "claim", "ask", "say")
        clause = self.clause(verb, negated=False if certain else None, definite=True, brief=True)
        person = self.person(apart_from=clause.subject) if self.chance(0.7) else None
        past = clause.tense == "past"
        if verb.base != "hope" and (past or self.chance(0.12)):
            moods = _BEFORE_A_REPORT if past or person else ()
            subject = calm(person or self.person(apart_from=clause.subject)) if past or person else None
            inner = self.predicate(subject, tense="past" if past else "present", timed=False, moods=moods)
            inner = replace(inner, negated=False)
        else:
            inner = self.reported(verb, person)
        if clause.negated or verb.base in ("hope", "ask"):
            inner = replace(inner, negated=False)
        return replace(clause, inner=(conjunction, inner))

    def reported(self, report: Verb, person: Nominal | None) -> Clause:
        """Draw what somebody says, knows or asks: no single event in the present."""
        any_of = ("like", "perfect", "will", "can", "should", "have to", "be allowed to")
        tenses = {"hope": ("will", "can"), "notice": ("perfect",)}.get(report.base, any_of)
        kinds = ("action",) if report.base == "hope" else ()
        bases = (*LISTS["reported"], *self.words.added)
        verb = until(
            lambda found: report.base != "notice" or found.kind not in ("state", "sense"),
            lambda: self.verb(subject=person, kinds=kinds, bases=bases),
        )
        negated = self.chance(0.35)
        clause = self.clause(verb, person, tenses=tenses, negated=negated, definite=True, brief=True)
        return self.settled(clause)

    def with_relative(self) -> Clause:
        """Draw a clause with a relative clause at its subject, or at an object that nothing follows."""
        for _ in range(20):  # Most relative clauses have nothing to do with the main clause.
            clause = self.maybe_relative()
            held = [n for n in (clause.subject, clause.object) if isinstance(n, Phrase) and n.relative]
            if held and all(
                n.relative and fits_relative(clause, n, n.relative, subject=n is clause.subject) for n in held
            ):
                break
        return clause

    def maybe_relative(self) -> Clause:
        """Draw a clause with some relative clause, if a noun can have one."""
        tenses = ("present", "perfect", "will", "want to", "would like to", "can")
        if self.chance(0.5):  # "The woman who has bought the car lives in the village."
            person = self.phrase(("person",), definite=True, plain=True)
            if self.chance(0.3):
                moods = [word for word in TRAITS if word != person.noun.english]
                clause = replace(self.predicate(person, tense="present", moods=moods), negated=False)
            else:
                clause = self.short(self.verb(subject=person), person, tenses)
            return replace(clause, subject=self.related(person, False), time=None, often=None)
        tables = (*TABLES["of things"].values(), *TABLES["of persons"].values())
        bases = tuple({base for bases in tables for base in bases})
        clause = self.short(self.verb(("acc", "dat", "dat+acc"), bases=bases), None, tenses)
        to, patient = clause.recipient and clause.verb and clause.verb.place, clause.object
        if to or not isinstance(patient, Phrase):
            return self.fronted(clause)
        return replace(clause, object=self.related(patient, True), time=None, often=None)

    def related(self, phrase: Phrase, patient: bool) -> Phrase:
        """Add a relative clause whose pronoun is its subject or, mostly at an object (`patient`), object."""
        noun, person = phrase.noun, "person" in phrase.noun.classes
        gender = "p" if phrase.plural else noun.gender
        forms = {case: genders[gender] for case, genders in RELATIVE.items()}
        table = TABLES["of persons" if person else "of things"]
        as_object = [verb for verb in self.words.verbs_of(("acc", "dat"), None, noun) if verb.base in table]
        as_subject = [
            verb for verb in self.words.verbs_of(PLAIN_FRAMES, noun.classes) if verb.base in LISTS["who did"]
        ]
        done = ("perfect", "past")
        if as_object and (not person or self.chance(0.7 if patient else 0.3)):
            gap = Gap("whom" if person else "that", forms, phrase.number, noun)
            who = until(lambda found: getattr(found, "noun", None) != noun, self.person)
            who = who._replace(adjective=None) if isinstance(who, Phrase) else who
            fit = [verb for verb in as_object if not classes_of(who).isdisjoint(verb.subjects)]
            if not fit:
                return phrase
            relative = replace(self.short(self.rng.choice(fit), who, done), object=gap)
        elif person and as_subject:
            gap = Gap("who", forms, phrase.number, noun)
            relative = self.short(self.rng.choice(as_subject), gap, done)
        else:
            return phrase
        if relative.verb and relative.verb.kind != "state" and relative.base not in LISTS["dated"]:
            relative = replace(relative, time=None, tense="perfect")
        relative = replace(relative, often=None)
        return phrase._replace(relative=relative, determiner="the", owner=None, adjective=None)

    # Questions ----------------------------------------------------------------------------------------------

    def asked(self, verb: Verb | None = None, **options) -> Clause:
        """Draw a clause to ask about; nobody asks what they do themselves, but what they should."""
        verb = verb or self.verb()
        person = {"person", "adult"} & {*verb.subjects}
        subject = self.rng.choice((*PERSONS[1:4], PERSONS[5])) if person and self.chance(0.5) else None
        if person and subject is None:
            subject = self.phrase(verb.subjects, definite=True)
        clause = self.clause(verb, subject, definite=True, **options)
        if verb.kind == "action" and person and self.chance(0.1):
            modals, me = ("can", "should", "have to", "be allowed to"), (PERSONS[0], PERSONS[4])
            clause = self.clause(verb, self.rng.choice(me), tenses=modals, negated=False)
        return _with_definite_subject(clause)

    def yes_no_question(self) -> Clause:
        """Draw a question that is answered by yes or no."""
        if self.chance(0.12):
            clause = self.predicate()
            return replace(clause, negated=clause.negated and self.chance(0.5))
        return _without_never(self.asked(negated=self.chance(0.1)))

    def wh_question(self) -> Clause:
        """Draw a question that begins with who, whom, what, when, where or why."""
        draw = self.rng.random()
        if draw < 0.2:
            who = Gap("who", {"nom": "wer"}, "er")
            return _without_never(self.clause(self.verb(subject=who), who, negated=False))
        if draw < 0.45:
            return self.object_question(self.asked(self.verb(("acc", "dat", "dat+acc")), negated=False))
        if draw < 0.6:
            when = ("past", "present", "will", "can", "should", "want to", "have to")
            verb = until(
                lambda found: found.kind == "action" or (found.frame == "none" and not found.often),
                lambda: self.verb(kinds=("action", "event")),
            )
            clause = self.asked(verb, negated=False, tenses=when, brief=True)
            return replace(clause, time=None, often=None, asked=("when", "wann"))
        if draw < 0.72:
            placed = [verb for verb in self.words.verbs if verb.where and verb.frame in PLAIN_FRAMES]
            clause = self.asked(self.rng.choice(placed), negated=False)
            return replace(clause, place=None, cause=None, company=None, often=None, asked=("where", "wo"))
        if draw < 0.82:
            clause = self.asked(self.verb(("to", "put"), kinds=("action",)), negated=False)
            return replace(clause, complement=None, often=None, manner=None, asked=("where", "wohin"))
        tenses = ("past", "present", "perfect", "want to", "have to", "should")
        clause = self.asked(self.verb(kinds=("action", "state")), negated=self.chance(0.3), tenses=tenses)
        return replace(clause, cause=None, often=None, asked=("why", "warum"))

    def object_question(self, clause: Clause) -> Clause:
        """Ask for the object of a clause."""
        noun = getattr(clause.object, "noun", None)  # A pronoun has none.
        if noun is None or "person" in noun.classes:
            return replace(clause, object=Gap("whom", {"acc": "wen", "dat": "wem"}, "er"))
        if object_case(clause) == "dat":
            return clause  # "What does he follow?" would need another pronoun.
        return replace(clause, object=Gap("what", {"acc": "was"}, "er"))
