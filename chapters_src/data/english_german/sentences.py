"""Draws sentences: single clauses, and clauses that make sense together; renders them in both languages."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from chapters_src.data.english_german.clauses import (
    PERSONS,
    Clause,
    Nominal,
    Part,
    Person,
    Phrase,
    bonds_of,
    clauses_of,
    phrases_of,
    rules_of,
)
from chapters_src.data.english_german.drawing import (
    PLAIN_FRAMES,
    ClauseWriter,
    calm,
    classes_of,
    definite,
    pronoun_of,
    until,
)
from chapters_src.data.english_german.in_english import english
from chapters_src.data.english_german.in_german import german, german_lead, german_tail
from chapters_src.data.english_german.lexicon import Noun, Verb
from chapters_src.data.english_german.sense import LISTS, TABLES, is_odd, name_of, of_a_kind

AND, BUT = ("and", "und"), ("but", "aber")
BECAUSE, ALTHOUGH = ("because", "weil"), ("although", "obwohl")
IF, WHILE = ("if", "wenn"), ("while", "während")
BEFORE, AS_SOON_AS = ("before", "bevor"), ("as soon as", "sobald")
SUBORDINATE = (BECAUSE, ALTHOUGH, IF, WHILE, BEFORE, AS_SOON_AS)
_CHORES, _LEISURE, _DUTIES = LISTS["chores"], LISTS["leisure"], LISTS["duties"]
_ALONE = LISTS["alone"]  # They dance, but she does not dance.
_OUT = _ALONE[:4]  # The same without work and sleep.
_ACTION = ("action",)
_SUBJECTS = (("person",), ("home", "garden", "park"), ("animal",), ("garment",))  # Of which one is small.


def render(parts: Iterable[Part], *, question: bool = False) -> tuple[str, str]:
    """Render a sentence in both languages, with capital letter and period or question mark."""
    in_english = in_german = ""
    before: Part | None = None
    for part in parts:
        clause, order, conjunction = part
        if before:
            comma = before.order == "final" or conjunction == BUT
            in_english += ", " if comma else " "
            in_german += ", " if comma or conjunction != AND or german_tail(before.clause) else " "
        one, other = (f"{word} " for word in conjunction) if conjunction else ("", "")
        in_english += one + english(clause, "question" if question else "statement")
        in_german += other + german(clause, order)
        before = part
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


class Writer(ClauseWriter):
    """Draws sentences; its arguments are those of `ClauseWriter`."""

    def draft(self, *, three: bool = False) -> Draft:
        """Draw a sentence without rendering it, of three clauses if wanted."""
        parts, question = until(
            lambda found: not _repeats(found[0]) and not is_odd(*found),
            lambda: (self.three_clauses(), False) if three else self.sentence(),
        )
        clauses, bonds = [], set()
        for part in parts:
            for clause, rule in clauses_of(part.clause, _order_rule(part, question)):
                clauses.append(rules_of(clause, rule))
                bonds.update(bonds_of(clause))
        if len(parts) > 1:
            clauses[0] |= {"coordination" if parts[-1].conjunction in (AND, BUT) else "subordination"}
        return Draft(parts, question, tuple(clauses), frozenset(bonds))

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

    def subordination(self) -> list[Part]:
        """Draw a main clause and a subordinate one."""
        conjunction, swap = self.rng.choice(SUBORDINATE), self.chance(0.4)
        if conjunction == BECAUSE:
            main, inner = (replace(clause, cause=None) for clause in self.because(swap, self.rng.random()))
        elif conjunction == ALTHOUGH:
            main, inner = self.although(swap)
        else:
            main, inner = self.condition(conjunction, swap)
        parts = [Part(main, "first" if swap else "second"), Part(inner, "final", conjunction)]
        return parts[::-1] if swap else parts

    def coordination(self) -> list[Part]:
        """Draw main clauses that go well together: with "and" of one kind, with "but" in contrast."""
        conjunction, draw = self.rng.choice((AND, BUT)), self.rng.random()
        if conjunction == AND:
            one, two = self.alike()
        else:
            one, two = self.two_predicates() if draw < 0.15 else self.contrast()
        one = one if one.front else self.fronted(one)
        return [Part(one, "second"), Part(two, "second", conjunction)]

    # What two clauses have in common ------------------------------------------------------------------------

    def couple(self, same: bool, swap: bool) -> tuple[Nominal, Nominal]:
        """Draw the subjects of a main clause and of a subordinate one, which comes first if `swap`."""
        one = self.person() if not same or self.chance(0.5) else self.person(named=True)
        if not same:
            two: Nominal = self.person(apart_from=one)
        else:
            one = calm(one if pronoun_of(one) else self.person(named=True))
            two = pronoun_of(one) or one
        return (two, one) if swap else (one, two)

    def doing(
        self,
        subject: Nominal,
        verb: Verb,
        *tenses: str,
        negated: bool = False,
        brief: bool | None = None,
        timed: bool = True,
    ) -> Clause:
        """Draw what somebody does, in one of these tenses."""
        drawn = not self.rich and not self.chance(0.3)
        brief = drawn if brief is None else brief
        clause = self.clause(verb, subject, tenses=tenses, negated=negated, brief=brief, timed=timed)
        frequent = clause.often and clause.often.kind == "often"
        return replace(clause, often=None) if frequent else clause

    def action(self, subject: Nominal, bases: tuple[str, ...]) -> Verb:
        """Draw what somebody does on purpose."""
        return self.verb(subject=subject, kinds=_ACTION, bases=bases)

    def another(
        self,
        than: Verb | None,
        subject: Nominal,
        bases: tuple[str, ...],
        kinds: tuple[str, ...] = ("action", "event"),
    ) -> Verb:
        """Draw another verb than one that is said already."""
        return until(
            lambda found: not than or found.english != than.english,
            lambda: self.verb(subject=subject, kinds=kinds, bases=bases),
        )

    def awake(self, draw: Callable[[], Verb]) -> Verb:
        """Draw what nobody does who sleeps."""
        return until(lambda verb: verb.base != "sleep", draw)

    def unwell(self, subject: Nominal, past: bool = False) -> Clause:
        """Draw that somebody is tired or sick."""
        tense = "past" if past else "present"
        return self.predicate(subject, tense=tense, timed=False, moods=("tired", "sick"))

    def toward(self, clause: Clause, person: Nominal) -> Clause:
        """Let what is done be done to a person: the recipient, or else the object."""
        if clause.recipient:
            return replace(clause, recipient=person)
        patient = clause.verb and "person" in clause.verb.objects and clause.verb.frame in ("acc", "dat")
        return replace(clause, object=person) if patient else clause

    # A main clause and a subordinate one --------------------------------------------------------------------

    def because(self, swap: bool, draw: float, past: bool | None = None) -> tuple[Clause, Clause]:
        """Draw a clause and its reason, of a kind that `draw` says."""
        brief = not self.extra(0.4)
        past = self.chance(0.3) if past is None else past
        if draw < 0.3:  # Somebody is happy because of what somebody did.
            return self.because_of_others(swap, past)
        if draw < 0.5:  # Somebody cannot sleep because others always sing.
            one, other = self.couple(False, swap)
            verb = self.verb(subject=one, bases=LISTS["needs quiet"])
            main = self.doing(one, verb, "present", negated=True, timed=False)
            verb = self.verb(("none",), other, bases=LISTS["disturbs"])
            reason = self.doing(other, verb, "present", brief=True, timed=False)
            always = next(word for word in self.words.adverbs_of("often") if word.english == "always")
            return replace(main, tense="can", place=None, company=None), replace(reason, often=always)
        one, other = self.couple(True, swap)
        if draw >= 0.85:
            return self.errand(one, other, brief)
        # ... does not come because they are tired or have to work.
        verb, tired = self.verb(("none",), one, _ACTION, _ALONE), draw < 0.7
        if self.chance(0.5):
            verb = self.action(one, LISTS["meetings"])
        if tired and verb.base == "sleep":
            verb = self.awake(lambda: self.verb(("none",), one, _ACTION, _ALONE))
        tenses = ("past",) if past and tired else ("can", "will")
        main = replace(self.doing(one, verb, *tenses, negated=True, brief=brief), cause=None)
        if tired:
            return main, self.unwell(other, past)
        return main, self.doing(other, self.another(verb, other, _DUTIES), "have to", timed=False)

    def errand(self, one: Nominal, other: Nominal, brief: bool) -> tuple[Clause, Clause]:
        """Draw a trip, and what somebody wants to do at its end."""
        could_do = {verb.base for verb in self.words.verbs_of(PLAIN_FRAMES, classes_of(other))}
        while True:
            verb = self.verb(("to",), one, kinds=_ACTION)
            main = self.doing(one, verb, "present", "will", "want to", "have to", brief=brief)
            place = main.complement.phrase if main.complement else None
            tasks = TABLES["destinations"].get(name_of(place), ())
            if not could_do.isdisjoint(tasks):
                break
        main = replace(main, cause=None, company=None, manner=None)
        wanted = ("want to",) if main.tense in ("have to", "want to") else ("have to", "want to")
        if main.tense == "want to" or {*tasks} & {"swim", "eat", "sleep", "sing", "play", "draw"}:
            wanted = ("want to",)
            main = replace(main, tense="will") if main.tense in ("want to", "have to") else main
        task = self.another(verb, other, tasks)
        return main, self.doing(other, task, *wanted, timed=False, brief=True)

    def because_of_others(self, swap: bool, past: bool) -> tuple[Clause, Clause]:
        """Draw a mood, and what somebody did who caused it."""
        one, other = self.couple(False, swap)
        one = calm(one)
        main = self.predicate(one, tense="past" if past else "present", moods=("happy", "sad", "angry"))
        mood = main.predicate.english if main.predicate else ""
        named = one if isinstance(one, Person) or swap else pronoun_of(one)
        usable = isinstance(named, Person)
        negated = usable and mood != "happy" and self.chance(0.35)  # "... because he has not called her."
        bases = LISTS["wanted"] if negated else TABLES["reasons"][mood]
        if not usable:
            bases = tuple(base for base in bases if base not in LISTS["wanted"])
        verb = self.verb(subject=other, bases=bases)
        tense = "past" if past else "perfect"
        reason = self.doing(other, verb, tense, timed=False, negated=negated, brief=True)
        if isinstance(reason.object, Phrase):
            plural = reason.object.plural and "home" not in reason.object.noun.classes
            reason = replace(reason, object=definite(reason.object)._replace(adjective=None, plural=plural))
        return main, self.toward(reason, named) if isinstance(named, Person) else reason

    def although(self, swap: bool, past: bool | None = None) -> tuple[Clause, Clause]:
        """Draw what somebody does, and what speaks against it."""
        one, other = self.couple(True, swap)
        past = self.chance(0.3) if past is None else past
        if tired := past or self.chance(0.5):
            verb = self.awake(lambda: self.action(one, LISTS["lasting"]))
        else:
            verb = self.action(one, _LEISURE)
        tenses = ("past",) if past else ("present", "will", "want to")
        main = self.doing(one, verb, *tenses, brief=not self.extra(0.4))
        main = replace(main, time=None) if main.tense == "present" else main
        if tired:
            return main, self.unwell(other, past)
        return main, self.doing(other, self.another(verb, other, _DUTIES), "have to", "should", timed=False)

    def condition(self, conjunction: tuple[str, str], swap: bool) -> tuple[Clause, Clause]:
        """Draw two clauses about what will be, for if, while, before and as soon as."""
        if conjunction == IF:
            return self.if_so(swap)
        one, other = self.couple(conjunction != WHILE, swap)
        brief = not self.extra(0.4)
        if conjunction == WHILE:
            verb = self.action(one, self.rng.choice((_CHORES, _LEISURE)))
            main = self.doing(one, verb, "present", "will", brief=brief)
            later = self.another(verb, other, LISTS["lasting"])
            return main, self.doing(other, later, "present", timed=False)
        tense = self.rng.choice(("will", "should", "have to"))
        bases = LISTS["afterwards" if conjunction == BEFORE else "starts"]
        later = self.verb(subject=other, bases=bases, kinds=("action", "event"))
        main = self.doing(one, self.another(later, one, _CHORES, _ACTION), tense, brief=brief)
        main = replace(main, time=None) if conjunction == AS_SOON_AS else main
        return main, replace(self.doing(other, later, "present", timed=False), manner=None, cause=None)

    def if_so(self, swap: bool) -> tuple[Clause, Clause]:
        """Draw a bargain, a permission, or what somebody does who is hungry, tired or sick."""
        brief, draw = not self.extra(0.4), self.rng.random()
        if draw < 0.3:
            one, other = self.couple(True, swap)
            hungry = self.chance(0.3)
            verb = self.action(one, ("eat", "cook", "bake"))
            if not hungry:
                verb = self.awake(lambda: self.verb(("none",), one, _ACTION, _ALONE))
            tenses = ("can", "should", "will") if hungry else ("should", "will")
            main = self.doing(one, verb, *tenses, negated=not hungry, brief=brief, timed=False)
            main = replace(main, cause=None, place=None)
            if hungry:
                return main, self.predicate(other, tense="present", moods=("hungry",))
            return main, self.unwell(other)
        if draw < 0.6:  # You are allowed to play if you tidy your room.
            one, other = until(
                lambda both: (
                    all(isinstance(x, Person) for x in both) or any("young" in classes_of(x) for x in both)
                ),
                lambda: self.couple(True, swap),
            )
            verb = self.action(one, LISTS["permitted"])
            main = self.doing(one, verb, "be allowed to", brief=brief)
            chore = self.another(verb, other, LISTS["in exchange for permission"])
            return replace(main, cause=None), self.doing(other, chore, "present", timed=False)
        return self.bargain(swap, brief)

    def bargain(self, swap: bool, brief: bool) -> tuple[Clause, Clause]:
        """Draw what somebody will do for somebody who does them a favor: one of the two is I, we or you."""
        near = self.rng.choice((PERSONS[0], PERSONS[4]))
        far = until(
            lambda found: found not in (PERSONS[2], PERSONS[3], PERSONS[5]) and pronoun_of(found),
            lambda: self.person(apart_from=near),
        )
        one, other = (near, far) if far == PERSONS[1] or self.chance(0.5) else (far, near)
        # The one who is named second has to be a pronoun when something is done to them.
        returned = LISTS["done to somebody" if other is far and not swap else "favors returned"]
        favors = LISTS["done to somebody" if one is far and swap else "favors"]
        verb = self.action(one, returned)
        favor = self.another(verb, other, favors, _ACTION)
        if favor.base == "invite":
            favor = self.verb(subject=other, bases=("help",))
        main = self.toward(self.doing(one, verb, "will", brief=brief), other)
        inner = self.toward(self.doing(other, favor, "present", timed=False, brief=True), one)
        # Whoever is named second is a pronoun.
        if swap:
            main = self.toward(replace(main, subject=pronoun_of(one) or one), pronoun_of(other) or other)
        else:
            inner = self.toward(replace(inner, subject=pronoun_of(other) or other), pronoun_of(one) or one)
        return replace(main, company=None), replace(inner, company=None)

    # Main clauses -------------------------------------------------------------------------------------------

    def two_predicates(self) -> tuple[Clause, Clause]:
        """Draw what only one of two persons, animals or things of a kind is."""
        nouns = self.words.nouns_of(self.rng.choice(_SUBJECTS))
        while True:
            one, two = (
                self.phrase((noun.english,), definite=True, plain=True, single=True)
                for noun in self.rng.sample(nouns, 2)
            )
            first, second = (self.predicate(subject, tense="present") for subject in (one, two))
            if first.predicate and not two.noun.classes.isdisjoint(first.predicate.classes):
                return replace(first, negated=False), replace(second, predicate=first.predicate, negated=True)

    def alike(
        self,
        tenses: Sequence[str] = ("present", "present", "past", "perfect", "will"),
        theme: tuple[str, ...] = (),
    ) -> tuple[Clause, Clause]:
        """Draw what two persons do, of one kind and at one time."""
        tense, theme = self.rng.choice(tenses), theme or self.rng.choice((_CHORES, _LEISURE))
        tense = "past" if tense == "perfect" and (theme == _LEISURE or self.rich) else tense
        one = self.person()
        other = self.person(apart_from=one)
        verb = self.verb(subject=one, kinds=("action", "event"), bases=theme)
        others = self.another(verb, other, theme)
        brief = not self.extra(0.3)
        first = self.doing(one, verb, tense, brief=brief)
        first = replace(first, front="time") if first.time else first  # It is that of both.
        second = self.doing(other, others, tense, brief=brief, timed=False)
        return replace(first, cause=None, often=None), replace(second, cause=None, often=None)

    def contrast(self) -> tuple[Clause, Clause]:
        """Draw a wish and a duty, the same done and not done, or the same done with other things."""
        draw, brief = self.rng.random(), not self.extra(0.3)
        if draw < 0.35:  # He would like to swim, but he has to cook.
            one, other = self.couple(True, False)
            verb = self.action(one, _LEISURE)
            wish = self.doing(one, verb, "want to", "would like to", brief=brief)
            duty = self.another(verb, other, _DUTIES)
            return wish, self.doing(other, duty, "have to", "should", timed=False)
        tense = self.rng.choice(("present", "present", "past", "perfect", "will", "like"))
        one = self.person()
        other = self.person(apart_from=one)
        if draw < 0.65:  # The man dances, but the woman does not dance.
            verb = self.verb(("none",), one, _ACTION, _ALONE)
            first = replace(self.doing(one, verb, tense, brief=brief), manner=None, company=None, cause=None)
            return first, self.doing(other, verb, first.tense, brief=True, timed=False, negated=True)
        verb = self.verb(("acc",), one, _ACTION, LISTS["different things"])
        first = self.doing(one, verb, tense, brief=brief)  # He reads a book, but she reads a letter.
        second = self.doing(other, verb, first.tense, brief=True, timed=False)
        this, that = first.object, second.object
        if not (
            isinstance(this, Phrase)
            and isinstance(that, Phrase)
            and of_a_kind(this, that)
            and (this.definite, this.plural) == (that.definite, that.plural)
            and not classes_of(other).isdisjoint(verb.subjects)
        ):
            return self.contrast()
        second = replace(second, object=that._replace(adjective=None, owner=None), often=None)
        return replace(first, company=None, manner=None, often=None), second

    # Three clauses ------------------------------------------------------------------------------------------

    def three_clauses(self) -> list[Part]:
        """Draw three main clauses, or two and a subordinate one that says something about the second."""
        while True:
            if self.chance(0.25):
                return self.three_main_clauses()
            conjunction = self.rng.choice((BECAUSE, BECAUSE, ALTHOUGH, IF, WHILE, BEFORE, AS_SOON_AS))
            brief = not self.extra(0.3)
            if conjunction == BECAUSE:
                found = self.three_with_a_reason(brief)
            elif conjunction == IF:
                found = self.three_with_a_condition(brief)
            else:
                found = self.three_at_a_time(conjunction, brief)
            if found and not _looks_like_one(found[0].subject, found[2].subject):
                break
        first, second, third = found
        joint = BUT if conjunction in (BECAUSE, IF) else AND
        if joint == AND and second.time and first.verb:  # "Tomorrow" is said of both, so it comes first.
            first, second = replace(first, time=second.time, front="time"), replace(second, time=None)
        return [Part(first, "second"), Part(second, "second", joint), Part(third, "final", conjunction)]

    def three_main_clauses(self) -> list[Part]:
        """Draw two that work and one that rests, or two that rest and one that has to work."""
        work = self.chance(0.5)
        first, second = self.alike(("present",), _CHORES if work else _LEISURE)
        one = until(
            lambda found: (
                found not in (first.subject, second.subject)
                and getattr(found, "noun", found) != getattr(first.subject, "noun", 0)
            ),
            lambda: self.person(apart_from=second.subject),
        )
        taken = {clause.verb.english for clause in (first, second) if clause.verb}
        verb = until(
            lambda found: found.english not in taken,
            lambda: self.action(one, _LEISURE if work else _DUTIES),
        )
        third = self.doing(one, verb, *(("present", "want to") if work else ("have to",)), timed=False)
        return [Part(first, "second"), Part(second, "second", AND), Part(third, "second", BUT)]

    def three_with_a_reason(self, brief: bool) -> tuple[Clause, Clause, Clause] | None:
        """Draw a contrast whose second side has a reason, or None if it repeats itself."""
        draw = self.rng.random()
        second, third = self.because(False, draw, past=False)
        second = replace(second, cause=None)
        if draw < 0.3:  # The boy is happy, but the girl is sad because ...
            happy = second.predicate and second.predicate.english == "happy"
            one = calm(self.person(apart_from=second.subject))
            moods = ("sad", "angry") if happy else ("happy",)
            return self.predicate(one, tense="present", moods=moods), second, third
        if draw < 0.5:  # She is tired, but she cannot sleep because ...
            one, other = self.couple(True, False)
            first = self.unwell(one)
            verb = self.verb(subject=other, bases=("sleep", "fall asleep"))
            second = self.doing(other, verb, "present", negated=True, timed=False, brief=True)
            return first, replace(second, tense="can"), third
        if draw < 0.85:  # They dance, but she does not dance because ...
            verb = self.verb(("none",), None, _ACTION, _OUT)
            one, other = self.person(apart_from=second.subject), second.subject
            first = self.doing(one, verb, "present", brief=True, timed=False)
            second = self.doing(other, verb, "present", "can", negated=True, brief=True, timed=False)
            return None if third.verb and third.verb.english == verb.english else (first, second, third)
        # He has to work, but she goes to the lake because she wants to swim.
        one = self.person(apart_from=second.subject)
        verb = self.another(third.verb, one, _DUTIES)
        return self.doing(one, verb, "have to", brief=brief, timed=False), second, third

    def three_with_a_condition(self, brief: bool) -> tuple[Clause, Clause, Clause]:
        """Draw a clause like "he wants to swim, but he should not swim if he is sick"."""
        one, other = self.couple(True, False)
        verb = self.verb(("none",), one, _ACTION, _OUT)
        first = self.doing(one, verb, "want to", "would like to", brief=brief, timed=False)
        second = self.doing(other, verb, "should", "will", negated=True, brief=True, timed=False)
        return replace(first, cause=None), second, self.unwell(other)

    def three_at_a_time(
        self, conjunction: tuple[str, str], brief: bool
    ) -> tuple[Clause, Clause, Clause] | None:
        """Draw two who do things of a kind, and what one of them does it before, while or although."""
        if conjunction == ALTHOUGH:
            second, third = self.although(False, past=False)
        else:
            second, third = self.condition(conjunction, False)
        one = self.person(apart_from=second.subject)
        verb = self.another(second.verb, one, _LEISURE if second.base in _LEISURE else _CHORES)
        if third.verb and verb.english == third.verb.english:
            return None
        timed = second.time is None and conjunction != AS_SOON_AS
        return self.doing(one, verb, second.tense, brief=brief, timed=timed), second, third


def _looks_like_one(one: Nominal, other: Nominal) -> bool:
    """Return whether a pronoun could be taken for a person whom another clause names."""
    pronoun, phrase = (one, other) if isinstance(one, Person) else (other, one)
    return isinstance(pronoun, Person) and isinstance(phrase, Phrase) and pronoun_of(phrase) == pronoun


def _repeats(parts: Iterable[Part]) -> bool:
    """Return whether a verb, an adjective or a noun comes twice in a sentence, as in no good style."""
    said: list[Noun | str] = []
    phrases: list[Phrase] = []  # An infinitive has the very subject of its clause.
    before: Clause | None = None
    for part in parts:
        excused = before if part.conjunction == BUT else None  # "He swims, but she does not swim."
        for clause, _ in clauses_of(part.clause, ""):
            if clause.verb and not (excused and clause.verb == excused.verb):
                said += [clause.base]
            if clause.predicate and not (excused and clause.predicate == excused.predicate):
                said += [clause.predicate.english]
            said += [word.english for word in (clause.manner, clause.time) if word]
            said += [clause.cause.german] if clause.cause else []
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
