"""The loop against one written out by hand, and against itself: interrupted, killed, in two processes."""

import functools
import itertools
import json
import math
import os
import random
import shutil
import subprocess
import sys
import time
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import small_run
import torch
from small_run import collate, compute_loss, digest, evaluate, make_batches, make_model, settings
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from chapters_src.training import CheckpointError, History, Settings, loop, train

PLAIN = {"learning_rate": 0.01, "schedule": "constant"}
OTHERS = ("evaluate", "checkpoint_folder", "make_optimizers")


def fit(model=None, loss=compute_loss, batches=None, **changes):
    """Train the small model at a constant rate; `changes` are settings, or what else `train` takes."""
    others = {name: changes.pop(name) for name in OTHERS if name in changes}
    batches = make_batches() if batches is None else batches
    return train(model or make_model(), batches, loss, Settings(**{**PLAIN, **changes}), **others)


def spoiled(step, factor=math.nan):
    """A loss that is multiplied by something bad in one step, and the batches that it was called with."""
    calls = []

    def loss(model, batch):
        calls.append(batch)
        return compute_loss(model, batch) * (factor if len(calls) == step else 1)

    return loss, calls


def losses(history):
    return [record["loss"] for record in history.steps]


def assert_close(model, other):
    for a, b in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


# One run --------------------------------------------------------------------------------------------------


def test_it_is_the_loop_that_one_writes_out_by_hand():
    batches = make_batches(batch_size=5, shuffle=False)
    ours, theirs = make_model(dropout=0), make_model(dropout=0)
    history = fit(ours, batches=batches, num_epochs=3, weight_decay=0.1, max_grad_norm=0.5)

    decayed = [theirs[0].weight, theirs[4].weight]
    others = [parameter for parameter in theirs.parameters() if parameter.ndim == 1]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0}], lr=0.01
    )
    expected, norms = [], []
    for _ in range(3):
        for batch in batches:
            optimizer.zero_grad()
            loss = F.cross_entropy(theirs(batch["inputs"]), batch["labels"])
            loss.backward()
            norms.append(torch.nn.utils.clip_grad_norm_(theirs.parameters(), 0.5).item())
            optimizer.step()
            expected.append(loss.item())
    assert losses(history) == pytest.approx(expected, rel=1e-5)
    assert [record["gradient_norm"] for record in history.steps] == pytest.approx(norms, rel=1e-4)
    assert max(norms) > 0.5, "else nothing was clipped"
    assert_close(ours, theirs)
    assert [record["step"] for record in history.steps] == [*range(1, 25)]
    assert [record["items"] for record in history.steps][6:9] == [35, 37, 42]


def test_without_clipping_the_norm_is_still_recorded():
    history = fit(max_steps=3, max_grad_norm=math.inf)
    assert history == fit(max_steps=3, max_grad_norm=1e9) and all(
        record["gradient_norm"] > 0 for record in history.steps
    )


def test_one_large_batch_is_several_unequal_ones():
    """The mean of means would weigh items of small batches more."""

    class Unequal:
        def __iter__(self):
            return iter([[*range(0, 20)], [20], [*range(21, 29)], [29, 30, 31]])

        def __len__(self):
            return 4

    data = make_batches(num_examples=32).dataset
    pieces = DataLoader(data, batch_sampler=Unequal(), collate_fn=collate)
    whole = DataLoader(data, batch_size=32, collate_fn=collate)
    one, four = make_model(dropout=0), make_model(dropout=0)
    expected = fit(one, batches=whole, num_epochs=5)
    found = fit(four, batches=pieces, num_epochs=5, accumulation_steps=4)
    assert len(found.steps) == 5
    assert losses(found) == pytest.approx(losses(expected), rel=1e-5)
    assert_close(one, four)


def seen_by(num_examples=10, **changes):
    """Train on the numbers from 0 up. Returns those that each step saw."""
    steps = []

    def note(model, batch):
        steps.append(batch[0].tolist())
        return model(batch[0][:, None].float()).sum()

    batches = DataLoader(TensorDataset(torch.arange(num_examples)), 3, shuffle=True)
    few = Settings(**{**PLAIN, "num_epochs": 2, **changes})
    train(torch.nn.Linear(1, 1), batches, note, few, count_items=lambda batch: len(batch[0]))
    return steps


