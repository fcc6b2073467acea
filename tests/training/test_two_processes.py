"""Two processes on the processor, as a launcher starts them: what each has seen, beside one process."""

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import safetensors.torch
from small_run import compute_loss, evaluate, make_batches, make_model, settings
from test_streams import Numbers
from test_streams import run as run_stream
from two_processes import NUM_EXAMPLES

from chapters_src.training import loop, train

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent


def launch(script, *arguments, **environment):
    """Start a script in two processes, as `torchrun` does."""
    package = str(Path(loop.__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": package, "OMP_NUM_THREADS": "1", **environment}
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    return subprocess.run(
        [*torchrun, str(HERE / script), *map(str, arguments)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=400,
    )


def one_process(folder=None, **changes):
    changes = {"checkpoint_every": 0 if folder is None else 5, **changes}
    batches, model = make_batches(num_examples=NUM_EXAMPLES), make_model(dropout=0)
    arguments = {"evaluate": evaluate, "checkpoint_folder": folder}
    return train(model, batches, compute_loss, settings(**changes), **arguments)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("two")


@pytest.fixture(scope="module")
def results(folder):
    from accelerate.state import AcceleratorState

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ACCELERATE_USE_CPU", "true")
        AcceleratorState._reset_state(reset_partial_state=True)
        one_process(folder / "of one process", accumulation_steps=2, max_steps=10, evaluate_every=0)
        run_stream(Numbers(24), folder / "stream of one", max_steps=5)
    process = launch("two_processes.py", folder, ACCELERATE_USE_CPU="true")
    assert process.returncode == 0, process.stderr
    return [json.loads((folder / f"result-{rank}.json").read_text()) for rank in (0, 1)]


def assert_equal(ours, expected):
    assert len(ours) == len(expected) > 0
    for row, other in zip(ours, expected, strict=True):
        assert row == pytest.approx(other, rel=1e-4)


@pytest.mark.parametrize(("case", "batches_of_one"), [("case_one_batch_each", 2), ("case_accumulated", 6)])
def test_two_processes_do_what_one_does(results, case, batches_of_one):
    """Without dropout, which each process draws for itself."""
    expected = one_process(accumulation_steps=batches_of_one)
    assert results[0][case]["weights"] == results[1][case]["weights"]
    for result in results:
        assert_equal(result[case]["steps"], expected.steps)
    assert results[0][case]["evaluations"] == results[1][case]["evaluations"]


def test_a_finished_run_of_two_goes_on_and_returns(results):
    for result in results:
        assert result["case_one_batch_each"]["processes"] == 2
        assert result["case_one_batch_each"]["again"] == result["case_one_batch_each"]["weights"]


def test_gradients_are_exchanged_once_in_a_step(results):
    """An epoch has a step of three batches for each, and one of two and one; the stand-in makes it two."""
    for result in results:
        assert result["case_accumulated"]["exchanges"][:10] == [False, False, True, False, True] * 2


def test_the_same_model_twice_with_a_part_that_is_never_used(results):
    for result in results:
        first, second = result["case_twice_and_unused"]["steps"]
        assert_equal(first, one_process(accumulation_steps=2, max_steps=6).steps)
        assert second[0]["loss"] < first[0]["loss"]
        assert result["case_twice_and_unused"]["unused is kept"]


def test_of_a_stream_each_item_goes_to_one_process(results):
    _, expected, seen = run_stream(Numbers(), max_steps=8, accumulation_steps=2)
    one, other = (result["case_stream"] for result in results)
    assert [batch for pair in zip(one["seen"], other["seen"], strict=True) for batch in pair] == seen
    assert [row["items"] for row in one["steps"]] == [row["items"] for row in expected.steps]


def test_streams_of_their_own_go_on_and_one_that_has_changed_is_refused_in_both(results):
    one, other = (result["case_streams_of_their_own"] for result in results)
    assert max(one["first"]) < 100 <= min(other["first"])
    assert one["same"] and other["same"]
    assert one["refused"] == other["refused"]
    assert "hash of the data was ['" in one["refused"]


def test_interrupted_and_gone_on_two_end_with_the_same_bits(results):
    assert [result["case_interrupted"]["same"] for result in results] == [True, True]
    assert results[0]["case_interrupted"]["weights"] == results[1]["case_interrupted"]["weights"]


def test_a_compiled_model_trains_and_is_stored_as_the_plain_one(results, folder):
    for result in results:
        compiled = result["case_compiled"]
        assert_equal(compiled["found"], compiled["expected"])
        assert compiled["resumed"] == compiled["found"]
    weights = safetensors.torch.load_file(folder / "compiled" / "step-00000006" / "model.safetensors")
    assert {"5.weight", "6.bias"} <= weights.keys() and "6.weight" not in weights


def test_an_error_of_one_is_raised_in_both(results):
    for result in results:
        assert result["case_errors"]["disk"].startswith("CheckpointError: After step 5 no checkpoint")
        assert "No space left on device" in result["case_errors"]["disk"]


def test_what_would_not_happen_is_refused(results):
    for result in results:
        assert result["case_errors"]["fsdp"].startswith("ValueError: the launcher requests FSDP, but")


def test_sharded_by_accelerate_a_model_trains_and_can_be_written(results):
    names = results[0]["case_sharded_by_accelerate"]["expected names"]
    for result, expected in zip(results, (names, []), strict=True):
        found = result["case_sharded_by_accelerate"]
        assert found["sharded"] == pytest.approx(found["plain"], rel=1e-4)
        assert found["plain"][-1] < found["plain"][0] - 0.1
        assert found["resumed"] == pytest.approx(found["sharded"], rel=1e-5)
        assert found["sharded, second run"] == pytest.approx(found["plain, second run"], rel=1e-4)
        assert found["is sharded"], "else nothing had to be gathered"
        assert found["names"] == expected, "only the main process gets the weights"
        assert "all processes have to start from the same weights" in found["error"]
    assert results[0]["case_sharded_by_accelerate"]["difference"] < 1e-4
    assert results[1]["case_sharded_by_accelerate"]["difference"] is None


def test_processes_with_different_data_or_options_are_refused(results):
    for result in results:
        found = result["case_data"]
        start = "ValueError: the main process and process 1 would train on different data or with different"
        assert all(found[name].startswith(start) for name in ("values", "number", "dropout", "split by node"))
        assert "options: hash of the data '" in found["values"] and "examples 33 and 32" in found["number"]
        assert "p of 3 (Dropout) 0.0 and 0.25" in found["dropout"]
        assert "set split_stream=False" in found["split by node"]
    seen = [{*itertools.chain(*result["case_data"]["split by node, told"])} for result in results]
    assert seen[0].isdisjoint(seen[1]) and len(seen[0] | seen[1]) == 16


def test_a_folder_that_is_not_shared_or_is_in_use_is_refused_at_the_start(results):
    for result in results:
        found = result["case_folders"]
        assert (
            "node 0 is not the same folder" in found["not shared"] or "node 1 is not" in found["not shared"]
        )
        assert "process 1 does not see" in found["not shared"]
        assert "Another run is using" in found["locked"] and "free" not in found
        assert found["left"] == [".lock", "step-00000002"], "no trace of the checks"


def test_a_run_of_one_process_may_be_resumed_by_two(results):
    """Each of them takes one of the two batches that the one process accumulated."""
    expected = one_process(accumulation_steps=2, max_steps=20, evaluate_every=0)
    _, _, seen = run_stream(Numbers(24), max_steps=9)
    pairs = zip(*(result["case_other_number_of_processes"]["stream"] for result in results), strict=True)
    assert [one + other for one, other in pairs] == seen[5:]
    for result in results:
        found = result["case_other_number_of_processes"]
        assert_equal(
            found["same step"][:10], one_process(accumulation_steps=2, max_steps=10, evaluate_every=0).steps
        )
        assert [row["items"] for row in found["same step"]] == [row["items"] for row in expected.steps]
        assert "examples in a step (of all processes, accumulated) was 8 and is 16" in found["twice the step"]
