"""Greedy decoding, sampling and streams: against `generate()`, brute force, and exact probabilities."""

import numpy as np
import pytest
import torch
from beside_library import NEW_TOKENS, converted_if, generate, new_ids, random_prompts, seeded, targets
from enumeration import next_log_probabilities, tiny_model
from library_models import CONFIGS, END, PADDING, START, VOCAB_SIZE, library_model
from transformers import (
    NoRepeatNGramLogitsProcessor,
    RepetitionPenaltyLogitsProcessor,
)

from chapters_src.decoding import (
    Stop,
    greedy,
    no_repeat_ngram,
    repetition_penalty,
    sample,
    speculative,
    stream,
    temperature,
    top_k,
    top_p,
)

pytestmark = pytest.mark.usefixtures("quiet_library")
each_kind = pytest.mark.parametrize("kind", list(CONFIGS))
whose = pytest.mark.parametrize("converted", [True, False], ids=["ours", "library"])


# Greedy, against generate()


@whose
@each_kind
def test_greedy_decoding_is_that_of_generate(kind, converted):
    ended = different = 0
    for seed in range(6):
        theirs, prompts = library_model(kind, seed), random_prompts(seed)
        expected = [new_ids(row) for row in generate(theirs, kind, prompts)]
        found = greedy(
            converted_if(converted, theirs),
            prompts,
            max_new_tokens=NEW_TOKENS,
            stop=Stop(END),
            **targets(kind),
        )
        assert [each.ids for each in found] == expected, seed
        assert [each.finished for each in found] == ["end" if END in row else "length" for row in expected]
        ended += sum(len(row) < NEW_TOKENS for row in expected)
        different += len(set(expected))
    assert ended >= 3 and different >= 15  # of 24 rows: some end early, and a mix-up of rows would show


FILTERS = {
    "no repeated 1-grams": ([no_repeat_ngram(1)], {"no_repeat_ngram_size": 1}),
    "no repeated 2-grams": ([no_repeat_ngram(2)], {"no_repeat_ngram_size": 2}),
    "penalty": ([repetition_penalty(1.4)], {"repetition_penalty": 1.4}),
    "reward": ([repetition_penalty(0.6)], {"repetition_penalty": 0.6}),
    "both": (
        [repetition_penalty(1.2), no_repeat_ngram(3)],
        {"no_repeat_ngram_size": 3, "repetition_penalty": 1.2},
    ),
}


@whose
@pytest.mark.parametrize("name", list(FILTERS))
@pytest.mark.parametrize("kind", ["llama", "bart"])
def test_greedy_decoding_with_filters_is_that_of_generate(kind, name, converted):
    """The library with one prompt at a time: in a batch its n-grams count padding. Ours all at once."""
    filters, options = FILTERS[name]
    changed = 0
    for seed in range(4):
        theirs, prompts = library_model(kind, seed), random_prompts(seed)
        model = converted_if(converted, theirs)
        same = {"max_new_tokens": NEW_TOKENS, "stop": Stop(END), **targets(kind)}
        found = greedy(model, prompts, filters=filters, **same)
        expected = [new_ids(generate(theirs, kind, [prompt], **options)[0]) for prompt in prompts]
        assert [each.ids for each in found] == expected, seed
        if "no_repeat_ngram_size" not in options:
            assert [new_ids(row) for row in generate(theirs, kind, prompts, **options)] == expected
        changed += sum(
            each.ids != plain.ids for each, plain in zip(found, greedy(model, prompts, **same), strict=True)
        )
    assert changed > 4