def test_each_epoch_shows_each_example_once_in_an_order_of_its_own():
    steps = seen_by()
    assert [len(step) for step in steps] == [3, 3, 3, 1] * 2
    first, second = ([*itertools.chain(*epoch)] for epoch in (steps[:4], steps[4:]))
    assert sorted(first) == sorted(second) == [*range(10)]
    assert first != second != [*range(10)] != first


def test_the_order_follows_from_the_seed_alone():
    expected = seen_by()
    torch.manual_seed(99), random.seed(99), np.random.seed(99)
    assert seen_by() == expected
    assert seen_by(num_epochs=0, max_steps=6) == expected[:6]
    assert seen_by(seed=1) != expected


def test_the_callers_loader_and_generators_are_as_before():
    batches = make_batches()
    states = torch.get_rng_state(), random.getstate(), str(np.random.get_state())
    train(make_model(), batches, compute_loss, settings(checkpoint_every=0), evaluate=evaluate)
    assert (torch.get_rng_state() == states[0]).all()
    assert (random.getstate(), str(np.random.get_state())) == states[1:]
    assert batches.generator is None and batches.sampler.generator is None


def test_evaluating_changes_nothing_else():
    plain, evaluated = make_model(dropout=0.5), make_model(dropout=0.5)
    modes = []

    def spy(model):
        modes.append((model.training, torch.is_grad_enabled()))
        random.random(), np.random.random()
        return evaluate(model)

    quiet = settings(checkpoint_every=0, evaluate_every=0)
    expected = train(plain, make_batches(), compute_loss, quiet)
    found = train(
        evaluated, make_batches(), compute_loss, settings(checkpoint_every=0, evaluate_every=7), evaluate=spy
    )
    assert found.steps == expected.steps and digest(plain) == digest(evaluated)
    assert [record["step"] for record in found.evaluations] == [7, 14, 21, 28, 35, 40]
    assert modes == [(False, False)] * 6
    assert not evaluated.training


def test_evaluating_leaves_parts_in_the_mode_they_were_in():
    model, modes = make_model(), []

    def freeze(model, batch):
        modes.append(model[3].training)
        model[3].eval()
        return compute_loss(model, batch)

    fit(model, freeze, max_steps=4, evaluate_every=1, evaluate=lambda _: {"x": 0})
    assert modes == [True, False, False, False]


def test_every_evaluation_is_kept_even_a_bad_one():
    values = iter([0.1, float("nan"), 3])
    history = fit(max_steps=3, evaluate_every=1, evaluate=lambda _: {"score": torch.tensor(next(values))})
    scores = [record["score"] for record in history.evaluations]
    assert scores == pytest.approx([0.1, math.nan, 3], nan_ok=True)


def test_the_history_as_a_table(whole):
    table = whole.history.to_frame()
    assert table.index.tolist() == [*range(1, 41)] and table.index.name == "step"
    assert [*table] == ["loss", "learning_rate", "gradient_norm", "items", "evaluation_loss"]
    assert table["loss"].tolist() == losses(whole.history)
    assert table["evaluation_loss"].dropna().index.tolist() == [8, 16, 24, 32, 40]
    assert table["evaluation_loss"][16] == whole.history.evaluations[1]["loss"]
    assert table["learning_rate"].iloc[:5].tolist() == pytest.approx([0, 0.005, 0.01, 0.015, 0.02])
    assert History().to_frame().empty


def test_frozen_and_unused_parameters_stay():
    model = make_model()
    model[0].requires_grad_(False)
    model.register_module("unused", torch.nn.Linear(2, 2))
    before = [tensor.clone() for tensor in (*model[0].parameters(), *model.unused.parameters())]
    fit(model, lambda m, b: compute_loss(m[:5], b), max_steps=3, weight_decay=1)
    after = [*model[0].parameters(), *model.unused.parameters()]
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
    assert all(parameter.grad is None for parameter in model.parameters())


def test_gradients_from_before_do_not_count():
    clean, stale = make_model(), make_model()
    compute_loss(stale, next(iter(make_batches()))).backward()
    for model in (clean, stale):
        fit(model, max_steps=2)
    assert digest(clean) == digest(stale)


