"""What goes with what, by the tables of `sense.csv`. A sentence that they forbid is drawn again.

A row has a word and what goes with it: under "moods of subjects", what somebody does who is hungry. A row
without a word is a list.
"""

from collections.abc import Iterable, Iterator, Sequence

from chapters_src.data.english_german.clauses import (
    Clause,
    Gap,
    Nominal,
    Part,
    Person,
    Phrase,
    clauses_of,
    phrases_of,
)
from chapters_src.data.english_german.lexicon import table_rows

TABLES: dict[str, dict[str, tuple[str, ...]]] = {}
for _row in table_rows("sense"):
    TABLES.setdefault(_row["table"], {})[_row["word"]] = tuple(filter(None, _row["with"].split(", ")))
LISTS = {name: table[""] for name, table in TABLES.items() if "" in table}
TRAITS = tuple(TABLES["proofs"])  # "The woman who has helped us is nice."
_ROYALS = ("prince", "queen")  # They do only what is in the list "royal", and only that is done to them.
_PASSERS_BY = ("guest", "customer", "tourist")  # They do nothing that is in the list "done at home".
_POSSESSIVES = {"I": "my", "you": "your", "he": "his", "she": "her", "we": "our", "they": "their"}


def could_be(pronoun: Nominal | None, phrase: Phrase) -> bool:
    """Return whether a pronoun of the third person could stand for a phrase."""
    word = pronoun.english[0] if isinstance(pronoun, Person) else ""
    if word == "they" or phrase.plural:
        return word == "they" and phrase.plural
    if word not in ("he", "she"):
        return False
    noun = phrase.noun
    if noun.gender == "n":
        return noun.english == "child" or (noun.english == "girl") == (word == "she")
    return (noun.gender == "m") == (word == "he")


def of_a_kind(one: Phrase, other: Phrase) -> bool:
    """Return whether two things are of one kind: a book and a letter, an apple and an egg."""
    common = (one.noun.classes & other.noun.classes).difference(LISTS["generic classes"])
    return bool(common) and one.noun != other.noun


def fits_relative(main: Clause, phrase: Phrase, relative: Clause, *, subject: bool) -> bool:
    """Return whether the relative clause of a phrase, subject or not, has to do with the main clause."""
    did, does = relative.base, main.base
    person = "person" in phrase.noun.classes
    by_whom = main.subject if isinstance(main.subject, Phrase) else None
    if (
        not did
        or "kin" in phrase.noun.classes
        or phrase.noun.english in (*_ROYALS, "colleague")
        or (by_whom and "person" not in by_whom.noun.classes and not subject)
        or main.tense == "past"
        or main.tense == relative.tense == "perfect"
        or did == does
        or main.often
        or main.negated
    ):
        return False
    said = main.predicate.english if main.predicate else ""
    if isinstance(relative.subject, Gap):  # "The man who has bought the car lives in the village."
        fits = does in LISTS["does"] or did in TABLES["proofs"].get(said, ())
        return person and did in LISTS["who did"] and (fits if subject else does in LISTS["acquainted"])
    who = relative.subject
    if isinstance(who, Phrase) and who.determiner not in ("the", "my", "your", "our"):
        return False
    table = TABLES["of persons" if person else "of things"]  # What has been done, and what is done now.
    if not subject:
        return does in table.get(did, ())
    if person:
        return did in table and (does in LISTS["does"] or said in LISTS["known traits"])
    return did in table and (does == "belong to" or bool(main.predicate and not main.predicate.lasts))


def is_odd(parts: Sequence[Part], question: bool) -> bool:
    """Return whether the tables forbid a sentence."""
    clauses = [clause for part in parts for clause, _ in clauses_of(part.clause, "")]
    although = any(part.conjunction and part.conjunction[0] == "although" for part in parts)
    return (
        (although and any(clause.cause for clause in clauses))  # "Despite the heat, although they are tired."
        or any(_odd_clause(clause, question) for clause in clauses)
        or _piled(clauses, len(parts))
        or _misread(clauses)
        or any(_odd_relative(clause) for clause in clauses)
        or (len(parts) > 1 and _odd_together([part.clause for part in parts]))
    )


