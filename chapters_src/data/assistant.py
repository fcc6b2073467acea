"""Questions, passages and answers: what chapter 16 makes an assistant with.

The files in `assistant/` beside this module hold a passage in each line, with the questions that are put to
it, so that a reader sees at a glance what it answers and what it does not. Many functions have two passages:
what one of them answers, the other leaves out. `load` gives one row for each question, `load_preferences`
pairs of a better and a worse answer, and `load_retrieval` questions whose passage has to be found first.

The card beside this file, `assistant.md`, says how the rows were made and checked, and names their licenses.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset, DatasetDict

from chapters_src.data import damaged, lines_of

ABOUT = ("invented answer", "wrong refusal", "promise")
KINDS = ("parameter", "purpose", "answer", "refuse", "reply")
REFUSAL = "The passage does not say."
REQUEST = "Write a reply to this report."
SPLITS = ("train", "test")

_COLUMNS = ("kind", "source", "passage", "question", "answer", "origin")
_FOLDER = Path(__file__).with_suffix("")
_PREFERENCE_COLUMNS = ("about", "source", "passage", "question", "chosen", "rejected")


def load(*, promises: bool = True) -> DatasetDict:
    """Load the pairs of a question about a passage and its answer: the splits "train" and "test".

    Their columns are `kind` (one of `KINDS`), `source` (the full name of a function, "story/..." or
    "report/..."), `passage`, `question`, `answer`, and `origin` ("written" or "rule"). An answer of the kind
    "refuse" is always `REFUSAL`; the question of every reply is `REQUEST`. No source is in both splits.

    Without `promises` the training replies have no sentence that promises something: they end or go on as if
    it had never been there. Nothing else changes, and there are as many rows.

    Raises:
        resources.ResourceError: a file is missing, or a line is damaged; the message names the file, the line
            and the fix.
    """
    return DatasetDict(
        {
            split: Dataset.from_list([_row(line, pair, promises) for line, pair in _pairs(split)])
            for split in SPLITS
        }
    )


def load_preferences() -> DatasetDict:
    """Load pairs of a better and a worse answer to the same question: the splits "train" and "test".

    Their columns are `about` (one of `ABOUT`), `source`, `passage`, `question`, `chosen` and `rejected`. The
    sources are split as in `load`. Of a function with two passages, the one under which the question is
    refused goes with "invented answer", the one under which it is answered with "wrong refusal".

    Raises:
        resources.ResourceError: as for `load`, or no passage of the source goes with a question.
    """
    passages: dict[tuple[str, str, str, bool], str] = {}
    for split in SPLITS:
        for line, pair in _pairs(split):
            key = (split, line["source"], pair["question"], pair["kind"] == "refuse")
            passages.setdefault(key, line["passage"])
    rows: dict[str, list[dict[str, str]]] = {split: [] for split in SPLITS}
    path = _FOLDER / "preferences.jsonl"
    for number, line in _lines(path):
        _check(path, number, line, ("about", "split", "source", "question", "chosen", "rejected"))
        _check_one_of(path, number, line, "about", ABOUT)
        _check_one_of(path, number, line, "split", SPLITS)
        key = (line["split"], line["source"], line["question"], line["about"] == "invented answer")
        passage = line.get("passage") or passages.get(key)
        if not passage:
            how = "refused" if key[-1] else "answered"
            problem = f"{line['question']!r} is not {how} under {line['source']!r} in {line['split']}.jsonl"
            raise damaged(path, number, problem, "correct it, or add a passage here")
        row = line | {"passage": passage}
        rows[line["split"]].append({name: row[name] for name in _PREFERENCE_COLUMNS})
    return DatasetDict({split: Dataset.from_list(rows[split]) for split in SPLITS})


def load_retrieval() -> Dataset:
    """Load questions in a user's words, about functions that are in no pair.

    The columns are `question` and `functions`: all names that are right, such as "numpy.squeeze".

    Raises:
        resources.ResourceError: as for `load`.
    """
    path = _FOLDER / "retrieval.jsonl"
    rows = []
    for number, line in _lines(path):
        _check(path, number, line, ("question",))
        names = line.get("functions")
        if not names or not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise damaged(path, number, f"functions is {names!r}", 'write a list such as ["numpy.squeeze"]')
        rows.append({"question": line["question"], "functions": names})
    return Dataset.from_list(rows)


# The files ------------------------------------------------------------------------------------------------


def _row(line: Mapping[str, Any], pair: Mapping[str, Any], promises: bool) -> dict[str, str]:
    answer = pair.get("answer", REFUSAL)
    if not promises and pair.get("promise") and line["split"] == "train":
        answer = " ".join(answer.replace(pair["promise"], " ").split())
    row = {**line, **pair, "answer": answer}
    return {name: row[name] for name in _COLUMNS}


def _pairs(split: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield each pair of a split with the line of its passage."""
    for line in _passages(split):
        for pair in line["pairs"]:
            yield line, pair


def _passages(split: str) -> Iterator[dict[str, Any]]:
    """Yield the lines of a split, checked."""
    path = _FOLDER / f"{split}.jsonl"
    for number, line in _lines(path):
        _check(path, number, line, ("source", "origin", "passage"))
        _check_one_of(path, number, line, "origin", ("written", "rule"))
        pairs = line.get("pairs")
        if not pairs or not isinstance(pairs, list) or not all(isinstance(pair, dict) for pair in pairs):
            raise damaged(path, number, f"the passage of {line['source']!r} has no pairs", "ask a question")
        for pair in pairs:
            _check(path, number, pair, ("kind", "question"))
            _check_one_of(path, number, pair, "kind", KINDS)
            if pair["kind"] == "refuse":
                if "answer" in pair:
                    raise damaged(
                        path, number, f"{pair['question']!r} is refused and has an answer", "remove one"
                    )
                continue
            _check(path, number, pair, ("answer",))
            if pair["kind"] == "reply":
                if not isinstance(pair.get("facts"), list):
                    raise damaged(path, number, "a reply has no facts", "list them, or write []")
                if pair.get("promise", "") not in pair["answer"]:
                    raise damaged(path, number, "the promise is not in the reply", "copy its sentence")
        yield line | {"split": split}


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of a file with the numbers of their lines from 1."""
    for number, line in lines_of(path):
        try:
            value = json.loads(line)
        except json.JSONDecodeError as error:
            raise damaged(path, number, f"it is no JSON ({error})", "write one object") from None
        if not isinstance(value, dict):
            raise damaged(path, number, f"it is {type(value).__name__}, not an object", "write one object")
        yield number, value


def _check(path: Path, number: int, value: Mapping[str, Any], names: Sequence[str]) -> None:
    """Check that an object has these texts, none of them empty or with a space at an end."""
    for name in names:
        text = value.get(name)
        if not isinstance(text, str) or not text or text != text.strip():
            raise damaged(path, number, f"{name} is {text!r}", "write a text without spaces at its ends")


def _check_one_of(
    path: Path, number: int, value: Mapping[str, Any], name: str, allowed: Sequence[str]
) -> None:
    if value[name] not in allowed:
        raise damaged(path, number, f"{name} is {value[name]!r}", f"choose from {', '.join(allowed)}")