def test_bfloat16_is_used_when_asked_for_also_the_second_time():
    """Accelerate marks a model as prepared, and would leave it as it is in the next run."""
    kinds = []
    model = make_model()
    model[4].register_forward_hook(lambda module, inputs, output: kinds.append(output.dtype))
    before = dict(vars(model))
    for precision in ("no", "bf16", None, "bf16"):
        fit(model, max_steps=2, mixed_precision=precision)
        assert vars(model) == {**before, "training": False}
    assert kinds == [torch.float32] * 2 + [torch.bfloat16] * 2 + [torch.float32] * 2 + [torch.bfloat16] * 2


def test_other_optimizers_share_the_schedule():
    rates = []

    class Watched(torch.optim.SGD):
        def step(self, closure=None):
            rates.append([group["lr"] for group in self.param_groups])

    def make_optimizers(model):
        matrices = [parameter for parameter in model.parameters() if parameter.ndim == 2]
        vectors = [parameter for parameter in model.parameters() if parameter.ndim == 1]
        return [torch.optim.Muon(matrices, lr=0.5), Watched([{"params": vectors, "lr": 3.0}])]

    model = make_model()
    before = [parameter.detach().clone() for parameter in model.parameters()]
    linear = Settings(learning_rate=0.1, max_steps=4)
    train(model, make_batches(), compute_loss, linear, make_optimizers=make_optimizers)
    assert np.ravel(rates) == pytest.approx([3.0, 2.25, 1.5, 0.75])
    for old, new in zip(before, model.parameters(), strict=True):
        assert torch.equal(old, new) == (new.ndim == 1), "Muon moves the matrices, and the other one nothing"


def test_betas_and_lowest_rate_reach_the_optimizer(monkeypatch):
    made = []
    adamw = torch.optim.AdamW
    monkeypatch.setattr(
        torch.optim, "AdamW", lambda *args, **options: made.append(args) or adamw(*args, **options)
    )
    changed = Settings(learning_rate=0.1, max_steps=4, betas=(0.5, 0.6), min_learning_rate=0.08)
    history = train(make_model(), make_batches(), compute_loss, changed)
    assert made[0][1:] == (0.1, (0.5, 0.6))
    assert [row["learning_rate"] for row in history.steps] == pytest.approx([0.1, 0.095, 0.09, 0.085])


def test_losses_are_read_once_in_an_interval(monkeypatch):
    readings = []
    read = loop.Recorder.read
    monkeypatch.setattr(loop.Recorder, "read", lambda self: (readings.append(len(self.pending)), read(self)))
    expected = fit(max_steps=9)
    assert readings == [1] * 9
    readings.clear()
    assert fit(max_steps=9, log_every=4) == expected and readings == [4, 4, 1]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_run_that_ends_with_an_error_leaves_a_model_to_evaluate(error):
    model, calls = make_model(), []

    def broken(model, batch):
        calls.append(batch)
        if len(calls) == 4:  # The second of a step, so that there are gradients.
            raise error
        return compute_loss(model, batch)

    with pytest.raises(error):
        fit(model, broken, max_steps=2, accumulation_steps=2)
    assert not any(module.training for module in model.modules())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_an_evaluation_that_raises_leaves_the_model_as_it_was():
    model = make_model()
    model.eval()
    before = dict(vars(model))

    def broken(model):
        random.random()
        raise RuntimeError("no data")

    states = torch.get_rng_state(), random.getstate()
    with pytest.raises(RuntimeError, match="no data"):
        fit(model, max_steps=2, evaluate=broken)
    assert vars(model) == before
    assert (torch.get_rng_state() == states[0]).all() and random.getstate() == states[1]


class WhereLoaded(Dataset):
    """Eight numbers, each with the process that has loaded it."""

    def __len__(self):
        return 8

    def __getitem__(self, i):
        return torch.tensor([i, os.getpid()])


