"""What goes with what: curated tables, and what they forbid. A sentence that they forbid is drawn again."""

from collections.abc import Iterator, Sequence

from chapters_src.data.english_german.clauses import Clause, Gap, Part, Person, Phrase, clauses_of, phrases_of

# A passing mood is said of somebody only where it has to do with what they do ...
_MOODS_OF_SUBJECTS = {
    "hungry": ("eat", "cook", "bake", "steal", "buy", "wait", "bite"),
    "tired": ("sleep", "fall asleep", "drink", "arrive", "come back", "wake up", "get up", "work", "sit"),
    "sick": ("sleep", "wait", "drink", "cry", "call"),
    "happy": ("laugh", "smile", "sing", "dance", "thank", "greet", "come back"),
    "sad": ("cry", "sing", "write", "think", "dream"),
    "angry": ("complain", "throw away", "cry", "run away", "reject", "fight"),
    "healthy": (),
}  # fmt: skip
_TRAITS_OF_SUBJECTS = {  # What shows that somebody is like this.
    "poor": ("need", "have", "sell", "work", "lose"),
    "rich": ("buy", "have", "sell", "travel", "build", "give"),
    "honest": ("say", "answer", "tell", "find", "bring"),
    "brave": ("help", "follow", "warn", "fight", "swim", "jump", "travel"),
    "famous": ("sing", "dance", "write", "draw", "visit", "arrive", "come", "live", "cook", "read"),
    "polite": ("greet", "thank", "reply to", "listen to", "answer", "wait", "ask"),
    "careful": ("carry", "wash", "open", "close", "feed", "repair"),
    "curious": ("ask", "look at", "follow", "open", "read", "listen to", "see", "hear", "steal", "chase"),
    "strange": ("live", "talk", "follow", "look at", "arrive", "wait", "laugh", "claim"),
    "strong": ("carry", "work", "build", "help", "fight"),
    "wild": ("run", "run away", "bite", "see", "chase"),
    "dangerous": ("bite", "chase", "see"),
    "clever": ("answer", "understand", "explain", "notice", "write", "find", "read", "know", "steal"),
    "friendly": ("help", "greet", "thank", "invite", "lend", "show", "bring", "give", "offer", "explain",
        "smile"),
    "nice": ("help", "greet", "thank", "invite", "lend", "show", "bring", "give", "offer", "explain",
        "visit"),
    "lazy": ("sleep", "watch TV", "wake up", "get up", "forget", "lose", "lie"),
}  # fmt: skip
_TRAITS_OF_OBJECTS = {  # What is done to people like these.
    "poor": ("help", "visit", "thank"),
    "rich": ("know", "meet", "invite", "visit"),
    "honest": ("trust", "thank", "know"),
    "brave": ("thank", "know", "help", "photograph"),
    "famous": ("meet", "see", "know", "invite", "photograph", "hear", "listen to", "visit"),
    "polite": ("thank", "know"),
    "careful": (),
    "curious": ("reply to", "warn"),
    "strange": ("see", "follow", "meet", "warn", "look at", "know"),
    "strong": ("see", "help"),
    "clever": ("know", "trust", "thank"),
    "friendly": ("thank", "invite", "meet", "know", "visit", "love", "help", "greet", "see"),
    "nice": ("thank", "invite", "meet", "know", "visit", "love", "help", "greet", "see"),
    "lazy": ("wait", "call", "warn", "help"),
    "good": ("know", "call", "meet", "thank", "visit", "trust", "look for"),
    "beautiful": ("see", "love", "photograph", "know"),
    "funny": ("see", "love", "know"),
}  # fmt: skip
_MOODS_OF_OBJECTS = {  # ... or with what is done to them.
    "hungry": ("help", "feed"),
    "tired": ("help", "fetch", "wait"),
    "sick": ("help", "visit", "call", "feed", "wash", "think"),
    "happy": ("see", "photograph", "greet"),
    "sad": ("help", "call", "visit", "speak", "listen to"),
    "angry": ("reply to", "warn", "speak", "listen to", "hear"),
    "healthy": (),
}  # fmt: skip
_PASSING = {  # States of things, and the verbs with which they are worth saying.
    "broken": ("repair", "throw away", "have", "find"),
    "dirty": ("wash", "tidy", "take off", "throw away", "have"),
    "clean": ("need", "put on", "bring", "have", "look for"),
    "cold": ("drink", "bring", "offer", "buy", "like"),
    "hot": ("drink", "bring", "offer"),
    "dark": ("wait", "sit", "sleep", "see"),
    "empty": ("throw away", "carry", "find", "see", "look for"),
}  # fmt: skip
_GOES_WITH = {  # What is worth saying of the object of a verb.
    "cheap": ("buy", "sell", "need", "have", "look for"),
    "expensive": ("buy", "sell", "have", "lose", "steal", "need", "put on", "throw away", "love"),
    "heavy": ("carry", "buy", "have", "pack"),
    "delicious": ("eat", "buy", "offer", "bring", "love", "see"),
    "fresh": ("eat", "buy", "sell", "bring", "offer", "wash"),
    "sweet": ("eat", "drink", "buy", "offer", "bring", "hate"),
    "good": ("read", "eat", "drink", "recommend", "have", "buy", "know", "love", "tell", "write down",
        "look for", "need", "sell", "offer", "lend"),
    "comfortable": ("buy", "sell", "need", "have", "look for", "put on", "sit", "see"),
    "important": ("read", "write", "send", "lose", "find", "look for", "answer", "explain", "bring",
        "write down"),
    "interesting": ("read", "tell", "love", "recommend", "visit", "explain", "have", "write down", "talk",
        "know", "lend", "send", "see", "show", "take part"),
    "boring": ("hate", "read", "know", "talk", "throw away"),
    "funny": ("tell", "read", "love", "know", "write", "recommend", "send"),
    "difficult": ("explain", "understand", "answer", "forget"),
    "simple": ("explain", "answer", "understand", "know", "write down"),
    "strange": ("tell", "read", "explain", "understand", "have", "find", "write"),
    "famous": ("visit", "see", "photograph", "read", "love", "recommend", "draw", "know", "show", "go",
        "drive"),
    "dangerous": ("reject", "see", "photograph", "have", "know", "explain", "fight"),
    "ugly": ("hate", "throw away", "sell", "have", "see", "tidy"),
    "beautiful": ("buy", "love", "draw", "photograph", "see", "show", "give", "visit", "read", "have",
        "bring", "hang", "go", "drive", "travel", "live", "know", "find", "write", "lose"),
    "warm": ("put on", "need", "buy", "look for", "have", "wash"),
    "long": ("read", "write", "hate", "send", "take part"),
    "modern": ("buy", "need", "have", "see", "build", "live", "go"),
    "quiet": ("look for", "go", "drive", "love", "live", "need", "know", "visit"),
    "wild": ("see", "hear", "photograph", "draw", "chase"),
    "strong": ("see", "photograph", "draw", "complain"),
    "honest": ("understand", "write down", "need", "wait"),
    "tall": ("see", "photograph", "draw", "visit", "build"),
    "clever": ("have", "explain", "reject", "understand", "love", "write down"),
    "curious": ("see", "photograph", "play", "love", "chase", "feed"),
    "lazy": ("have",),
    "brave": (),
    "rich": (),
}  # fmt: skip
_NO_ADJECTIVE = ("jump", "take part", "think", "dream", "complain", "close", "open", "turn on",
    "turn off", "hate",
    "understand", "explain", "answer", "reject", "steal", "lose", "sit")  # fmt: skip
