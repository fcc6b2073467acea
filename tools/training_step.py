"""How fast this computer is: the time of one training step, in which the book's time limits are counted.

Run as a program it prints the seconds.
"""

import time
from statistics import median

import torch
from transformers import AutoModel

from chapters_src import resources

REFERENCE = 0.33  # seconds: a step on the computer for which the limits are written
STEPS, BATCH, TOKENS, THREADS = 7, 32, 24, 2


def seconds() -> float:
    """Fine-tune the encoder for some steps of 32 messages of 24 tokens.

    Returns:
        The median step's processor time over all threads, divided by two: seconds of both cores of the
        reference computer. Other work on this computer changes it less than time on the clock.
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
