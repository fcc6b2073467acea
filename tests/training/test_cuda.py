"""The loop on graphics cards: precision, going on, two of them, and weights that they share out."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from chapters_src.training import loop

pytestmark = [pytest.mark.cuda, pytest.mark.slow]
two_cards = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two graphics cards")
FSDP2 = {
    "ACCELERATE_USE_FSDP": "true",
    "FSDP_VERSION": "2",
    "FSDP_AUTO_WRAP_POLICY": "SIZE_BASED_WRAP",
    "FSDP_MIN_NUM_PARAMS": "5000",  # A layer has about 8,500.
    "FSDP_RESHARD_AFTER_FORWARD": "true",
    "FSDP_CPU_RAM_EFFICIENT_LOADING": "false",
    "FSDP_STATE_DICT_TYPE": "SHARDED_STATE_DICT",
}


def on_cards(folder, num_processes=1, **environment):
    """Run the script on so many GPUs. Returns what it reports."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ACCELERATE_")}
    package = str(Path(loop.__file__).parents[2])
    torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={num_processes}"]
    process = subprocess.run(
        [
            sys.executable,
            *(torchrun if num_processes > 1 else []),
            str(Path(__file__).with_name("on_cards.py")),
            str(folder),
        ],
        env={**clean, "PYTHONPATH": package, **environment},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert process.returncode == 0, process.stderr
    return json.loads((folder / "result.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    return on_cards(tmp_path_factory.mktemp("one"))


def test_it_trains_on_the_card_in_each_precision(one):
    assert (one["device"], one["processes"]) == ("cuda", 1)
    assert one["full"][-1] < one["full"][0] - 0.5
    for precision in ("bf16", "fp16"):
        assert one[precision] == pytest.approx(one["full"], rel=0.05) and one[precision] != one["full"]


def test_interrupted_and_gone_on_the_losses_are_nearly_the_same(one):
    """The bits are promised on a processor only."""
    assert one["resumed"] == pytest.approx(one["full"], rel=1e-3)


@two_cards
def test_two_cards_do_what_one_does(one, tmp_path):
    two = on_cards(tmp_path, num_processes=2)
    assert (two["kind"], two["processes"]) == ("MULTI_GPU", 2)
    assert two["full"] == pytest.approx(one["full"], rel=1e-3)
    assert two["resumed"] == pytest.approx(two["full"], rel=1e-3)


@two_cards
def test_two_cards_share_out_the_weights(one, tmp_path):
    sharded = on_cards(tmp_path, num_processes=2, **FSDP2)
    assert (sharded["kind"], sharded["processes"]) == ("FSDP", 2)
    assert sharded["full"] == pytest.approx(one["full"], rel=1e-3)
    assert sharded["resumed"] == pytest.approx(sharded["full"], rel=1e-3)