_WHEN = (
    "cook", "wash", "tidy", "feed", "shop", "get up", "wake up", "work", "depart", "begin", "arrive", "call",
    "come back", "open", "close", "visit", "go", "drive", "travel", "watch TV", "fetch", "meet", "buy",
    "sell", "repair", "bake", "invite", "build", "read", "help", "prepare", "pack", "take part", "swim",
    "sleep", "send",
)  # fmt: skip
_SMALL_WARE = (
    "flower", "book", "letter", "shoe", "cup", "glass", "plate", "spoon", "fork", "knife", "picture", "shirt",
    "bottle", "chair", "dress", "newspaper", "novel", "map", "ticket",
)  # fmt: skip
_UNWANTED = ("boring", "ugly", "dangerous", "broken", "dirty", "empty", "strange", "sad", "difficult")
_WANTING = ("love", "recommend", "offer", "give", "bring", "send", "lend", "buy", "need", "look for", "show")
_PLACES = ("old", "new", "small", "big", "beautiful", "quiet")  # Where people go.
_THERE = (
    "play", "dance", "sing", "read", "sleep", "swim", "sit", "wait", "live", "meet",
)  # fmt: skip
_DESCRIBED = ("garden", "park", "city", "village", "beach", "lake", "hotel", "restaurant", "house", "forest")
REPORTED = (  # What is worth reporting.
    "buy", "sell", "visit", "meet", "call", "invite", "fetch", "help", "thank", "lose", "find", "steal",
    "love", "hate", "know", "need", "have", "understand", "repair", "build", "write", "reject", "come back",
    "arrive", "run away", "cook", "bake", "tidy", "prepare", "wash", "feed", "lend", "give", "send", "bring",
    "recommend", "live", "come", "work", "travel", "drive", "sing", "dance", "swim", "sleep", "take part",
    "wait", "belong to", "trust", "open", "close", "read", "forget", "wake up", "fall asleep", "answer",
    "depart", "begin", "turn off", "turn on", "shop", "play",
)  # fmt: skip
_ROYALS = ("prince", "queen")
_ROYAL = (  # What a prince and a queen do in these sentences, and what is done to them.
    "see", "hear", "greet", "visit", "thank", "invite", "trust", "love", "hate", "know", "travel", "come",
    "dance", "sing", "sleep", "laugh", "smile", "live", "meet", "photograph", "draw", "believe", "say",
    "think", "dream", "write", "read", "listen to", "arrive", "come back", "help", "warn", "decide", "hope",
    "promise", "wait", "give", "show", "tell", "belong to", "speak", "talk", "reply to", "understand",
)  # fmt: skip
_FREE = (  # What has to be allowed.
    "swim", "dance", "sing", "play", "watch TV", "read", "eat", "drink", "sleep", "open", "take part",
    "visit", "go", "drive", "feed", "photograph", "turn on", "bake", "invite", "travel", "throw away",
)  # fmt: skip
_ALREADY = (
    "eat", "buy", "sell", "cook", "bake", "wash", "tidy", "repair", "read", "write", "pack", "feed", "call",
    "invite", "thank", "arrive", "depart", "begin", "fall asleep", "wake up", "get up", "come back", "shop",
    "answer", "close", "open", "turn on", "turn off", "send", "prepare", "explain", "visit", "find", "fetch",
    "ask", "notice", "write down", "meet",
)  # fmt: skip
_JUST = (
    "buy", "sell", "arrive", "depart", "begin", "fall asleep", "wake up", "get up", "come back", "call",
    "open", "close", "turn on", "turn off", "find", "eat", "drink", "feed", "wash", "see", "meet", "leave",
    "steal", "bite", "run away", "notice", "ask", "say", "lose", "read", "repair", "tidy", "fetch", "greet",
)  # fmt: skip
_UNDATED = (  # Too small, or too vague, for a date.
    "put", "lay", "hang", "look at", "hear", "see", "turn on", "turn off", "greet", "thank", "reply to",
    "listen to", "understand", "open", "close", "carry", "follow", "chase", "bite", "wait", "complain",
    "fight", "think", "dream", "laugh", "cry", "smile", "sit", "jump", "forget", "lose", "find", "write down",
    "look for", "put on", "take off", "throw away", "feed", "pack", "tidy", "answer", "explain", "eat",
    "drink", "tune", "get up", "wake up", "fall asleep", "talk", "offer", "warn", "draw", "run", "play",
    "run away", "notice", "claim", "ask", "say", "plan", "try",
)  # fmt: skip
_SHORT_TIMES = (
    "yesterday", "today", "tomorrow", "this evening", "in the evening", "in the afternoon", "soon",
)  # fmt: skip
_DAYS = ("yesterday", "last Sunday", "today", "tomorrow", "this evening", "on Friday")  # Of two clauses.
_OF_EITHER_SEX = (
    "teacher", "student", "doctor", "nurse", "neighbor", "friend", "guest", "customer", "colleague", "boss",
    "farmer", "baker", "cook", "waiter", "artist", "musician", "tourist", "lawyer", "pilot", "writer",
)  # fmt: skip
_PASSERS_BY = ("guest", "customer", "tourist")
_AT_HOME = ("cook", "bake", "tidy", "wash", "feed", "repair", "build", "prepare", "pack")  # Not for them.
_PREPARE = {  # Who prepares what.
    "lesson": ("teacher", "student", "father", "mother", "aunt", "uncle"),
    "concert": ("musician", "artist", "teacher", "student", "aunt", "uncle", "colleague", "boss", "friend"),
}
_CUTLERY = ("knife", "spoon", "fork", "plate", "cup", "glass", "bottle", "vase")

