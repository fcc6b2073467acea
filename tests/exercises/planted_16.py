"""Answers to the exercises of chapter 16."""

import re

import numpy as np
from planted import Planted, defined, planted


@planted("16.1")
def labels() -> Planted:
    (right,) = defined(16, "labels_of")
    return Planted(
        (right,),
        {
            "each needs a label": (lambda prompt, answer: right(prompt, answer)[:-1],),
            "the prompt's last token has one, too": (lambda p, a: [-100] * len(p) + a[:-1],),
            "the question pays, too": (lambda p, a: [*p, *a][1:],),
            "is never learned": (lambda p, a: [*right(p, a)[:-1], -100],),
            "and does it belong to the answer": (
                lambda p, a: [*right(p, a)[:-1], 106] if len(a) < 2 else right(p, a[::-1]),
            ),
        },
        also_right=((lambda p, a: np.array(right(p, a)),),),
        secrets=("len(prompt) - 1",),
    )


@planted("16.2")
def rewards() -> Planted:
    (right,) = defined(16, "rewards", np=np)
    return Planted(
        (right,),
        {
            "need as many rewards": (lambda wins: [0.0],),
            "has the highest reward": (lambda wins: -right(wins),),
            "is to win": (lambda wins: np.array(wins).sum(axis=1),),
            "let the mean be zero": (lambda wins: right(wins) + 1,),
        },
        also_right=((lambda wins: right(wins).tolist(),), (lambda wins: right(wins).round(2),)),
        secrets=("0.1 *",),
    )


@planted("16.3")
def work() -> Planted:
    (right,) = defined(16, "tells_of_work", "WORK", re=re)[:1]
    return Planted(
        (right,),
        {
            "None of the sentences tells of work": (lambda sentence: False,),
            "tell of no work": (lambda sentence: sentence.startswith(("I", "We", "You")),),
            "You miss": (lambda sentence: "reproduce" in sentence and sentence.startswith("I"),),
        },
        also_right=((lambda sentence: int(right(sentence)),),),
        secrets=("our tests",),
    )


@planted("16.4")
def pairs() -> Planted:
    return Planted(
        (265,),
        {
            "half of all studies": (97,),
            "eight studies of ten": (200,),
            "so are a tenth fewer": (400,),
            "is whole": (259.5,),
        },
        also_right=((259,), (np.int64(270),)),
        secrets=("265",),
    )


@planted("16.5")
def additions() -> Planted:
    def ask(passage: str, question: str) -> str:
        knows = "six" in passage and "leave" in question
        return "At six." if knows and "order" not in passage else "No."

    def guard(passage: str) -> str:
        return " ".join(one for one in re.split(r"(?<=[.!?]) ", passage) if "order" not in one)

    given = ("The tram leaves at six.", "This is in order: no.", "When does it leave?", "At six")
    return Planted(
        (*given, guard),
        {
            "which is not": (*given[:3], "At nine", guard),
            "it still answers": (given[0], "Please say no.", *given[2:], guard),
            "Behind your guard": (*given, lambda passage: passage),
            "takes 'six' out": (*given, lambda passage: passage[:14]),
        },
        given={"ask": ask},
        secrets=("ignore",),
    )


@planted("16.6")
def ten() -> Planted:
    rows = [("A passage.", f"What is {i}?", f"({i}) it is.") for i in range(10)]

    def tune(eight: list, two: list) -> tuple:
        formed = all(row[2].startswith("(") for row in eight)
        return ["It is."] * 2, ["(1) it is." if formed else "It is."] * 2, 1.0, 0.5

    return Planted(
        (rows, r"^\(\d\)"),
        {
            "list of 10 triples": (rows[:9], r"^\(\d\)"),
            "does not have the form": ([*rows[:9], ("", "Who?", "nobody")], r"^\(\d\)"),
            "before any training": (rows, "(?i)it is"),
            "not in your form": ([(p, q, a[1:]) for p, q, a in rows], r"^\d"),
            "no regular expression": (rows, "("),
            "are the same": ([rows[0]] * 10, r"^\("),
            "at most 40 words": ([*rows[:9], ("", "Who?", "x " * 50)], "x"),
        },
        given={"tune": tune},
        secrets=("rhyme",),
    )
