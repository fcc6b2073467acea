"""Draws sentences: clauses that make sense by themselves, and pairs of clauses that make sense together."""

import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from chapters_src.data.english_german.clauses import (
    PERSONS,
    Adverbials,
    Arguments,
    Clause,
    Gap,
    Nominal,
    Part,
    Person,
    Phrase,
    Prepositional,
    bonds_of,
    clauses_of,
    object_case,
    phrases_of,
    rules_of,
)
from chapters_src.data.english_german.in_english import english
from chapters_src.data.english_german.in_german import MODALS, RELATIVE, german, german_lead, german_tail
from chapters_src.data.english_german.lexicon import Lexicon, Noun, Verb
from chapters_src.data.english_german.sense import (
    DESTINATIONS,
    OF_PERSONS,
    OF_THINGS,
    REPORTED,
    TRAITS,
    WHO_DID,
    could_be,
    fits_relative,
    is_odd,
    of_a_kind,
)

AND, BUT = ("and", "und"), ("but", "aber")
BECAUSE, ALTHOUGH = ("because", "weil"), ("although", "obwohl")
IF, WHILE = ("if", "wenn"), ("while", "während")
BEFORE, AS_SOON_AS = ("before", "bevor"), ("as soon as", "sobald")
SUBORDINATE = (BECAUSE, ALTHOUGH, IF, WHILE, BEFORE, AS_SOON_AS)
THAT, WHETHER = ("that", "dass"), ("whether", "ob")
PLAIN_FRAMES = ("none", "acc", "dat", "dat+acc", "preposition", "to", "loc", "put")
_NEAR = (("behind", "hinter"), ("next to", "neben"), ("in front of", "vor"))
POSITIONS = {
    "wall": (("on", "an"),),
    "seat": (("on", "auf"),),
    "surface": (("on", "auf"), ("under", "unter"), *_NEAR),
}
POSSESSIVES = ("my", "your", "his", "her", "our", "their")
_TOGETHER = {"I": ("I", "we"), "we": ("I", "we"), "you": ("you",), "he": (), "she": (), "they": ()}
_AHEAD = ("will", "can", "should", "have to", "be allowed to")
_NEEDS_QUIET = ("sleep", "work", "read", "write", "fall asleep")
_DISTURBS = ("sing", "dance", "watch TV", "laugh")  # ... when others always do this.
_STARTS = ("arrive", "wake up", "get up", "come back")  # As soon as they ...
_WANTED = ("visit", "help", "thank", "invite", "call")  # "She is sad because he has not called her."
_MEETINGS = ("visit", "meet", "help")
_CHORES = ("cook", "bake", "wash", "tidy", "repair", "feed", "pack", "shop", "prepare")
_LEISURE = ("dance", "sing", "swim", "read", "play", "watch TV", "sleep")
_THEMES = (_CHORES, _LEISURE)  # What goes well with "and".
_ALONE = ("dance", "sing", "swim", "shop", "work", "sleep")  # They dance, but she does not dance.
_KINDS_OF = (
    "read", "eat", "drink", "buy", "draw", "wash", "feed", "bake", "cook", "look for", "sell", "build",
)  # fmt: skip
_FAVORS = ("help", "wash", "tidy", "cook", "bake", "carry", "repair", "lend", "bring", "feed")
_THANKS = ("help", "lend", "show", "bring", "tell", "cook", "bake", "invite")
_BACK = ("help", "lend", "show", "bring", "tell", "invite")  # Done to somebody.
_REASONS = {  # What makes people happy, sad or angry.
    "happy": ("help", "tidy", "cook", "bake", "repair", "come back", "visit", "thank", "invite", "find"),
    "sad": ("lose", "throw away", "sell", "reject", "run away"),
    "angry": ("lose", "throw away", "sell", "reject", "steal", "eat", "drink"),
}
_DUTIES = (*_CHORES, "work", "write")
_LASTING = (*_LEISURE, *_CHORES, "work")  # Done for a while.
_ALLOWED = ("watch TV", "swim", "dance", "play")
_AFTER = (  # Before they ...
    "sleep", "dance", "swim", "watch TV", "play", "eat", "go", "travel", "visit", "drive",
)  # fmt: skip
_INFINITIVES = {  # What people try, forget, promise, decide and plan to do.
    "try": ("open", "close", "repair", "help", "explain", "sleep", "carry", "answer", "sell", "tune",
        "understand", "draw"),
    "forget": ("call", "close", "turn off", "turn on", "feed", "bring", "fetch", "answer", "thank",
        "write down",
        "shop"),
    "promise": ("help", "tidy", "cook", "repair", "visit", "call", "come back", "wait", "bring", "bake",
        "feed"),
    "decide": ("buy", "sell", "visit", "travel", "help", "invite"),
    "plan": ("buy", "sell", "visit", "travel", "build"),
    "hope": ("visit", "travel", "meet", "come back"),
}  # fmt: skip
_MOMENTS = (  # Nobody knows after days when.
    "get up", "wake up", "fall asleep", "sleep", "wash", "eat", "drink", "open", "close", "put on",
    "take off", "turn on", "turn off", "greet", "smile", "laugh", "cry",
)  # fmt: skip
_OUTDOORS = ("swim", "come back", "go", "run", "drive", "travel", "work")  # Not because of the storm.
_QUIETLY = ("sleep", "work")  # Despite the noise.
_DISLIKED = ("get up", "open", "close", "turn on", "turn off", "fetch")  # Nobody says that they like to.
# Nobody bakes the bread of others.
_MAKES = ("write", "draw", "build", "cook", "bake", "buy", "put on", "take off", "reject", "steal")
_WEIGHTS = {  # Of the tenses, by kind of verb; an action's modal is one of seven.
    "action": {"present": 30, "past": 17, "perfect": 17, "like": 6, **dict.fromkeys(MODALS, 4)},
    "event": {"present": 35, "past": 30, "perfect": 25, "will": 10},
    "sense": {"present": 30, "past": 25, "perfect": 20, "can": 25},
    "state": {"present": 1},
    "report": {"present": 50, "past": 25, "perfect": 25},
}
_WITHOUT_WILL = {"want to", "would like to", "be allowed to", "have to", "like"}  # No cow wants to.


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
        comma = before is not None and (before.order == "final" or conjunction == BUT)
        in_english += ("," if comma else "") + (" " if number else "") + said[0]
        comma = comma or (before is not None and (conjunction != AND or german_tail(before.clause)))
        in_german += ("," if comma else "") + (" " if number else "") + said[1]
    mark = "?" if question else "."
    in_german = in_german.removesuffix(",").replace(",,", ",")
    return in_english[0].upper() + in_english[1:] + mark, in_german[0].upper() + in_german[1:] + mark


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

    @property
    def words(self) -> tuple[int, int]:
        """How many words it has, in English and in German."""
        return len(self.english.split()), len(self.german.split())