# What somebody has done to it, and what is done with it now.
OF_THINGS = {
    "buy": ("read", "eat", "drink", "look for", "find", "wash", "repair", "carry", "throw away", "see",
        "show", "bring", "cook", "tune", "lose", "feed"),
    "write": ("read", "find", "look for", "love", "understand", "send", "know"),
    "find": ("feed", "show", "bring", "photograph", "read", "lose"),
    "build": ("see", "photograph", "draw", "love", "buy", "show", "sell"),
    "repair": ("need", "sell", "buy", "lend", "turn on", "lose"),
    "read": ("understand", "recommend", "love", "look for", "lend", "know"),
    "steal": ("find", "look for", "have", "sell", "throw away", "see"),
    "lose": ("find", "look for", "see"),
    "forget": ("find", "bring", "see", "fetch"),
    "write down": ("tell", "understand", "forget", "explain", "know", "answer"),
    "cook": ("eat", "bring", "offer", "steal", "love"),
    "bake": ("eat", "bring", "offer", "steal", "sell", "throw away"),
    "feed": ("love", "photograph", "see", "draw"),
    "photograph": ("visit",),
    "draw": ("show",),
}  # fmt: skip
OF_PERSONS = {  # "The man whom she has invited", and what is done to him.
    "know": ("invite", "visit", "meet", "help", "greet", "see", "call", "thank", "warn"),
    "love": ("invite", "visit", "meet", "call", "see"),
    "trust": ("call", "help", "visit"),
    "invite": ("call", "know", "greet", "fetch", "see"),
    "help": ("thank", "know", "visit", "invite", "see"),
    "visit": ("know", "thank", "help", "love"),
    "meet": ("know", "call", "invite", "love", "trust"),
    "call": ("know", "visit", "trust"),
    "thank": ("know", "help"),
}  # fmt: skip
WHO_DID = (  # "The man who has bought the car ..."
    "buy", "sell", "build", "repair", "help", "visit", "call", "invite", "find", "steal", "write", "bring",
    "lend", "give", "live", "come", "take part", "wait", "love", "speak", "send",
)  # fmt: skip
DOES = (  # "... lives in the village."
    "live", "come", "know", "work", "call", "visit", "help", "arrive", "come back", "trust", "invite",
    "travel", "love",
)  # fmt: skip
_PROOFS = {  # "The woman who has helped us is nice."
    "friendly": ("help", "invite", "visit", "call", "wait", "lend", "bring", "speak"),
    "nice": ("help", "invite", "visit", "call", "wait", "lend", "bring", "speak", "give"),
    "polite": ("call", "wait", "speak", "invite"),
    "honest": ("find", "help", "bring"),
    "brave": ("help",),
    "clever": ("repair", "write", "find", "help", "build"),
    "rich": ("buy", "build", "sell", "come"),
    "famous": ("write", "build", "come"),
    "young": ("buy", "sell", "build", "repair", "help", "visit", "call", "find", "write", "bring", "come",
        "live"),
    "old": ("buy", "sell", "build", "repair", "help", "visit", "call", "find", "write", "bring", "come",
        "live"),
    "strange": ("call", "live", "come", "wait"),
}  # fmt: skip
_KNOWN = (
    "friendly", "nice", "old", "young", "rich", "famous", "strange",
)  # fmt: skip
TRAITS = tuple(_PROOFS)
DESTINATIONS = {  # Why somebody goes there.
    "station": ("fetch", "meet"),
    "airport": ("fetch",),
    "hospital": ("visit", "help"),
    "city": ("shop", "meet", "visit"),
    "village": ("visit", "help"),
    "market": ("shop", "buy"),
    "restaurant": ("eat", "meet"),
    "library": ("read", "work", "write"),
    "park": ("play", "dance"),
    "beach": ("swim",),
    "lake": ("swim",),
    "school": ("fetch",),
    "kitchen": ("cook", "bake"),
    "office": ("work",),
    "garden": ("work", "play"),
    "church": ("sing",),
    "room": ("sleep", "read"),
    "hotel": ("sleep", "fetch"),
    "museum": ("draw", "work"),
}  # fmt: skip
_GENERIC = {  # Classes that do not make two things of one kind.
    "thing", "own", "ware", "gift", "flat", "mass", "single", "place", "upright", "person", "adult", "home",
    "trip", "view", "worn", "pair", "landmark", "building",
}  # fmt: skip


