"""Beam search against `generate()` and brute force; beam sampling against the same draws of the library."""

import itertools
import math

import numpy as np
import pytest
import torch
from beside_library import NEW_TOKENS, converted, generate, new_ids, padded, random_prompts, seeded, targets
from enumeration import END as TINY_END
from enumeration import continuations, tiny_model
from library_models import CONFIGS, END, VOCAB_SIZE, library_model

from chapters_src.decoding import (
    Stop,
    beam_sample,
    beam_search,
    greedy,
    no_repeat_ngram,
    repetition_penalty,
    sequence_log_probability,
    temperature,
    top_k,
    top_p,
)

pytestmark = pytest.mark.usefixtures("quiet_library")
each_kind = pytest.mark.parametrize("kind", list(CONFIGS))


def search(model, kind, prompts, **options):
    same = {"max_new_tokens": NEW_TOKENS, "stop": Stop(END), **targets(kind)}
    return beam_search(model, prompts, **same | options)


# Against generate()


GRID = [*itertools.product((2, 4, 5, 8), (0.6, 1.0, 2.0)), (4, 0.0), (4, -1.0)]


@pytest.mark.parametrize("early_stopping", [True, False, "never"])
@each_kind
def test_beam_search_is_that_of_generate(kind, early_stopping):
    for seed, (num_beams, length_penalty) in enumerate(GRID):
        theirs, prompts = library_model(kind, seed % 6), random_prompts(seed, lengths=(9, 1, 4))
        ours = converted(theirs)
        options = {"length_penalty": length_penalty, "early_stopping": early_stopping, "num_beams": num_beams}
        expected = [new_ids(row) for row in generate(theirs, kind, prompts, **options)]
        for model in (ours, theirs):
            found = search(model, kind, prompts, **options)
            assert [each[0].ids for each in found] == expected, (num_beams, length_penalty)


@each_kind
def test_it_is_no_greedy_decoding_and_the_settings_matter(kind):
    """Else the test above could not tell one setting from another."""
    models = [library_model(kind, seed) for seed in range(6)]
    tasks = [(model, random_prompts(seed)) for seed, model in enumerate(models)]
    results = set()
    settings = [(1.0, False), (0.0, False), (2.0, False), (-1.0, False), (1.0, True), (2.0, "never")]
    for length_penalty, early_stopping in settings:
        options = {"length_penalty": length_penalty, "early_stopping": early_stopping}
        found = [search(model, kind, prompts, num_beams=5, **options) for model, prompts in tasks]
        results.add(tuple(each[0].ids for batch in found for each in batch))
    same = {"max_new_tokens": NEW_TOKENS, "stop": Stop(END), **targets(kind)}
    plain = [greedy(model, prompts, **same) for model, prompts in tasks]
    assert tuple(each.ids for batch in plain for each in batch) not in results
    assert len(results) >= 4


@each_kind
def test_all_hypotheses_and_their_scores_are_those_of_generate(kind):
    for seed in range(4):
        model, prompts = library_model(kind, seed), random_prompts(seed)
        found = search(model, kind, prompts, num_beams=4, num_hypotheses=4)
        ids, attention_mask = padded(kind, prompts)
        output = model.generate(
            ids, attention_mask=attention_mask, do_sample=False, max_new_tokens=NEW_TOKENS, num_beams=4,
            num_return_sequences=4, return_dict_in_generate=True, output_scores=True,
        )  # fmt: skip
        start = 1 if targets(kind) else ids.size(1)
        expected = [new_ids(row) for row in output.sequences[:, start:].tolist()]
        ours = list(itertools.chain(*found))
        assert [each.ids for each in ours] == expected
        assert [each.score for each in ours] == pytest.approx(output.sequences_scores.tolist(), abs=1e-5)
        assert [each.finished for each in ours] == ["end" if END in row else "length" for row in expected]


@pytest.mark.parametrize(
    ("filters", "options"),
    [
        ([no_repeat_ngram(2)], {"no_repeat_ngram_size": 2}),
        ([repetition_penalty(1.4)], {"repetition_penalty": 1.4}),
        (
            [repetition_penalty(1.2), no_repeat_ngram(3)],
            {"no_repeat_ngram_size": 3, "repetition_penalty": 1.2},
        ),
    ],
    ids=["n-grams", "penalty", "both"],
)
@pytest.mark.parametrize("kind", ["gpt2", "llama", "bart"])
def test_beam_search_with_filters_is_that_of_generate(kind, filters, options):
    changed = 0
    for seed in range(4):
        model, prompts = library_model(kind, seed), random_prompts(seed)
        found = [each[0].ids for each in search(model, kind, prompts, num_beams=4, filters=filters)]
        expected = [generate(model, kind, [prompt], num_beams=4, **options)[0] for prompt in prompts]
        assert found == [new_ids(row) for row in expected]
        changed += found != [each[0].ids for each in search(model, kind, prompts, num_beams=4)]
    assert changed


