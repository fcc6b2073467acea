"""What a launcher sets is done or refused; two processes are in `test_two_processes.py`."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from accelerate import Accelerator
from small_run import compute_loss, digest, make_batches, make_model
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor

from chapters_src.training import Settings, launch, loop, train


def run(model=None, **changes):
    kinds = []
    model = make_model(dropout=0) if model is None else model
    model[0].register_forward_hook(lambda module, inputs, output: kinds.append(output.dtype))
    history = train(model, make_batches(), compute_loss, Settings(learning_rate=0.1, max_steps=2, **changes))
    return history, kinds


@pytest.mark.parametrize("in_settings", [None, "bf16"])
def test_precision_is_the_launchers(monkeypatch, in_settings):
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "bf16")
    assert run(mixed_precision=in_settings)[1] == [torch.bfloat16] * 2


@pytest.mark.parametrize("in_settings", [None, 3])
def test_accumulation_is_the_launchers(monkeypatch, in_settings):
    expected, _ = run(accumulation_steps=3)
    monkeypatch.setenv("ACCELERATE_GRADIENT_ACCUMULATION_STEPS", "3")
    found, kinds = run(accumulation_steps=in_settings)
    assert found == expected and len(kinds) == 6


def test_a_launcher_may_compile(monkeypatch):
    """With the backend that compiles nothing but traces all."""
    model, compiled, expected = make_model(dropout=0), [], make_model(dropout=0)
    history, _ = run(expected)
    monkeypatch.setenv("ACCELERATE_DYNAMO_BACKEND", "EAGER")

    def watched(model, batch):
        compiled.append(type(model).__name__)
        return compute_loss(model, batch)

    evaluated = []
    found = train(
        model,
        make_batches(),
        watched,
        Settings(learning_rate=0.1, max_steps=2),
        evaluate=lambda bare: evaluated.append(bare) or {},
    )
    assert evaluated[0] is model, "so that parts of it can be called as they are"
    assert compiled == ["OptimizedModule"] * 2
    assert found.steps[-1] == pytest.approx(history.steps[-1])
    assert digest(model) == digest(expected) and "_orig_mod" not in "".join(model.state_dict())


REFUSED = {
    "another precision": (
        {"ACCELERATE_MIXED_PRECISION": "no"},
        {"mixed_precision": "bf16"},
        "mixed_precision='bf16', the launcher has 'no': launch with --mixed_precision bf16",
    ),
    "an unknown precision": (
        {"ACCELERATE_MIXED_PRECISION": "fp8"},
        {},
        "mixed precision 'fp8'; supported are",
    ),
    "fp16 on a processor": ({"ACCELERATE_MIXED_PRECISION": "fp16"}, {}, "'fp16' needs a GPU"),
    "fp16 in the settings": ({}, {"mixed_precision": "fp16"}, "'fp16' needs a GPU"),
    "other accumulation": (
        {"ACCELERATE_GRADIENT_ACCUMULATION_STEPS": "3"},
        {"accumulation_steps": 2},
        "accumulation_steps=2, the launcher has 3",
    ),
    "no accumulation": (
        {"ACCELERATE_GRADIENT_ACCUMULATION_STEPS": "0"},
        {},
        "ACCELERATE_GRADIENT_ACCUMULATION_STEPS='0' has to be a whole number, at least 1",
    ),
    "sharding": ({"ACCELERATE_USE_FSDP": "true"}, {}, "FSDP, but Accelerate does not shard 1 process"),
    "processes that were not started": (  # accelerate launch --cpu --num_processes 2
        {"ACCELERATE_MIXED_PRECISION": "no", "MASTER_ADDR": "127.0.0.1"},
        {},
        "told to start several processes and started one",
    ),
    "DeepSpeed": ({"ACCELERATE_USE_DEEPSPEED": "true"}, {}, "requests DEEPSPEED"),
    "Megatron": ({"ACCELERATE_USE_MEGATRON_LM": "true"}, {}, "requests MEGATRON_LM"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_would_not_happen_is_refused(monkeypatch, what):
    environment, changes, message = REFUSED[what]
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    model = make_model()
    before = digest(model)
    with pytest.raises(ValueError, match=message):
        run(model, **changes)
    assert digest(model) == before


def test_processes_that_do_not_know_of_each_other_are_refused(monkeypatch):
    """As `torchrun` starts them where there is no graphics card, and nobody says that this is meant."""
    monkeypatch.delenv("ACCELERATE_USE_CPU")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ValueError, match=r"has started 2 processes, but Accelerate sees 1.*USE_CPU=true"):
        run()


def test_an_accelerator_of_the_caller_is_as_before():
    theirs = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=5)
    assert run(mixed_precision="no")[1] == [torch.float32] * 2
    assert theirs.mixed_precision == "bf16" and theirs.gradient_accumulation_steps == 5
    assert Accelerator().mixed_precision == "bf16"
    with pytest.raises(ValueError, match="fp16"):
        run(mixed_precision="fp16")
    assert theirs.mixed_precision == "bf16"


def test_a_model_that_was_prepared_elsewhere_is_prepared_anew():
    model = make_model(dropout=0)
    prepared = Accelerator().prepare(model)
    assert prepared is model and model._is_accelerate_prepared
    assert run(model, mixed_precision="bf16")[1] == [torch.bfloat16] * 2
    assert model._is_accelerate_prepared


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="needs /proc")
@pytest.mark.parametrize("option", ["--gradient_accumulation_steps 2", ""])
def test_accumulation_that_accelerate_does_not_pass_on_is_refused(tmp_path, option):
    """The option of the script has the same name, and is the script's own business."""
    script = tmp_path / "script.py"
    script.write_text(
        "from chapters_src.training import Settings, launch\n"
        "launch._check_environment(Settings(learning_rate=1, max_steps=1))\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "accelerate.commands.launch", "--cpu", "--num_processes=1"]
    command += [*option.split(), str(script), "--gradient_accumulation_steps", "3"]
    package = str(Path(launch.__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": package}
    process = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    message = "set ACCELERATE_GRADIENT_ACCUMULATION_STEPS=2 in the environment instead"
    assert (message in process.stderr) == bool(option), process.stderr
    assert (process.returncode == 0) == (not option), process.stderr


class Tied(torch.nn.Module):
    """Two names for one matrix."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.a, self.b, self.c = (torch.nn.Linear(6, 6) for _ in range(3))
        self.b.weight = self.a.weight

    def forward(self, inputs):
        return self.c(self.b(self.a(inputs)))


@pytest.mark.parametrize("precision", ["no", "bf16"])
def test_a_compiled_model_with_tied_weights_trains_as_it_does_uncompiled(precision):
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    plain, model = Tied(), Tied()
    compiled = torch.compile(model, backend=backend)
    attributes = [vars(module).copy() for module in (compiled, model)]
    settings = Settings(learning_rate=0.1, max_steps=3, mixed_precision=precision)
    for _ in range(2):  # The second run finds the model as the first one left it.
        expected = train(plain, make_batches(), compute_loss, settings)
        assert train(compiled, make_batches(), compute_loss, settings) == expected
        assert [vars(compiled), vars(model)] == [attributes[0], {**attributes[1], "training": False}]
    assert len(graphs) == 1 and digest(model) == digest(plain)


def test_ties_that_an_engine_breaks_are_noticed(monkeypatch):
    assert launch.ties(Tied()) == {frozenset({"a.weight", "b.weight"})}

    def separating(accelerator, model, *optimizers):
        model.b.weight = torch.nn.Parameter(model.a.weight.detach().clone())
        return model, *optimizers

    monkeypatch.setattr(Accelerator, "prepare", separating)
    with pytest.raises(ValueError, match=r"'a.weight', 'b.weight'.*fsdp_cpu_ram_efficient_loading"):
        train(Tied(), make_batches(), compute_loss, Settings(learning_rate=0.1, max_steps=2))


@pytest.mark.parametrize(("mixed_precision", "is_fsdp2"), [("fp16", False), ("no", True)])
def test_several_optimizers_are_refused_where_accelerate_handles_one(mixed_precision, is_fsdp2):
    accelerator = SimpleNamespace(mixed_precision=mixed_precision, is_fsdp2=is_fsdp2)
    model = make_model()
    optimizers = [torch.optim.SGD(part.parameters()) for part in (model[0], model[1:])]
    with pytest.raises(ValueError, match="2 optimizers: "), launch.prepared(accelerator, model, optimizers):
        pass


@pytest.fixture
def one_process_group():
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


@pytest.mark.parametrize("reshard", [True, False])
@pytest.mark.parametrize("error", [None, KeyboardInterrupt])
def test_parts_of_a_sharded_model_can_be_called_in_an_evaluation(one_process_group, reshard, error):
    sharded, whole = make_model(dropout=0), make_model(dropout=0)
    fully_shard(sharded[4], reshard_after_forward=reshard)
    fully_shard(sharded, reshard_after_forward=reshard)
    batch = next(iter(make_batches()))
    accelerator = SimpleNamespace(
        is_fsdp2=True,
        unwrap_model=lambda model, keep_torch_compile: model,
        state=SimpleNamespace(fsdp_plugin=SimpleNamespace(reshard_after_forward=reshard)),
    )

    def evaluate(model):
        model(batch["inputs"])  # After it, parts would be shards again.
        found, expected = (m[4](m[1](m[0](batch["inputs"]))) for m in (model, whole))
        torch.testing.assert_close(found, expected)
        if error:
            raise error
        return {}

    def shards():
        return [isinstance(parameter, DTensor) for parameter in sharded.parameters()]

    compute_loss(sharded, batch).backward()
    assert all(shards())
    if error:
        with pytest.raises(error):
            loop._evaluate(accelerator, sharded, evaluate)
    else:
        assert loop._evaluate(accelerator, sharded, evaluate) == {}
    assert all(shards())
    loss = compute_loss(sharded, batch)
    assert shards()[-2:] == [reshard, reshard], "as it was before the evaluation"
    loss.backward()
    for _ in range(2):
        compute_loss(whole, batch).backward()
    for a, b in zip(sharded.parameters(), whole.parameters(), strict=True):
        torch.testing.assert_close(a.grad.full_tensor(), b.grad)