class Draft(NamedTuple):
    """A sentence that is not rendered yet: many drafts fit no split."""

    parts: list[Part]
    question: bool
    clauses: tuple[frozenset[str], ...]
    bonds: frozenset[tuple[str, str]]

    def pair(self) -> Pair:
        """Render it in both languages."""
        return Pair(*render(self.parts, question=self.question), self.clauses, self.bonds)


def _definite(phrase: Phrase) -> Phrase:
    return phrase if phrase.definite else phrase._replace(determiner="the")


def _calm(person: Nominal) -> Nominal:
    """Drop an adjective of mood or health: it is said of the person in another clause."""
    moody = isinstance(person, Phrase) and person.adjective and person.adjective.lasts
    return person._replace(adjective=None) if moody and isinstance(person, Phrase) else person


def _apart(one: Nominal, other: Nominal) -> bool:
    """Return whether two subjects cannot be taken for one person, or are the same."""
    pair = {type(one), type(other)}
    if pair == {Person, Phrase}:
        pronoun, phrase = (one, other) if isinstance(one, Person) else (other, one)
        return pronoun_of(phrase) != pronoun
    return True


def _joined(main: Clause, inner: Clause, conjunction: tuple[str, str], swap: bool) -> list[Part]:
    parts = [Part(main, "first" if swap else "second"), Part(inner, "final", conjunction)]
    return parts[::-1] if swap else parts


def _without_never(clause: Clause) -> Clause:
    """Drop what nobody asks."""
    never = clause.often and clause.often.english in ("never", "rarely")
    return replace(clause, often=None) if never else clause


def _classes(subject: Nominal) -> frozenset[str]:
    """Return the classes of a subject; a pronoun or "who" is any person."""
    noun = getattr(subject, "noun", None)
    return noun.classes if noun else frozenset({"person", "adult"})


def pronoun_of(subject: Nominal) -> Person | None:
    """Return the pronoun for a person, or None for a child or a girl, whom German calls it.

    Args:
        subject: a noun phrase or a pronoun.

    Returns:
        The pronoun.
    """
    if isinstance(subject, Person):
        return subject
    if not isinstance(subject, Phrase) or subject.noun.gender == "n":
        return None
    return PERSONS[5 if subject.plural else {"m": 2, "f": 3}[subject.noun.gender]]