def test_padding_keeps_the_library_from_ending_and_not_us():
    """What the docstring of `filters` says, and why the test above goes one by one."""
    filters = [no_repeat_ngram(1)]
    deviates = 0
    for seed in range(3):
        model, prompts = library_model("gpt2", seed), random_prompts(seed)
        options = {"no_repeat_ngram_size": 1, "pad_token_id": END, "max_new_tokens": 20}
        together = generate(model, "gpt2", prompts, **options)
        found = greedy(model, prompts, filters=filters, max_new_tokens=20, stop=Stop(END))
        for prompt, row, each in zip(prompts, together, found, strict=True):
            assert each.ids == new_ids(generate(model, "gpt2", [prompt], **options)[0])
            if len(prompt) < 9:  # the longest has no padding
                assert END not in row
                deviates += END in each.ids
    assert deviates


def test_several_end_ids():
    ends = (END, 7, 20)
    by_end = set()
    for seed in range(4):
        model, prompts = library_model("llama", seed), random_prompts(seed)
        expected = generate(model, "llama", prompts, eos_token_id=list(ends))
        found = greedy(model, prompts, max_new_tokens=NEW_TOKENS, stop=Stop(ends))
        assert [each.ids for each in found] == [new_ids(row, ends) for row in expected]
        by_end |= {each.ids[-1] for each in found if each.finished == "end"}
    assert len(by_end) >= 2


# Prompts


