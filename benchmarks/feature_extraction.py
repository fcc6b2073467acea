"""The `extract` of chapter 04: batches of similar length, against everything as long as the longest text."""

import sys

import torch
from transformers import AutoModel, AutoTokenizer

from benchmarks.measure import Result, processor_seconds
from chapters_src import resources
from chapters_src.data import emotions
from chapters_src.features import extract, mean_pool

BATCH_SIZE = 64


def results() -> list[Result]:
    """Turn 1,000 messages into vectors both ways, and see that the vectors are the same.

    Returns:
        One result for each line of the table.
    """
    print("feature extraction: 1,000 messages", file=sys.stderr, flush=True)
    torch.set_num_threads(1)
    tokenizer = AutoTokenizer.from_pretrained(resources.checkpoint("encoder"))
    model = AutoModel.from_pretrained(resources.checkpoint("encoder")).eval()
    texts = emotions.load()["test"][:]["text"]
    ours, vectors = processor_seconds(
        lambda _: extract(model, tokenizer, texts, batch_size=BATCH_SIZE), repetitions=2
    )
    theirs, padded = processor_seconds(
        lambda _: all_padded_to_the_longest(model, tokenizer, texts), repetitions=2
    )
    torch.testing.assert_close(vectors[:, -1], padded, atol=1e-5, rtol=0)
    per_second = f"{len(texts) / ours:.0f} against {len(texts) / theirs:.0f} messages per second"
    what = f"vectors of {len(texts):,} messages, batches of {BATCH_SIZE} ({per_second})"
    return [Result(what, ours, "everything padded to the longest message", theirs)]


def all_padded_to_the_longest(model: AutoModel, tokenizer: AutoTokenizer, texts: list[str]) -> torch.Tensor:
    """Pad every batch to the longest of all texts, in the order given."""
    encoded = tokenizer(texts, padding=True, return_tensors="pt")
    vectors = []
    for start in range(0, len(texts), BATCH_SIZE):
        batch = {name: values[start : start + BATCH_SIZE] for name, values in encoded.items()}
        with torch.inference_mode():
            states = model(**batch).last_hidden_state
        vectors.append(mean_pool(states, batch["attention_mask"]))
    return torch.cat(vectors)