@pytest.mark.parametrize(("persist", "num_processes"), [(True, 1), (False, 3)])
def test_workers_persist_over_epochs_if_the_loader_says_so(persist, num_processes):
    seen = []

    def note(model, batch):
        seen.extend(batch.tolist())
        return model(batch.float()).sum() * 1e-9

    batches = DataLoader(WhereLoaded(), 2, shuffle=True, num_workers=1, persistent_workers=persist)
    train(torch.nn.Linear(2, 1), batches, note, Settings(**PLAIN, num_epochs=3), count_items=len)
    numbers, processes = zip(*seen, strict=True)
    assert len({*processes}) == num_processes and os.getpid() not in processes
    assert [sorted(numbers[first : first + 8]) for first in (0, 8, 16)] == [[*range(8)]] * 3
    assert numbers[:8] != numbers[8:16]


# Errors ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_stops_the_run_before_it_does_harm(bad):
    model, before = make_model(), make_model()
    fit(before, max_steps=2)
    loss, calls = spoiled(3, bad)
    with pytest.raises(FloatingPointError, match=rf"step 3: the loss is {bad}.*learning rate \(now 0.01\)"):
        fit(model, loss, max_steps=9)
    assert digest(model) == digest(before) and len(calls) == 3


def test_a_gradient_that_is_not_finite_stops_the_run():
    def steep(model, batch):  # The square root has an infinite slope at 0.
        return (model(batch["inputs"]) * 0).abs().sum().sqrt()

    with pytest.raises(FloatingPointError, match=r"step 1: the loss is 0.0, the norm of its gradient nan"):
        fit(loss=steep, max_steps=9)


class Endless(IterableDataset):
    def __iter__(self):
        return iter(range(5))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batches": make_batches(num_examples=0, shuffle=False)}, "no batches .its data set has 0 examples"),
        (
            {"batches": make_batches(num_examples=3, drop_last=True)},
            "no batches .its data set has 3 examples",
        ),
        ({"batches": DataLoader(Endless()), "settings": Settings(**PLAIN, num_epochs=1)}, "set max_steps"),
        ({"batches": DataLoader([1, 2], batch_size=None)}, "set a batch_size"),
        ({"batches": make_batches(generator=torch.Generator())}, "has its own generator"),
        ({"batches": make_batches(num_workers=1, in_order=False)}, "in_order=False"),
        (
            {"settings": Settings(**PLAIN, max_steps=2, split_stream=False)},
            "split_stream=False is for streams",
        ),
        ({"model": torch.nn.ReLU()}, "requires_grad"),
        ({"model": make_model().requires_grad_(False)}, "requires_grad"),
        ({"model": torch.inference_mode()(make_model)()}, "inference_mode.*get no gradient"),
        ({"count_items": lambda batch: 0}, "step 1: its batches have no items"),
        (
            {"compute_loss": lambda m, b: m(b["inputs"]).sum(1)},
            r"compute_loss returned \(4,\): it has to be one sum",
        ),
        (
            {"compute_loss": lambda m, b: (compute_loss(m, b), 4)},
            "compute_loss returned tuple: it has to be one sum",
        ),
        ({"count_items": lambda batch: -4}, "count_items returned -4"),
        ({"batches": make_batches(collate_fn=tuple)}, 'no "labels": pass a function count_items'),
        ({"settings": Settings(**PLAIN, max_steps=2, evaluate_every=1)}, "evaluate is None: pass a function"),
        (
            {"settings": Settings(**PLAIN, max_steps=2, checkpoint_every=1)},
            "checkpoint_folder is None: pass a folder",
        ),
        ({"evaluate": lambda _: {"step": 1}}, "metric is named 'step'"),
    ],
)
def test_what_cannot_be_trained_is_refused(changes, message):
    arguments = {
        "model": make_model(),
        "batches": make_batches(),
        "compute_loss": compute_loss,
        "settings": Settings(**PLAIN, max_steps=2),
    }
    with pytest.raises(ValueError, match=message):
        train(**{**arguments, **changes})


SGD = torch.optim.SGD


