"""The configurations in `recipes/launch`: what Accelerate reads in them, and what they start on CPUs."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from accelerate.commands.config.config_args import load_config_from_file
from accelerate.commands.launch import _validate_launch_command, launch_command_parser
from accelerate.utils import prepare_multi_gpu_env

from chapters_src.transformer import layers
from recipes import language_model

FOLDER = Path(language_model.__file__).with_name("launch")
REPOSITORY = FOLDER.parents[1]
FILES = sorted(FOLDER.glob("*.yaml"))
SMOKE = ["--smoke", "--epochs", "1", "--dropout", "0", "--precision", "no", "--kinds", "prose"]


def arguments(name, *options):
    """What the launcher makes of a configuration."""
    given = ["--config_file", str(FOLDER / f"{name}.yaml"), *options, "script.py"]
    found, *_ = _validate_launch_command(launch_command_parser().parse_args(given))
    return found


def test_there_are_five():
    assert [path.stem for path in FILES] == ["cpu", "fsdp", "gpu", "gpus", "nodes"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_is_read_without_an_unknown_key_and_says_how_it_is_called(path):
    assert (
        load_config_from_file(str(path)).num_processes
        == yaml.safe_load(path.read_text("utf-8"))["num_processes"]
    )
    comments = [line for line in path.read_text("utf-8").splitlines() if line.startswith("#")]
    assert f"--config_file recipes/launch/{path.name}" in " ".join(comments)


def test_a_configuration_for_one_process_starts_one(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert arguments("cpu").use_cpu and arguments("cpu").num_processes == 1
    assert not arguments("gpu").multi_gpu and arguments("gpu").num_processes == 1


@pytest.mark.parametrize(("name", "processes"), [("gpus", 4), ("nodes", 8)])
def test_several_cards_are_data_parallel(name, processes):
    found = arguments(name)
    assert found.multi_gpu and not found.use_fsdp and found.num_processes == processes


def test_the_sharded_one_is_the_second_version_and_wraps_the_layers_of_the_package():
    found = arguments("fsdp")
    assert found.use_fsdp and not found.cpu
    environment = prepare_multi_gpu_env(found)
    assert environment["ACCELERATE_USE_FSDP"] == "true" and environment["FSDP_VERSION"] == "2"
    assert environment["FSDP_AUTO_WRAP_POLICY"] == "TRANSFORMER_BASED_WRAP"
    assert hasattr(layers, environment["FSDP_TRANSFORMER_CLS_TO_WRAP"])
    assert environment["FSDP_CPU_RAM_EFFICIENT_LOADING"].lower() == "false"


def test_each_computer_is_told_its_rank_and_where_the_first_one_is():
    found = arguments("nodes", "--machine_rank", "1", "--main_process_ip", "10.1.2.3")
    environment = prepare_multi_gpu_env(found)
    assert (found.num_machines, found.machine_rank, found.main_process_ip) == (2, 1, "10.1.2.3")
    assert environment is not None


def environment():
    path = os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"}


def losses(folder):
    return json.loads((folder / "run.json").read_text(encoding="utf-8"))["loss"]


@pytest.mark.slow
def test_the_recipe_runs_with_the_configuration_for_a_cpu_and_on_two_nodes(tmp_path):
    """Two nodes are two launches with one process each; they meet at a port of this computer."""
    recipe = ["recipes/language_model.py", *SMOKE, "--optimizer", "adamw"]
    launcher = [sys.executable, "-m", "accelerate.commands.launch"]
    command = [*launcher, "--config_file", str(FOLDER / "cpu.yaml"), *recipe, f"--output={tmp_path / 'one'}"]
    subprocess.run(command, check=True, env=environment(), cwd=REPOSITORY, timeout=300, capture_output=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=1"]
    torchrun += ["--master-addr=127.0.0.1", f"--master-port={port}"]
    nodes = [
        subprocess.Popen(
            [*torchrun, f"--node-rank={rank}", *recipe, f"--output={tmp_path / 'nodes'}"],
            env=environment(),
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in (0, 1)
    ]
    try:
        said = [node.communicate(timeout=300)[0] for node in nodes]
    finally:
        for node in nodes:
            node.terminate()
    assert [node.returncode for node in nodes] == [0, 0], said
    assert losses(tmp_path / "nodes") == pytest.approx(losses(tmp_path / "one"), rel=1e-3)