def could_be(pronoun: Person, phrase: Phrase) -> bool:
    """Return whether a pronoun of the third person could stand for a phrase."""
    word = pronoun.english[0]
    if word not in ("he", "she", "they"):
        return False
    if phrase.plural or word == "they":
        return phrase.plural and word == "they"
    noun = phrase.noun
    if noun.gender == "n":
        return noun.english == "child" or (noun.english == "girl") == (word == "she")
    return (noun.gender == "m") == (word == "he")


def of_a_kind(one: Phrase, other: Phrase) -> bool:
    """Return whether two things are of one kind: a book and a letter, an apple and an egg."""
    common = (one.noun.classes & other.noun.classes) - _GENERIC
    return bool(common) and one.noun != other.noun


def fits_relative(main: Clause, phrase: Phrase, relative: Clause, *, subject: bool) -> bool:
    """Return whether a relative clause has to do with its main clause.

    Args:
        main: the clause that the phrase stands in.
        phrase: its noun phrase with the relative clause.
        relative: the relative clause.
        subject: whether the phrase is the subject of the main clause.

    Returns:
        True or False.
    """
    if not relative.verb or "kin" in phrase.noun.classes or phrase.noun.english in (*_ROYALS, "colleague"):
        return False
    if isinstance(main.subject, Phrase) and "person" not in main.subject.noun.classes and not subject:
        return False
    did, does = relative.verb.english[0], main.verb.english[0] if main.verb else ""
    if (
        main.tense == "past"
        or main.tense == relative.tense == "perfect"
        or did == does
        or main.often
        or main.negated
    ):
        return False
    said = main.predicate.english if main.predicate else ""
    if isinstance(relative.subject, Gap):
        person = "person" in phrase.noun.classes
        acquainted = does in (
            "know",
            "help",
            "see",
            "thank",
            "call",
            "visit",
            "invite",
            "meet",
            "trust",
            "greet",
        )
        return (
            person
            and did in WHO_DID
            and ((does in DOES or did in _PROOFS.get(said, ())) if subject else acquainted)
        )
    if isinstance(relative.subject, Phrase) and relative.subject.determiner not in (
        "the",
        "my",
        "your",
        "our",
    ):
        return False
    if "person" in phrase.noun.classes:
        return (
            (did in OF_PERSONS and (does in DOES or said in _KNOWN))
            if subject
            else does in OF_PERSONS.get(did, ())
        )
    if subject:
        lasting = main.predicate and main.predicate.lasts != "mood" and not main.predicate.lasts
        return did in OF_THINGS and bool(lasting or does == "belong to")
    return does in OF_THINGS.get(did, ())