def name_of(nominal: object) -> str:
    """Return the English noun of a phrase, or nothing."""
    return getattr(getattr(nominal, "noun", None), "english", "")


def _phrases(clause: Clause) -> Iterator[Phrase]:
    for phrase, _ in phrases_of(clause):
        while isinstance(phrase, Phrase):
            yield phrase
            phrase = phrase.owner


def _piled(clauses: Sequence[Clause], parts: int) -> bool:
    """Return whether adjectives or manners pile up."""
    seen: list[Phrase] = []  # An infinitive has the very subject of its clause.
    for clause in clauses:
        phrases = [*_phrases(clause)]
        described = [phrase for phrase in phrases if phrase.adjective]
        what = clause.object
        if len(described) > 1 or any(p.owner and (p.adjective or parts > 1) for p in phrases):
            return True
        if isinstance(what, Phrase) and what.adjective and what.determiner not in ("the", "a", "", "this"):
            return True  # "He has seen his small car."
        seen += [phrase for phrase in described if not any(phrase is other for other in seen)]
    persons = sum("person" in phrase.noun.classes for phrase in seen)
    things = len(seen) - persons
    manners = sum(clause.manner is not None for clause in clauses)
    return persons > 1 or things > (1 if parts == 1 else 2) or manners > 1 or len(seen) > 2


def _misread(clauses: Sequence[Clause]) -> bool:
    """Return whether a pronoun seems to mean somebody, or some animal, that it does not mean in German."""
    phrases = [phrase for clause in clauses for phrase in _phrases(clause)]
    said = {phrase.determiner for phrase in phrases} & {"his", "her"}
    for phrase in phrases:
        other = "her" if phrase.noun.gender == "m" else "his"
        single = phrase.noun.english in LISTS["either sex"] and not phrase.plural
        if single and phrase.determiner not in said and other in said:
            return True  # "This artist shops and her mother cooks" would be eine Künstlerin.
    animals = {phrase.noun.gender for phrase in phrases if "animal" in phrase.noun.classes}
    pronouns = {clause.subject.english[0] for clause in clauses if isinstance(clause.subject, Person)}
    same = ("he" in pronouns and "m" in animals) or ("she" in pronouns and "f" in animals)
    return len(clauses) > 1 and same


def _odd_relative(clause: Clause) -> bool:
    return any(
        isinstance(phrase, Phrase)
        and phrase.relative is not None
        and not fits_relative(clause, phrase, phrase.relative, subject=phrase is clause.subject)
        for phrase in (clause.subject, clause.object)
    )


# Clauses that hinder each other -----------------------------------------------------------------------------


def _odd_together(clauses: Sequence[Clause]) -> bool:
    return any(map(_odd_among_others, clauses)) or _odd_duties(clauses) or _odd_pronouns(clauses)


def _odd_among_others(clause: Clause) -> bool:
    """Return whether a clause has a habit, company or a date that only stands alone."""
    verb, time, manner = clause.base, clause.time, clause.manner and clause.manner.english
    quietly = manner == "quietly" and verb in ("sing", "read", "work")
    return bool(
        (time and clause.tense in ("present", "like"))
        or (clause.company and clause.company.english == "without")
        or (time and time.more == "soon")
        or (manner and manner != "alone" and not quietly)
        or (time and time.english not in LISTS["days"] and not (verb and time.more))
        or (
            verb == "prepare"
            and isinstance(clause.subject, Person)
            and name_of(clause.object) in TABLES["prepare"]
        )
    )