@pytest.mark.parametrize("num_ends", [3, 25])
def test_several_end_ids(num_ends):
    """With many, more candidates than two for each beam have to be looked at, or none might go on."""
    ends = tuple(range(END, END + num_ends))
    options = {"num_beams": 3, "early_stopping": "never", "length_penalty": 3.0}
    for seed in range(6):
        model, prompts = library_model("llama", seed), random_prompts(seed)
        found = search(model, "llama", prompts, stop=Stop(ends), **options)
        expected = generate(model, "llama", prompts, eos_token_id=list(ends), **options)
        assert [each[0].ids for each in found] == [new_ids(row, ends) for row in expected]


def test_no_hypothesis_comes_twice():
    """What the docstring says of the library: where one hypothesis exists, it gives copies besides."""
    model, only = library_model("llama", 0), 7
    output = model.generate(
        torch.tensor([[5, 6]]), do_sample=False, num_beams=3, num_return_sequences=3, max_new_tokens=2,
        suppress_tokens=[token for token in range(VOCAB_SIZE) if token != only],
        return_dict_in_generate=True, output_scores=True,
    )  # fmt: skip
    assert output.sequences[:, 2:].tolist() == [[only, only]] * 3 and output.sequences_scores[1] < -1e8

    def rule_out(logits, ids):
        is_other = torch.arange(VOCAB_SIZE) != only
        return logits.masked_fill(is_other, -torch.inf)

    options = {"num_beams": 3, "num_hypotheses": 3, "max_new_tokens": 2, "filters": [rule_out]}
    ((found,),) = beam_search(model, [[5, 6]], **options)
    assert found.ids == (only, only) and found.score == pytest.approx(output.sequences_scores[0].item())


# Against brute force, and itself


@pytest.mark.parametrize("length_penalty", [0.0, 1.0, 2.0, -0.5])
@pytest.mark.parametrize("early_stopping", [False, "never"])
def test_with_room_for_all_it_finds_all_in_their_order(length_penalty, early_stopping):
    """As many beams as there are continuations: beam search is then exhaustive."""
    for seed in range(3):
        model, prompt = tiny_model(seed), [1, 2]
        exact = continuations(model, prompt, 3)
        scores = {ids: number / len(ids) ** length_penalty for ids, number in exact.items()}
        (found,) = beam_search(
            model, [prompt], num_beams=64, num_hypotheses=64, max_new_tokens=3, stop=Stop(TINY_END),
            length_penalty=length_penalty, early_stopping=early_stopping,
        )  # fmt: skip
        assert len(found) == len(exact) == 40  # 1 + 3 + 9 that end, and 27 that do not
        assert [each.ids for each in found] == sorted(scores, key=scores.get, reverse=True)
        assert [each.score for each in found] == pytest.approx(sorted(scores.values(), reverse=True))


def test_never_knows_that_a_negative_penalty_punishes_length():
    """What a beam may reach is then what it would score now. Worked by hand: "a" is token 1."""
    table = torch.tensor([[0.5, 0.48, 0.01, 0.01], [0.3, 0.68, 0.01, 0.01], [0.9, 0.08, 0.01, 0.01]])

    def fixed(log_probabilities, ids):
        return table[min(ids.size(1) - 1, 2)].log().double().expand_as(log_probabilities)

    ((best, second),) = beam_search(
        tiny_model(0), [[1]], num_beams=2, num_hypotheses=2, max_new_tokens=12, length_penalty=-1.0,
        early_stopping="never", filters=[fixed], stop=Stop(TINY_END),
    )  # fmt: skip
    assert best.ids == (0,) and best.score == pytest.approx(math.log(0.5))
    # After two steps "a, end" has 2 log(0.48 * 0.3) = -3.88, and "a, a" could only get worse than -2.24.
    assert second.ids == (1, 1, 0) and second.score == pytest.approx(3 * math.log(0.48 * 0.68 * 0.9))


def test_a_hypothesis_has_the_log_probability_that_the_model_gives_it():
    """Filters change the score, and not what the model gives."""
    model, prompts = library_model("llama", 0), random_prompts(0)
    for penalty in (1.0, 0.5):
        options = {"filters": [repetition_penalty(penalty)], "length_penalty": 0.7}
        found = [best for (best,) in search(model, "llama", prompts, num_beams=3, **options)]
        scored = sequence_log_probability(model, prompts, [best.ids for best in found])
        for best, each in zip(found, scored, strict=True):
            assert best.log_probabilities == pytest.approx(each.log_probabilities, abs=1e-6)
        gained = [
            best.score - each.log_probability / len(best.ids) ** 0.7
            for best, each in zip(found, scored, strict=True)
        ]
        assert gained == pytest.approx([0] * 4) if penalty == 1 else max(gained) > 0.1


@each_kind
def test_one_beam_is_greedy_decoding(kind):
    for seed in range(4):
        model, prompts = library_model(kind, seed), random_prompts(seed)
        same = {"max_new_tokens": NEW_TOKENS, "stop": Stop(END), **targets(kind)}
        found = beam_search(model, prompts, num_beams=1, early_stopping=True, **same)
        assert [each[0].ids for each in found] == [each.ids for each in greedy(model, prompts, **same)]


