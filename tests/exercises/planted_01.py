"""Answers to the exercises of chapter 01, with stand-ins for its models."""

import re
from types import SimpleNamespace

import pandas as pd
import torch
from planted import Planted, defined, planted

MESSAGE, NAMES, ANSWERS = "my_message", "my_names", "my_answers"


@planted("1.1")
def tokens() -> Planted:
    return Planted(
        (4,),
        {
            "Those are words": (2,),
            "after aggregation": (1,),
            "Those are characters": (11,),
            "special tokens": (6,),
            "too few": (3,),
            "too many": (5,),
        },
        secrets=("4", "four", "##"),
    )


@planted("1.2")
def a_vector() -> Planted:
    return Planted(
        tuple(defined(1, "legend")),
        {
            "the square root of 2": ([3.6, 0.0],),
            "looks at itself": ([3.3, 0.0],),
            "second number": ([2.0, 9.0],),
            "too little": ([2.5, 0.0],),
        },
        also_right=((torch.tensor([4.7, 1.0]),), ([100, -3],)),
        secrets=("4.6", "4.7", "5.0"),
    )


@planted("1.3")
def descriptions() -> Planted:
    """Three kinds; a description is right if it holds the word that stands for its kind."""
    kinds = {"bug": "a bug", "travel": "a trip", "life": "a birth"}
    directions = {"bug": 0, "trip": 1, "birth": 2, "error": 0, "journey": 1, "person": 2, "thing": 2}

    def embed(text: str) -> torch.Tensor:
        return torch.nn.functional.one_hot(torch.tensor(directions[text.split()[-1]]), 3).float()

    paragraphs = [f"{kind}-{number}" for number in range(5) for kind in kinds]
    library = pd.DataFrame({"name": paragraphs, "kind": [name.split("-")[0] for name in paragraphs]})
    vectors = torch.eye(3).repeat(5, 1)
    vectors[[2, 14]] = vectors[[0, 0]]  # two lives that read like bugs, one in each split
    split = {"train": library.name[:9], "test": library.name[9:]}
    data = {part: [SimpleNamespace(paragraph=name) for name in names] for part, names in split.items()}
    mine = {"bug": "an error", "travel": "a journey", "life": "a person"}
    given = {"kinds": kinds, "embed": embed, "library": library, "vectors": vectors, "data": data}
    return Planted(
        (mine, 8, 5),
        {
            "swapped": (mine, 5, 8),
            "is a share": (mine, 8 / 9, 5),
            "all splits": (mine, 8, 13),
            "comes out otherwise": (mine, 7, 5),
            "same description": (mine | {"bug": "a person"}, 8, 5),
            "our descriptions": (kinds, 8, 5),
            "kinds have to be": ({"bug": "an error"}, 8, 5),
            "a dictionary": (["an error"], 8, 5),
        },
        given,
        also_right=((mine | {"life": "a thing"}, 8, 5),),
        secrets=("8", "5"),
    )


class Fill:
    """Prefers she for words early in the list; the second frame turns a word around."""

    tokenizer = SimpleNamespace(mask_token="[MASK]")
    words = ("aunt", "girl", "son", "mother", "man", "uncle", "nurse", "pilot", "maid", "smith")

    def __call__(self, text: str, targets: list[str]) -> list[dict]:
        word = next(word for word in self.words if re.search(rf"\b{word}\b", text))
        power = -self.words.index(word) + (6 if word == "uncle" and text.startswith("When") else 0)
        scores = {"she": 2.0**power, "he": 1.0}
        return [{"token_str": name, "score": scores[name]} for name in targets]


@planted("1.4")
def she_or_he() -> Planted:
    frames = ["The {} said that [MASK] was late.", "When the {} called, [MASK] left."]
    known = (["aunt", "girl", "mother"], ["uncle", "man", "son"])
    occupations = (["nurse", "maid"], ["pilot", "smith"])
    return Planted(
        (7 / 9, 0.75),
        {
            "the other way around": (2 / 9, 0.75),
            "only within pairs": (7 / 9, 1.0),
            "a share, from 0 to 1": (7, 0.75),
            "both frames": (8 / 9, 0.75),
            "`share_occupations` is 0.6": (7 / 9, 0.6),
        },
        {"fill": Fill(), "frames": frames, "known": known, "occupations": occupations},
        also_right=((0.78, 0.75),),
        secrets=("0.78", "0.75"),
    )


@planted("1.5")
def spans() -> Planted:
    inside = torch.tensor([False, False, True, True, True])

    def pair(first: int, last: int) -> tuple:
        starts, ends = torch.zeros(5), torch.zeros(5)
        starts[first], ends[last] = 1, 1
        return starts, ends, inside, []

    backwards, outside, empty = [pair(4, 2)] * 5, [pair(1, 3), pair(2, 1)], [pair(0, 0)] * 4
    scored = [pair(2, 3)] * 9 + backwards + outside + empty
    asked = [SimpleNamespace(question=str(number)) for number in range(len(scored))]
    given = {"asked": asked, "sentences_read": [""] * len(scored)}
    given["token_scores"] = lambda question, sentence: scored[int(question)]
    return Planted(
        (7,),
        {
            "one of two ways": (5,),
            "there is no answer, too": (11,),
            "a share": (0.35,),
            "too few": (3,),
            "too many": (16,),
        },
        given,
        secrets=("7", "seven"),
    )


@planted("1.6")
def own_message() -> Planted:
    message, names, answers = defined(1, MESSAGE, NAMES, ANSWERS)

    def tag(text: str) -> list[dict]:
        places = [(text.index(name), name) for name in names]
        return [{"start": start, "end": start + len(name)} for start, name in places]

    def after(examples: str):
        return lambda text: "Tove Ahlgren" if "Who" in text else "eleven"

    given = {"tag": tag, "after": after, "prompt": "", "closest_sentence": lambda question, text: text}
    given["read_answer"] = lambda question, sentence: "nine"
    return Planted(
        (message, names, answers),
        {
            "at least 30 words": ("Hello, here is Tove Ahlgren.", names, answers),
            "message of the chapter": (message + " Merete Falk", names, answers),
            "three names": (message, names[:2], answers),
            "three questions": (message, names, {"Who writes?": "Tove Ahlgren"}),
            "does not stand in your message": (message, [*names, "Merete"], answers),
            "'Tov' does not stand": (message, [*names[1:], "Tov"], answers),
            "'eight' does not stand": (message, names, answers | {"How many passengers laughed?": "eight"}),
            "question mark": (message, names, answers | {"Who is it": "Bo Ek"}),
        },
        given,
        also_right=((message.replace(". ", ".\n"), names, answers),),
        secrets=("compass",),
    )
