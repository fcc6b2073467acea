"""Each filter against the library's logits processor: equal bit for bit."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from transformers.generation import (
    LogitsProcessorList,
    MinPLogitsWarper,
    NoRepeatNGramLogitsProcessor,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
    TypicalLogitsWarper,
)

from chapters_src import decoding
from chapters_src.decoding import (
    Filter,
    filters,
    min_p,
    no_repeat_ngram,
    repetition_penalty,
    temperature,
    top_k,
    top_p,
    typical_p,
)

seeds = st.integers(0, 2**31)
shares = st.floats(1e-12, 1, exclude_max=True)
keep = st.integers(1, 5)
# Ours, theirs, and values in the order of the arguments of both.
PAIRS = {
    "temperature": (temperature, TemperatureLogitsWarper, [st.floats(0.01, 100)]),
    "top_k": (
        top_k,
        lambda k, kept: TopKLogitsWarper(k, min_tokens_to_keep=kept),
        [st.integers(1, 40), keep],
    ),
    "top_p": (
        top_p,
        lambda p, kept: TopPLogitsWarper(p, min_tokens_to_keep=kept),
        [shares | st.just(1.0), keep],
    ),
    "min_p": (
        min_p,
        lambda p, kept: MinPLogitsWarper(p, min_tokens_to_keep=kept),
        [shares | st.sampled_from([0.0, 1.0]), keep],
    ),
    "typical_p": (typical_p, lambda p, kept: TypicalLogitsWarper(p, min_tokens_to_keep=kept), [shares, keep]),
    "repetition_penalty": (repetition_penalty, RepetitionPenaltyLogitsProcessor, [st.floats(0.01, 100)]),
    "no_repeat_ngram": (no_repeat_ngram, NoRepeatNGramLogitsProcessor, [st.integers(1, 5)]),
}
each_filter = pytest.mark.parametrize("name", list(PAIRS))


def test_every_filter_has_its_pair_and_is_exported():
    public = {name: found for name, found in vars(filters).items() if not name.startswith("_")}
    makers = {
        name
        for name, found in public.items()
        if getattr(found, "__annotations__", {}).get("return") is Filter
    }
    assert makers == set(PAIRS), "a filter has a row in PAIRS"
    assert makers <= set(vars(decoding)), "decoding/__init__.py exports each filter"


def batch(seed, kind="wide", batch_size=3, length=12, vocab_size=30):
    """Logits and ids. Few ids, so that some repeat; "tied" logits have few values, "ruled" some -inf."""
    generator = torch.Generator().manual_seed(seed)
    logits = (1 if kind == "flat" else 5) * torch.randn(batch_size, vocab_size, generator=generator)
    if kind == "tied":
        logits = logits.round(decimals=-1) / 4
    if kind == "ruled":
        logits[torch.rand(logits.shape, generator=generator) < 0.5] = -torch.inf
        logits[:, 0] = 1.0
    return logits, torch.randint(4, (batch_size, length), generator=generator)


@each_filter
@given(data=st.data(), seed=seeds, kind=st.sampled_from(["wide", "tied", "ruled"]), length=st.integers(1, 12))
@settings(max_examples=150, deadline=None)
def test_a_filter_is_the_logits_processor(name, data, seed, kind, length):
    make, processor, arguments = PAIRS[name]
    values = [data.draw(argument) for argument in arguments]
    logits, ids = batch(seed, kind, length=length)
    before = logits.clone()
    ours = make(*values)(logits, ids)
    assert torch.equal(logits, before)  # the caller's tensor is as it was
    assert torch.equal(ours, processor(*values)(ids, logits.clone()))
    assert not ours.isnan().any()


ORDERS = [*itertools.permutations(PAIRS)]
VALUES = {
    "temperature": (0.7,), "top_k": (20, 1), "top_p": (0.9, 1), "min_p": (0.1, 1), "typical_p": (0.9, 1),
    "repetition_penalty": (1.5,), "no_repeat_ngram": (2,),
}  # fmt: skip
IN_THE_LIBRARY = (
    "repetition_penalty", "no_repeat_ngram", "temperature", "top_k", "top_p", "min_p", "typical_p",
)  # fmt: skip


@given(seed=seeds, order=st.sampled_from(ORDERS))
@example(seed=0, order=IN_THE_LIBRARY)
@settings(max_examples=60, deadline=None)
def test_filters_work_one_after_the_other(seed, order):
    logits, ids = batch(seed, "flat")
    ours = [PAIRS[name][0](*VALUES[name]) for name in order]
    theirs = LogitsProcessorList(PAIRS[name][1](*VALUES[name]) for name in order)
    assert torch.equal(filters.apply(ours, logits, ids), theirs(ids, logits.clone()))


def test_the_order_matters():
    """Else the test above could not tell one order from another."""
    logits, ids = batch(0, "flat")
    results = {
        filters.apply([PAIRS[name][0](*VALUES[name]) for name in order], logits, ids).numpy().tobytes()
        for order in ORDERS[::97]
    }
    assert len(results) > 5


@given(seed=seeds, mass=st.floats(1e-300, 1e-6), kind=st.sampled_from(["wide", "tied"]))
@settings(max_examples=60, deadline=None)
def test_a_tiny_share_keeps_the_best(seed, mass, kind):
    logits, ids = batch(seed, kind)
    for name in ("top_p", "min_p"):
        kept = PAIRS[name][0](mass)(logits, ids)
        assert torch.equal(kept.amax(dim=-1), logits.amax(dim=-1)), name
    assert typical_p(mass)(logits, ids).isfinite().any(dim=-1).all()


@pytest.mark.parametrize("mass", [0.25, 0.5, 0.75])
def test_a_sum_that_is_just_the_mass(mass):
    """Probabilities of which floats make exact sums."""
    logits = torch.tensor([[4.0, 4.0, 4.0, 4.0], [1.0, 1.0, -torch.inf, -torch.inf]])
    for name in ("top_p", "typical_p", "min_p"):
        make, processor, _ = PAIRS[name]
        assert torch.equal(make(mass)(logits, None), processor(mass, 1)(None, logits.clone())), name
    assert top_p(mass)(logits, None)[0].isfinite().sum() == 4 * mass


@pytest.mark.parametrize("name", ["repetition_penalty", "no_repeat_ngram"])
@given(seed=seeds, padding=st.integers(1, 6), length=st.integers(1, 12), value=st.integers(1, 4))
@settings(max_examples=100, deadline=None)
def test_padding_is_no_token(name, seed, padding, length, value):
    make = PAIRS[name][0]
    logits, ids = batch(seed, length=length)
    padded = torch.nn.functional.pad(ids, (padding, 0), value=filters.PADDING)
    assert torch.equal(make(value)(logits, padded), make(value)(logits, ids))


def test_numbers_of_tokens_may_be_integers_of_numpy():
    logits, ids = batch(0)
    for make, sizes in (
        (top_k, (3, 2)),
        (no_repeat_ngram, (2,)),
        (lambda keep: top_p(0.1, keep), (4,)),
        (lambda keep: min_p(0.9, keep), (4,)),
        (lambda keep: typical_p(0.1, keep), (4,)),
    ):
        expected = make(*sizes)(logits, ids)
        for kind in (np.int64, np.uint8):
            assert torch.equal(make(*map(kind, sizes))(logits, ids), expected)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: temperature(0), "temperature=0 .*use `greedy`"),
        (lambda: temperature(-1.0), r"temperature=-1\.0"),
        (lambda: temperature(float("nan")), "temperature=nan"),
        (lambda: top_k(0), "top_k=0 .*leave the filter out"),
        (lambda: top_k(2.5), r"top_k=2\.5 .*integer"),
        (lambda: top_k(5, min_tokens_to_keep=0), "min_tokens_to_keep=0"),
        (lambda: top_p(0), "top_p=0 .*`greedy`"),
        (lambda: top_p(1.5), r"top_p=1\.5 .*at most 1"),
        (lambda: min_p(-0.1), r"min_p=-0\.1"),
        (lambda: min_p(1.1), r"min_p=1\.1"),
        (lambda: typical_p(1), "typical_p=1 .*leave the filter out"),
        (lambda: repetition_penalty(0), "repetition_penalty=0 .*1 has no effect"),
        (lambda: no_repeat_ngram(0), "no_repeat_ngram=0 .*leave the filter out"),
    ],
)
def test_settings_out_of_range_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
