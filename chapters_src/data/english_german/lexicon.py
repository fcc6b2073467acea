"""The words of the grammar: four tables, and rows that a reader adds to them."""

import csv
import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent
TABLES = {  # Columns; those after the bar may be left out.
    "nouns": "english;english_plural;german;genitive;plural;classes|;at;to",
    "adjectives": "english;german;stem;classes|;lasts",
    "verbs": "english;german;present;perfect;frame;subjects;objects|;where;how",
    "adverbs": "english;german;kind",
}
KINDS = ("action", "event", "sense", "state", "report")  # What a verb is, see `Verb`.
_FRAMES = ("none", "acc", "dat", "dat+acc", "to", "put", "loc", "zu", "that", "whether")
_TIMES = ("past", "past long", "present", "present long", "future", "future soon", "future long")
_ADVERBS = (*_TIMES, "often", "already", "manner")
_MARKS = {"kin", "own", "single", "pair", "only-the", "mass"}  # Classes that say how a noun is used.


class Noun(NamedTuple):
    """A row of nouns.csv. A noun without plural is uncountable."""

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

    @property
    def has_plural(self) -> bool:
        """Whether the plural is used: nobody has two fathers."""
        return bool(self.german_plural) and "single" not in self.classes


class Adjective(NamedTuple):
    """A row of adjectives.csv."""

    english: str
    german: str
    stem: str  # What endings are added to: teur- for teuer.
    classes: frozenset[str]
    lasts: str  # "mood" or "while" for what may be over tomorrow, else empty.


class Verb(NamedTuple):
    """A row of verbs.csv."""

    english: tuple[str, str, str]  # eat, ate, eaten.
    prefix: str  # Of a separable verb, else empty.
    infinitive: str  # Without that prefix.
    present: tuple[str, str, str]  # ich, du, er.
    participle: str  # With the prefix.
    auxiliary: str  # "haben" or "sein".
    frame: str  # What it takes: "acc", "dat+acc", "for=auf+acc", "to" ...
    kind: str  # "action" on purpose, "event" that happens, "sense", "state" (present only), "report".
    habit: bool  # Whether it is done every day, on Sundays ...
    often: bool  # Whether it happens often, rarely ...
    long: bool  # Whether it may have been last year.
    articles: str  # Of its object: "any", "a" (but no bare plural), or empty: the object is definite.
    place: str  # Class of the place for the frames "to", "put" and "loc".
    subjects: tuple[str, ...]  # Classes of nouns.
    objects: tuple[str, ...]
    where: tuple[str, ...]  # Classes of places where it is done.
    how: tuple[str, ...]  # Adverbs of manner, "with" and "for".

    @property
    def base(self) -> str:
        """The English verb as a dictionary has it."""
        return self.english[0]


class Adverb(NamedTuple):
    """A row of adverbs.csv."""

    english: str
    german: str
    kind: str  # "past", "present", "future": a time; "often", "already", "manner".
    more: str = ""  # "long" for last year, "soon" for soon.


@dataclass(frozen=True, eq=False)
class Lexicon:
    """Nouns, adjectives, verbs and adverbs, and which of them go together."""

    nouns: tuple[Noun, ...]
    adjectives: tuple[Adjective, ...]
    verbs: tuple[Verb, ...]
    adverbs: tuple[Adverb, ...]
    added: tuple[str, ...] = ()  # English verbs of a reader's rows.

    def __post_init__(self) -> None:
        """Remember what was asked for: a sentence asks several times."""
        for name in ("nouns_of", "adjectives_of", "adverbs_of", "verbs_of"):
            object.__setattr__(self, name, functools.cache(getattr(self, name)))

    def nouns_of(self, classes: tuple[str, ...]) -> tuple[Noun, ...]:
        """Find nouns of any of these classes."""
        return tuple(noun for noun in self.nouns if not noun.classes.isdisjoint(classes))

    def adjectives_of(self, noun: Noun) -> tuple[Adjective, ...]:
        """Find adjectives for a noun."""
        return tuple(word for word in self.adjectives if not noun.classes.isdisjoint(word.classes))

    def adverbs_of(self, kind: str) -> tuple[Adverb, ...]:
        """Find adverbs of a kind."""
        return tuple(adverb for adverb in self.adverbs if adverb.kind == kind)

    def verbs_of(
        self, frames: tuple[str, ...], subject: frozenset[str] | None = None, object: Noun | None = None
    ) -> tuple[Verb, ...]:
        """Find verbs of these frames ("preposition" for all such), for a subject of these classes."""
        return tuple(
            verb
            for verb in self.verbs
            if ("preposition" if "=" in verb.frame else verb.frame) in frames
            and (subject is None or not subject.isdisjoint(verb.subjects))
            and (object is None or not object.classes.isdisjoint(verb.objects))
        )


def lexicon(more: Mapping[str, Iterable[str]] | None = None) -> Lexicon:
    """Read the tables, and `more` rows by table, as they stand there: {"nouns": ["legend;;die Legende;..."]}.

    Raises:
        ValueError: a row is not like those of its table, or nothing fits its words.
    """
    return _lexicon() if not more else _with_rows(more)