@pytest.mark.parametrize(
    ("make_optimizers", "message"),
    [
        (lambda model: [SGD(model[0].parameters())], r"are missing: 1.weight, 1.bias, 4.weight, 4.bias; add"),
        (lambda model: [SGD(model.parameters()), SGD([model[4].bias])], "more than once: 4.bias; leave each"),
        (lambda model: [SGD([*model.parameters(), torch.ones(2, 3)])], r"not the model's .*: \(2, 3\); use"),
        (
            lambda model: [SGD(make_model().parameters())],
            "are missing: 0.weight, .*, 4.weight and 1 more; add",
        ),
    ],
    ids=["left out", "twice", "foreign", "of another model"],
)
def test_optimizers_for_other_parameters_are_refused(make_optimizers, message):
    def never(model, batch):
        raise AssertionError("the first step began")

    with pytest.raises(ValueError, match=message):
        fit(loss=never, max_steps=1, make_optimizers=make_optimizers)


def test_a_frozen_parameter_may_be_in_an_optimizer_or_not():
    for number_given in (0, 1):
        model = make_model()
        model[0].requires_grad_(False)

        def make_optimizers(model, number_given=number_given):
            return [SGD([*model[1:].parameters(), *[model[0].weight][:number_given]])]

        fit(model, max_steps=1, make_optimizers=make_optimizers)


def test_a_sampler_that_runs_dry_is_noticed():
    batches = DataLoader(make_batches().dataset, batch_sampler=BatchesOnce(), collate_fn=collate)
    with pytest.raises(ValueError, match="epoch 2 has 0 batches, but the loader says 2"):
        fit(batches=batches, num_epochs=2)


class BatchesOnce:
    def __init__(self):
        self.left = iter([[0, 1], [2, 3]])

    def __iter__(self):
        return self.left

    def __len__(self):
        return 2


# Resuming -------------------------------------------------------------------------------------------------


class Interrupted(Exception):
    pass


def run(folder, stop_before=None, **changes):
    """Train the small model; raise `Interrupted` instead of taking a step, if one is given."""
    model, taken = make_model(seed=changes.pop("model_seed", 0)), []
    # An epoch has 10 batches, so 4 steps of 3, 3, 3 and 1 batches.
    epochs, steps = divmod(stop_before - 1, 4) if stop_before else (1000, 0)
    stop_at = 10 * epochs + 3 * steps

    def loss_or_stop(model, batch):
        if len(taken) == stop_at:
            raise Interrupted
        taken.append(batch)
        return compute_loss(model, batch)

    arguments = {"evaluate": evaluate, "checkpoint_folder": folder}
    history = train(model, make_batches(), loss_or_stop, settings(**changes), **arguments)
    return model, history, len(taken)


def checkpoints_in(folder):
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock")


@functools.cache
def whole_run(folder):
    model, history, _ = run(folder)
    return SimpleNamespace(model=model, history=history, folder=folder)


@pytest.fixture(scope="module")
def whole_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("whole")


@pytest.fixture
def whole(whole_folder):
    """A run without an interruption, trained once; nobody changes its folder."""
    return whole_run(whole_folder)


def assert_same_bits(whole, model, history):
    assert history == whole.history and digest(model) == digest(whole.model)


