"""Answers to the exercises of chapter 14, with small texts in place of the documents, and without models."""

import re
from collections import Counter
from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
from planted import Planted, defined, planted

from chapters_src.evaluation import rouge, rouge_tokens
from chapters_src.exercises import chapter_14
from chapters_src.tokenization.sentences import split_sentences

LINES = [
    "Return the sum of all elements.",
    "Write an array to a file.",
    "Check that a matrix is symmetric.",
    "Remove a user from the group.",
    "Draw a legend below the axes.",
    "Count the words of a text.",
    "Sort the rows of a table.",
    "Load the weights of a model.",
]
BODIES = [
    "The sum of the elements is returned as a number, whatever the kind. It is 0 if there are none of all.",
    "An array is written. The file is closed after that, and a file of this name is lost.",
    "A matrix is symmetric if it equals its transpose. Check that first.",
    "The group loses a user. Others remove nothing from the group, and a user may come back.",
    "A legend is drawn below. The axes keep their size, and the legend may hide a label.",
    "Words are what stands between blanks. The words of a text are counted.",
    "The rows change their places, and those of a table with equal keys stay in order. Sort them.",
    "The weights come from a folder. They belong to a model, and load in a second.",
]


def scores(lines: Sequence[str]) -> np.ndarray:
    return 100 * rouge(list(lines), LINES)["rouge1"].to_numpy()


@planted("14.1")
def best_sentence() -> Planted:
    of_each = [
        [100 * rouge([sentence], [line])["rouge1"].item() for sentence in split_sentences(body)]
        for body, line in zip(BODIES, LINES, strict=True)
    ]
    lead, top = np.mean([some[0] for some in of_each]), np.mean([max(some) for some in of_each])
    floor = scores([*LINES[4:], *LINES[:4]]).mean()
    share = (lead - floor) / (top - floor)
    first = np.mean([some[0] == max(some) for some in of_each])
    return Planted(
        (share,),
        {
            "begin at 0": (lead / top,),
            "how often": (first,),
            "that it leaves": (1 - share,),
            "in percent": (100 * share,),
            "the end of the way": (top,),
            "of the first sentence": (lead,),
            "how far is": (2.5,),
        },
        {"bodies": BODIES, "references": LINES},
        also_right=((round(share, 2),), (np.float32(share),)),
        secrets=(f"{share:.2f}",),
    )


@planted("14.2")
def cut() -> Planted:
    """In validation 4 words are best, in the test 6."""
    pairs = {
        "validation": [
            SimpleNamespace(
                body="One two three four nothing more here at all. Next.", summary="One two three four."
            )
        ],
        "test": [
            SimpleNamespace(
                body="One two three four five six seven and more words. Next.",
                summary="One two three four five six.",
            )
        ],
    }

    def score(words: int, split: str) -> float:
        [pair] = pairs[split]
        text = " ".join(split_sentences(pair.body)[0].split()[:words])
        return 100 * rouge([text], [pair.summary])["rouge1"].item()

    gain = score(4, "test") - score(30, "test")
    return Planted(
        (4, gain),
        {
            "see the test": (6, gain),
            "there the validation split has": (9, gain),
            "from 4 to 30": (40, gain),
            "the sign": (4, -gain),
            "of 100": (4, gain / 100),
            "what was it before": (4, score(4, "test")),
            "on the validation split": (4, score(4, "validation")),
            "where you chose": (4, score(4, "validation") - score(30, "validation")),
            "subtract the mean": (4, 55.5),
        },
        {"pairs": pairs},
        also_right=((4.0, round(gain, 1)),),
        secrets=(f"{gain:.1f}",),
    )


def meaning(lines: Sequence[str], others: Sequence[str]) -> np.ndarray:
    """Words in common, in place of an encoder."""
    both = ((Counter(rouge_tokens(a)), Counter(rouge_tokens(b))) for a, b in zip(lines, others, strict=True))
    return np.array([(a & b).total() / max(a.total(), b.total(), 1) for a, b in both])


@planted("14.3")
def denial() -> Planted:
    (right,) = defined(14, "deny", re=re)
    written = [f"{line.replace(' ', 's ', 1)} of a a thing" for line in LINES]

    return Planted(
        (lambda line: re.sub(r"^(\w+)s", r"Never \1", line),),
        {
            "deny nothing": (lambda line: f"{line},",),
            "another line": (lambda line: "Not so.",),
            "that is another": (lambda line: f"Never {line} of all the things",),
            "so late": (lambda line: f"{line} not",),
            "of a line are seldom": (lambda line: f"Never {line}",),
        },
        {"lines": written, "references": LINES, "meaning": meaning},
        also_right=((right,),),
        secrets=("verb", "base form"),
    )


def unsupported(line: str, body: str) -> list[str]:
    there = {word[:5] for word in rouge_tokens(body)}
    return [word for word in rouge_tokens(line) if len(word) > 3 and word[:5] not in there]