def is_odd(parts: Sequence[Part], question: bool) -> bool:
    """Return whether the tables forbid a sentence."""
    clauses = [clause for part in parts for clause, _ in clauses_of(part.clause, "")]
    if any(part.conjunction and part.conjunction[0] == "although" for part in parts) and any(
        clause.cause for clause in clauses
    ):
        return True  # "Despite the heat, although they are tired."
    return (
        any(_odd_clause(clause, len(parts) > 1, question) for clause in clauses)
        or _piled(clauses, len(parts))
        or _misread(clauses)
        or any(_odd_relative(clause) for clause in clauses)
        or (len(parts) > 1 and _odd_together([part.clause for part in parts]))
    )


def _name(nominal: object) -> str:
    """Return the English noun of a phrase, or nothing."""
    return getattr(getattr(nominal, "noun", None), "english", "")


def _piled(clauses: Sequence[Clause], parts: int) -> bool:
    """Return whether adjectives or manners pile up."""
    persons = things = manners = 0
    seen: list[Phrase] = []  # An infinitive has the very subject of its clause.
    for clause in clauses:
        manners += bool(clause.manner)
        for phrase in _phrases(clause):
            if phrase.adjective and not any(phrase is other for other in seen):
                seen.append(phrase)
                person = "person" in phrase.noun.classes
                persons, things = persons + person, things + (not person)
        if sum(bool(phrase.adjective) for phrase in _phrases(clause)) > 1:
            return True
        if any(phrase.owner and (phrase.adjective or parts > 1) for phrase in _phrases(clause)):
            return True
        what = clause.object
        if isinstance(what, Phrase) and what.adjective and what.determiner not in ("the", "a", "", "this"):
            return True  # "He has seen his small car."
    return persons > 1 or things > (1 if parts == 1 else 2) or manners > 1 or persons + things > 2


def _misread(clauses: Sequence[Clause]) -> bool:
    """Return whether a pronoun seems to mean somebody, or some animal, that it does not mean in German."""
    phrases = [phrase for clause in clauses for phrase in _phrases(clause)]
    said = {phrase.determiner for phrase in phrases} & {"his", "her"}
    for phrase in phrases:
        other = "her" if phrase.noun.gender == "m" else "his"
        single = phrase.noun.english in _OF_EITHER_SEX and not phrase.plural
        if single and phrase.determiner not in said and other in said:
            return True  # "This artist shops and her mother cooks" would be eine Künstlerin.
    animals = {phrase.noun.gender for phrase in phrases if "animal" in phrase.noun.classes}
    pronouns = {clause.subject.english[0] for clause in clauses if isinstance(clause.subject, Person)}
    return len(clauses) > 1 and (
        ("he" in pronouns and "m" in animals) or ("she" in pronouns and "f" in animals)
    )


def _phrases(clause: Clause) -> Iterator[Phrase]:
    for phrase, _ in phrases_of(clause):
        while isinstance(phrase, Phrase):
            yield phrase
            phrase = phrase.owner


def _odd_relative(clause: Clause) -> bool:
    return any(
        isinstance(phrase, Phrase)
        and phrase.relative is not None
        and not fits_relative(clause, phrase, phrase.relative, subject=phrase is clause.subject)
        for phrase in (clause.subject, clause.object)
    )


def _odd_together(clauses: Sequence[Clause]) -> bool:
    """Return whether clauses hinder each other."""
    return any(map(_odd_among_others, clauses)) or _odd_duties(clauses) or _odd_pronouns(clauses)