@pytest.mark.parametrize(("checkpoint_every", "last"), [(5, 20), (7, 21)], ids=["end of an epoch", "middle"])
def test_interrupted_and_resumed_it_ends_with_the_same_bits(tmp_path, whole, capsys, checkpoint_every, last):
    """An epoch has four steps and ten batches; a step in the middle of one has three batches."""
    with pytest.raises(Interrupted):
        run(tmp_path, stop_before=23, checkpoint_every=checkpoint_every)
    torch.manual_seed(99), random.seed(99), np.random.seed(99)
    model, history, num_batches = run(tmp_path, model_seed=5, checkpoint_every=checkpoint_every)
    assert "Resuming from" in capsys.readouterr().err
    assert num_batches == 10 * 10 - (10 * (last // 4) + 3 * (last % 4)), f"it goes on after step {last}"
    assert_same_bits(whole, model, history)


def test_a_finished_run_returns_at_once(whole):
    model, history, num_batches = run(whole.folder, model_seed=5)
    assert num_batches == 0 and not model.training
    assert_same_bits(whole, model, history)
    assert run(whole.folder, log_every=7)[1] == history, "how often losses are read may change"


def resume_with(batches, folder):
    train(make_model(), batches, compute_loss, settings(), evaluate=evaluate, checkpoint_folder=folder)


def test_other_settings_are_refused_and_named(whole):
    with pytest.raises(CheckpointError) as caught:
        run(whole.folder, learning_rate=0.03, seed=1)
    assert "learning_rate was 0.02 and is 0.03; seed was 0 and is 1." in str(caught.value)
    assert "checkpoint_folder" in str(caught.value)
    changed = "examples was 37 and is 30; examples in an epoch was 37 and is 30; hash of the data was"
    with pytest.raises(CheckpointError, match=changed):
        resume_with(make_batches(num_examples=30), whole.folder)


def other_data():
    batches = make_batches()
    batches.dataset.tensors[0][:] += 1
    return batches


@pytest.mark.parametrize("batches", [other_data(), make_batches(shuffle=False)], ids=["values", "order"])
def test_as_many_other_examples_or_another_order_are_refused(whole, batches):
    changed = r"options or data: hash of the data was '\w+' and is '\w+'\. Resume with"
    with pytest.raises(CheckpointError, match=changed):
        resume_with(batches, whole.folder)


class Bias(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.values = torch.nn.Parameter(torch.zeros(width))

    def forward(self, inputs):
        return inputs[:, :3] + self.values


def test_another_model_is_refused(tmp_path):
    fit(Bias(3), max_steps=2, checkpoint_folder=tmp_path)
    with pytest.raises(CheckpointError, match="is of another model"):
        fit(Bias(1), max_steps=2, checkpoint_folder=tmp_path)
    with pytest.raises(CheckpointError, match=r"in_features of the model \(Linear\) was None and is 6"):
        fit(torch.nn.Linear(6, 3), max_steps=2, checkpoint_folder=tmp_path)


# Resumed with other settings ------------------------------------------------------------------------------


def resume_as(folder, dropout=0.2, **changes):
    """Train for six steps, or go on from the checkpoint that is there."""
    model, few = make_model(dropout=dropout), {"max_steps": 6, "checkpoint_every": 3}
    return model, fit(model, checkpoint_folder=folder, **{**few, **changes})


def muon_and_adamw(muon_rate=0.02, decay=0.1):
    def make(model):
        matrices = [parameter for parameter in model.parameters() if parameter.ndim == 2]
        rest = [parameter for parameter in model.parameters() if parameter.ndim == 1]
        return [torch.optim.Muon(matrices, muon_rate), torch.optim.AdamW(rest, 0.01, weight_decay=decay)]

    return make


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ({}, {"dropout": 0.5}, r"p of 3 \(Dropout\) was 0.2 and is 0.5"),
        (
            {"make_optimizers": muon_and_adamw()},
            {"make_optimizers": muon_and_adamw(muon_rate=0.2)},
            r"lr of Muon \(optimizer 1, group 0\) was 0.02 and is 0.2",
        ),
        (
            {"make_optimizers": muon_and_adamw()},
            {"make_optimizers": muon_and_adamw(decay=0.0)},
            r"weight_decay of AdamW \(optimizer 2, group 0\) was 0.1 and is 0.0",
        ),
        (
            {"make_optimizers": muon_and_adamw()},
            {},
            r"number of parameters of Muon .optimizer 1, group 0. was 2 and is None",
        ),
        ({}, {"weight_decay": 0.1}, "weight_decay was 0.01 and is 0.1"),
        ({}, {"seed": 3}, "seed was 0 and is 3"),
        ({}, {"max_grad_norm": 9.0}, "max_grad_norm was 1.0 and is 9.0"),
        ({}, {"mixed_precision": "bf16"}, "mixed_precision was 'no' and is 'bf16'"),
        ({}, {"accumulation_steps": 2}, r"examples in a step \(of all .*\) was 4 and is 8"),
        ({}, {"batches": make_batches(batch_size=5)}, r"examples in a step \(of all .*\) was 4 and is 5"),
    ],
)
def test_what_changes_the_training_is_refused_with_both_values(tmp_path, before, after, message):
    resume_as(tmp_path, **before)
    with pytest.raises(CheckpointError, match=rf"{message}.*Resume with the former values, or pass another"):
        resume_as(tmp_path, **after)


def test_intervals_and_the_shape_of_batches_may_change(tmp_path):
    """Four accumulated batches of one example are a step of one batch of four."""
    model, expected = resume_as(tmp_path / "through", dropout=0)
    resume_as(tmp_path / "changed", dropout=0)
    shutil.rmtree(tmp_path / "changed" / "step-00000006")
    changes = {"checkpoint_every": 1, "log_every": 2, "accumulation_steps": 4}
    again, found = resume_as(tmp_path / "changed", dropout=0, batches=make_batches(batch_size=1), **changes)
    assert losses(found) == pytest.approx(losses(expected), rel=1e-5)
    assert_close(again, model)
    assert checkpoints_in(tmp_path / "changed") == ["step-00000005", "step-00000006"]


def test_a_run_may_become_longer_and_says_so(tmp_path, capsys):
    model, expected = resume_as(tmp_path / "long", max_steps=9)
    resume_as(tmp_path / "short", max_steps=6)
    again, found = resume_as(tmp_path / "short", max_steps=9)
    assert "the run had 6 steps and now has 9" in capsys.readouterr().err
    assert found == expected and digest(again) == digest(model), "the schedule is constant"
    assert resume_as(tmp_path / "short", max_steps=0, num_epochs=1)[1].steps[:9] == expected.steps
    with pytest.raises(CheckpointError, match="has 10 steps, and the run is now 6 steps long"):
        resume_as(tmp_path / "short", max_steps=6)


# Two runs -------------------------------------------------------------------------------------------------


def test_a_second_run_on_the_same_folder_is_refused(tmp_path):
    def second(model):
        with pytest.raises(CheckpointError, match=f"Another run is using {tmp_path}: wait until"):
            run(tmp_path)
        return {}

    fit(max_steps=2, evaluate=second, checkpoint_folder=tmp_path)
    with pytest.raises(Interrupted):
        run(tmp_path / "other", stop_before=3)
    run(tmp_path / "other")  # Neither the end of a run nor an error leaves the folder locked.


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on the size of files")
@pytest.mark.parametrize("limit", [300, 3000])
def test_a_full_disk_stops_the_run_and_the_next_one_goes_on(tmp_path, whole, limit):
    """Files may not grow beyond the limit: that of the weights (2.1 kB), or that of the optimizer (6 kB)."""
    import resource

    with pytest.raises(Interrupted):
        run(tmp_path, stop_before=13)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        with pytest.raises(CheckpointError, match=r"After step 15 no checkpoint.*still step-00000010"):
            run(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert checkpoints_in(tmp_path) == ["step-00000005", "step-00000010"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model, history, _ = run(tmp_path)
    assert_same_bits(whole, model, history)


def test_a_checkpoint_holds_weights_as_safetensors_and_nothing_that_runs(whole):
    import safetensors.torch
    from accelerate.utils.other import TORCH_SAFE_GLOBALS

    assert checkpoints_in(whole.folder) == ["step-00000035", "step-00000040"]
    folder = whole.folder / "step-00000040"
    weights = safetensors.torch.load_file(folder / "model.safetensors")
    assert weights.keys() == whole.model.state_dict().keys()
    assert all(torch.equal(weights[name], tensor) for name, tensor in whole.model.state_dict().items())
    torch.load(folder / "optimizer.bin", weights_only=True)
    with torch.serialization.safe_globals(TORCH_SAFE_GLOBALS):  # NumPy's arrays, as Accelerate reads them.
        torch.load(folder / "random_states_0.pkl", weights_only=True)
    json.loads((folder / "run.json").read_text())
    names = ["manifest.json", "model.safetensors", "optimizer.bin", "random_states_0.pkl", "run.json"]
    assert sorted(path.name for path in folder.iterdir()) == names


class Tied(torch.nn.Module):
    def __init__(self, seed):
        super().__init__()
        torch.manual_seed(seed)
        self.a, self.b = torch.nn.Linear(6, 6), torch.nn.Linear(6, 6)
        self.b.weight = self.a.weight
        self.register_buffer("scale", torch.ones(()))
        self.b.register_buffer("same_scale", self.scale)

    def forward(self, inputs):
        return self.b(self.a(inputs)) * self.scale


def test_tied_weights_are_stored_once_without_a_warning(tmp_path, capfd):
    import safetensors

    first, second = Tied(0), Tied(1)
    for model in (first, second):
        fit(model, max_steps=3, checkpoint_folder=tmp_path)
    assert digest(first) == digest(second) and second.a.weight is second.b.weight
    with safetensors.safe_open(tmp_path / "step-00000003" / "model.safetensors", "pt") as file:
        assert sorted(file.keys()) == ["a.bias", "a.weight", "b.bias", "scale"]
    assert "shared" not in capfd.readouterr().err


@pytest.mark.parametrize("log_every", [1, 4])
def test_the_last_checkpoint_is_finite(tmp_path, log_every):
    """The loss is not a number in step 6, which is read then, or with the next checkpoint."""
    often = {"max_steps": 9, "checkpoint_every": 2, "log_every": log_every, "checkpoint_folder": tmp_path}
    with pytest.raises(FloatingPointError, match="step 6: the loss is nan"):
        fit(loss=spoiled(6)[0], **often)
    history = fit(**often)
    assert all(math.isfinite(loss) for loss in losses(history)) and len(history.steps) == 9


def test_with_longer_intervals_the_message_says_that_the_weights_are_corrupted():
    with pytest.raises(FloatingPointError, match=r"step 3: the loss is nan.*2 steps ago.*last checkpoint"):
        fit(loss=spoiled(3)[0], max_steps=9, log_every=5)


def test_a_weight_that_is_not_finite_is_not_stored(tmp_path):
    def spoil(model):
        with torch.no_grad():
            model[0].bias[0] = math.inf
        return {}

    often = {"max_steps": 4, "checkpoint_every": 1, "evaluate_every": 3}
    with pytest.raises(FloatingPointError, match="step 3: a weight is not finite, so no checkpoint"):
        fit(evaluate=spoil, checkpoint_folder=tmp_path, **often)
    assert checkpoints_in(tmp_path) == ["step-00000001", "step-00000002"]


def other_process(*arguments):
    package = str(Path(loop.__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": package, "ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, *arguments], env=environment, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_killed_in_the_middle_and_resumed_it_ends_with_the_same_bits(tmp_path, whole):
    process = other_process(small_run.__file__, str(tmp_path))
    while not (tmp_path / "step-00000005").exists():
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.005)
    with pytest.raises(CheckpointError, match="Another run is using"):
        run(tmp_path)
    assert process.poll() is None, "the first run is not disturbed"
    process.kill()
    process.wait()
    process.stderr.close()
    assert not (tmp_path / "result.json").exists()
    process = other_process(small_run.__file__, str(tmp_path))
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0 and "Resuming from" in errors, errors
    result = json.loads((tmp_path / "result.json").read_text())
    history = {"steps": whole.history.steps, "evaluations": whole.history.evaluations}
    assert result == {"weights": digest(whole.model), **history}


# The progress bar -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("is_terminal", "environment", "is_shown"),
    [(True, "0", True), (True, "1", False), (False, "0", False)],
)
def test_a_bar_is_for_those_who_watch(monkeypatch, capsys, is_terminal, environment, is_shown):
    monkeypatch.setenv("BOOK_BUILD", environment)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    fit(max_steps=3)
    shown = capsys.readouterr().err
    assert ("3/3" in shown) == is_shown
    assert is_shown or not shown


def test_a_live_notebook_shows_a_bar_and_other_processes_do_not(monkeypatch):
    class IPython:
        @staticmethod
        def get_ipython():
            return type("Shell", (), {"kernel": object()})()

    monkeypatch.setenv("BOOK_BUILD", "0")
    monkeypatch.setitem(sys.modules, "IPython", IPython)
    monkeypatch.setattr(loop, "tqdm", lambda steps, *args, **options: iter([*steps, "bar"]))
    assert [*loop._progress(2, 4, "abcd")] == [(2, "a"), (3, "b"), ("bar", "c")]
    monkeypatch.setenv("BOOK_BUILD", "1")
    assert [*loop._progress(2, 4, "abcd")] == [(2, "a"), (3, "b")]
