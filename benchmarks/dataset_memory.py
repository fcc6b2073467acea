"""The memory of a process that reads a memory-mapped dataset of chapter 04, row by row.

    python -m benchmarks.dataset_memory

writes the record "dataset_memory". Under "megabytes" it has, for each moment ("opened", "read row by row",
"as a list"), what is resident, and the own part of it, without pages that are shared with a file; under
"libraries" the versions that were measured. Linux only.
"""

import json
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import psutil
from datasets import Dataset, load_dataset

from chapters_src.records import FOLDER
from recipes.output import write_record

MEGABYTES = 200
TEXT = "It comes back. "


def megabytes() -> dict[str, float]:
    """Measure this process: "resident" memory, and "own", without what it shares with files."""
    info = psutil.Process().memory_info()
    return {"resident": info.rss / 1e6, "own": (info.rss - info.shared) / 1e6}


def write_rows(path: Path, size: int) -> None:
    """Write texts of about 300 characters to a Parquet file, `size` megabytes of them."""
    texts = [f"{i} {TEXT * 20}" for i in range(size * 1_000_000 // (len(TEXT) * 20))]
    Dataset.from_dict({"text": texts}).to_parquet(path)


def measure(path: Path, cache: Path) -> dict[str, dict[str, float]]:
    """Open a Parquet file as a mapped dataset, read all of it, and then make a list of its rows."""
    rows = load_dataset("parquet", data_files=str(path), split="train", cache_dir=str(cache))
    found = {"opened": megabytes()}
    characters = sum(len(row["text"]) for row in rows)
    found["read row by row"] = megabytes()
    everything = rows.to_list()
    found["as a list"] = megabytes()
    assert characters == sum(len(row["text"]) for row in everything)
    return found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        if len(sys.argv) > 1:  # the process that is measured has not made the file
            print(json.dumps(measure(Path(sys.argv[1]), Path(sys.argv[2]))))
        else:
            write_rows(place / "rows.parquet", MEGABYTES)
            command = [sys.executable, "-m", "benchmarks.dataset_memory", str(place / "rows.parquet"), folder]
            subprocess.run(command, check=True, capture_output=True)  # converts to Arrow
            done = subprocess.run(command, check=True, capture_output=True, text=True, encoding="utf-8")
            output = done.stdout
            libraries = ", ".join(f"{name} {version(name)}" for name in ("datasets", "pyarrow"))
            write_record(
                FOLDER / "dataset_memory.json",
                f"memory while a mapped dataset of {MEGABYTES} MB is read row by row, and then as a list",
                "benchmarks/dataset_memory.py",
                {"megabytes": json.loads(output.splitlines()[-1]), "libraries": libraries},
            )