def _odd_among_others(clause: Clause) -> bool:
    """Return whether a clause has a habit, company or a date that only stands alone."""
    verb = clause.verb.english[0] if clause.verb else ""
    if clause.time and clause.tense in ("present", "like"):
        return True
    if (clause.company and clause.company.english == "without") or (
        clause.time and clause.time.more == "soon"
    ):
        return True
    still = verb in ("sing", "read", "work")
    if (
        clause.manner
        and clause.manner.english != "alone"
        and not (still and clause.manner.english == "quietly")
    ):
        return True
    if clause.time and clause.time.english not in _DAYS and not (verb and clause.time.more):
        return True
    return verb == "prepare" and isinstance(clause.subject, Person) and _name(clause.object) in _PREPARE


def _odd_duties(clauses: Sequence[Clause]) -> bool:
    """Return whether people get up in the evening, a queen shops, or somebody has to write a novel."""
    verbs = [clause.verb.english[0] if clause.verb else "" for clause in clauses]
    evening = any(clause.time and clause.time.english == "this evening" for clause in clauses)
    if evening and ("get up" in verbs or "wake up" in verbs):
        return True
    royal = any(_name(clause.subject) in _ROYALS for clause in clauses)
    for clause, verb in zip(clauses, verbs, strict=True):
        if royal and isinstance(clause.subject, Person) and verb and verb not in _ROYAL:
            return True
        if verb == "write" and clause.tense in ("have to", "should") and _name(clause.object) != "letter":
            return True
    return False


def _odd_pronouns(clauses: Sequence[Clause]) -> bool:
    """Return whether a pronoun could stand for two people of a sentence, or its places for one."""
    first, *others = [clause.subject for clause in clauses]
    for number, clause in enumerate(clauses):
        subjects = [*others] if not number else [first, *others[: number - 1], *others[number:]]
        friend = clause.company.phrase if clause.company else None
        if _shares(friend, subjects):
            return True
        if isinstance(friend, Person) and any(
            isinstance(x, Phrase) and could_be(friend, x) for x in subjects
        ):
            return True  # "Their uncles swim while he cooks with them."
        if clause.place and any(x.place for x in clauses[:number] if _one(x.subject, clause.subject)):
            return True
        if number == 2 and clause.subject != clauses[1].subject and _returns(clause.subject, clauses[0]):
            return True  # "He cooks and we sing while he plays."
        told = [clause.object, clause.recipient, clause.complement and clause.complement.phrase]
        others_said = [*_company(clauses[:number])] if number else []
        if any(could_be(clause.subject, x) for x in others_said if isinstance(clause.subject, Person)):
            return True  # "I watched TV with her colleague and he sang."
        again = len(clauses) == 3 and number and clause.subject != first
        if again and any(_shares(x, [first]) for x in told if x):
            return True
    for other in others:
        if isinstance(first, Person) and isinstance(other, Phrase) and could_be(first, other):
            return True
    owners = {phrase.determiner for clause in clauses for phrase in _phrases(clause)}
    return len(owners & {"his", "her", "their"}) > 1


def _company(clauses: Sequence[Clause]) -> Iterator[Phrase]:
    """Yield with whom and for whom something is done."""
    for clause in clauses:
        if clause.company and isinstance(clause.company.phrase, Phrase):
            yield clause.company.phrase


def _returns(subject: object, clause: Clause) -> bool:
    """Return whether the subject of a third clause is, or could be, that of the first one."""
    first = clause.subject
    if not isinstance(subject, Person):
        return False
    if isinstance(first, Phrase):
        return could_be(subject, first)
    return subject == first and (subject.english[0] not in ("I", "you", "we") or clause.tense == "present")


def _one(one: object, other: object) -> bool:
    """Return whether two subjects may be one person."""
    if isinstance(one, Person) and isinstance(other, Phrase):
        return could_be(one, other)
    if isinstance(other, Person) and isinstance(one, Phrase):
        return could_be(other, one)
    return one == other


def _shares(one: object, others: Sequence[object]) -> bool:
    """Return whether a pronoun means one of the others, or some of them: me and we."""
    families = (("I", "we"), ("you",), ("he",), ("she",), ("they",))
    words = {other.english[0] for other in others if isinstance(other, Person)}
    return isinstance(one, Person) and any(one.english[0] in f and words & {*f} for f in families)


def _odd_clause(clause: Clause, several: bool, question: bool) -> bool:
    verb = clause.verb.english[0] if clause.verb else ""
    return (
        _odd_adjectives(clause, verb)
        or _odd_time(clause, verb, question)
        or _odd_place(clause, verb)
        or _odd_persons(clause, verb)
        or _odd_object(clause, verb)
        or (clause.tense == "be allowed to" and bool(verb) and verb not in _FREE)
    )