def _odd_duties(clauses: Sequence[Clause]) -> bool:
    """Return whether people get up in the evening, a queen shops, or somebody has to write a novel."""
    evening = any(clause.time and clause.time.english == "this evening" for clause in clauses)
    royal = any(name_of(clause.subject) in _ROYALS for clause in clauses)
    for clause in clauses:
        verb = clause.base
        if evening and verb in ("get up", "wake up"):
            return True
        if royal and isinstance(clause.subject, Person) and verb and verb not in LISTS["royal"]:
            return True
        if verb == "write" and clause.tense in ("have to", "should") and name_of(clause.object) != "letter":
            return True
    return False


def _odd_pronouns(clauses: Sequence[Clause]) -> bool:
    """Return whether a pronoun could stand for two people of a sentence, or its places for one."""
    subjects = [clause.subject for clause in clauses]
    friends = [clause.company.phrase if clause.company else None for clause in clauses]
    for number, (clause, friend) in enumerate(zip(clauses, friends, strict=True)):
        subject, before = clause.subject, clauses[:number]
        others = [*subjects[:number], *subjects[number + 1 :]]
        told = [clause.object, clause.recipient, clause.complement and clause.complement.phrase]
        if (
            _shares(friend, others)
            # "Their uncles swim while he cooks with them."
            or any(could_be(friend, x) for x in others if isinstance(x, Phrase))
            or (clause.place and any(x.place for x in before if _one(x.subject, subject)))
            # "He cooks and we sing while he plays."
            or (number == 2 and subject != subjects[1] and _returns(subject, clauses[0]))
            # "I watched TV with her colleague and he sang."
            or any(could_be(subject, x) for x in friends[:number] if isinstance(x, Phrase))
            or (
                len(clauses) == 3
                and number
                and subject != subjects[0]
                and any(_shares(x, subjects[:1]) for x in told)
            )
        ):
            return True
    owners = {phrase.determiner for clause in clauses for phrase in _phrases(clause)}
    return len(owners & {"his", "her", "their"}) > 1 or any(
        could_be(subjects[0], other) for other in subjects[1:] if isinstance(other, Phrase)
    )


def _returns(subject: Nominal, clause: Clause) -> bool:
    """Return whether the subject of a third clause is, or could be, that of the first one."""
    first = clause.subject
    if not isinstance(subject, Person):
        return False
    if isinstance(first, Phrase):
        return could_be(subject, first)
    return subject == first and (subject.english[0] not in ("I", "you", "we") or clause.tense == "present")


def _one(one: Nominal, other: Nominal) -> bool:
    """Return whether two subjects may be one person."""
    for pronoun, phrase in ((one, other), (other, one)):
        if isinstance(pronoun, Person) and isinstance(phrase, Phrase):
            return could_be(pronoun, phrase)
    return one == other


def _shares(one: object, others: Iterable[object]) -> bool:
    """Return whether a pronoun means one of the others, or some of them: me and we."""
    words = {other.english[0] for other in others if isinstance(other, Person)}
    if isinstance(one, Person) and one.english[0] in ("I", "we"):
        return bool(words & {"I", "we"})
    return isinstance(one, Person) and one.english[0] in words


# Single clauses ---------------------------------------------------------------------------------------------


def _odd_clause(clause: Clause, question: bool) -> bool:
    verb = clause.base
    return (
        _odd_adjectives(clause, verb)
        or _odd_time(clause, verb)
        or _odd_question(clause, verb, question)
        or _odd_place(clause, verb)
        or _odd_persons(clause, verb)
        or _odd_object(clause, verb)
        or (clause.tense == "be allowed to" and verb not in ("", *LISTS["allowed"]))
    )