@whose
@pytest.mark.parametrize("kind", ["gpt2", "bart"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_padded_tensor_is_as_good_as_lists(kind, side, converted):
    model, prompts = converted_if(converted, library_model(kind, 0)), random_prompts(0)
    expected = greedy(model, prompts, max_new_tokens=6, **targets(kind))
    rows = [torch.tensor(row) for row in prompts]
    ids, mask = (
        torch.nn.utils.rnn.pad_sequence(each, True, value, side)
        for each, value in ((rows, PADDING), ([torch.ones_like(row) for row in rows], 0))
    )
    for padded_mask in (mask, mask.bool()):
        found = greedy(model, ids, padded_mask, max_new_tokens=6, **targets(kind))
        assert [each.ids for each in found] == [each.ids for each in expected]
    full = greedy(model, ids[:1], max_new_tokens=6, **targets(kind))
    assert full[0].ids == expected[0].ids


def test_targets_may_begin_differently():
    model, prompts = library_model("bart", 0), random_prompts(0)
    beginnings = torch.tensor([[START, token] for token in (5, 6, 7, 8)])
    together = greedy(model, prompts, target_ids=beginnings, max_new_tokens=5)
    for prompt, beginning, one in zip(prompts, beginnings, together, strict=True):
        assert greedy(model, [prompt], target_ids=beginning.tolist(), max_new_tokens=5)[0].ids == one.ids


# Cached is uncached


def test_the_cache_changes_nothing():
    """Brute force: each step is one forward over everything, with the library's processors."""
    ours = [repetition_penalty(1.3), no_repeat_ngram(2)]
    theirs = [RepetitionPenaltyLogitsProcessor(1.3), NoRepeatNGramLogitsProcessor(2)]
    for seed in range(5):
        model = tiny_model(seed, vocab_size=9)
        prompts = [[1, 2, 3, 1], [4]]
        found = greedy(model, prompts, filters=ours, max_new_tokens=10)
        for prompt, each in zip(prompts, found, strict=True):
            ids, scored = list(prompt), []
            for _ in range(10):
                numbers = next_log_probabilities(model, ids, theirs)
                token = max(range(9), key=numbers.__getitem__)
                scored.append(next_log_probabilities(model, ids)[token])  # the model's own, without filters
                ids.append(token)
            assert each.ids == tuple(ids[len(prompt) :])
            assert each.log_probabilities == pytest.approx(scored)
            assert each.log_probability == pytest.approx(sum(scored))


def test_rows_that_ended_are_not_computed():
    model, prompts = library_model("gpt2", 0), random_prompts(0)
    sizes = []
    hook = model.register_forward_pre_hook(
        lambda module, args, given: sizes.append(len(given["input_ids"])), with_kwargs=True
    )
    found = greedy(model, prompts, max_new_tokens=NEW_TOKENS, stop=Stop(END))
    hook.remove()
    lengths = [len(each.ids) for each in found]
    assert min(lengths) < NEW_TOKENS
    assert sizes[1:] == [sum(length > step for length in lengths) for step in range(1, max(lengths))]


# Sampling


@pytest.mark.parametrize("kind", list(CONFIGS))
@pytest.mark.parametrize(
    ("filters", "options"),
    [
        ([], {"top_k": 0}),
        ([temperature(0.6), top_k(8), top_p(0.8)], {"temperature": 0.6, "top_k": 8, "top_p": 0.8}),
    ],
    ids=["plain", "filtered"],
)
def test_with_the_same_seed_the_same_tokens_as_generate(kind, filters, options):
    """Both draw from one stream of random numbers, so equal draws mean equal probabilities."""
    lengths = set()
    for seed in range(6):
        model, prompts = library_model(kind, seed).float(), random_prompts(seed)[:1]
        torch.manual_seed(seed)
        expected = new_ids(generate(model, kind, prompts, do_sample=True, **options)[0])
        (found,) = sample(
            model, prompts, generator=seeded(seed), filters=filters, max_new_tokens=NEW_TOKENS,
            stop=Stop(END), **targets(kind),
        )  # fmt: skip
        assert found.ids == expected
        lengths.add(len(expected))
    assert len(lengths) > 1


# Streams


@whose
@each_kind
@pytest.mark.parametrize("seed", [None, 0])
def test_a_stream_gives_the_same_tokens(kind, seed, converted):
    model = converted_if(converted, library_model(kind, 1))
    for prompt in random_prompts(1):
        same = {"max_new_tokens": 9, "filters": [repetition_penalty(1.2)], "stop": Stop(END), **targets(kind)}
        drawn = {} if seed is None else {"generator": seeded(seed)}
        (whole,) = (sample if drawn else greedy)(model, [prompt], **same, **drawn)
        drawn = {} if seed is None else {"generator": seeded(seed)}
        tokens = list(stream(model, prompt, **same, **drawn))
        assert tuple(token.id for token in tokens) == whole.ids
        assert tuple(token.log_probability for token in tokens) == whole.log_probabilities
        assert [token.finished for token in tokens] == [None] * (len(tokens) - 1) + [whole.finished]
        assert {token.text for token in tokens} == {""}


def test_a_stream_gives_each_token_before_the_next_is_computed():
    model, steps = library_model("gpt2", 0), []
    model.register_forward_pre_hook(lambda module, args: steps.append(1))
    for number, _ in enumerate(stream(model, [5, 6], max_new_tokens=5), start=1):
        assert len(steps) == number


@pytest.mark.parametrize("kind", [np.int64, np.uint8])
def test_prompts_and_numbers_may_be_those_of_numpy(kind):
    model = library_model("gpt2", 0)
    prompts = [[5, 6], [7, 8]]
    stop, of_numpy = Stop([9, 10, 11, 12]), Stop(np.array([9, 10, 11, 12], dtype=kind))
    assert stop == of_numpy and Stop(kind(9)).end_ids == (9,)
    expected = greedy(model, prompts, max_new_tokens=9, stop=stop)
    assert greedy(model, np.array(prompts, dtype=kind), max_new_tokens=kind(9), stop=of_numpy) == expected
    of_torch = [[torch.tensor(kind(5)), 6], torch.tensor(prompts[1])]
    assert greedy(model, of_torch, max_new_tokens=9, stop=stop) == expected
    streamed = stream(model, np.array(prompts[0], dtype=kind), max_new_tokens=kind(9), stop=of_numpy)
    assert tuple(token.id for token in streamed) == expected[0].ids
    prompt = np.array(prompts[0], dtype=kind)
    drafted = speculative(
        model, prompt, draft=model, num_drafted=kind(3), max_new_tokens=kind(9), stop=of_numpy
    )
    assert drafted.continuation.ids == expected[0].ids


# What is refused


def test_what_does_not_fit_is_refused():
    model, crossing = library_model("gpt2", 0), library_model("bart", 0)
    cases = [
        (lambda: greedy(model, [], max_new_tokens=1), r"prompts=\[\].*list of ids per prompt"),
        (lambda: greedy(model, [5, 6], max_new_tokens=1), r"prompts=\[5, 6\].*pass \[ids\]"),
        (lambda: greedy(model, torch.tensor([5, 6]), max_new_tokens=1), r"pass \[ids\]"),
        (lambda: greedy(model, np.array([5, 6]), max_new_tokens=1), r"pass \[ids\]"),
        (lambda: greedy(model, [np.int64(5)], max_new_tokens=1), r"pass \[ids\]"),
        (lambda: greedy(model, [[5], []], max_new_tokens=1), "prompt 1 has no token.*start token"),
        (
            lambda: greedy(model, [[5]], torch.ones(1, 1), max_new_tokens=1),
            "attention_mask is only for a tensor",
        ),
        (
            lambda: greedy(model, torch.ones(1, 2).long(), torch.ones(1, 3), max_new_tokens=1),
            r"attention_mask \(1, 3\) for prompts \(1, 2\)",
        ),
        (
            lambda: greedy(model, torch.ones(1, 2).long(), torch.full((1, 2), 2), max_new_tokens=1),
            "1 for each",
        ),
        (lambda: greedy(model, [[5.5]], max_new_tokens=1), "expected integers"),
        (lambda: greedy(model, [[VOCAB_SIZE]], max_new_tokens=1), r"id 40 .*is not in 0 \.\.\. 39"),
        (lambda: greedy(model, [[5]], max_new_tokens=0), "max_new_tokens=0 .*at least 1"),
        (lambda: greedy(model, [[5]], max_new_tokens=2.0), r"max_new_tokens=2\.0"),
        (lambda: greedy(model, [[5]], max_new_tokens=40), "max_new_tokens=40 after 1 tokens.*limited to 40"),
        (lambda: greedy(model, [[5]], max_new_tokens=1, stop=Stop(VOCAB_SIZE)), r"end_ids=\[40\] are not in"),
        (lambda: greedy(crossing, [[5]], max_new_tokens=1), "target_ids are missing"),
        (lambda: greedy(model, [[5]], max_new_tokens=1, target_ids=[2]), "target_ids are only for"),
        (lambda: stream(model, [], max_new_tokens=1), "prompt 0 has no token"),
        (lambda: stream(model, [5], max_new_tokens=0), "max_new_tokens=0"),
        (lambda: stream(model, [[5]], max_new_tokens=1), r"prompt 0 is \[\[5\]\]: expected integers"),
    ]
    for call, message in cases:
        with pytest.raises(ValueError, match=message):
            call()
    for call in (sample, stream):
        with pytest.raises(TypeError, match=r"generator=0: .*torch\.Generator"):
            call(model, [[5]], generator=0, max_new_tokens=1)
    with pytest.raises(TypeError, match="Linear: expected a LanguageModel"):
        greedy(torch.nn.Linear(2, 2).eval(), [[5]], max_new_tokens=1)


@pytest.mark.parametrize(
    "write", [greedy, lambda *args, **options: sample(*args, generator=seeded(), **options)]
)
def test_filters_that_leave_nothing_are_an_error(write):
    model = tiny_model(0)
    with pytest.raises(ValueError, match="the filters leave no token"):
        write(model, [[1, 2]], filters=[no_repeat_ngram(1)], max_new_tokens=5)
    (found,) = write(model, [[1, 2]], filters=[no_repeat_ngram(1)], max_new_tokens=2)
    assert set(found.ids) == {0, 3}


def test_results_do_not_change():
    (found,) = greedy(tiny_model(0), [[1]], max_new_tokens=2)
    with pytest.raises(AttributeError):
        found.ids = ()
    assert isinstance(found.ids, tuple) and isinstance(found.log_probabilities, tuple) and hash(found)
