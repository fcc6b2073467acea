"""The log-probability of given sequences: against the library's loss and brute force."""

import pytest
import torch
from beside_library import converted_if, padded, random_prompts, targets
from enumeration import tiny_model
from library_models import CONFIGS, START, library_model

from chapters_src.decoding import greedy, sequence_log_probability
from chapters_src.decoding.results import Scored

pytestmark = pytest.mark.usefixtures("quiet_library")
whose = pytest.mark.parametrize("converted", [True, False], ids=["ours", "library"])
GIVEN = random_prompts(100, lengths=(5, 1, 8, 3))


@whose
@pytest.mark.parametrize("kind", list(CONFIGS))
def test_it_is_the_librarys_loss(kind, converted):
    """Row by row, without padding: the mean over the labels is minus the mean log-probability."""
    theirs, prompts = library_model(kind, 0), random_prompts(0)
    model = converted_if(converted, theirs)
    found = sequence_log_probability(model, prompts, GIVEN, **targets(kind))
    for prompt, given, each in zip(prompts, GIVEN, found, strict=True):
        if targets(kind):
            read = torch.tensor([[START, *given[:-1]]])
            loss = theirs(torch.tensor([prompt]), decoder_input_ids=read, labels=torch.tensor([given])).loss
        else:
            ids = torch.tensor([[*prompt, *given]])
            labels = ids.clone()
            labels[:, : len(prompt)] = -100
            loss = theirs(ids, labels=labels).loss
        assert len(each.log_probabilities) == len(given)
        assert each.log_probability == pytest.approx(-loss.item() * len(given), abs=1e-5)


@pytest.mark.parametrize("kind", list(CONFIGS))
def test_it_is_what_greedy_decoding_said(kind):
    model, prompts = library_model(kind, 1), random_prompts(1)
    written = greedy(model, prompts, max_new_tokens=9, **targets(kind))
    found = sequence_log_probability(model, prompts, [each.ids for each in written], **targets(kind))
    for one, other in zip(written, found, strict=True):
        assert other.log_probabilities == pytest.approx(one.log_probabilities)
    ids, mask = padded(kind, prompts)
    again = sequence_log_probability(
        model, ids, [each.ids for each in written], attention_mask=mask, **targets(kind)
    )
    assert [each.log_probability for each in again] == pytest.approx([each.log_probability for each in found])


def test_what_would_underflow_does_not():
    """0.5 to the power 1024 is 0 in float32, 0.5 to the power 1100 in float64 too."""
    half = torch.tensor(0.5)
    assert half**1024 == 0 and half.double() ** 1024 > 0 and half.double() ** 1100 == 0
    halves = torch.full((1100,), 0.5).log().tolist()
    assert Scored(tuple(halves[:1024])).log_probability == pytest.approx(-709.7827, abs=1e-4)
    assert Scored(tuple(halves)).log_probability == pytest.approx(-762.4619, abs=1e-4)


def test_a_token_that_is_out_of_the_question_has_a_finite_logarithm():
    """softmax, then the logarithm, gives minus infinity there."""
    model = tiny_model(0).to(torch.bfloat16)
    model.head.projection.weight.data *= 200
    found = sequence_log_probability(model, [[1]] * 4, [[token] for token in range(4)])
    numbers = torch.tensor([each.log_probability for each in found])
    assert numbers.isfinite().all() and numbers.min() < -104
    assert numbers.exp().sum().item() == pytest.approx(1, abs=1e-6)


def test_logits_of_few_digits_are_summed_in_many():
    """The probabilities of all tokens add up to 1; in bfloat16 they would by three digits."""
    model = tiny_model(0, vocab_size=50).to(torch.bfloat16)
    found = sequence_log_probability(model, [[1]] * 50, [[token] for token in range(50)])
    numbers = torch.tensor([each.log_probability for each in found])
    assert numbers.exp().sum().item() == pytest.approx(1, abs=1e-5)
    (best,) = greedy(model, [[1]], max_new_tokens=1)
    assert best.log_probability == pytest.approx(numbers.max().item(), abs=1e-6)


def test_what_does_not_fit_is_refused():
    model = tiny_model(0)
    for given, message in [
        ([[1]], "1 continuations for 2 prompts"),
        ([[1], []], "prompt 1 has no token|continuation 1 has no token"),
        ([[1], [4]], "row 1, place 0: the id 4 is not from 0 to 3"),
        ([[1], [1, -1]], "row 1, place 1: the id -1 is not from 0 to 3"),
        ([[1], [1] * 16], "max_new_tokens=16 after 1"),
    ]:
        with pytest.raises(ValueError, match=message):
            sequence_log_probability(model, [[1], [2]], given)
