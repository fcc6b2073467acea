"""Gemma 3 270M in the modules of this book against the Transformers library, with the same weights."""

import torch
from transformers import AutoModelForCausalLM

from benchmarks.decoding import Comparison
from benchmarks.measure import Result
from chapters_src import resources


def results() -> list[Result]:
    """Compare greedy decoding, alone and in a batch of 8.

    Returns:
        One result for each line of the table.
    """
    torch.manual_seed(0)
    theirs = AutoModelForCausalLM.from_pretrained(resources.checkpoint("gemma"), dtype=torch.float32).eval()
    theirs.generation_config.eos_token_id = None  # Both sides write all tokens.
    theirs.generation_config.pad_token_id = 0
    found = []
    for batch_size, turns in ((1, 6), (8, 4)):
        found += Comparison("Gemma 3", theirs, batch_size, turns).greedy()
    return found