@planted("14.4")
def beams() -> Planted:
    lines = [line.replace(".", "") for line in LINES]
    greedily = [f"{' '.join(sorted(line.split(), reverse=True))} and" for line in lines]

    def summarize(texts, num_beams=4):
        return [(lines if num_beams == 4 else greedily)[BODIES.index(text)] for text in texts]

    right = {"ROUGE-1": "ahead", "ROUGE-L": "ahead", "unsupported words": "undecided"}
    return Planted(
        (greedily, right),
        {
            "how many beams": (lines, right),
            "list of 8 lines": (greedily[:3], right),
            "with one beam the first line": ([f"{line} x" for line in greedily], right),
            "with the keys": (greedily, {"ROUGE-1": "ahead"}),
            "text by text": (greedily, right | {"ROUGE-L": "undecided"}),
            "hold 0": (greedily, right | {"unsupported words": "behind"}),
            "compared with whom": (greedily, right | {"ROUGE-1": "behind"}),
        },
        {
            "bodies": BODIES,
            "references": LINES,
            "lines": lines,
            "unsupported": unsupported,
            "summarize": summarize,
        },
        also_right=((tuple(greedily), right),),
        secrets=("num_beams=1",),
    )


@planted("14.5")
def examples() -> Planted:
    (right,) = defined(14, "my_examples")

    def continued(prompts):
        """A model that names the things, if the examples name shoes; else it takes the first line."""
        if "parrot" in prompts[0]:  # cut out of the text
            return [re.findall(r"(?m)^Text: (?:\w+ )*\w+, (.*?\.)", prompt)[-1] for prompt in prompts]
        if "shoes" not in prompts[0]:
            return [re.search("In one line: (.*)", prompt)[1] for prompt in prompts]
        return [
            "The lid is open.",
            "Closed on Sunday.",
            "No map.",
            "Paid twice.",
            "The password.",
            "The room.",
        ]

    other = [(f"{text} Thank you.", line.replace("Shoes", "Boots")) for text, line in right]
    other = [(text.replace("shoes", "boots"), line) for text, line in other]
    own = next(iter(chapter_14.MESSAGES))
    parrot = ("The parrot is gone. It flew away on Monday, and the cage is empty.", "The parrot is gone.")
    others = [  # with single words of the six messages
        ("There is no hot water since Monday. Please send me a plumber.", "The shower has no hot water."),
        ("Good day, the lock of my bike is broken. I would like my money back.", "She wants her money back."),
    ]
    return Planted(
        (right,),
        {
            "the line of one of your examples": (other,),
            "cut out of its message": ([parrot, *right[1:]],),
            "that is telling": ([(own, "It is broken."), *right[1:]],),
            "'lid and printer'": ([(right[0][0], "The lid of my printer."), *right[1:]],),
            "three pairs": (right[:2],),
            "not shorter": ([("Short.", "A line that is longer."), *right[1:]],),
            "without line breaks": ([("A text\nof two lines.", "Two."), *right[1:]],),
            "is a pair": (["x", *right[1:]],),
        },
        {"continued": continued},
        also_right=(([list(pair) for pair in right],), (tuple(right),), ([right[0], *others],)),
        secrets=("Bill", "name the thing"),
    )


@planted("14.6")
def judge() -> Planted:
    denials, right = defined(
        14, "DENIALS", "supported", np=np, meaning=meaning, rouge_tokens=rouge_tokens, unsupported=unsupported
    )

    bodies = [*BODIES[:7], f"{BODIES[7]} Legends belowdecks draw axes."]  # Words of other lines.
    bodies[0] = "The sum of all elements is returned: elements of a filed arrays. A writer file."

    def rule(lines, bodies):
        return [-len(unsupported(*pair)) for pair in zip(lines, bodies, strict=True)]

    def keywords(lines, bodies):
        """The rule, and a price for the two words that the task names."""
        named = [-5 * len({"never", "not"} & {*rouge_tokens(line)}) for line in lines]
        return np.array(rule(lines, bodies)) + named

    def only_denials(lines, bodies):
        return [-len(denials & {*rouge_tokens(line)}) for line in lines]

    return Planted(
        (right,),
        {
            "sign turned": (lambda lines, bodies: -np.array(right(lines, bodies)),),
            "more than 0.02 is lost": (only_denials,),
            "in each of the first two": (rule,),
            "one of the last two": (keywords,),
            "a number for each": (lambda lines, bodies: 0.5,),
        },
        {
            "bodies": bodies,
            "references": LINES,
            "unsupported": unsupported,
            "neighbor": [1, 2, 3, 0, 5, 6, 7, 4],
            "has_one": [True] * 8,
        },
        also_right=((lambda lines, bodies: list(right(lines, bodies)),),),
        secrets=("denied", "DENIALS"),
    )
