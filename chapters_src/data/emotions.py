"""Short messages in six classes of emotion: the data of chapters 04 and 05.

With embedded resources these are messages written for this book, in `emotions/` beside this file. With full
ones they are the published data set of [CARER](https://aclanthology.org/D18-1404/), `dair-ai/emotion` on the
Hub. Both have the same splits, columns and classes, so a chapter runs on either. Only ours has labels that
were set wrong on purpose, and messages that were labelled a second time.

What our messages are, how they were made, their licence and their limits stand in their card, `emotions.md`,
beside this file.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from chapters_src import resources

if TYPE_CHECKING:
    import pandas as pd
    from datasets import Dataset, DatasetDict

LABELS = ("sadness", "joy", "love", "anger", "fear", "surprise")  # In the published order: ids 0 to 5.
SPLITS = ("train", "validation", "test")

_CONFIGURATION = "split"  # The published data set has another one, unsplit and not used here.


def load() -> "DatasetDict":
    """Load the messages.

    Returns:
        The splits "train", "validation" and "test", each with the columns `text` (a string) and `label` (a
        ClassLabel with the names of `LABELS`, that is, integers from 0 to 5).

    Raises:
        resources.ResourceError: the data cannot be had, or a file is damaged: then the message names the file
            and the line.
    """
    from datasets import DatasetDict, load_dataset

    folder = Path(resources.data_set("emotions"))
    if resources.choice() == "embedded":
        return DatasetDict({split: _messages(folder / f"{split}.csv") for split in SPLITS})
    messages = load_dataset(str(folder), _CONFIGURATION)
    found = tuple(getattr(messages["train"].features["label"], "names", ()))
    if found != LABELS:
        raise resources.ResourceError(f"The labels in {folder} are {found}, and this book expects {LABELS}.")
    return messages


def planted_errors() -> "pd.DataFrame":
    """Load which labels were set wrong on purpose.

    Returns:
        One row a message, with the columns `split`, `row` (its position in that split, from 0) and `label`
        (the true one, as a word).

    Raises:
        resources.ResourceError: full resources are chosen, or the file is missing or damaged.
    """
    return _table("planted.csv", {"split": _split, "row": _row, "label": _label})


def second_readings() -> "pd.DataFrame":
    """Load the labels of test messages that were labelled a second time.

    Returns:
        One row a message, with the columns `row` (its position in the test split, from 0), `label` and
        `second_label` (as words).

    Raises:
        resources.ResourceError: full resources are chosen, or the file is missing or damaged.
    """
    return _table("second_readings.csv", {"row": _row, "label": _label, "second_label": _label})


def ambiguous() -> "pd.DataFrame":
    """Load which messages can be read in two ways.

    Returns:
        One row a message, with the columns `split`, `row` (its position in that split, from 0) and
        `second_label` (the other reading, as a word).

    Raises:
        resources.ResourceError: full resources are chosen, or the file is missing or damaged.
    """
    return _table("ambiguous.csv", {"split": _split, "row": _row, "second_label": _label})


def _messages(path: Path) -> "Dataset":
    from datasets import ClassLabel, Dataset, Features, Value

    features = Features({"text": Value("string"), "label": ClassLabel(names=list(LABELS))})
    return Dataset.from_list(_rows(_lines(path), path, ";", {"text": _text, "label": _label}), features)


def _table(file: str, columns: Mapping[str, Callable[[str], object]]) -> "pd.DataFrame":
    import pandas as pd

    if resources.choice() == "full":
        raise resources.ResourceError(
            f"emotions/{file} belongs to the messages of this book; the published data set has none. "
            "Choose embedded resources, or ask resources.choice() before you call this."
        )
    path = Path(resources.data_set("emotions")) / file
    lines = _lines(path)
    if lines.pop(1, "") != ",".join(columns):
        raise _damaged(path, 1, f"the first line should be {','.join(columns)}")
    return pd.DataFrame(_rows(lines, path, ",", columns), columns=list(columns))


def _lines(path: Path) -> dict[int, str]:
    """Read a file: its lines by their number, from 1."""
    lines = {}
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            lines[number] = line.decode()
        except UnicodeDecodeError as error:
            raise _damaged(path, number, f"not UTF-8 ({error.reason})") from None
    if not lines:
        raise _damaged(path, 1, "the file is empty")
    return lines


def _rows(
    lines: Mapping[int, str], path: Path, separator: str, columns: Mapping[str, Callable[[str], object]]
) -> list[dict[str, object]]:
    """Cut each line into fields and convert each field with the function of its column."""
    rows = []
    for number, line in lines.items():
        fields = line.split(separator)
        if len(fields) != len(columns):
            raise _damaged(path, number, f"{len(fields)} fields instead of {separator.join(columns)}")
        try:
            pairs = zip(columns.items(), fields, strict=True)
            rows.append({name: convert(field) for (name, convert), field in pairs})
        except ValueError as error:
            raise _damaged(path, number, str(error)) from None
    return rows


def _text(field: str) -> str:
    if not field.strip():
        raise ValueError("the text is empty")
    return field


def _label(field: str) -> str:
    if field not in LABELS:
        raise ValueError(f"the label {field!r} is none of {', '.join(LABELS)}")
    return field


def _split(field: str) -> str:
    if field not in SPLITS:
        raise ValueError(f"the split {field!r} is none of {', '.join(SPLITS)}")
    return field


def _row(field: str) -> int:
    if not (field.isascii() and field.isdigit()):
        raise ValueError(f"the row {field!r} is not a whole number from 0")
    return int(field)


def _damaged(path: Path, line: int, problem: str) -> resources.ResourceError:
    return resources.ResourceError(
        f"{path}, line {line}: {problem}. The file is damaged: get it anew from this book's repository, "
        "or install the package again."
    )
