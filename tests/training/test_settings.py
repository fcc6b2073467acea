"""Learning rates are compared with those of Transformers."""

import math
from functools import partial

import pytest
import torch
import transformers

from chapters_src.training import Settings, best_precision, learning_rate_at

SCHEDULES = {
    "constant": (
        {"schedule": "constant"},
        lambda optimizer, warmup, total: transformers.get_constant_schedule_with_warmup(optimizer, warmup),
    ),
    "linear": ({"schedule": "linear"}, transformers.get_linear_schedule_with_warmup),
    "cosine": ({"schedule": "cosine"}, transformers.get_cosine_schedule_with_warmup),
    "cosine with a lowest rate": (
        {"schedule": "cosine", "min_learning_rate": 0.03},
        partial(transformers.get_cosine_with_min_lr_schedule_with_warmup, min_lr=0.03),
    ),
}


@pytest.mark.parametrize(("changes", "theirs"), SCHEDULES.values(), ids=SCHEDULES)
@pytest.mark.parametrize(
    ("warmup", "total", "warmup_steps"), [(0, 7, 0), (0.1, 30, 3), (0.25, 10, 2), (1, 5, 5), (0, 1, 0)]
)
def test_learning_rates_are_those_of_transformers(changes, theirs, warmup, total, warmup_steps):
    settings = Settings(learning_rate=0.3, max_steps=total, warmup=warmup, **changes)
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.3)
    scheduler = theirs(optimizer, warmup_steps, total)
    for step in range(total):
        assert learning_rate_at(step, total, settings) == pytest.approx(scheduler.get_last_lr()[0], abs=1e-12)
        optimizer.step()
        scheduler.step()


@pytest.mark.parametrize("step", [-1, 10])
def test_a_step_outside_the_run_has_no_rate(step):
    with pytest.raises(ValueError, match=f"step {step} is not in a run of 10 steps"):
        learning_rate_at(step, 10, Settings(learning_rate=1, max_steps=10))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"learning_rate": -1e-3}, "learning_rate=-0.001 has to be above 0"),
        ({"learning_rate": 0}, "learning_rate=0 "),
        ({"learning_rate": math.nan}, "learning_rate=nan"),
        ({"learning_rate": math.inf}, "learning_rate=inf"),
        ({"max_steps": 0}, "exactly one"),
        ({"num_epochs": 2}, "num_epochs=2, max_steps=9: exactly one"),
        ({"max_steps": 9.0}, "max_steps=9.0 has to be a whole number"),
        ({"max_steps": -9}, "max_steps=-9"),
        ({"weight_decay": -0.1}, "weight_decay=-0.1"),
        ({"warmup": 1.5}, "warmup=1.5 has to be a share"),
        ({"warmup": -0.5}, "warmup=-0.5"),
        ({"warmup": math.nan}, "warmup=nan"),
        ({"schedule": "step"}, "schedule='step' has to be one of"),
        ({"max_grad_norm": 0}, "max_grad_norm=0 .*math.inf"),
        ({"max_grad_norm": math.nan}, "max_grad_norm=nan"),
        ({"accumulation_steps": 0}, "accumulation_steps=0"),
        ({"accumulation_steps": 1.5}, "accumulation_steps=1.5"),
        ({"max_steps": None}, "max_steps=None"),
        ({"mixed_precision": "fp8"}, "mixed_precision='fp8' has to be one of .*'fp16'"),
        ({"min_learning_rate": 2e-3}, "min_learning_rate=0.002 has to be from 0 to learning_rate"),
        ({"min_learning_rate": 1e-4, "schedule": "constant"}, "never reached"),
        ({"betas": (0.9, 1)}, r"betas=\(0.9, 1\)"),
        ({"betas": (0.9,)}, "two numbers"),
        ({"log_every": 0}, "log_every=0 has to be a whole number, at least 1"),
        ({"seed": 2**31}, "seed="),
        ({"evaluate_every": -1}, "evaluate_every=-1"),
        ({"checkpoint_every": 0.5}, "checkpoint_every=0.5"),
    ],
)
def test_wrong_settings_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        Settings(**{"learning_rate": 1e-3, "max_steps": 9, **wrong})


def test_settings_are_frozen_and_named():
    with pytest.raises(AttributeError):
        Settings(learning_rate=1, max_steps=1).seed = 2
    with pytest.raises(TypeError):
        Settings(1e-3, 5)


def test_the_processor_stays_at_full_precision():
    assert best_precision("cpu") == best_precision(torch.device("cpu")) == "no"


@pytest.mark.parametrize(("supported", "expected"), [(True, "bf16"), (False, "fp16")])
def test_a_graphics_card_gets_what_it_computes_itself(monkeypatch, supported, expected):
    def is_bf16_supported(including_emulation=True):
        return supported or including_emulation  # As on a T4, which only emulates it.

    monkeypatch.setattr(torch.cuda, "is_bf16_supported", is_bf16_supported)
    assert best_precision("cuda") == expected
