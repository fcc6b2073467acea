"""Losses of answers and of preferences, against computations by hand and by autograd."""

import math

import pytest
import tiny_gemma
import torch
from torch.nn import functional as F

from chapters_src.assistant import (
    AnswerLoss,
    Pair,
    PreferenceLoss,
    answer_batch,
    answer_log_probabilities,
    dpo_losses,
    score_answers,
)
from chapters_src.pretrained import add_low_rank
from chapters_src.training import IGNORED

PAIRS = [Pair([2, 5, 11, 12], [20, 21, 6]), Pair([2, 5], [30, 6]), Pair([2, 9, 8, 7, 40], [41])]


@pytest.fixture
def model():
    return tiny_gemma.model().double()


def by_hand(model, pair):
    """The log-probability of each token of an answer, from all logits of the row alone."""
    ids = torch.tensor([[*pair.prompt, *pair.answer]])
    logits = model(ids, None)[0].log_softmax(dim=-1)
    return [logits[len(pair.prompt) - 1 + i, token] for i, token in enumerate(pair.answer)]


def test_labels_are_the_answers_and_nothing_else():
    batch = answer_batch(PAIRS, padding_id=0)
    assert batch["ids"].tolist() == [[2, 5, 11, 12, 20, 21], [2, 5, 30, 0, 0, 0], [2, 9, 8, 7, 40, 0]]
    none = IGNORED
    assert batch["labels"].tolist() == [
        [none, none, none, 20, 21, 6],
        [none, 30, 6, none, none, none],
        [none, none, none, none, 41, none],
    ]


def test_the_loss_is_that_of_the_answers_tokens_by_hand(model):
    batch = answer_batch(PAIRS, padding_id=0)
    expected = torch.stack([each for pair in PAIRS for each in by_hand(model, pair)])
    found, rows = answer_log_probabilities(model, **batch)
    torch.testing.assert_close(found.double(), expected, atol=1e-6, rtol=1e-6)
    assert rows.tolist() == [0, 0, 0, 1, 1, 2]
    torch.testing.assert_close(AnswerLoss(model)(**batch).double(), -expected.sum(), atol=1e-5, rtol=1e-6)


def test_the_head_at_the_answers_only_gives_the_gradients_of_the_whole_head(model):
    """Against cross-entropy over all places, which ignores those without a label."""
    add_low_rank(model, 2, 4, torch.Generator().manual_seed(0))
    batch = answer_batch(PAIRS, padding_id=0)
    trained = [p for p in model.parameters() if p.requires_grad]
    for parameter in trained:
        torch.nn.init.normal_(parameter, std=0.3)
    ours = torch.autograd.grad(AnswerLoss(model)(**batch), trained)
    logits = model(batch["ids"], None).flatten(0, 1).float()
    whole = F.cross_entropy(logits, batch["labels"].flatten(), ignore_index=IGNORED, reduction="sum")
    for mine, theirs in zip(ours, torch.autograd.grad(whole, trained), strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-6, rtol=1e-5)


def test_scores_do_not_depend_on_the_batch(model):
    expected = torch.tensor([sum(by_hand(model, pair)).item() for pair in PAIRS])
    for batch_size in (1, 2, 8):
        sums, lengths = score_answers(model, PAIRS, 0, batch_size)
        torch.testing.assert_close(sums, expected, atol=1e-5, rtol=1e-5)
        assert lengths.tolist() == [3, 2, 1]


def test_dpo_on_two_tokens_is_the_formula_and_so_is_its_gradient():
    """A policy over two answers of one token each: everything can be written down."""
    logits = torch.tensor([0.3, -0.2], dtype=torch.double, requires_grad=True)
    reference = torch.tensor([-0.4, 0.1], dtype=torch.double).log_softmax(dim=0)
    beta = 0.7
    log_pi = logits.log_softmax(dim=0)
    loss = dpo_losses(log_pi[:1], log_pi[1:], reference[:1], reference[1:], beta).sum()
    odds = (math.exp(0.3) / math.exp(-0.2)) / (math.exp(-0.4) / math.exp(0.1))
    prefers = 1 / (1 + odds**-beta)  # Bradley and Terry, with exp(reward) = odds ** beta.
    assert loss.item() == pytest.approx(-math.log(prefers), rel=1e-12)
    # Equation below (7) of the paper: -beta * sigma(-margin) * (grad log pi(w) - grad log pi(l)); with two
    # answers the difference of the two gradients is (1, -1).
    loss.backward()
    assert logits.grad.tolist() == pytest.approx([-beta * (1 - prefers), beta * (1 - prefers)], rel=1e-12)


def test_dpo_starts_at_log_2_and_counts_differences_to_the_reference_only(model):
    sums = torch.tensor([-3.0, -8.0])
    torch.testing.assert_close(dpo_losses(sums, sums - 4, sums, sums - 4, 0.1), torch.full((2,), math.log(2)))
    a = dpo_losses(sums, sums - 1, sums - 0.5, sums, 0.2)
    b = dpo_losses(sums + 3, sums + 6, sums + 2.5, sums + 7, 0.2)
    torch.testing.assert_close(a, b)
    with pytest.raises(ValueError, match="beta=0"):
        dpo_losses(sums, sums, sums, sums, 0)


def test_the_preference_loss_of_a_batch_is_that_of_its_answers(model):
    chosen, rejected = PAIRS[:2], [Pair([2, 5, 11, 12], [9]), Pair([2, 5], [31, 32, 33, 6])]
    reference = torch.tensor([-5.0, -6.0, -7.0, -8.0])
    batch = answer_batch([*chosen, *rejected], padding_id=0)
    found = PreferenceLoss(model, 0.3)(**batch, reference=reference)
    scores = [score_answers(model, pairs, 0)[0] for pairs in (chosen, rejected)]
    expected = dpo_losses(*scores, *reference.chunk(2), beta=0.3).sum()
    torch.testing.assert_close(found.float(), expected, atol=1e-5, rtol=1e-5)


def test_empty_prompts_and_answers_are_named():
    with pytest.raises(ValueError, match="row 1: a prompt of 2 and an answer of 0"):
        answer_batch([PAIRS[0], Pair([2, 5], [])], padding_id=0)
