"""Heads: by hand from their own weights."""

import copy

import pytest
import torch
from small_models import build, random_ids, random_states
from torch import nn

from chapters_src.transformer import ClassificationHead, LanguageModelHead

PADDING = torch.tensor([[1, 1, 1, 0], [0, 1, 0, 0]])


def test_a_classification_head_reads_the_mean_of_the_tokens():
    head, states = build(ClassificationHead, 16, 3), random_states(2, 4, 16)
    means = torch.stack([states[0, :3].mean(0), states[1, 1]])
    logits = head(states, PADDING)
    assert logits.shape == (2, 3)
    torch.testing.assert_close(logits, means @ head.projection.weight.T + head.projection.bias)


def test_a_classification_head_takes_all_tokens_where_nothing_is_padding():
    head, states = build(ClassificationHead, 16, 3), random_states(2, 4, 16)
    assert torch.equal(head(states, None), head(states, torch.ones(2, 4, dtype=torch.int64)))


def test_a_classification_head_says_nothing_of_a_sequence_without_tokens():
    head, states = build(ClassificationHead, 16, 3), random_states(2, 4, 16)
    logits = head(states, torch.tensor([[1, 1, 1, 0], [0, 0, 0, 0]]))
    assert logits[0].isfinite().all() and logits[1].isnan().all()
    with pytest.raises(ValueError, match=r"torch.float32.*integers or booleans"):
        head(states, PADDING.float())
    with pytest.raises(ValueError, match=r"\(2, 4, 16\).*\(2, 3\)"):
        head(states, PADDING[:, :3])


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


def test_a_tied_head_uses_and_trains_the_matrix_of_the_embedding():
    head, embedding = LanguageModelHead(16, 23, bias=False), nn.Embedding(23, 16)
    head.tie(embedding)
    assert head.projection.weight is embedding.weight
    head(embedding(random_ids(2, 4))).sum().backward()
    torch.optim.SGD(head.parameters(), lr=0.1).step()
    assert torch.equal(head.projection.weight, embedding.weight)
    twin, _ = copy.deepcopy((head, embedding))
    assert twin.projection.weight is not embedding.weight
    with pytest.raises(ValueError, match=r"\(22, 16\).*\(23, 16\).*same shape"):
        head.tie(nn.Embedding(22, 16))
