"""Short messages in six classes of emotion: the data of chapters 04 and 05.

The embedded messages were written for this book, in `emotions/` beside this file. The full resource is the
published data set of [CARER](https://aclanthology.org/D18-1404/), `dair-ai/emotion` on the Hub. Both have the
same splits, columns and classes, so a chapter runs on either. Only ours has labels that are wrong on purpose,
and messages that were labeled a second time.

The card beside this file, `emotions.md`, describes our messages, their license and their limits.
"""

import csv
from pathlib import Path
from typing import TYPE_CHECKING

from chapters_src import resources

if TYPE_CHECKING:
    import pandas as pd
    from datasets import Dataset, DatasetDict

LABELS = ("sadness", "joy", "love", "anger", "fear", "surprise")  # In the published order: ids 0 to 5.
SPLITS = ("train", "validation", "test")

_LABEL = ("|".join(LABELS), "the label {!r} is none of " + ", ".join(LABELS))
_FIELDS = {  # The pattern for each column, and the message if a field does not match.
    "text": (r"[^\ufffd]*[^\ufffd\s][^\ufffd]*", "the text is empty, or not UTF-8: {!r}"),
    "label": _LABEL,
    "second_label": _LABEL,
    "split": ("|".join(SPLITS), "the split {!r} is none of " + ", ".join(SPLITS)),
    "row": ("[0-9]+", "the row {!r} is not a whole number from 0"),
}

_CONFIGURATION = "split"  # The published data set has another one, unsplit and not used here.


def load() -> "DatasetDict":
    """Load the messages: the splits "train", "validation" and "test".

    Their columns are `text` (a string) and `label` (a ClassLabel with the names of `LABELS`, that is,
    integers from 0 to 5).

    Raises:
        resources.ResourceError: the data is not available, or a file is damaged; the message names the file
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
    """Load the labels that are wrong on purpose, a row for each message.

    The columns are `split`, `row` (its position in that split, from 0) and `label` (the true one, as a word).

    Raises:
        resources.ResourceError: full resources are chosen, or the file is missing or damaged.
    """
    return _table("planted.csv", ["split", "row", "label"])


def second_readings() -> "pd.DataFrame":
    """Load the labels of test messages that were labeled a second time, a row for each message.

    The columns are `row` (its position in the test split, from 0), `label` and `second_label` (as words).

    Raises:
        resources.ResourceError: full resources are chosen, or the file is missing or damaged.
    """
    return _table("second_readings.csv", ["row", "label", "second_label"])


def ambiguous() -> "pd.DataFrame":
    """Load the messages that can be read in two ways, a row for each.

    The columns are `split`, `row` (its position in that split, from 0) and `second_label` (the other reading,
    as a word).

    Raises:
        resources.ResourceError: full resources are chosen, or the file is missing or damaged.
    """
    return _table("ambiguous.csv", ["split", "row", "second_label"])


def _messages(path: Path) -> "Dataset":
    from datasets import ClassLabel, Dataset, Features, Value

    features = Features({"text": Value("string"), "label": ClassLabel(names=list(LABELS))})
    return Dataset.from_dict(_read(path, ";", ["text", "label"]).to_dict("list"), features)


def _table(file: str, columns: list[str]) -> "pd.DataFrame":
    if resources.choice() == "full":
        raise resources.ResourceError(
            f"emotions/{file} belongs to the messages of this book; the published data set has none. "
            "Choose embedded resources, or check resources.choice() before you call this."
        )
    path = Path(resources.data_set("emotions")) / file
    return _read(path, ",", columns, header=True).astype({"row": int}).reset_index(drop=True)


def _read(path: Path, separator: str, columns: list[str], header: bool = False) -> "pd.DataFrame":
    """Read and check a file; the index of the table is the line number, from 1."""
    import pandas as pd

    try:
        table = pd.read_csv(
            path,
            sep=separator,
            names=[*columns, "more"],  # room for one field too many
            index_col=False,
            dtype=str,
            engine="python",  # The C engine takes a missing field for an empty one.
            quoting=csv.QUOTE_NONE,
            keep_default_na=False,
            skip_blank_lines=False,
            encoding_errors="replace",
        )
    except pd.errors.ParserError as error:
        raise _damaged(path, str(error)) from None
    table.index += 1
    if table.empty:
        raise _damaged(path, "line 1: the file is empty")
    if header and (table.loc[1, columns] != columns).any():
        raise _damaged(path, f"line 1: the first line should be {','.join(columns)}")
    table = table.iloc[int(header) :]
    fields = table.notna().sum(axis=1)
    _check(path, fields == len(columns), fields, "{} fields instead of " + separator.join(columns))
    for column in columns:
        pattern, problem = _FIELDS[column]
        _check(path, table[column].str.fullmatch(pattern), table[column], problem)
    return table[columns]


def _check(path: Path, good: "pd.Series", values: "pd.Series", problem: str) -> None:
    if not good.all():
        line = good.idxmin()
        raise _damaged(path, f"line {line}: {problem.format(values[line])}")


def _damaged(path: Path, problem: str) -> resources.ResourceError:
    return resources.ResourceError(
        f"{path}, {problem}. The file is damaged: restore it from this book's repository, "
        "or install the package again."
    )
