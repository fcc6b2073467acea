"""Split English text into sentences, by rules (chapter 14).

A period ends a sentence, belongs to an abbreviation, or both. The next word tells most: after "U.S." or an
initial, only a word that often opens a sentence, such as "The" or "It", starts a new one. In technical prose
a lowercase name may open a sentence, as np.sum does.

NLTK's Punkt learns abbreviations from a large corpus, and its model has to be downloaded. Trained on
docstrings alone it knows neither "Dr." nor "U.S.".
"""

import re


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Something always follows these: a name, an example, a comparison.
_NEVER_LAST = _words("""
    adm approx assoc cf capt col dept dr e.g eg eng env equiv esp et gen gov hon i.e ie lt maj messrs mr mrs
    ms mt mx n.b prof rep rev sen sgt st univ viz vs w.r.t wrt
""")
# Abbreviations before a number or a bracket, words elsewhere: "No. 5", but "No. That is wrong."
_BEFORE_NUMBERS = _words("""
    apr aug ca ch chap dec ed eds eq eqs ex feb fig figs fn jan jul jun mar no nos nov nr oct p para pp pt ref
    refs sec sect sep sept tab thm ver vol vols
""")
# These may end a sentence; they do if the next word is capitalized.
_MAY_BE_LAST = _words("al corp etc excl incl inc jr ltd resp sr")
# Words that mostly open a sentence when capitalized.
_OPENERS = _words("""
    a after all also although an and any are as at because before both but by can do each every finally first
    for from he here his how however i if in instead is it its many most my next no not note now of on once
    one or other otherwise our return returns second see set she similarly since so some such that the their
    then there therefore these they this those thus to unless until use using we what when where whether which
    while who why with without you your
""")
_NUMBER = re.compile(r"[(\[]|[A-Z]?\d|[IVX]+\b")
_STOP = re.compile(r"(?P<stop>[.!?…]+)(?P<closed>[\"'”’»)\]]*)(?=\s)")
_OPENED = "\"'“‘«(["
_CODE = re.compile(r"\w+(?:[._]\w+)+|\w+\(|\w*\d\w*|_\w+")  # A lowercase name that may open a sentence.


def split_sentences(text: str) -> list[str]:
    """Split an English text into sentences, each with its punctuation and closing quotes and brackets.

    A blank line ends a sentence; other white space counts as one space. Joined with spaces the sentences
    restore the text.
    """
    sentences = []
    for paragraph in re.split(r"\n\s*\n", text):
        line = " ".join(paragraph.split())
        start = 0
        for match in _STOP.finditer(line):
            if _is_end(line[start : match.start()], match["stop"], match["closed"], line[match.end() + 1 :]):
                sentences.append(line[start : match.end()])
                start = match.end() + 1
        if line[start:]:
            sentences.append(line[start:])
    return sentences


def _is_end(before: str, stop: str, closed: str, after: str) -> bool:
    """Return whether a sentence ends between `before` with its stop, and `after`."""
    last = before.rpartition(" ")[2].lstrip(_OPENED)
    following = after.split(" ", 1)[0].lstrip(_OPENED)
    word, follows = last.lower(), re.split(r"\W", following.lower(), maxsplit=1)[0]
    has_periods = re.fullmatch(r"(?:(?:Ph|[^\W\d_])\.)+[^\W\d_]", last)  # "U.S", "Ph.D", "a.m"
    opens = not following[:1].islower() or bool(_CODE.match(following))
    if stop == "." and not closed and not has_periods and word not in _MAY_BE_LAST:
        opens = opens or len(re.sub(r"[\W_]", "", last)) >= 4  # In docstrings, a lowercase name.
    if not opens or not before.strip(_OPENED):
        return False
    if stop != ".":
        return bool(last)  # Dots by themselves are an ellipsis: "1, 2, ... N".
    if last == before and re.fullmatch(r"\(?(\d{1,3}|[A-Za-z])", last):
        return False  # The number of an item: "2. Then the model is trained."
    if re.fullmatch(r"[-+\d.]+", last) and before.count("[") > before.count("]") and "]" not in closed:
        return False  # Numbers of an array: "[1. 2. 3.]".
    if word in _NEVER_LAST or (word in _BEFORE_NUMBERS and _NUMBER.match(after)):
        return False
    is_initial = len(last) == 1 and last.isupper()
    if word in _MAY_BE_LAST or has_periods or is_initial:
        if set(closed) & set(")]"):
            return False  # A bracket closes inside the sentence: "(hammers, nails, etc.)"
        if word in _MAY_BE_LAST:
            return following[:1].isupper()
        return follows in _OPENERS and following[:1].isupper()
    return True
