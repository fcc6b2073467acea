"""Heads: by hand from their own weights."""

import pytest
import torch
from small_models import build, random_states
from torch import nn

from chapters_src.transformer import ClassificationHead, LanguageModelHead

PADDING = torch.tensor([[1, 1, 1, 0], [0, 1, 0, 0]])


def test_a_classification_head_reads_the_mean_of_the_tokens():
    head, states = build(ClassificationHead, 16, 3), random_states(2, 4, 16)
    means = torch.stack([states[0, :3].mean(0), states[1, 1]])
    logits = head(states, PADDING)
    assert logits.shape == (2, 3)
    torch.testing.assert_close(logits, means @ head.projection.weight.T + head.projection.bias)


def test_dropout_of_a_head_is_in_training_only():
    head, states = build(ClassificationHead, 16, 3, dropout=0.5), random_states(2, 4, 16)
    assert torch.equal(head(states, PADDING), head(states, PADDING))
    head.train()
    assert not torch.equal(head(states, PADDING), head(states, PADDING))


@pytest.mark.parametrize("bias", [True, False])
def test_a_language_model_head_scores_every_entry(bias):
    head, states = build(LanguageModelHead, 16, 23, bias=bias), random_states(2, 4, 16)
    expected = states @ head.projection.weight.T + (head.projection.bias if bias else 0)
    torch.testing.assert_close(head(states), expected)
    assert (head.projection.bias is not None) == bias


def test_a_head_is_tied_to_a_table_of_its_shape():
    with pytest.raises(ValueError, match=r"\(22, 16\).*\(23, 16\).*same shape"):
        LanguageModelHead(16, 23, bias=False).tie(nn.Embedding(22, 16))
