"""What chapter 12 compares: language models of four sizes, and two optimizers at several learning rates.

    python recipes/language_model_sweeps.py --output build/language-model-sweeps

Each run is one of `recipes/language_model.py`, on prose alone, for one pass, without dropout. The chapter
reads the file `sweeps.json` in the output: for each sweep a list with one record per run. Finished runs are
not repeated.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from chapters_src.files import write_text
from recipes import language_model

SMALLEST = {"width": 64, "layers": 2}
SWEEPS: dict[str, list[dict[str, object]]] = {
    "sizes": [
        SMALLEST,
        {"width": 128, "layers": 3},
        {"width": 192, "layers": 4},
        {"width": 256, "layers": 6},
    ],
    "optimizers": [
        *(SMALLEST | {"optimizer": "adamw", "learning-rate": rate} for rate in (2e-3, 4e-3, 8e-3, 16e-3)),
        *(SMALLEST | {"optimizer": "muon", "muon-learning-rate": rate} for rate in (2e-3, 4e-3, 8e-3, 16e-3)),
    ],
}
ALL_RUNS = {
    "kinds": "prose",
    "epochs": 1,
    "dropout": 0,
    "blocks-per-batch": 8,
    "muon-learning-rate": 8e-3,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the recipe."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True, help="folder for the runs and their records")
    parser.add_argument("--smoke", action="store_true", help="two small runs of each sweep, in seconds")
    options = parser.parse_args(arguments)
    records: dict[str, list[dict[str, object]]] = {}
    for sweep, runs in SWEEPS.items():
        records[sweep] = []
        for settings in runs[:2] if options.smoke else runs:
            folder = options.output / ",".join(f"{name}={value}" for name, value in settings.items())
            if not folder.exists():
                listed = [f"--{name}={value}" for name, value in (ALL_RUNS | settings).items()]
                smoke = ["--smoke"] if options.smoke else []
                language_model.main([f"--output={folder}", *listed, *smoke])
            run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
            records[sweep].append(settings | run)
    write_text(options.output / "sweeps.json", json.dumps(records))


if __name__ == "__main__":
    main()
