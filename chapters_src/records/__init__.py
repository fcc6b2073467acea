"""Records of runs that are too long for a page, each written by a recipe or a benchmark (all chapters).

A record is a JSON file in this folder. It says what was measured, by which script, with which versions and on
what hardware, so that a page can say so beside its numbers, and a reader can run it again.
"""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
FIELDS = ("what", "script", "versions", "hardware", "figures")


def record(name: str) -> dict[str, Any]:
    """Read the record of a run, such as "transfer".

    It says what was measured ("what", a sentence), the script that did it ("script"), the versions of the
    libraries ("versions"), the hardware ("hardware") and what came out ("figures"), in the form that the
    script's docstring describes.

    Raises:
        ValueError: there is no record of this name, or its file is not a whole record.
    """
    path = FOLDER / f"{name}.json"
    if not path.is_file():
        names = ", ".join(sorted(path.stem for path in FOLDER.glob("*.json"))) or "none"
        raise ValueError(f"there is no record {name!r}. Records: {names}")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        missing = [field for field in FIELDS if field not in content]
    except ValueError as error:
        raise ValueError(f"{path.name} is damaged: take it from the repository again") from error
    if missing:
        raise ValueError(f"{path.name} has no {', '.join(missing)}: let its script write it again")
    return content