@functools.cache
def _lexicon() -> Lexicon:
    return _made({table: list(table_rows(table)) for table in TABLES})


def table_rows(table: str) -> Iterator[dict[str, str]]:
    """Read a file of this folder, such as "nouns", row by row."""
    with (FOLDER / f"{table}.csv").open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file, delimiter=";")


def _made(rows: Mapping[str, list[dict[str, str]]]) -> Lexicon:
    return Lexicon(
        tuple(map(_noun, rows["nouns"])),
        tuple(map(_adjective, rows["adjectives"])),
        tuple(map(_verb, rows["verbs"])),
        tuple(map(_adverb, rows["adverbs"])),
    )


def _noun(row: dict[str, str]) -> Noun:
    article, german = row["german"].split()
    english = row["english"]
    english_at, _, german_at = row["at"].partition("=")
    plural = {"": add_s(english), "-": ""}.get(row["english_plural"], row["english_plural"])
    gender = {"der": "m", "die": "f", "das": "n"}[article]
    classes = frozenset(row["classes"].split()) | {english}
    at = (english_at, german_at)
    return Noun(
        english, plural, german, gender, row["genitive"], row["plural"].strip("-"), classes, at, row["to"]
    )


def _adjective(row: dict[str, str]) -> Adjective:
    classes = frozenset(row["classes"].split())
    return Adjective(row["english"], row["german"], row["stem"], classes, row["lasts"])


def _adverb(row: dict[str, str]) -> Adverb:
    kind, _, more = row["kind"].partition(" ")
    return Adverb(row["english"], row["german"], kind, more)


def _verb(row: dict[str, str]) -> Verb:
    """Make a verb and fill in the regular forms that the table leaves out."""
    base, *irregular = [form.replace("_", " ") for form in row["english"].split()]
    # A regular verb, with or without a particle: turn on, turned on.
    past, past_participle = irregular or 2 * [_add_ed(base)]
    prefix, _, infinitive = row["german"].rpartition("|")
    auxiliary, _, participle = row["perfect"].rpartition(" ")
    frame, kind, *more = row["frame"].split()
    return Verb(
        (base, past, past_participle),
        prefix,
        infinitive,
        _present(infinitive, row["present"].split("/")),
        participle,
        "sein" if auxiliary else "haben",
        frame,
        kind,
        "habit" in more,
        "often" in more or "habit" in more,
        "long" in more,
        next((word for word in more if word in ("any", "a")), ""),
        "".join(word for word in more if word not in ("habit", "often", "long", "any", "a")),
        tuple(row["subjects"].split()),
        tuple(row["objects"].split()),
        tuple(row["where"].split()),
        tuple(row["how"].split()),
    )


def _present(infinitive: str, given: list[str]) -> tuple[str, str, str]:
    """Complete ich and du: (er,), (du, er) or all three may be given."""
    er = given[-1]
    ending = "t" if er[-2] in "sßzx" else "st"
    du = given[-2] if len(given) > 1 else er[:-1] + ending
    stem = infinitive.removesuffix("n") if infinitive.endswith("ern") else infinitive.removesuffix("en")
    ich = given[0] if len(given) == 3 else f"{stem}e"
    return ich, du, er


def add_s(word: str) -> str:
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


# Rows of a reader -------------------------------------------------------------------------------------------


def _with_rows(more: Mapping[str, Iterable[str]]) -> Lexicon:
    rows = {table: list(table_rows(table)) for table in TABLES}
    added: list[tuple[str, str, dict[str, str]]] = []
    for table, lines in more.items():
        if table not in TABLES:
            raise ValueError(f"more has the table {table!r}; the tables are {', '.join(TABLES)}")
        if isinstance(lines, str):
            raise ValueError(f"more[{table!r}] is one string: put its rows into a list")
        for line in lines:
            added.append((table, line, _row(table, line)))
            rows[table].append(added[-1][2])
    known = set(_MARKS).union(*({*noun.classes} for noun in _lexicon().nouns))
    # An added noun may be what an added verb asks for, and the reverse.
    of_nouns, asked = {*known}, {*known}
    for table, _, row in added:
        if table == "nouns":
            of_nouns |= {row["english"], *row["classes"].split()}
        else:
            columns = ("subjects", "objects", "where", "classes")
            asked.update(*(row.get(column, "").split() for column in columns))
    for table, line, row in added:
        problem = _problem(table, row, asked if table == "nouns" else of_nouns)
        if problem := problem or _second_translation(table, row, rows[table]):
            raise ValueError(f"{table}, row {line!r}: {problem}")
    bases = [row["english"].split()[0].replace("_", " ") for table, _, row in added if table == "verbs"]
    return replace(_made(rows), added=tuple(bases))


