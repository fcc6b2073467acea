"""Speculative decoding: the tokens of greedy decoding, the exact distribution of sampling, any draft."""

import math

import pytest
import torch
from beside_library import NEW_TOKENS, converted_if, random_prompts, seeded, targets
from enumeration import END as TINY_END
from enumeration import continuations, p_value, tiny_model
from library_models import CONFIGS, END, library_model
from scipy import stats
from transformers import (
    MistralConfig,
    MistralForCausalLM,
    NoRepeatNGramLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
)

from chapters_src.decoding import (
    Stop,
    greedy,
    no_repeat_ngram,
    repetition_penalty,
    sample,
    speculation,
    speculative,
    temperature,
    top_k,
)
from chapters_src.decoding.prompts import begin

pytestmark = pytest.mark.usefixtures("quiet_library")
whose = pytest.mark.parametrize("converted", [True, False], ids=["ours", "library"])


def nearly(kind, seed):
    """A draft for this library_model that is often right."""
    other, generator = library_model(kind, seed), seeded(seed)
    for name, tensor in other.state_dict().items():
        if "embed_positions" not in name:  # Marian's are no parameters.
            tensor += 0.03 * torch.randn(tensor.shape, generator=generator, dtype=tensor.dtype)
    return other


@whose
@pytest.mark.parametrize("num_drafted", [1, 4, 20])
@pytest.mark.parametrize("kind", ["gpt2", "marian"])
def test_greedily_it_writes_what_greedy_decoding_writes(kind, num_drafted, converted):
    numbers = []
    for seed in range(3):
        theirs = library_model(kind, seed)
        draft = converted_if(not converted, nearly(kind, seed))
        model = converted_if(converted, theirs)
        same = {
            "max_new_tokens": NEW_TOKENS, "stop": Stop(END), "filters": [repetition_penalty(1.3)],
            **targets(kind),
        }  # fmt: skip
        for prompt in random_prompts(seed):
            (expected,) = greedy(model, [prompt], **same)
            found = speculative(model, prompt, draft=draft, num_drafted=num_drafted, **same)
            assert found.continuation.ids == expected.ids
            assert found.continuation.log_probabilities == pytest.approx(expected.log_probabilities)
            assert found.continuation.finished == expected.finished
            numbers.append((found.num_accepted, found.num_rejected, len(expected.ids) - found.num_steps))
    accepted, rejected, saved = (sum(each) for each in zip(*numbers, strict=True))
    assert accepted and rejected and saved > 0  # Both ways were gone.


EXACT = {
    "plain": ([], []),
    "filtered": ([temperature(1.5), top_k(3)], [TemperatureLogitsWarper(1.5), TopKLogitsWarper(3)]),
    "no repetition": ([no_repeat_ngram(1)], [NoRepeatNGramLogitsProcessor(1)]),
}


@pytest.mark.parametrize(
    ("kind", "name"),
    [("other", "plain"), ("other", "filtered"), ("awful", "plain"), ("awful", "no repetition")],
)
def test_sampling_keeps_the_distribution_of_the_model(kind, name):
    """Whole continuations of three tokens, against their exact probabilities."""
    ours, theirs = EXACT[name]
    model, prompt = tiny_model(0, 5), [1]
    awful = torch.tensor([-9.0, 9.0, 0.0, -9.0, -9.0])
    draft = {"other": tiny_model(1, 5), "awful": lambda ids: awful}[kind]
    generator, runs = seeded(), []
    for _ in range(800):
        runs.append(
            speculative(
                model, prompt, draft=draft, num_drafted=2, generator=generator, filters=ours,
                max_new_tokens=3, stop=Stop(TINY_END),
            )
        )  # fmt: skip
    drawn = [run.continuation.ids for run in runs]
    assert p_value(drawn, continuations(model, prompt, 3, theirs)) > 0.001
    assert sum(run.num_rejected for run in runs) > 100  # The draft is another one.
    if isinstance(draft, torch.nn.Module):
        assert sum(run.num_accepted for run in runs) > 100
        of_draft = sample(draft, [prompt] * 800, generator=seeded(), filters=ours, max_new_tokens=3,
                          stop=Stop(TINY_END))  # fmt: skip
        exact = continuations(model, prompt, 3, theirs)
        assert p_value([each.ids for each in of_draft], exact) < 1e-6  # The test can tell.


@pytest.mark.parametrize("generator", [None, 0])
@pytest.mark.parametrize("kind", list(CONFIGS))
def test_a_perfect_draft_is_always_accepted(kind, generator):
    for seed in range(3):
        # The library's sliding layers cannot go back.
        model = converted_if(kind == "gemma3", library_model(kind, seed))
        drawn = {} if generator is None else {"generator": seeded(seed)}
        found = speculative(
            model, random_prompts(seed)[0], draft=model, num_drafted=4, max_new_tokens=NEW_TOKENS,
            filters=[temperature(0.9)], **drawn, **targets(kind),
        )  # fmt: skip
        assert found.acceptance_rate == 1 and found.num_rejected == 0
        # 12 tokens: 4 and one more, 4 and one more, 1 and one more.
        assert (found.num_accepted, found.num_steps) == (9, 3)