class Writer:
    """Draws clauses and sentences.

    Args:
        rng: the source of all draws.
        words: the lexicon.
        rich: with more adjectives and adverbials, for long sentences.
    """

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
        if not plain and self.words.adjectives_of(noun) and self.chance(self.liveliness(noun)):
            adjective = self.rng.choice(self.words.adjectives_of(noun))
            adjective = None if adjective.english == "healthy" else adjective  # A predicate only.
            if adjective and adjective.english.startswith(noun.english):  # A friendly friend.
                adjective = None
        owned = determiner == "the" and "own" in noun.classes and "person" not in noun.classes
        if not plain and owned and self.extra(0.15):
            owner = self.phrase(("person",), definite=True, plain=True)
        return Phrase(noun, plural, determiner, adjective, owner)

    def liveliness(self, noun: Noun) -> float:
        """Return how probable an adjective is: people have fewer than things, and rich sentences few."""
        share = 0.12 if "person" in noun.classes else 0.35
        return share / 2 if self.rich else share

    def determiner(self, noun: Noun, plural: bool, definite: bool) -> str:
        """Draw a determiner: uncles are mostly somebody's, trains are nobody's."""
        draw = self.rng.random()
        kin = "kin" in noun.classes or noun.english in ("friend", "colleague")
        if noun.english == "dress" and not plural:
            return self.rng.choice(("the", "a", "my", "your", "her")) if not definite else "the"
        if plural and {"teacher", "doctor", "lawyer", "queen"} & noun.classes:  # "Her doctors" are too many.
            return "this" if draw > 0.94 else "the"
        possessives = POSSESSIVES[:4] if "garment" in noun.classes and not plural else POSSESSIVES
        if "only-the" in noun.classes or (not kin and draw < 0.42):
            return "the"
        if kin or (draw < 0.62 and "own" in noun.classes):
            return self.rng.choice(possessives)
        if draw > 0.94 and noun.german_plural:
            return "this"
        if definite:
            return "the"
        return "" if plural or not noun.german_plural else "a"

    def person(self, *, named: bool = False, apart_from: Nominal | None = None) -> Phrase | Person:
        """Draw somebody: a pronoun, or a definite phrase that has a pronoun if it is to be `named`."""
        taken = getattr(apart_from, "noun", None)
        also = _TOGETHER[apart_from.english[0]] if isinstance(apart_from, Person) else ()
        if isinstance(apart_from, Phrase):  # "The man works and he sings" would be one man.
            also = ("they",) if apart_from.plural else ("he", "she")
        if not named and self.chance(0.45):
            return self.rng.choice([p for p in PERSONS if p.english[0] not in also and p != apart_from])
        while True:
            phrase = self.phrase(("person",), definite=True)
            if isinstance(apart_from, Person) and could_be(apart_from, phrase):
                continue  # "Because he ..., the cook is sad" would be one man, or another.
            if phrase.noun != taken and (not named or pronoun_of(phrase)):
                return phrase

    def nominal(
        self, classes: tuple[str, ...], subject: Nominal, pronoun: float, **options: bool
    ) -> Phrase | Person:
        """Draw an object: a pronoun, if persons are allowed, or a phrase whose noun is not the subject's."""
        if {"person", "adult", "kin"} & {*classes} and self.chance(pronoun):
            taken = _TOGETHER[subject.english[0]] if isinstance(subject, Person) else ()
            return self.rng.choice([person for person in PERSONS if person.english[0] not in taken])
        phrase = self.phrase(classes, **options)
        while phrase.noun == getattr(subject, "noun", None) and len(self.words.nouns_of(classes)) > 1:
            phrase = self.phrase(classes, **options)
        return phrase

    # Clauses ------------------------------------------------------------------------------------------------

    def verb(
        self,
        frames: tuple[str, ...] = PLAIN_FRAMES,
        subject: Nominal | None = None,
        kinds: tuple[str, ...] = (),
        bases: tuple[str, ...] = (),
    ) -> Verb:
        """Draw a verb of these frames and kinds that suits the subject."""
        found = self.words.verbs_of(frames, _classes(subject) if subject else None)
        found = [verb for verb in found if not kinds or verb.kind in kinds]
        # What a reader adds is among what people do anyway.
        bases = (*bases, *self.words.added) if "tidy" in bases else bases
        return self.rng.choice([verb for verb in found if not bases or verb.english[0] in bases])

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
            made = verb.english[0] in ("cook", "bake") and food.noun.english in ("potato", "egg", "roll")
            if custom or made or tense == "like" or verb.english[0] in ("hate", "sell"):
                # Nobody eats the same apple every day, or cooks one egg.
                food = food._replace(plural=food.noun.has_plural, determiner="", owner=None)
                clause = replace(clause, object=food)
        return clause if subject else self.settled(clause)

    def settled(self, clause: Clause) -> Clause:
        """Make the subject definite, except where somebody does something once: a man has called."""
        once = clause.tense in ("past", "perfect") or (clause.tense == "present" and not clause.time)
        known = clause.verb is None or clause.verb.kind in ("state", "report") or clause.often
        plural = isinstance(clause.subject, Phrase) and clause.subject.plural
        if isinstance(clause.subject, Phrase) and (known or not once or clause.negated or plural):
            return replace(clause, subject=_definite(clause.subject))
        return clause

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
        weights = _WEIGHTS[verb.kind]
        if "person" not in _classes(subject):
            weights = {tense: weight for tense, weight in weights.items() if tense not in _WITHOUT_WILL}
        if not (verb.habit and verb.frame in ("none", "acc")) or verb.english[0] in _DISLIKED:
            weights = {tense: weight for tense, weight in weights.items() if tense != "like"}
        if verb.kind == "event" and (verb.frame != "none" or verb.often):  # Nobody knows what will be lost.
            weights = {tense: weight for tense, weight in weights.items() if tense != "will"}
        lost = verb.english[0] in ("lose", "forget", "find", "steal") and verb.frame == "acc"
        if lost and "person" in _classes(subject):
            weights = {tense: weight for tense, weight in weights.items() if tense != "present"}
        found = {tense: weight for tense, weight in weights.items() if not allowed or tense in allowed}
        if not found:
            return "past" if "past" in allowed and "past" in weights else "present"
        return self.rng.choices([*found], [*found.values()])[0]

    def arguments(self, verb: Verb, subject: Nominal, tense: str = "", negated: bool = False) -> Arguments:
        """Draw the arguments of a verb."""
        drawn: Arguments = {}
        if verb.frame == "dat+acc":
            taker = "adult" if "drink" in verb.objects else "person"
            drawn["recipient"] = self.nominal((taker,), subject, 0.4, definite=True, plain=True)
        if verb.frame in ("acc", "dat", "dat+acc", "put"):
            pronoun = 0.0 if verb.frame == "dat+acc" else 0.3
            drawn["object"] = self.object(verb, self.nominal(verb.objects, subject, pronoun), negated)
            if "worn" in verb.objects:  # They put on their coats, each one.
                clothes = drawn["object"]
                assert isinstance(clothes, Phrase)
                plural = "pair" in clothes.noun.classes or getattr(subject, "number", "") == "wir"
                whose = pronoun_of(subject)
                determiner = POSSESSIVES[PERSONS.index(whose)] if whose else "the"
                drawn["object"] = clothes._replace(plural=plural, determiner=determiner, owner=None)
        if "=" in verb.frame:
            english, german, case = re.split("[=+]", verb.frame)
            single = verb.english[0] in ("come", "live", "dream", "think")
            phrase = self.nominal(verb.objects, subject, 0.2, definite=negated, single=single)
            phrase = self.object(verb, phrase)
            drawn["complement"] = Prepositional(english, german, case, phrase)
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
            position = self.rng.choice(positions)
            drawn["complement"] = Prepositional(*position, case, phrase)
        return drawn

    def object(self, verb: Verb, phrase: Phrase | Person, negated: bool = False) -> Phrase | Person:
        """Make an object definite, unless the verb takes others: nobody tidies rooms, but many buy apples."""
        if isinstance(phrase, Person):
            return phrase
        if verb.english[0] in (
            "write",
            "build",
            "cook",
            "bake",
            "prepare",
        ):  # It is not there yet, to be delicious.
            phrase = phrase._replace(adjective=None)
        if verb.english[0] in _MAKES:
            determiner = phrase.determiner if phrase.determiner in ("", "a", "this") else "the"
            phrase = phrase._replace(owner=None, determiner=determiner)
        if negated and verb.articles == "any" and "only-the" not in phrase.noun.classes and self.chance(0.6):
            determiner = "" if phrase.plural or not phrase.noun.german_plural else "a"
            phrase = phrase._replace(owner=None, determiner=determiner)
        if verb.english[0] == "have":
            determiner = "" if phrase.plural or not phrase.noun.german_plural else "a"
            return phrase._replace(owner=None, determiner=determiner)
        if verb.english[0] == "hate" and "food" in phrase.noun.classes:
            phrase = phrase._replace(adjective=None)
        if verb.english[0] == "hate" and "person" in phrase.noun.classes:
            return _definite(phrase)
        if verb.articles == "any" or (verb.articles and not phrase.plural):
            return phrase
        return _definite(phrase)

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
        if (
            verb.kind == "action"
            and verb.frame in ("none", "to")
            and "often" not in drawn
            and self.chance(0.15)
        ):
            hindered = clause.negated or (clause.tense == "can" and self.chance(0.5))
            words = ("because of", "wegen") if clause.negated else ("despite", "trotz")
            obstacles: list[tuple[str, ...]] = [("noise", "heat")] if verb.english[0] in _QUIETLY else []
            if verb.english[0] in _OUTDOORS:
                heat = () if verb.english[0] == "swim" else ("heat",)
                obstacles.append(("rain", "snow", "storm", "wind", *heat))
            nouns = self.rng.choice(obstacles or [()])
            if nouns and (clause.negated or not hindered):
                phrase = self.phrase(nouns, single=True, plain=True)._replace(determiner="the")
                drawn["cause"] = Prepositional(*words, "gen", phrase)
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

    def times(self, clause: Clause, verb: Verb) -> list:
        """List the adverbs of time that go with a clause."""
        kind = {"past": "past", "present": "present", "like": "present", "perfect": ""}.get(
            clause.tense, "future"
        )
        if (kind == "present" and not verb.habit) or (kind == "future" and verb.kind == "sense"):
            return []
        fits = {"", *(("long",) if verb.long else ())}
        if clause.tense == "will" and not clause.negated:
            fits.add("soon")
        found = [adverb for adverb in self.words.adverbs_of(kind) if adverb.more in fits]
        if verb.english[0] in _MOMENTS or "person" not in _classes(clause.subject):
            found = [adverb for adverb in found if adverb.english not in ("three days ago", "on Friday")]
        if verb.english[0] in ("get up", "wake up"):
            found = [adverb for adverb in found if not adverb.english.endswith(("evening", "afternoon"))]
        if verb.english[0] == "sleep":
            found = [adverb for adverb in found if adverb.english not in ("on Sundays", "on Mondays")]
        # "Not every day" is another thing than "every day not".
        return [adverb for adverb in found if not (clause.negated and adverb.english.startswith("every"))]

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
        if verb.english[0] in ("play", "meet") and self.chance(0.3):
            phrase = self.phrase(("landmark",), definite=True, single=True, plain=True)._replace(
                determiner="the"
            )
            return Prepositional(*self.rng.choice(_NEAR), "dat", phrase)
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
        while subject is None or (isinstance(subject, Phrase) and not self.words.adjectives_of(subject.noun)):
            classes = ("person", "animal", "thing", "place", "text", "thought", "food", "drink", "plant")
            subject = self.phrase(classes, definite=True, plain=True)
        found = [
            word
            for word in self.words.adjectives
            if not _classes(subject).isdisjoint(word.classes)
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

    def statement(self, *, nested: bool = True) -> Clause:
        """Draw a main clause, maybe with another one inside."""
        draw = self.rng.random()
        if nested and draw < 0.09:
            return self.with_infinitive()
        if nested and draw < 0.24:
            return self.report()
        if nested and draw < 0.38:
            return self.with_relative()
        return self.fronted(self.predicate() if draw > 0.92 else self.clause())

    def fronted(self, clause: Clause) -> Clause:
        """Begin with the place or the time, maybe."""
        free = clause.place and not clause.time and getattr(clause.place.phrase, "determiner", "") == "the"
        if free and self.chance(0.25) and not (clause.verb and clause.verb.english[0] == "arrive"):
            return replace(clause, front="place")
        return (
            replace(clause, front="time")
            if clause.time and self.chance(0.6 if clause.recipient else 0.4)
            else clause
        )

    def with_infinitive(self) -> Clause:
        """Draw a clause like "he tries to open the door"."""
        verb = self.verb(("zu",))
        clause = self.clause(verb, negated=False if verb.kind == "state" else None, definite=True, brief=True)
        if verb.kind == "report" and clause.tense == "present":
            clause = replace(clause, negated=False)
        bases = (*_INFINITIVES[verb.english[0]], *self.words.added)
        inner = self.verb(subject=clause.subject, kinds=("action", "sense"), bases=bases)
        clause = replace(clause, often=None, front="time" if clause.time else "")
        return replace(
            clause, infinitive=Clause(clause.subject, inner, **self.arguments(inner, clause.subject))
        )

    def report(self) -> Clause:
        """Draw a clause like "he knows that she sleeps"."""
        conjunction = self.rng.choice((THAT, THAT, WHETHER))
        verb = self.verb((conjunction[0],))
        calm = verb.english[0] in ("hope", "claim", "ask", "say")
        clause = self.clause(verb, negated=False if calm else None, definite=True, brief=True)
        person = self.person(apart_from=clause.subject) if self.chance(0.7) else None
        past = clause.tense == "past"
        if verb.english[0] != "hope" and (past or self.chance(0.12)):
            moods = ("tired", "sick", "sad", "angry", "hungry", "happy") if past or person else ()
            person = (
                _calm(person or self.person(apart_from=clause.subject)) if past else person and _calm(person)
            )
            inner = self.predicate(person, tense="past" if past else "present", timed=False, moods=moods)
            inner = replace(inner, negated=False)
        else:
            inner = self.reported(verb, person)
        if clause.negated or verb.english[0] in ("hope", "ask"):
            inner = replace(inner, negated=False)
        return replace(clause, inner=(conjunction, inner))

    def reported(self, report: Verb, person: Nominal | None) -> Clause:
        """Draw what somebody says, knows or asks: no single event in the present."""
        tenses: Sequence[str] = ("like", "perfect", "perfect", *_AHEAD)
        if report.english[0] == "hope":
            tenses = ("will", "can")
        elif report.english[0] == "notice":
            tenses = ("perfect",)
        kinds = ("action",) if report.english[0] == "hope" else ()
        verb = self.verb(subject=person, kinds=kinds, bases=(*REPORTED, *self.words.added))
        while report.english[0] == "notice" and verb.kind in ("state", "sense"):
            verb = self.verb(subject=person, kinds=kinds, bases=(*REPORTED, *self.words.added))
        options = {"definite": True, "negated": self.chance(0.35), "brief": True}
        return self.settled(self.clause(verb, person, tenses=tenses, **options))

    def with_relative(self) -> Clause:
        """Draw a clause with a relative clause at its subject, or at an object that nothing follows."""
        for _ in range(20):  # Most relative clauses have nothing to do with the main clause.
            clause = self.maybe_relative()
            held = [n for n in (clause.subject, clause.object) if getattr(n, "relative", None)]
            if held and all(
                isinstance(n, Phrase)
                and n.relative
                and fits_relative(clause, n, n.relative, subject=n is clause.subject)
                for n in held
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
                verb = self.verb(subject=person)
                clause = self.clause(verb, person, tenses=tenses, negated=False, brief=True)
            return replace(clause, subject=self.related(person, False), time=None, often=None)
        bases = tuple({base for bases in (*OF_THINGS.values(), *OF_PERSONS.values()) for base in bases})
        clause = self.clause(
            self.verb(("acc", "dat", "dat+acc"), bases=bases), tenses=tenses, negated=False, brief=True
        )
        to, patient = clause.recipient and clause.verb and clause.verb.place, clause.object
        if to or not isinstance(patient, Phrase):
            return self.fronted(clause)
        return replace(clause, object=self.related(patient, True), time=None, often=None)

    def related(self, phrase: Phrase, patient: bool) -> Phrase:
        """Add a relative clause whose pronoun is its subject or, mostly at an object (`patient`), object."""
        noun = phrase.noun
        gender = "p" if phrase.plural else noun.gender
        forms = {case: genders[gender] for case, genders in RELATIVE.items()}
        person = "person" in noun.classes
        table = OF_PERSONS if person else OF_THINGS
        as_object = [
            verb for verb in self.words.verbs_of(("acc", "dat"), None, noun) if verb.english[0] in table
        ]
        as_subject = [
            verb for verb in self.words.verbs_of(PLAIN_FRAMES, noun.classes) if verb.english[0] in WHO_DID
        ]
        done = ("perfect", "past")
        options = {"negated": False, "brief": True}
        if as_object and (not person or self.chance(0.7 if patient else 0.3)):
            gap = Gap("whom" if person else "that", forms, phrase.number, noun)
            who = self.person()
            while getattr(who, "noun", None) == noun:
                who = self.person()
            who = who._replace(adjective=None) if isinstance(who, Phrase) else who
            fit = [verb for verb in as_object if not _classes(who).isdisjoint(verb.subjects)]
            if not fit:
                return phrase
            relative = replace(self.clause(self.rng.choice(fit), who, tenses=done, **options), object=gap)
        elif person and as_subject:
            gap = Gap("who", forms, phrase.number, noun)
            relative = self.clause(self.rng.choice(as_subject), gap, tenses=done, **options)
        else:
            return phrase
        if relative.verb and relative.verb.kind != "state" and relative.verb.english[0] not in (
            "buy", "sell", "build", "visit", "meet", "invite", "help", "call", "take part",
        ):  # fmt: skip
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
            modals = ("can", "should", "have to", "be allowed to")
            clause = self.clause(
                verb, self.rng.choice((PERSONS[0], PERSONS[4])), tenses=modals, negated=False
            )
        return (
            replace(clause, subject=_definite(clause.subject))
            if isinstance(clause.subject, Phrase)
            else clause
        )

    def yes_no_question(self) -> Clause:
        """Draw a question that is answered by yes or no."""
        if self.chance(0.12):
            clause = self.predicate()
            return replace(clause, negated=clause.negated and self.chance(0.5))
        clause = self.asked(negated=self.chance(0.1))
        return _without_never(clause)

    def wh_question(self) -> Clause:
        """Draw a question that begins with who, whom, what, when, where or why."""
        draw = self.rng.random()
        if draw < 0.2:
            who = Gap("who", {"nom": "wer"}, "er")
            return _without_never(self.clause(self.verb(subject=who), who, negated=False))
        if draw < 0.45:
            return self.object_question(self.asked(self.verb(("acc", "dat", "dat+acc")), negated=False))
        when = ("past", "present", "will", "can", "should", "want to", "have to")
        if draw < 0.6:
            verb = self.verb(kinds=("action", "event"))
            while verb.kind == "event" and not (verb.frame == "none" and not verb.often):
                verb = self.verb(kinds=("action", "event"))
            clause = self.asked(verb, negated=False, tenses=when, brief=True)
            return replace(clause, time=None, often=None, asked=("when", "wann"))
        if draw < 0.72:
            verb = self.rng.choice(
                [verb for verb in self.words.verbs if verb.where and verb.frame in PLAIN_FRAMES]
            )
            clause = self.asked(verb, negated=False)
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

    # Two clauses that belong together -----------------------------------------------------------------------

    def couple(self, same: bool, swap: bool) -> tuple[Nominal, Nominal]:
        """Draw the subjects of a main clause and of a subordinate one, which comes first if `swap`."""
        one = self.person() if not same or self.chance(0.5) else self.person(named=True)
        if not same:
            first, second = one, self.person(apart_from=one)
            return (second, first) if swap else (first, second)
        one = one if pronoun_of(one) else self.person(named=True)
        one = _calm(one)
        two = pronoun_of(one) or one
        return (two, one) if swap else (one, two)

    def subordination(self) -> list[Part]:
        """Draw a main clause and a subordinate one."""
        conjunction, swap = self.rng.choice(SUBORDINATE), self.chance(0.4)
        if conjunction == BECAUSE:
            main, inner = (replace(clause, cause=None) for clause in self.because(swap, self.rng.random()))
        elif conjunction == ALTHOUGH:
            main, inner = self.although(swap)
        else:
            main, inner = self.condition(conjunction, swap)
        return _joined(main, inner, conjunction, swap)

    def doing(self, subject: Nominal, tenses: Sequence[str], **options) -> Clause:
        """Draw what somebody does."""
        kinds = options.pop("kinds", ("action",))
        options.setdefault("brief", not self.rich and not self.chance(0.3))
        verb = options.pop("verb", None) or self.verb(subject=subject, kinds=kinds)
        clause = self.clause(verb, subject, tenses=tenses, **({"negated": False} | options))
        frequent = clause.often and clause.often.kind == "often"
        return replace(clause, often=None) if frequent else clause

    def toward(self, clause: Clause, person: Nominal) -> Clause:
        """Let what is done be done to a person: the recipient, or else the object."""
        if clause.recipient:
            return replace(clause, recipient=person)
        patient = clause.verb and "person" in clause.verb.objects and clause.verb.frame in ("acc", "dat")
        return replace(clause, object=person) if patient else clause

    def duty(self, subject: Nominal, bases: tuple[str, ...], apart_from: Verb | None) -> Verb:
        """Draw another verb than one that is said already."""
        verb = apart_from
        while verb is None or (apart_from and verb.english == apart_from.english):
            verb = self.verb(subject=subject, kinds=("action", "event"), bases=bases)
        return verb

    def because(self, swap: bool, draw: float, past: bool | None = None) -> tuple[Clause, Clause]:
        """Draw a clause and its reason, of a kind that `draw` says."""
        brief = not self.extra(0.4)
        past = self.chance(0.3) if past is None else past
        if draw < 0.3:  # Somebody is happy because of what somebody did.
            return self.because_of_others(swap, past)
        if draw < 0.5:  # Somebody cannot sleep because of what somebody does.
            one, other = self.couple(False, swap)
            verb = self.verb(subject=one, bases=_NEEDS_QUIET)
            main = replace(self.doing(one, ("present",), verb=verb, negated=True, timed=False), tense="can")
            verb = self.verb(("none",), other, bases=_DISTURBS)
            reason = self.doing(other, ("present",), verb=verb, brief=True, timed=False)
            always = next(word for word in self.words.adverbs_of("often") if word.english == "always")
            return replace(main, place=None, company=None), replace(reason, often=always)
        one, other = self.couple(True, swap)
        if draw >= 0.85:
            return self.errand(one, other, brief)
        # ... does not come because they are tired or have to work.
        verb, tired = self.verb(("none",), one, ("action",), _ALONE), draw < 0.7
        if self.chance(0.5):
            verb = self.verb(subject=one, kinds=("action",), bases=_MEETINGS)
        while tired and verb.english[0] == "sleep":
            verb = self.verb(("none",), one, ("action",), _ALONE)
        tenses = ("past",) if past and tired else ("can", "will")
        main = self.doing(one, tenses, verb=verb, negated=True, brief=brief)
        main = replace(main, cause=None)
        if tired:
            tense = "past" if past else "present"
            return main, self.predicate(other, tense=tense, timed=False, moods=("tired", "sick"))
        duty = self.duty(other, _DUTIES, verb)
        return main, self.doing(other, ("have to",), verb=duty, timed=False)

    def errand(self, one: Nominal, other: Nominal, brief: bool) -> tuple[Clause, Clause]:
        """Draw a trip, and what somebody wants to do at its end."""
        while True:
            verb = self.verb(("to",), one, kinds=("action",))
            main = self.doing(one, ("present", "will", "want to", "have to"), verb=verb, brief=brief)
            place = main.complement and getattr(main.complement.phrase, "noun", None)
            tasks = DESTINATIONS.get(place.english, ()) if place else ()
            if any(task.english[0] in tasks for task in self.words.verbs_of(PLAIN_FRAMES, _classes(other))):
                break
        main = replace(main, cause=None, company=None, manner=None)
        wanted = ("want to",) if main.tense in ("have to", "want to") else ("have to", "want to")
        if main.tense == "want to" or {*tasks} & {"swim", "eat", "sleep", "sing", "play", "draw"}:
            wanted = ("want to",)
            main = replace(main, tense="will") if main.tense in ("want to", "have to") else main
        task = self.doing(other, wanted, verb=self.duty(other, tasks, verb), timed=False, brief=True)
        return main, task

    def because_of_others(self, swap: bool, past: bool) -> tuple[Clause, Clause]:
        """Draw a mood, and what somebody did who caused it."""
        one, other = self.couple(False, swap)
        one = _calm(one)
        main = self.predicate(one, tense="past" if past else "present", moods=("happy", "sad", "angry"))
        main = replace(main, negated=False)
        mood = main.predicate.english if main.predicate else ""
        named = one if isinstance(one, Person) or swap else pronoun_of(one)
        usable = isinstance(named, Person)
        negated = usable and mood != "happy" and self.chance(0.35)
        bases = _WANTED if negated else _REASONS[mood]
        if not usable:
            bases = tuple(base for base in bases if base not in (*_WANTED, "help"))
        verb = self.verb(subject=other, bases=bases)
        tenses = ("past",) if past else ("perfect",)
        reason = self.doing(other, tenses, verb=verb, timed=False, negated=negated, brief=True)
        if isinstance(reason.object, Phrase):
            plural = reason.object.plural and "home" not in reason.object.noun.classes
            reason = replace(reason, object=_definite(reason.object)._replace(adjective=None, plural=plural))
        return main, self.toward(reason, named) if isinstance(named, Person) else reason

    def although(self, swap: bool, past: bool | None = None) -> tuple[Clause, Clause]:
        """Draw what somebody does, and what speaks against it."""
        one, other = self.couple(True, swap)
        past = self.chance(0.3) if past is None else past
        tenses = ("past",) if past else ("present", "will", "want to")
        tired = past or self.chance(0.5)
        verb = self.verb(subject=one, kinds=("action",), bases=_LASTING if tired else _LEISURE)
        while tired and verb.english[0] == "sleep":
            verb = self.verb(subject=one, kinds=("action",), bases=_LASTING)
        main = self.doing(one, tenses, verb=verb, brief=not self.extra(0.4))
        main = replace(main, time=None) if main.tense == "present" else main
        if tired:
            tense = "past" if past else "present"
            return main, self.predicate(other, tense=tense, timed=False, moods=("tired", "sick"))
        duty = self.duty(other, _DUTIES, verb)
        return main, self.doing(other, ("have to", "should"), verb=duty, timed=False)

    def condition(self, conjunction: tuple[str, str], swap: bool) -> tuple[Clause, Clause]:
        """Draw two clauses about what will be, for if, while, before and as soon as."""
        if conjunction == IF:
            return self.if_so(swap)
        one, other = self.couple(conjunction != WHILE, swap)
        brief = not self.extra(0.4)
        if conjunction == WHILE:
            theme = self.rng.choice((_CHORES, _LEISURE))
            verb = self.verb(subject=one, kinds=("action",), bases=theme)
            main = self.doing(one, ("present", "will"), verb=verb, brief=brief)
            later = self.duty(other, (*_LEISURE, *_CHORES, "work"), verb)
            return main, self.doing(other, ("present",), verb=later, timed=False)
        tense = self.rng.choice(("will", "should", "have to"))
        bases = _AFTER if conjunction == BEFORE else _STARTS
        verb = later = self.verb(subject=other, bases=bases, kinds=("action", "event"))
        while later.english == verb.english:
            later = self.verb(subject=one, bases=_CHORES, kinds=("action",))
        main = self.doing(one, (tense,), verb=later, brief=brief)
        main = replace(main, time=None) if conjunction == AS_SOON_AS else main
        inner = self.doing(other, ("present",), timed=False, verb=verb)
        return main, replace(inner, manner=None, cause=None)

    def if_so(self, swap: bool) -> tuple[Clause, Clause]:
        """Draw a bargain, a permission, or what somebody does who is hungry, tired or sick."""
        brief, draw = not self.extra(0.4), self.rng.random()
        if draw < 0.3:
            one, other = self.couple(True, swap)
            hungry = self.chance(0.3)
            moods = ("hungry",) if hungry else ("tired", "sick")
            verb = self.verb(subject=one, kinds=("action",), bases=("eat", "cook", "bake"))
            if not hungry:
                verb = self.verb(("none",), one, ("action",), _ALONE)
            while not hungry and verb.english[0] == "sleep":
                verb = self.verb(("none",), one, ("action",), _ALONE)
            tenses = ("can", "should", "will") if hungry else ("should", "will")
            main = self.doing(one, tenses, verb=verb, negated=not hungry, brief=brief, timed=False)
            return replace(main, cause=None, place=None), self.predicate(other, tense="present", moods=moods)
        if draw < 0.6:  # You are allowed to play if you tidy your room.
            one, other = self.couple(True, swap)
            while not (isinstance(one, Person) and isinstance(other, Person)) and _classes(
                one if isinstance(one, Phrase) else other
            ).isdisjoint(("young",)):
                one, other = self.couple(True, swap)
            verb = self.verb(subject=one, kinds=("action",), bases=_ALLOWED)
            main = self.doing(one, ("be allowed to",), verb=verb, brief=brief)
            chore = self.duty(other, ("tidy", "wash", "feed", "cook", "pack", "bake", "shop"), verb)
            return replace(main, cause=None), self.doing(other, ("present",), verb=chore, timed=False)
        return self.bargain(swap, brief)

    def bargain(self, swap: bool, brief: bool) -> tuple[Clause, Clause]:
        """Draw what somebody will do for somebody who does them a favor: one of the two is I, we or you."""
        near = self.rng.choice((PERSONS[0], PERSONS[4]))
        far = self.person(apart_from=near)
        while far in (PERSONS[2], PERSONS[3], PERSONS[5]) or not pronoun_of(far):
            far = self.person(apart_from=near)
        one, other = (near, far) if far == PERSONS[1] or self.chance(0.5) else (far, near)
        back = {"bases": _BACK, "kinds": ("action",)}  # The one who is named second has to be a pronoun then.
        any_of = {"bases": _THANKS, "kinds": ("action",)}
        favors = {"bases": _FAVORS, "kinds": ("action",)}
        verb = self.verb(subject=one, **(back if other is far and not swap else any_of))
        favor = verb
        while favor.english == verb.english:
            favor = self.verb(subject=other, **(back if one is far and swap else favors))
        if "invite" in favor.english:
            favor = self.verb(subject=other, bases=("help",))
        main = self.toward(self.doing(one, ("will",), verb=verb, brief=brief), other)
        inner = self.toward(self.doing(other, ("present",), verb=favor, timed=False, brief=True), one)
        # Whoever is named second is a pronoun.
        if swap:
            main = self.toward(replace(main, subject=pronoun_of(one) or one), pronoun_of(other) or other)
        else:
            inner = self.toward(replace(inner, subject=pronoun_of(other) or other), pronoun_of(one) or one)
        return replace(main, company=None), replace(inner, company=None)

    def coordination(self, conjunctions: Sequence[tuple[str, str] | None] = ()) -> list[Part]:
        """Draw main clauses that go well together: with "and" of one kind, with "but" in contrast."""
        if conjunctions:
            return self.three_main_clauses()
        conjunction, draw = self.rng.choice((AND, BUT)), self.rng.random()
        if conjunction == BUT and draw < 0.15:
            clauses = self.two_predicates()
        elif conjunction == AND:
            clauses = self.alike()
        else:
            clauses = self.contrast()
        clauses = [clauses[0] if clauses[0].front else self.fronted(clauses[0]), *clauses[1:]]
        return [Part(clauses[0], "second"), Part(clauses[1], "second", conjunction)]

    def two_predicates(self) -> list[Clause]:
        """Draw what only one of two persons, animals or things of a kind is."""
        kind = self.rng.choice((("person",), ("home", "garden", "park"), ("animal",), ("garment",)))
        while True:
            subjects = [
                self.phrase((noun.english,), definite=True, plain=True, single=True)
                for noun in self.rng.sample(self.words.nouns_of(kind), 2)
            ]
            one, two = (
                replace(self.predicate(subject, tense="present"), negated=False) for subject in subjects
            )
            assert one.predicate and two.predicate
            if not _classes(subjects[1]).isdisjoint(one.predicate.classes):
                return [one, replace(two, predicate=one.predicate, negated=True)]

    def alike(
        self, tenses: Sequence[str] = ("present", "present", "past", "perfect", "will"), theme=()
    ) -> list[Clause]:
        """Draw what two persons do, of one kind and at one time."""
        tense, theme = self.rng.choice(tenses), theme or self.rng.choice(_THEMES)
        tense = "past" if tense == "perfect" and (theme is _LEISURE or self.rich) else tense
        one = self.person()
        other = self.person(apart_from=one)
        verb = self.verb(subject=one, kinds=("action", "event"), bases=theme)
        others = self.duty(other, theme, verb)
        brief = not self.extra(0.3)
        clause = self.doing(one, (tense,), verb=verb, brief=brief)
        clause = replace(clause, front="time") if clause.time else clause  # It is that of both.
        second = self.doing(other, (tense,), verb=others, brief=brief, timed=False)
        return [replace(clause, cause=None, often=None), replace(second, cause=None, often=None)]

    def contrast(self) -> list[Clause]:
        """Draw a wish and a duty, the same done and not done, or the same done with other things."""
        draw, brief = self.rng.random(), not self.extra(0.3)
        if draw < 0.35:  # He would like to swim, but he has to cook.
            one, other = self.couple(True, False)
            verb = self.verb(subject=one, kinds=("action",), bases=_LEISURE)
            wish = self.doing(one, ("want to", "would like to"), verb=verb, brief=brief)
            duty = self.duty(other, _DUTIES, verb)
            return [wish, self.doing(other, ("have to", "should"), verb=duty, timed=False)]
        tense = self.rng.choice(("present", "present", "past", "perfect", "will", "like"))
        one = self.person()
        other = self.person(apart_from=one)
        if draw < 0.65:  # The man dances, but the woman does not dance.
            verb = self.verb(("none",), one, ("action",), _ALONE)
            clause = self.doing(one, (tense,), verb=verb, brief=brief)
            clause = replace(clause, manner=None, company=None, cause=None)
            return [
                clause,
                self.doing(other, (clause.tense,), verb=verb, brief=True, timed=False, negated=True),
            ]
        verb = self.verb(("acc",), one, ("action",), _KINDS_OF)  # He reads a book, but she reads a letter.
        first = self.doing(one, (tense,), verb=verb, brief=brief)
        second = self.doing(other, (first.tense,), verb=verb, brief=True, timed=False)
        nouns = [getattr(clause.object, "noun", None) for clause in (first, second)]
        if None in nouns or _classes(other).isdisjoint(verb.subjects):
            return self.contrast()
        assert isinstance(first.object, Phrase) and isinstance(second.object, Phrase)
        alike = (
            first.object.definite == second.object.definite and first.object.plural == second.object.plural
        )
        if not of_a_kind(first.object, second.object) or not alike:
            return self.contrast()
        second = replace(second, object=second.object._replace(adjective=None, owner=None))
        return [replace(first, company=None, manner=None, often=None), replace(second, often=None)]

    def three_main_clauses(self) -> list[Part]:
        """Draw two that work and one that rests, or two that rest and one that has to work."""
        work = self.chance(0.5)
        first, second = self.alike(("present",), _CHORES if work else _LEISURE)
        one = self.person(apart_from=second.subject)
        while one in (first.subject, second.subject) or getattr(one, "noun", one) == getattr(
            first.subject, "noun", 0
        ):
            one = self.person(apart_from=second.subject)
        taken = {clause.verb.english for clause in (first, second) if clause.verb}
        verb = self.verb(subject=one, kinds=("action",), bases=_LEISURE if work else _DUTIES)
        while verb.english in taken:
            verb = self.verb(subject=one, kinds=("action",), bases=_LEISURE if work else _DUTIES)
        third = self.doing(one, ("present", "want to") if work else ("have to",), verb=verb, timed=False)
        return [Part(first, "second"), Part(second, "second", AND), Part(third, "second", BUT)]

    def three_clauses(self) -> list[Part]:
        """Draw three main clauses, or two and a subordinate one that says something about the second."""
        if self.chance(0.25):
            return self.three_main_clauses()
        conjunction = self.rng.choice((BECAUSE, BECAUSE, ALTHOUGH, IF, WHILE, BEFORE, AS_SOON_AS))
        brief = not self.extra(0.3)
        joint = AND
        if conjunction == BECAUSE:
            draw = self.rng.random()
            second, third = self.because(False, draw, past=False)
            second = replace(second, cause=None)
            if draw < 0.3:  # The boy is tired and the girl is sad because ...
                said = second.predicate.english if second.predicate else ""
                moods = ("sad", "angry") if said == "happy" else ("happy",)
                joint = BUT
                one = _calm(self.person(apart_from=second.subject))
                first = replace(self.predicate(one, tense="present", moods=moods), negated=False)
            elif draw < 0.5:  # She is tired, but she cannot sleep because ...
                one, other = self.couple(True, False)
                first = replace(self.predicate(one, tense="present", moods=("tired", "sick")), negated=False)
                verb = self.verb(subject=other, bases=("sleep", "fall asleep"))
                second = replace(
                    self.doing(other, ("present",), verb=verb, negated=True, timed=False, brief=True),
                    tense="can",
                )
                joint = BUT
            elif draw < 0.85:  # They dance, but she does not dance because ...
                verb = self.verb(("none",), None, ("action",), _ALONE[:-2])
                one = self.person(apart_from=second.subject)
                first = self.doing(one, ("present",), verb=verb, brief=True, timed=False)
                second = self.doing(
                    second.subject, ("present", "can"), verb=verb, negated=True, brief=True, timed=False
                )
                if third.verb and third.verb.english == verb.english:
                    return self.three_clauses()
                joint = BUT
            else:  # He has to work, but she goes to the lake because she wants to swim.
                one = self.person(apart_from=second.subject)
                verb = self.duty(one, _DUTIES, third.verb)
                first = self.doing(one, ("have to",), verb=verb, brief=brief, timed=False)
                joint = BUT
        elif conjunction == IF:  # He wants to swim, but he should not swim if he is sick.
            one, other = self.couple(True, False)
            verb = self.verb(("none",), one, ("action",), _ALONE[:-2])
            first = self.doing(one, ("want to", "would like to"), verb=verb, brief=brief, timed=False)
            first = replace(first, cause=None)
            second = self.doing(other, ("should", "will"), verb=verb, negated=True, brief=True, timed=False)
            third = self.predicate(other, tense="present", moods=("tired", "sick"))
            joint = BUT
        else:
            if conjunction == ALTHOUGH:
                second, third = self.although(False, past=False)
            else:
                second, third = self.condition(conjunction, False)
            theme = next(
                (t for t in (_CHORES, _LEISURE) if second.verb and second.verb.english[0] in t), _CHORES
            )
            one = self.person(apart_from=second.subject)
            verb = self.duty(one, theme, second.verb)
            if third.verb and verb.english == third.verb.english:
                return self.three_clauses()
            timed = second.time is None and conjunction != AS_SOON_AS
            first = self.doing(one, (second.tense,), verb=verb, brief=brief, timed=timed)
        if not _apart(first.subject, third.subject):
            return self.three_clauses()
        if joint == AND and second.time and first.verb:  # "Tomorrow" is said of both, so it comes first.
            first, second = replace(first, time=second.time, front="time"), replace(second, time=None)
        return [Part(first, "second"), Part(second, "second", joint), Part(third, "final", conjunction)]

    def sentence(self) -> tuple[list[Part], bool]:
        """Draw a sentence of one clause or two, a rich one of two, and whether it is a question."""
        draw = self.rng.uniform(0.72, 1) if self.rich else self.rng.random()
        if draw < 0.48:
            return [Part(self.statement(), "second")], False
        if draw < 0.6:
            return [Part(self.yes_no_question(), "first")], True
        if draw < 0.72:
            clause = self.wh_question()
            return [Part(clause, "second" if german_lead(clause) else "first")], True
        return self.subordination() if draw < 0.91 else self.coordination(), False

    def draft(self, *, three: bool = False) -> Draft:
        """Draw a sentence without rendering it, of three clauses if wanted."""
        parts, question = (self.three_clauses(), False) if three else self.sentence()
        while _repeats(parts) or is_odd(parts, question):
            parts, question = (self.three_clauses(), False) if three else self.sentence()
        clauses, bonds = [], set()
        for part in parts:
            for clause, rule in clauses_of(part.clause, _order_rule(part, question)):
                clauses.append(rules_of(clause, rule))
                bonds.update(bonds_of(clause))
        if len(parts) > 1:
            clauses[0] |= {"coordination" if parts[-1].conjunction in (AND, BUT) else "subordination"}
        return Draft(parts, question, tuple(clauses), frozenset(bonds))


def _repeats(parts: Iterable[Part]) -> bool:
    """Return whether a verb, an adjective or a noun comes twice in a sentence, as in no good style."""
    said: list[Noun | str] = []
    phrases: list[Phrase] = []  # An infinitive has the very subject of its clause.
    before: Clause | None = None
    for part in parts:
        for clause, _ in clauses_of(part.clause, ""):
            same = part.conjunction == BUT and before is not None  # "He swims, but she does not swim."
            if clause.verb and not (same and before and clause.verb == before.verb):
                said += [clause.verb.english[0]]
            said += [word.english for word in (clause.manner, clause.time) if word]
            said += [clause.cause.german] if clause.cause else []
            if clause.predicate and not (same and before and clause.predicate == before.predicate):
                said += [clause.predicate.english]
            for phrase, _ in phrases_of(clause):
                while isinstance(phrase, Phrase) and not any(phrase is other for other in phrases):
                    phrases.append(phrase)
                    said.append(phrase.noun)
                    said += [phrase.adjective.english] if phrase.adjective else []
                    phrase = phrase.owner
        before = part.clause
    return len(said) > len(set(said))


def _order_rule(part: Part, question: bool) -> str:
    if question:
        return "wh-question" if part.order == "second" else "yes-no question"
    return {"second": "verb-second", "first": "verb-first main clause", "final": "verb-final"}[part.order]