def _odd_adjectives(clause: Clause, verb: str) -> bool:
    if isinstance(clause.subject, Phrase) and clause.subject.adjective:
        adjective = clause.subject.adjective
        animal = "animal" in clause.subject.noun.classes and adjective.lasts == "mood"
        if (
            adjective.lasts == "mood"
            and verb not in _MOODS_OF_SUBJECTS.get(adjective.english, ())
            and not animal
        ):
            return True
        if animal and verb not in ("sleep", "eat", "bite", "fall asleep", "run away", "sit", "lie"):
            return True
        if adjective.lasts == "while":
            return True
        shown = _TRAITS_OF_SUBJECTS.get(adjective.english)
        if shown is not None and {"person", "animal"} & clause.subject.noun.classes and verb not in shown:
            return True
        if clause.predicate:
            return True
        if "person" not in clause.subject.noun.classes and adjective.english in ("healthy",):
            return True
    rest = [clause.object, clause.recipient]
    rest += [part.phrase for part in (clause.complement, clause.company) if part]
    place = clause.place.phrase if clause.place else None
    if isinstance(place, Phrase) and place.adjective:
        described = place.adjective.english in _PLACES and place.noun.english in _DESCRIBED and verb in _THERE
        if not described:
            return True
    return any(isinstance(phrase, Phrase) and _odd_object_adjective(clause, phrase, verb) for phrase in rest)


def _odd_object_adjective(clause: Clause, phrase: Phrase, verb: str) -> bool:
    if not phrase.adjective:
        return False
    word, classes = phrase.adjective.english, phrase.noun.classes
    if word in ("expensive", "cheap") and classes & {"food", "drink"} and not {"own"} & classes:
        return True
    if clause.negated:
        return True  # Nobody says that he did not bring an old ticket.
    if phrase.adjective.lasts == "mood" and {"person", "animal"} & classes:
        return verb not in _MOODS_OF_OBJECTS.get(word, ())
    if word == "new" and verb == "repair":
        return True
    if phrase.adjective.lasts == "while":
        return verb not in _PASSING.get(word, ())
    if "person" in classes:
        return verb == "hate" or (
            word not in ("young", "old") and verb not in _TRAITS_OF_OBJECTS.get(word, ())
        )
    if "place" in classes and verb in ("go", "drive", "run", "travel"):
        return word not in _PLACES or phrase.noun.english not in _DESCRIBED
    if word in _UNWANTED and verb in _WANTING:
        return True
    return verb not in _GOES_WITH[word] if word in _GOES_WITH else verb in _NO_ADJECTIVE


def _odd_time(clause: Clause, verb: str, question: bool) -> bool:
    time = clause.time.english if clause.time else ""
    often = clause.often.english if clause.often else ""
    if clause.cause and (time or clause.manner or clause.place):
        return True
    if time and verb in _UNDATED and time not in _SHORT_TIMES:
        return True
    if time and clause.negated and time not in (*_SHORT_TIMES, "last week", "next week"):
        return True
    what = getattr(clause.object, "noun", None)
    if often in ("rarely", "never") and verb in ("sleep", "wake up", "fall asleep"):
        return True
    if clause.time and clause.time.more == "long" and what and what.classes & {"food", "drink", "letter"}:
        return True
    if time and (verb == "fight" or (verb == "build" and clause.time and clause.time.more != "long")):
        return True
    if time and clause.tense not in ("past", "present") and verb in ("get up", "wake up", "fall asleep"):
        return True
    if clause.time and clause.time.more == "long" and clause.tense == "can":
        return True
    if time and clause.manner and clause.manner.english != "alone":
        return True  # "He dances slowly every day."
    if (often == "already" and verb not in _ALREADY) or (often == "just" and verb not in _JUST):
        return True
    if often and (clause.manner or clause.place or clause.company):
        return True
    if clause.asked and (
        clause.manner or clause.company or clause.cause or (clause.asked[0] != "why" and clause.negated)
    ):
        return True
    if (
        clause.asked
        and clause.asked[0] == "where"
        and verb in ("pack", "wash", "cook", "bake", "tidy", "write")
    ):
        return True
    if clause.asked and clause.asked[0] == "when":
        habit = clause.verb is not None and clause.verb.habit
        present = clause.tense in ("present", "like")
        return verb not in _WHEN or (
            present and (verb == "help" or not (habit or verb in ("begin", "arrive", "come back")))
        )
    return question and clause.negated and not clause.asked and clause.verb is not None