def test_sources_that_are_done_are_not_computed():
    model, prompts = library_model("gpt2", 0), random_prompts(0)
    sizes = []
    model.register_forward_pre_hook(
        lambda module, args, given: sizes.append(len(given["input_ids"])), with_kwargs=True
    )
    search(model, "gpt2", prompts, num_beams=3, early_stopping=True)
    assert sizes[0] == 4 and set(sizes[1:]) <= {3, 6, 9, 12} and sizes[-1] < 12
    assert sizes[1:] == sorted(sizes[1:], reverse=True)


# Beam sampling


@each_kind
@pytest.mark.parametrize("early_stopping", [True, False])
@pytest.mark.parametrize(
    ("filters", "options"),
    [
        ([], {"top_k": 0}),
        (
            [temperature(0.7), top_k(6, min_tokens_to_keep=2), top_p(0.8, min_tokens_to_keep=2)],
            {"temperature": 0.7, "top_k": 6, "top_p": 0.8},
        ),
    ],
    ids=["plain", "filtered"],
)
def test_with_the_same_seed_the_same_hypotheses_as_generate(kind, filters, options, early_stopping):
    """Both draw from one stream of random numbers, so equal draws mean equal probabilities."""
    different = 0
    for seed in range(5):
        model, prompts = library_model(kind, seed).float(), random_prompts(seed)[:1]
        torch.manual_seed(seed)
        expected = generate(
            model, kind, prompts, do_sample=True, num_beams=3, early_stopping=early_stopping, **options
        )
        ((found,),) = beam_sample(
            model, prompts, generator=seeded(seed), num_beams=3, early_stopping=early_stopping,
            filters=filters, max_new_tokens=NEW_TOKENS, stop=Stop(END), **targets(kind),
        )  # fmt: skip
        assert found.ids == new_ids(expected[0])
        different += found.ids != search(model, kind, prompts, num_beams=3)[0][0].ids
    assert different or filters  # What is drawn is not what beam search finds.


@each_kind
def test_where_one_token_is_left_beam_sampling_is_greedy(kind):
    model, prompts = library_model(kind, 0), random_prompts(0)
    same = {"max_new_tokens": NEW_TOKENS, "stop": Stop(END), **targets(kind)}
    found = beam_sample(model, prompts, generator=seeded(), num_beams=3, filters=[top_k(1)], **same)
    assert [each[0].ids for each in found] == [each.ids for each in greedy(model, prompts, **same)]
    assert [len(each) for each in found] == [1] * 4


def test_settings_may_be_numbers_and_booleans_of_numpy():
    """A boolean of NumPy was taken for False, and an integer refused."""
    model, prompts = library_model("gpt2", 0), [[5], [6, 7]]
    stop = Stop(list(range(0, VOCAB_SIZE, 3)))  # Ends often, so that it matters when a search stops.
    for early in (True, False):
        options = {"num_beams": 4, "num_hypotheses": 3, "max_new_tokens": 12}
        of_numpy = {name: np.int64(number) for name, number in options.items()}
        expected = beam_search(model, prompts, early_stopping=early, stop=stop, **options)
        assert beam_search(model, prompts, early_stopping=np.bool_(early), stop=stop, **of_numpy) == expected
        other = beam_search(model, prompts, early_stopping=not early, stop=stop, **options)
        assert other != expected  # So the choice matters here.


# What is refused


def test_settings_out_of_range_are_refused():
    model = library_model("gpt2", 0)
    cases = [
        ({"num_beams": 0}, "num_beams=0 .*at least 1"),
        ({"num_beams": 2.5}, r"num_beams=2\.5"),
        ({"num_beams": 2, "num_hypotheses": 0}, "num_hypotheses=0"),
        ({"num_beams": 2, "num_hypotheses": 3}, "num_hypotheses=3 exceeds num_beams=2"),
        ({"num_beams": 2, "early_stopping": "always"}, "early_stopping='always' .*\"never\""),
        *(
            ({"num_beams": 2, "early_stopping": value}, r'early_stopping=.*True, False or "never"')
            for value in (1, 0, None, torch.tensor(True), np.array([True, False]), 0.5)
        ),
        ({"num_beams": np.True_}, "num_beams=np.True_ .*integer"),
        ({"num_beams": 2, "length_penalty": float("nan")}, "length_penalty=nan .*finite"),
        ({"num_beams": 2, "max_new_tokens": VOCAB_SIZE}, "max_new_tokens=40 after 1"),
    ]
    for options, message in cases:
        with pytest.raises(ValueError, match=message):
            beam_search(model, [[5]], **{"max_new_tokens": 2} | options)
        with pytest.raises(ValueError, match=message):
            beam_sample(model, [[5]], generator=seeded(), **{"max_new_tokens": 2} | options)
    with pytest.raises(TypeError, match="generator=None"):
        beam_sample(model, [[5]], generator=None, num_beams=2, max_new_tokens=2)
    for search_with in (beam_search, lambda *args, **given: beam_sample(*args, generator=seeded(), **given)):
        with pytest.raises(ValueError, match="the filters leave no token"):
            search_with(tiny_model(0), [[1]], num_beams=2, filters=[no_repeat_ngram(1)], max_new_tokens=4)
