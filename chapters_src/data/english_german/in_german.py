"""The German of a clause: cases, endings, and the order of the words."""

from collections.abc import Iterable

from chapters_src.data.english_german.clauses import (
    Clause,
    Gap,
    Person,
    Phrase,
    Prepositional,
    object_case,
    takes_kein,
)
from chapters_src.data.english_german.lexicon import Adverb, Noun

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
DETERMINERS = {  # English: German stem.
    "the": "d", "this": "dies", "a": "ein", "no": "kein", "my": "mein", "your": "dein", "his": "sein",
    "her": "ihr", "our": "unser", "their": "ihr",
}  # fmt: skip
RELATIVE = _THE | {"dat": _THE["dat"] | {"p": "denen"}}
_CONTRACTIONS = {
    "in dem": "im", "in das": "ins", "an dem": "am", "an das": "ans", "von dem": "vom", "zu dem": "zum",
    "zu der": "zur",
}  # fmt: skip
_NUMBERS = ("ich", "du", "er", "wir")
MODALS = {  # English, as a key: German ich, du, er, wir.
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
    """Put a noun phrase into a German case, without its relative clause.

    The case is "nom", "acc", "dat" or "gen", the last not for pronouns. A `negated` phrase has kein instead
    of ein or nothing.
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
    return DETERMINERS[determiner] + ("" if bare else _STRONG[case][gender])


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
    if clause.tense in MODALS:
        return MODALS[clause.tense][row], f"{verb.prefix}{verb.infinitive}" if verb else "sein"
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


def _german_adverbials(clause: Clause, names: Iterable[str]) -> list[str]:
    """Render some adverbials, except the one that comes first in the clause."""
    parts = [getattr(clause, name) for name in names if name != clause.front]
    return [_german_adverbial(part) for part in parts if part]


def _german_adverbial(part: Adverb | Prepositional) -> str:
    return part.german if isinstance(part, Adverb) else _german_prepositional(part)


def german(clause: Clause, order: str) -> str:
    """Render a clause in German, with its commas, without a capital letter or a period.

    The order says where the verb stands: "second", "first", "final", or "zu" for the infinitive.
    """
    finite, end = _german_verb(clause)
    middle = _german_middle(clause)
    lead, subject = german_lead(clause), _german_subject(clause)
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
    return " ".join(word.strip() for word in words if word.strip()) + german_tail(clause)


def german_lead(clause: Clause) -> str:
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


def german_tail(clause: Clause) -> str:
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