def _odd_place(clause: Clause, verb: str) -> bool:
    """Return whether a thing lies, stands or is put where it should not."""
    if not (clause.verb and clause.verb.frame in ("put", "loc") and clause.complement):
        return verb in ("drive", "travel", "run") and bool(
            clause.complement
            and getattr(clause.complement.phrase, "noun", None)
            and clause.complement.phrase.noun.english == "church"
        )
    put = clause.verb.frame == "put"
    what = clause.object if put else clause.subject
    where = getattr(clause.complement.phrase, "noun", None)
    if not isinstance(what, Phrase) or where is None:
        return False
    at, noun = clause.complement.english, what.noun
    if verb == "hang":
        return noun.english in ("clock", "mirror") and where.english != "wall"
    if {"rug", "container"} & noun.classes:
        return at not in (("next to",) if put else ("next to", "in front of", "behind"))
    if noun.english in _CUTLERY or "upright" in noun.classes:
        wanted = ("table",) if noun.english in _CUTLERY else ("table", "chair")
        beside = not put and noun.english in ("lamp", "bottle", "computer") and at == "next to"
        return not beside and (at != "on" or where.english not in wanted)
    if "flat" in noun.classes:
        return at != "on" and (put or at != "under")
    return False


def _odd_persons(clause: Clause, verb: str) -> bool:
    """Return whether a prince shops, or somebody of theirs is only "the aunt"."""
    if _name(clause.subject) in _PASSERS_BY and verb in _AT_HOME:
        return True
    if clause.inner and clause.negated and verb == "know":
        return True  # "You do not know that ..."
    for phrase in _phrases(clause):
        if phrase.noun.english in _ROYALS and (verb not in _ROYAL or clause.infinitive):
            return True
        private = "kin" in phrase.noun.classes or phrase.noun.english in ("friend", "colleague")
        if private and phrase.determiner in ("the", "this", "") and not phrase.relative and not phrase.owner:
            return True
    nominals = [clause.object, clause.recipient]
    nominals += [part.phrase for part in (clause.complement, clause.company) if part]
    for nominal in nominals:
        if isinstance(clause.subject, Person) and isinstance(nominal, Phrase):
            mine = {"I": "our", "we": "my"}.get(clause.subject.english[0])
            if mine and nominal.determiner == mine:
                return True
    return False


def _odd_object(clause: Clause, verb: str) -> bool:
    what = clause.object
    if clause.recipient and isinstance(what, Phrase):
        if clause.negated and not what.definite:
            return True
        several = clause.recipient.number == "wir" and not isinstance(clause.recipient, Person)
        if (
            several
            and verb in ("give", "bring", "offer", "lend")
            and not what.plural
            and what.noun.has_plural
        ):
            return True
        if {"food", "drink"} & what.noun.classes and what.determiner in (
            "my",
            "your",
            "his",
            "her",
            "our",
            "their",
        ):
            return True
    if (
        clause.negated
        and verb in ("lose", "find", "forget", "steal")
        and isinstance(what, Phrase)
        and not what.definite
    ):
        return True
    ware = isinstance(what, Phrase) and "ware" in what.noun.classes
    if ware and verb in ("buy", "need", "have", "look for", "find", "give", "send", "lend", "bring"):
        assert isinstance(what, Phrase)
        if what.plural and not what.determiner and what.noun.english not in _SMALL_WARE:
            return True
    who = _name(clause.subject)
    if verb == "prepare" and who and who not in _PREPARE.get(_name(what), (who,)):
        return True
    if verb == "cook" and _name(what) == "meat":
        return True
    if verb == "read" and clause.time and clause.manner:
        return True
    favor = clause.company is not None and clause.company.english == "for"
    if (
        favor
        and isinstance(what, Phrase)
        and (what.determiner not in ("the", "a", "", "this") or _name(what) == "dress")
    ):
        return True
    mine = {"I": "my", "you": "your", "he": "his", "she": "her", "we": "our", "they": "their"}
    if clause.company and clause.company.phrase == clause.subject:
        return True  # "They cook with them."
    if (
        clause.inner
        and isinstance(clause.subject, Person)
        and _shares(clause.subject, [clause.inner[1].subject])
    ):
        return True
    if verb in ("sell", "buy", "pack") and isinstance(what, Phrase) and what.determiner in mine.values():
        if isinstance(clause.subject, Person):
            if mine[clause.subject.english[0]] != what.determiner:
                return True
        elif what.determiner != ("their" if clause.subject.number == "wir" else "his"):
            return True
    if ware and verb in ("sell", "buy", "lend", "steal") and isinstance(what, Phrase):
        several = what.plural and what.noun.english not in _SMALL_WARE
        if several:
            return True
    dress = _name(what) == "dress"
    if (
        verb in ("have", "need", "look for")
        and dress
        and getattr(clause.subject, "english", [""])[0] in ("he", "we", "they")
    ):
        return True
    if verb == "have" and isinstance(what, Phrase):
        return what.definite or (
            what.plural and not clause.negated and what.noun.english in ("phone", "piano", "bed")
        )
    return False
