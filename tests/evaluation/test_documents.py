"""Scores of documents against a model asked for one token at a time."""

import math

import numpy as np
import pytest
import torch

from chapters_src.evaluation import bits_per_byte, document_log_probabilities
from chapters_src.transformer import Config, LanguageModel

END = 10
CONFIG = Config(
    vocab_size=11,
    max_length=8,
    d_model=16,
    num_layers=2,
    num_heads=2,
    feed_forward_width=32,
    positions="rotary",
)


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    model = LanguageModel(CONFIG).double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return model


def one_by_one(model, document, length, stride):
    """Ask for each token by itself, with the window in which it is new."""
    ids = [END, *document, END]
    found = []
    for place in range(1, len(ids)):
        start = 0
        while place > start + length:
            start += stride
        with torch.no_grad():
            logits = model(torch.tensor([ids[start:place]]), None)[0, -1]
        found.append(logits.log_softmax(dim=-1)[ids[place]].item())
    return found


@pytest.mark.parametrize(("length", "stride"), [(8, 8), (8, 4), (8, 3), (5, 1), (1, 1)])
@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_windows_change_nothing_but_the_context(model, length, stride, batch_size):
    generator = np.random.default_rng(0)
    documents = [generator.integers(0, 10, size=size).tolist() for size in (0, 1, 7, 8, 9, 15, 16, 17, 30)]
    found = document_log_probabilities(
        lambda ids: model(ids, None),
        documents,
        end_id=END,
        length=length,
        stride=stride,
        batch_size=batch_size,
    )
    for scores, document in zip(found, documents, strict=True):
        expected = one_by_one(model, document, length, stride)
        torch.testing.assert_close(scores, torch.tensor(expected, dtype=torch.float64), atol=1e-5, rtol=0)


def test_a_uniform_model_needs_the_logarithm_of_its_vocabulary():
    documents, texts = [[1, 2, 3], []], ["äb", ""]
    scores = document_log_probabilities(
        lambda ids: torch.zeros(*ids.shape, 16), documents, end_id=END, length=4, stride=2
    )
    assert bits_per_byte(scores, texts) == pytest.approx(5 * 4 / 3)
    assert bits_per_byte([[-math.log(2)] * 3], ["abc"]) == pytest.approx(1)


@pytest.mark.parametrize(("length", "stride", "batch_size"), [(4, 5, 1), (4, 0, 1), (4, 2, 0)])
def test_bad_windows(length, stride, batch_size):
    with pytest.raises(ValueError, match=f"length={length}, stride={stride}, batch_size={batch_size}"):
        document_log_probabilities(
            None, [[1]], end_id=END, length=length, stride=stride, batch_size=batch_size
        )


def test_bad_texts():
    with pytest.raises(ValueError, match="1 texts have no bytes"):
        bits_per_byte([[-1.0]], [""])
    with pytest.raises(ValueError, match="zip"):
        bits_per_byte([[-1.0]], ["a", "b"])
