"""Chapter 12's picture of loss against size: four language models, each trained once on the same tokens.

    python recipes/language_model_sizes.py --output build/language-model-sizes

Each run is one of `recipes/language_model.py`, on prose alone, for one pass, without dropout. What the
chapter reads is the file `sizes.json` in the output: a record for each run. A run that is there already is
not repeated.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from recipes import language_model

SIZES = ((64, 2), (128, 3), (192, 4), (256, 6))  # Width and layers.


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the recipe."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True, help="folder for the runs and their records")
    parser.add_argument("--smoke", action="store_true", help="all of it small, in seconds")
    options = parser.parse_args(arguments)
    records = []
    for width, layers in SIZES[:2] if options.smoke else SIZES:
        folder = options.output / f"width-{width}-layers-{layers}"
        if not folder.exists():
            settings = {"width": width, "layers": layers, "kinds": "prose", "epochs": 1, "dropout": 0}
            listed = [f"--{name}={value}" for name, value in settings.items()]
            smoke = ["--smoke"] if options.smoke else []
            language_model.main([f"--output={folder}", *listed, *smoke])
        run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        records.append({"width": width, "layers": layers, **run})
    with tempfile.NamedTemporaryFile("w", dir=options.output, delete=False, encoding="utf-8") as file:
        json.dump(records, file)
    Path(file.name).replace(options.output / "sizes.json")


if __name__ == "__main__":
    main()