def test_the_acceptance_rate_is_alpha():
    """For distributions that do not depend on what is there: the sum of min(p, q)."""
    model = tiny_model(0)
    model.head.projection.weight.data.zero_()  # All tokens alike: p = 1/4.
    q = torch.tensor([0.55, 0.15, 0.05, 0.25])
    accepted = rejected = 0
    generator = seeded()
    for _ in range(60):
        found = speculative(
            model, [1], draft=lambda ids: q.log(), num_drafted=3, max_new_tokens=15, generator=generator
        )
        accepted, rejected = accepted + found.num_accepted, rejected + found.num_rejected
    alpha = q.clamp(max=0.25).sum().item()  # 0.7
    assert stats.binomtest(accepted, accepted + rejected, alpha).pvalue > 0.001
    assert stats.binomtest(accepted, accepted + rejected, alpha - 0.1).pvalue < 0.001


def test_a_draft_may_be_any_function_and_know_nothing():
    model, prompt = library_model("llama", 0), random_prompts(0)[0]
    (expected,) = greedy(model, [prompt], max_new_tokens=NEW_TOKENS)
    whole, seen = [*prompt, *expected.ids], []

    def knows(ids):
        """The truth, now and then."""
        seen.append(list(ids))
        assert list(ids) == whole[: len(ids)]
        if len(ids) % 3 == 0:
            return None
        return torch.nn.functional.one_hot(torch.tensor(whole[len(ids)]), 40).log()

    found = speculative(model, prompt, draft=knows, max_new_tokens=NEW_TOKENS)
    assert found.continuation.ids == expected.ids and found.acceptance_rate == 1
    assert seen[0] == prompt and 0 < found.num_accepted < NEW_TOKENS - 1
    alone = speculative(model, prompt, draft=lambda ids: None, max_new_tokens=NEW_TOKENS)
    assert alone.continuation.ids == expected.ids
    assert math.isnan(alone.acceptance_rate) and alone.num_steps == NEW_TOKENS - 1
    (one,) = [speculative(model, prompt, draft=knows, max_new_tokens=1)]
    assert one.continuation.ids == expected.ids[:1] and one.num_steps == 0


def test_the_seed_decides():
    model, draft, prompt = library_model("llama", 0), library_model("llama", 1), random_prompts(0)[0]
    first, again, other = (
        speculative(model, prompt, draft=draft, generator=seeded(seed), max_new_tokens=10)
        for seed in (0, 0, 1)
    )
    assert first == again and first.continuation.ids != other.continuation.ids


def test_what_does_not_fit_is_refused():
    model = library_model("gpt2", 0)

    def ban_all(logits, ids):
        return torch.full_like(logits, -torch.inf)

    cases = [
        (
            lambda: speculative(model, [[5], [6]], draft=model, max_new_tokens=2),
            r"prompt 0 is \[\[5\], \[6\]\]: expected integers, its ids",
        ),
        (lambda: speculative(model, [5], draft=model, max_new_tokens=2, num_drafted=0), "num_drafted=0"),
        (
            lambda: speculative(model, [1], draft=tiny_model(0), max_new_tokens=2),
            r"the draft returned logits \(4,\), but the model has a vocabulary of 40: .*tokenizer",
        ),
        (
            lambda: speculative(model, [5], draft=lambda ids: torch.zeros(39), max_new_tokens=2),
            r"logits \(39,\), but the model has a vocabulary of 40",
        ),
        (lambda: speculative(model, [1], draft=tiny_model(0), max_new_tokens=20), "max_new_tokens=20"),
        (
            lambda: speculative(model, [5], draft=model, max_new_tokens=5, filters=[ban_all]),
            "the filters leave no token",
        ),
    ]
    for call, message in cases:
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(TypeError, match="generator=1"):
        speculative(model, [5], draft=model, max_new_tokens=2, generator=1)
    sizes = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3, "num_key_value_heads": 1}
    window = MistralForCausalLM(MistralConfig(vocab_size=40, intermediate_size=16, sliding_window=3, **sizes))
    for pair in ((window.eval(), model), (model, window.eval())):
        with pytest.raises(ValueError, match="uses a sliding window"):
            speculative(pair[0], [5], draft=pair[1], max_new_tokens=2)


def test_a_draft_model_forgets_and_reads_what_it_has_to():
    model, prompt = library_model("llama", 0), [5, 6]
    draft = speculation._ModelDraft(begin(model, [prompt], None, 6))
    for new in ([], [7], [7, 8, 9], [7, 8], [7, 8], [7, 10, 11, 12], [], [13]):
        expected = begin(model, [[*prompt, *new]], None, 1).state.next_logits[0]
        torch.testing.assert_close(draft([*prompt, *new]), expected)
