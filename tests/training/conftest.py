"""All tests here train on the processor; those of `test_cuda.py` start processes of their own."""

import pytest
import torch
from accelerate.state import AcceleratorState


@pytest.fixture(autouse=True)
def on_one_thread_of_the_processor(monkeypatch):
    """Leave no state of Accelerate to other tests, and take none from them."""
    for name in ("MIXED_PRECISION", "GRADIENT_ACCUMULATION_STEPS", "USE_FSDP", "USE_DEEPSPEED"):
        monkeypatch.delenv(f"ACCELERATE_{name}", raising=False)
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    AcceleratorState._reset_state(reset_partial_state=True)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    AcceleratorState._reset_state(reset_partial_state=True)
