"""The speed of this computer: the time of one training step, the unit of the book's time limits.

Run as a program, it prints the seconds.
"""

import time
from statistics import median

import torch
from transformers import AutoModel

from chapters_src import resources

REFERENCE = 0.33  # seconds of a step on the reference computer
STEPS, BATCH, TOKENS, THREADS = 7, 32, 24, 2


def seconds() -> float:
    """Fine-tune the encoder for some steps of 32 messages of 24 tokens.

    Returns:
        The median step's processor time over all threads, divided by the two cores of the reference computer.
        Other load on this computer changes it less than wall-clock time.
    """
    torch.set_num_threads(THREADS)
    model = AutoModel.from_pretrained(resources.checkpoint("encoder")).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    ids = torch.randint(1000, 20_000, (BATCH, TOKENS), generator=torch.Generator().manual_seed(0))
    times = []
    for _ in range(STEPS):
        start = time.process_time()
        model(ids).last_hidden_state.square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        times.append(time.process_time() - start)
    return median(times) / 2


if __name__ == "__main__":
    print(seconds())
