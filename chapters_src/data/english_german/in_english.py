"""The English of a clause: auxiliary verbs and the order of the words."""

import re

from chapters_src.data.english_german.clauses import Clause, Gap, Person, Phrase, Prepositional
from chapters_src.data.english_german.lexicon import Adverb, add_s


def english_phrase(phrase: Phrase | Person, *, subject: bool = False) -> str:
    """Render a noun phrase in English, as a subject (I) or not (me), without its relative clause."""
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
    if clause.verb is None and tense not in ("have to", "want to"):
        was = "was" if clause.subject.number in ("ich", "er") else "were"
        return was if tense == "past" else be, "", ""
    if tense == "perfect":
        return ("has" if third else "have"), "", participle
    if tense == "past":
        return "", past, base
    if tense in ("like", "have to", "want to"):
        base = f"{'like to' if tense == 'like' else tense} {base}"
    return "", add_s(base) if third else base, base


def english(clause: Clause, order: str) -> str:
    """Render a clause in English, without a capital letter or a period.

    The order is "statement", "question", or "to" for the infinitive.
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