def _odd_adjectives(clause: Clause, verb: str) -> bool:
    """Return whether adjectives have nothing to do with what is done, or stand where none is worth saying."""
    if isinstance(clause.subject, Phrase) and clause.subject.adjective:
        word, classes = clause.subject.adjective, clause.subject.noun.classes
        moody = LISTS["animals in a mood"] if "animal" in classes else ()
        moody = moody or TABLES["moods of subjects"].get(word.english, ())
        shown = TABLES["traits of subjects"].get(word.english)
        living = {"person", "animal"} & classes
        if clause.predicate or word.lasts == "while" or (word.lasts == "mood" and verb not in moody):
            return True
        if shown is not None and living and verb not in shown:
            return True
    place = clause.place.phrase if clause.place else None
    if isinstance(place, Phrase) and place.adjective:
        beautiful = place.adjective.english in LISTS["adjectives of places"]
        described = beautiful and place.noun.english in LISTS["described places"]
        if not (described and verb in LISTS["done there"]):
            return True
    rest = [clause.object, clause.recipient]
    rest += [part.phrase for part in (clause.complement, clause.company) if part]
    return any(isinstance(phrase, Phrase) and _odd_object_adjective(clause, phrase, verb) for phrase in rest)


def _odd_object_adjective(clause: Clause, phrase: Phrase, verb: str) -> bool:
    if not phrase.adjective:
        return False
    word, lasts, classes = phrase.adjective.english, phrase.adjective.lasts, phrase.noun.classes
    if word in ("expensive", "cheap") and classes & {"food", "drink"} and "own" not in classes:
        return True
    if clause.negated:
        return True  # Nobody says that he did not bring an old ticket.
    if lasts == "mood" and {"person", "animal"} & classes:
        return verb not in TABLES["moods of objects"].get(word, ())
    if word == "new" and verb == "repair":
        return True
    if lasts == "while":
        return verb not in TABLES["passing states"].get(word, ())
    if "person" in classes:
        known = word in ("young", "old") or verb in TABLES["traits of objects"].get(word, ())
        return verb == "hate" or not known
    if "place" in classes and verb in ("go", "drive", "run", "travel"):
        beautiful = word in LISTS["adjectives of places"]
        return not beautiful or phrase.noun.english not in LISTS["described places"]
    if word in LISTS["unwanted"] and verb in LISTS["wanting"]:
        return True
    worth = TABLES["adjectives of objects"].get(word)
    return verb in LISTS["no adjective"] if worth is None else verb not in worth


def _odd_time(clause: Clause, verb: str) -> bool:
    """Return whether a time goes neither with the verb nor with what else is said."""
    time, more = (clause.time.english, clause.time.more) if clause.time else ("", "")
    often = clause.often.english if clause.often else ""
    what = getattr(clause.object, "noun", None)
    brief = what is not None and what.classes & {"food", "drink", "letter"}
    short = time in LISTS["short times"]
    return bool(
        (clause.cause and (time or clause.manner or clause.place))
        or (time and verb in LISTS["undated"] and not short)
        or (time and clause.negated and not short and time not in ("last week", "next week"))
        or (often in ("rarely", "never") and verb in ("sleep", "wake up", "fall asleep"))
        or (more == "long" and (brief or clause.tense == "can"))
        or (time and (verb == "fight" or (verb == "build" and more != "long")))
        or (time and clause.tense not in ("past", "present") and verb in ("get up", "wake up", "fall asleep"))
        # "He dances slowly every day."
        or (time and clause.manner and clause.manner.english != "alone")
        or (often in ("already", "just") and verb not in LISTS[often])
        or (often and (clause.manner or clause.place or clause.company))
    )


def _odd_question(clause: Clause, verb: str, question: bool) -> bool:
    """Return whether nobody asks this."""
    if not clause.asked:
        return question and clause.negated and clause.verb is not None
    word, present = clause.asked[0], clause.tense in ("present", "like")
    if clause.manner or clause.company or clause.cause or (word != "why" and clause.negated):
        return True
    if word == "when":
        regular = verb in ("begin", "arrive", "come back") or (clause.verb and clause.verb.habit)
        return verb not in LISTS["asked when"] or (present and (verb == "help" or not regular))
    return word == "where" and verb in LISTS["not where"]