def _row(table: str, line: str) -> dict[str, str]:
    needed, _, optional = TABLES[table].partition("|")
    columns = (needed + optional).split(";")
    cells = [cell.strip() for cell in line.split(";")]
    least, most = len(needed.split(";")), len(columns)
    if not least <= len(cells) <= most:
        raise ValueError(
            f"{table}, row {line!r}: it has {len(cells)} columns, not {least}"
            + (f" to {most}" if most > least else "")
            + f"; write {needed + optional}"
        )
    row = dict.fromkeys(columns, "") | dict(zip(columns, cells, strict=False))
    for column in needed.split(";"):
        if not row[column] and column not in ("english_plural", "objects"):
            raise ValueError(f"{table}, row {line!r}: {column} is empty; write {needed + optional}")
    if wrong := re.search(r"[^\w '|/+=-]", line.replace(";", "")):
        raise ValueError(f"{table}, row {line!r}: {wrong[0]!r} is in no word; use letters")
    return row


def _problem(table: str, row: dict[str, str], classes: set[str]) -> str | None:
    """Return what is wrong with a reader's row, and the way out, or None."""
    if table == "nouns":
        return _problem_of_noun(row, classes)
    if table == "verbs":
        return _problem_of_verb(row, classes)
    if table == "adverbs":
        known = row["kind"] in _ADVERBS
        return None if known else f"its kind is {row['kind']!r}; take one of {', '.join(_ADVERBS)}"
    if row["lasts"] not in ("", "mood", "while"):
        return f"lasts is {row['lasts']!r}; leave it out, or write mood or while"
    if not row["german"].startswith(row["stem"][:2]):
        return f"{row['stem']!r} is no stem of {row['german']!r}; write what endings are added to"
    return _unknown(row["classes"], classes)


def _problem_of_noun(row: dict[str, str], classes: set[str]) -> str | None:
    if not re.fullmatch(r"(der|die|das) \w+", row["german"]):
        return f"its German is {row['german']!r}; write article and noun, such as 'die Legende'"
    word = row["german"].split()[1]
    for name, form in (("noun", word), ("genitive", row["genitive"]), ("plural", row["plural"])):
        if form != "-" and not form[0].isupper():
            return f"the German {name} {form!r} has no capital letter"
    if not re.fullmatch(r"(\w+=\w+)?", row["at"]) or bool(row["at"]) != ("place" in row["classes"].split()):
        return "a noun of the class place, and no other, has 'at' such as in=in, and 'to' such as zu"
    if set(row["classes"].split()) <= _MARKS:
        return "it has no class that verbs take, such as thing or food"
    return _unknown(row["classes"], classes)


def _problem_of_verb(row: dict[str, str], classes: set[str]) -> str | None:
    if len(row["english"].split()) not in (1, 3):
        return f"its English is {row['english']!r}; write eat ate eaten, or cover if it is regular"
    prefix, _, infinitive = row["german"].rpartition("|")
    if not infinitive.endswith("n") or " " in row["german"]:
        return f"{row['german']!r} is no infinitive; write one, such as decken or vor|stellen"
    if any(not form.isalpha() or len(form) < 2 for form in row["present"].split("/")):
        return f"its present is {row['present']!r}; write the form with er, du/er or ich/du/er"
    if not re.fullmatch(rf"(ist )?{prefix}\w+", row["perfect"]):
        return f"its perfect is {row['perfect']!r}; write the participle, 'ist ' before it if it takes sein"
    frame, *kind = row["frame"].split()
    if frame not in _FRAMES and not re.fullmatch(r"\w+=\w+\+(acc|dat)", frame):
        return f"its frame is {frame!r}; take {', '.join(_FRAMES)}, or such as for=auf+acc"
    if not kind or kind[0] not in KINDS:
        return f"after the frame {frame!r} comes one of {', '.join(KINDS)}"
    objects = ("=" in frame) or frame in ("acc", "dat", "dat+acc", "put", "loc")
    if objects and not row["objects"] and frame != "loc":
        return f"the frame {frame!r} needs objects: classes of nouns, such as thing"
    if frame in ("put", "loc") and not set(kind[1:]) & {"surface", "wall", "seat"}:
        return f"the frame {frame!r} needs surface, wall or seat"
    if wrong := set(row["how"].split()) - {"with", "for"} - {word.english for word in _lexicon().adverbs}:
        return f"{min(wrong)!r} is no adverb of manner of the tables"
    return _unknown(f"{row['subjects']} {row['objects']} {row['where']}", classes)


def _unknown(words: str, classes: set[str]) -> str | None:
    wrong = sorted(set(words.split()) - classes)
    if not wrong:
        return None
    known = ", ".join(sorted(classes - _MARKS - {noun.english for noun in _lexicon().nouns}))
    return f"no noun is of the class {wrong[0]!r}; a class is an English noun, or one of {known}"


def _second_translation(table: str, row: dict[str, str], rows: list[dict[str, str]]) -> str | None:
    """Return which row translates the same English in another way, or None."""

    def said(one: dict[str, str]) -> tuple[str, ...]:
        words = one["english"], one.get("frame", "")
        return tuple(word.split()[0] for word in words) if table == "verbs" else words[:1]

    for other in rows:
        if said(other) == said(row) and other["german"] != row["german"]:
            return f"{row['english']!r} is already {other['german']!r}: one word has one translation here"
    return None