def _odd_place(clause: Clause, verb: str) -> bool:
    """Return whether a thing lies, stands or is put where it should not."""
    where = name_of(clause.complement.phrase) if clause.complement else ""
    if not (clause.verb and clause.verb.frame in ("put", "loc") and clause.complement):
        return verb in ("drive", "travel", "run") and where == "church"
    put, at = clause.verb.frame == "put", clause.complement.english
    what = clause.object if put else clause.subject
    if not isinstance(what, Phrase) or not where:
        return False
    name, classes = what.noun.english, what.noun.classes
    if verb == "hang":
        return name in ("clock", "mirror") and where != "wall"
    if {"rug", "container"} & classes:
        return at != "next to" and (put or at not in ("in front of", "behind"))
    if name in LISTS["cutlery"] or "upright" in classes:
        beside = not put and name in ("lamp", "bottle", "computer") and at == "next to"
        stands = where == "table" or (where == "chair" and name not in LISTS["cutlery"])
        return not beside and not (at == "on" and stands)
    return "flat" in classes and at != "on" and (put or at != "under")


def _odd_persons(clause: Clause, verb: str) -> bool:
    """Return whether a prince shops, or somebody of theirs is only "the aunt"."""
    if name_of(clause.subject) in _PASSERS_BY and verb in LISTS["done at home"]:
        return True
    if clause.inner and clause.negated and verb == "know":
        return True  # "You do not know that ..."
    for phrase in _phrases(clause):
        if phrase.noun.english in _ROYALS and (verb not in LISTS["royal"] or clause.infinitive):
            return True
        private = "kin" in phrase.noun.classes or phrase.noun.english in ("friend", "colleague")
        if private and phrase.determiner in ("the", "this", "") and not phrase.relative and not phrase.owner:
            return True
    nominals = [clause.object, clause.recipient]
    nominals += [part.phrase for part in (clause.complement, clause.company) if part]
    who = clause.subject.english[0] if isinstance(clause.subject, Person) else ""
    ours = {"I": "our", "we": "my"}.get(who)
    return any(isinstance(nominal, Phrase) and nominal.determiner == ours for nominal in nominals)


def _odd_object(clause: Clause, verb: str) -> bool:
    """Return whether something is done to a thing that nobody does to it, or that nobody has."""
    subject, company = clause.subject, clause.company
    who = subject.english[0] if isinstance(subject, Person) else ""
    if company and company.phrase == subject:
        return True  # "They cook with them."
    if clause.inner and _shares(subject, [clause.inner[1].subject]):
        return True
    what, name = clause.object, name_of(clause.object)
    if verb == "prepare" and name_of(subject) not in ("", *TABLES["prepare"].get(name, [name_of(subject)])):
        return True
    if (verb == "cook" and name == "meat") or (verb == "read" and clause.time and clause.manner):
        return True
    if name == "dress" and verb in ("have", "need", "look for") and who in ("he", "we", "they"):
        return True
    if not isinstance(what, Phrase):
        return False
    classes, of_whom = what.noun.classes, what.determiner
    if clause.recipient:
        given = verb in ("give", "bring", "offer", "lend") and not what.plural and what.noun.has_plural
        if given and isinstance(clause.recipient, Phrase) and clause.recipient.plural:
            return True
        if {"food", "drink"} & classes and of_whom in _POSSESSIVES.values():
            return True
    if clause.negated and not what.definite and (clause.recipient or verb in LISTS["by chance"]):
        return True
    unwanted = verb in ("sell", "buy", "lend", "steal") or (verb in LISTS["of one's own"] and not of_whom)
    if unwanted and "ware" in classes and what.plural and name not in LISTS["small ware"]:
        return True
    favor = company is not None and company.english == "for"
    if favor and (of_whom not in ("the", "a", "", "this") or name == "dress"):
        return True
    if verb in ("sell", "buy", "pack") and of_whom in _POSSESSIVES.values():
        whose = _POSSESSIVES.get(who, "their" if subject.number == "wir" else "his")
        if of_whom != whose:
            return True
    several = what.plural and not clause.negated and name in ("phone", "piano", "bed")
    return verb == "have" and (what.definite or several)
