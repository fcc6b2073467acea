"""Attention against PyTorch's two forms in float64, and by property."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from chapters_src.attention import (
    CrossAttention,
    KeyValueCache,
    MultiHeadAttention,
    apply_rotary,
    attention_weights,
    causal_mask,
    document_mask,
    padding_mask,
    recorded,
    rotary_angles,
    scaled_dot_product_attention,
    sliding_window_mask,
)

quick = settings(deadline=None, max_examples=40)
SIZES = st.integers(1, 5)


def numbers(seed):
    return torch.Generator().manual_seed(seed)


def draw(generator, *shape, dtype=torch.float64):
    return torch.randn(*shape, generator=generator, dtype=dtype)


@st.composite
def problems(draw_from):
    """Query, key, value and mask: leading dimensions, lengths, widths and the mask's shape at random."""
    batch, heads, queries, keys, width, value_width = (draw_from(SIZES) for _ in range(6))
    generator = numbers(draw_from(st.integers(0, 10_000)))
    query = 3 * draw(generator, batch, heads, queries, width)
    key, value = draw(generator, batch, heads, keys, width), draw(generator, batch, heads, keys, value_width)
    full = (batch, heads, queries, keys)
    shape = [draw_from(st.sampled_from([size, 1])) for size in full]
    shape = shape[draw_from(st.sampled_from([0, 2, 3])) :]  # for all sequences and heads: at most (T, S)
    share = draw_from(st.sampled_from([0.0, 0.2, 0.6, 1.0]))
    mask = torch.rand(shape, generator=generator) < share  # some rows have nothing to attend to
    return query, key, value, draw_from(st.sampled_from([mask, None]))


@quick
@given(problems())
def test_attention_and_its_gradients_are_those_of_pytorch(problem):
    *inputs, mask = problem
    inputs = [each.requires_grad_() for each in inputs]
    ours = scaled_dot_product_attention(*inputs, mask)
    mask = None if mask is None else torch.atleast_2d(mask)  # PyTorch refuses (S,)
    theirs = F.scaled_dot_product_attention(*inputs, attn_mask=mask)
    torch.testing.assert_close(ours, theirs, atol=1e-10, rtol=0)
    query, key, _ = inputs
    eye = torch.eye(key.size(2)).double().expand(*key.shape[:3], -1)  # What is mixed are then the weights.
    weights = F.scaled_dot_product_attention(query, key, eye, attn_mask=mask)
    torch.testing.assert_close(attention_weights(query, key, mask), weights, atol=1e-12, rtol=0)
    upstream = draw(numbers(1), *ours.shape)
    for mine, other in zip(
        torch.autograd.grad(ours, inputs, upstream),
        torch.autograd.grad(theirs, inputs, upstream),
        strict=True,
    ):
        torch.testing.assert_close(mine, other, atol=1e-10, rtol=0)


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_row_without_any_key_gives_zeros_and_finite_gradients_all_the_way(dtype):
    generator = numbers(0)
    inputs = [draw(generator, 2, 3, 4, 8).to(dtype).requires_grad_() for _ in range(3)]
    mask = torch.tensor([True, False, True, False])[:, None] & causal_mask(4)
    with torch.autograd.detect_anomaly(check_nan=True):  # no NaN on the way either
        mixed = scaled_dot_product_attention(*inputs, mask)
        mixed.sum().backward()
    assert (mixed[:, :, [1, 3]] == 0).all() and (mixed[:, :, [0, 2]] != 0).all()
    assert all(each.grad.isfinite().all() for each in inputs)
    assert (inputs[0].grad[:, :, [1, 3]] == 0).all()


def test_very_large_scores_do_not_overflow():
    query = torch.full((1, 1, 2, 4), 1e18)
    key = torch.stack([torch.full((4,), 1e18), torch.full((4,), -1e18)])[None, None]
    weights = attention_weights(query, key, causal_mask(2))
    assert weights.tolist() == [[[[1.0, 0.0], [1.0, 0.0]]]]


@quick
@given(st.integers(1, 9), st.integers(0, 6))
def test_a_token_attends_to_itself_and_to_the_left(num_queries, past):
    num_keys = num_queries + past
    mask = causal_mask(num_queries, num_keys)
    assert mask.dtype == torch.bool and mask.shape == (num_queries, num_keys)
    for i in range(num_queries):
        assert mask[i].nonzero().flatten().tolist() == list(range(past + i + 1))
    assert torch.equal(mask, causal_mask(num_keys)[past:])


@pytest.mark.parametrize(("queries", "keys"), [(0, 0), (0, 3), (4, 3), (-1, 3)])
def test_causal_mask_refuses_what_has_no_meaning(queries, keys):
    with pytest.raises(ValueError, match=f"{queries} queries and {keys} keys.* no more queries than keys"):
        causal_mask(queries, keys)


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (5, 5), (2, 6), (1, 7)])
@pytest.mark.parametrize("window", [1, 2, 3, 9])
def test_a_sliding_window_reaches_so_many_tokens_back(queries, keys, window):
    mask = sliding_window_mask(queries, keys, window)
    for query in range(queries):
        place = keys - queries + query
        assert mask[query].tolist() == [place - key < window for key in range(keys)]
    both = mask & causal_mask(queries, keys)
    assert both.sum(dim=1).tolist() == [min(window, keys - queries + query + 1) for query in range(queries)]


@pytest.mark.parametrize(("queries", "keys", "window"), [(0, 3, 2), (4, 3, 2), (3, 3, 0)])
def test_a_sliding_window_refuses_what_has_no_meaning(queries, keys, window):
    with pytest.raises(ValueError, match=f"window of {window}, {queries} queries and {keys} keys"):
        sliding_window_mask(queries, keys, window)


def test_masks_are_made_on_the_device_asked_for():
    meta = torch.device("meta")
    for mask in (causal_mask(3, device=meta), sliding_window_mask(3, 4, 2, device=meta)):
        assert mask.device == meta


@pytest.mark.parametrize("chunks", [[1] * 40, [7, 1, 1, 20, 11], [40], [30, 10]], ids=str)
@pytest.mark.parametrize("window", [1, 3, 8])
def test_a_cache_with_a_window_returns_what_the_window_reaches(window, chunks, monkeypatch):
    monkeypatch.setattr(KeyValueCache, "SPARE", 4)
    key, value = keys_and_values(2, 3, 40, 5)
    cache, past = KeyValueCache(2, 3, 40, 5, key, window), 0
    for size in chunks:
        end = past + size
        first = max(0, past - (window - 1))
        reached = cache.append(key[:, :, past:end], value[:, :, past:end])
        for whole, every in zip(reached, (key, value), strict=True):
            assert torch.equal(whole, every[:, :, first:end])
        assert cache.length == end and cache._key.size(2) == window - 1 + 8
        past = end
    shortest = cache._discarded + window - 1
    assert [length for length in range(42) if cache.can_crop(length)] == list(range(shortest, 41))
    assert shortest <= 36
    cache.select(torch.tensor([1, 1, 0]))
    cache.crop(37)
    more = keys_and_values(3, 3, 2, 5, seed=7)
    for whole, old, new in zip(cache.append(*more), (key, value), more, strict=True):
        kept = old[:, :, 37 - window + 1 : 37][[1, 1, 0]]
        assert torch.equal(whole, torch.cat([kept, new], dim=2))
    with pytest.raises(ValueError, match=r"keep 20 tokens: the first \d+ are discarded"):
        cache.crop(20)


@pytest.mark.parametrize(("queries", "keys"), [(4, 5), (5, 4), (1, 2)])
def test_causal_for_other_lengths_is_refused(queries, keys):
    query, key = torch.zeros(2, 3, queries, 8), torch.zeros(2, 3, keys, 8)
    message = f"mask='causal' for {queries} queries and {keys} keys.*as many keys as queries.*causal_mask"
    with pytest.raises(ValueError, match=message):
        attention_weights(query, key, "causal")


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.uint8])
def test_padding_mask_hides_padding_from_every_head_and_query(dtype):
    mask = padding_mask(torch.tensor([[1, 1, 0], [0, 1, 1]]).to(dtype))
    assert mask.dtype == torch.bool and mask.shape == (2, 1, 1, 3)
    assert mask.flatten(1).tolist() == [[True, True, False], [False, True, True]]
    combined = mask & causal_mask(3)
    assert combined.shape == (2, 1, 3, 3)
    assert combined[1, 0].tolist() == [[False] * 3, [False, True, False], [False, True, True]]


def test_padding_mask_refuses_other_shapes_and_types():
    with pytest.raises(ValueError, match=r"\(3,\).*\(batch, length\)"):
        padding_mask(torch.ones(3, dtype=torch.int64))
    additive = torch.tensor([[0.0, -1e9]])
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        with pytest.raises(ValueError, match=rf"\(1, 2\), {dtype}.*integers or booleans.*mask == 0"):
            padding_mask(additive.to(dtype))
    assert padding_mask(additive == 0).flatten().tolist() == [True, False]  # the way out


def test_attention_refuses_what_does_not_fit():
    query, key = torch.zeros(2, 3, 4, 8), torch.zeros(2, 3, 5, 8)
    with pytest.raises(ValueError, match=r"\(2, 3, 4, 8\).*\(2, 3, 5, 7\).*last dimension"):
        attention_weights(query, key[..., :7], None)
    with pytest.raises(ValueError, match=r"\(2, 3, 4, 8\).*\(4, 3, 5, 8\).*equal, or 1"):
        attention_weights(query, torch.zeros(4, 3, 5, 8), None)
    with pytest.raises(ValueError, match=r"mask='Causal' for 4 queries.*string allowed is 'causal'"):
        attention_weights(query, query, "Causal")
    with pytest.raises(ValueError, match=r"torch.float32.*boolean.*may attend"):
        attention_weights(query, key, torch.zeros(4, 5))
    for shape in [(5, 4), (3, 1, 4, 5), (1, 2, 3, 4, 5)]:  # the last would make the scores larger
        with pytest.raises(ValueError, match=rf"{(shape[0])}, .*\(2, 3, 4, 5\)"):
            attention_weights(query, key, torch.ones(shape, dtype=torch.bool))
    with pytest.raises(ValueError, match=r"\(2, 3, 5, 8\).*\(2, 3, 6, 8\).*one value"):
        scaled_dot_product_attention(query, key, torch.zeros(2, 3, 6, 8), None)


@pytest.mark.parametrize("size", [2, 3])
def test_a_mask_of_three_dimensions_for_heads_or_for_sequences_is_refused(size):
    """With as many sequences as heads nobody could tell which is meant; so never."""
    generator = numbers(0)
    query, states = draw(generator, size, 3, 5, 4), draw(generator, size, 5, 12)
    mask = torch.rand(size, 5, 5, generator=generator) < 0.5
    calls = [
        lambda mask: attention_weights(query, query, mask),
        lambda mask: scaled_dot_product_attention(query, query, query, mask),
        lambda mask: module()(states, mask),
        lambda mask: crossing()(states, states, mask),
    ]
    for call in calls:
        for wrong in (mask, mask[:1], mask[:, :1]):
            with pytest.raises(ValueError, match=r"mask .*5\).* scores .*5, 5\)"):
                call(wrong)
        if size == 3:
            with pytest.raises(ValueError, match=r"ambiguous.*mask\[:, None\].*sequences.*mask\[None\]"):
                call(mask)
            call(mask[None])
        call(mask[:, None])
    weights = attention_weights(query, query, mask[:, None])  # the ways out do what they say
    assert ((weights > 0) == mask[:, None].expand_as(weights)).all()
    assert attention_weights(query[:, 0], query[:, 0], mask).shape == (size, 5, 5)  # nothing to confuse


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint8])
def test_sizes_may_be_integers_of_numpy(kind):
    states = draw(numbers(0), 2, 5, 12)
    ours = module(kind(12), kind(3), num_key_value_heads=kind(1))
    assert torch.equal(ours(states, "causal"), module(num_key_value_heads=1)(states, "causal"))
    cross = crossing(kind(12), kind(3), num_key_value_heads=kind(1))
    assert torch.equal(cross(states, states, None), crossing(num_key_value_heads=1)(states, states, None))
    assert torch.equal(causal_mask(kind(2), kind(5)), causal_mask(2, 5))


def test_document_mask_hides_other_documents():
    documents = torch.tensor([[0, 0, 1, 2], [3, 3, 3, 3]])
    mask = document_mask(documents)
    assert mask.dtype == torch.bool and mask.shape == (2, 1, 4, 4)
    assert mask[0, 0].int().tolist() == [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    assert mask[1].all()
    for wrong in (documents[0], documents.double(), documents == 3):
        with pytest.raises(ValueError, match=rf"documents .*{wrong.dtype}.*number of each token's document"):
            document_mask(wrong)


# Rotary positions


@quick
@given(st.sampled_from([2, 4, 6, 16]), st.sampled_from([100.0, 10_000.0, 500_000.0]), st.integers(0, 999))
def test_rotary_positions_turn_pairs_like_complex_numbers(head_dim, base, seed):
    generator = numbers(seed)
    heads = draw(generator, 2, 3, 4, head_dim)
    positions = torch.randint(0, 50, (2, 4), generator=generator)
    half = head_dim // 2
    turned = torch.complex(heads[..., :half], heads[..., half:])
    for b in range(2):
        for t in range(4):
            for i in range(half):
                angle = positions[b, t].item() / base ** (2 * i / head_dim)
                turned[b, :, t, i] *= complex(math.cos(angle), math.sin(angle))
    expected = torch.cat([turned.real, turned.imag], dim=-1)
    ours = apply_rotary(heads, rotary_angles(positions, head_dim, base))
    torch.testing.assert_close(ours, expected, atol=2e-5, rtol=0)


def test_far_positions_stay_apart_in_half_precision():
    heads, positions = draw(numbers(0), 1, 1, 2, 16, dtype=torch.float32), torch.tensor([[10_000, 10_001]])
    angles = rotary_angles(positions, 16)
    assert {part.dtype for part in angles} == {torch.float32}
    result = apply_rotary(heads.bfloat16(), angles)
    assert result.dtype == torch.bfloat16
    torch.testing.assert_close(result.float(), apply_rotary(heads, angles), atol=0.05, rtol=0)


@pytest.mark.parametrize("head_dim", [7, 0])
def test_rotary_positions_need_pairs(head_dim):
    with pytest.raises(ValueError, match=f"head_dim={head_dim}.* even"):
        rotary_angles(torch.arange(3)[None], head_dim)


@pytest.mark.parametrize(
    ("batch", "length", "head_dim"), [(1, 1, 4), (1, 4, 4), (3, 5, 4), (1, 5, 2), (1, 5, 8)]
)
def test_angles_of_other_tokens_are_refused(batch, length, head_dim):
    """Those of one token would be spread over all, and those of three sequences would make three of one."""
    angles = rotary_angles(torch.zeros(batch, length, dtype=torch.int64), head_dim)
    with pytest.raises(
        ValueError, match=rf"angles \({batch}, 1, {length}, {head_dim}\) for heads \(2, 3, 5, 4\)"
    ):
        apply_rotary(torch.zeros(2, 3, 5, 4), angles)


# Multi-head attention


def module(d_model=12, num_heads=3, seed=0, dtype=torch.float64, kind=MultiHeadAttention, **options):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        built = kind(d_model, num_heads, **options)
    for name, parameter in built.named_parameters():
        if name.endswith("bias"):
            nn.init.normal_(parameter, std=0.5, generator=numbers(seed))
    return built.to(dtype)


def crossing(*sizes, **options):
    return module(*sizes, kind=CrossAttention, **options)


def projections(ours):
    """What makes queries, keys and values, in this order."""
    return [ours.query, ours.key_value] if isinstance(ours, CrossAttention) else [ours.query_key_value]


def library_twin(ours):
    """PyTorch's module with our weights: its stacked projection has the same order."""
    with_bias = ours.output.bias is not None
    theirs = nn.MultiheadAttention(
        ours.output.in_features, ours.num_heads, bias=with_bias, batch_first=True, dtype=torch.float64
    )
    weights = {
        "in_proj_weight": torch.cat([part.weight for part in projections(ours)]),
        "out_proj.weight": ours.output.weight,
    }
    if with_bias:
        weights["in_proj_bias"] = torch.cat([part.bias for part in projections(ours)])
        weights["out_proj.bias"] = ours.output.bias
    theirs.load_state_dict({name: weight.detach().clone() for name, weight in weights.items()})
    return theirs


@quick
@given(
    st.sampled_from([(12, 3), (8, 1), (4, 4)]), st.booleans(), st.booleans(), st.booleans(),
    st.integers(1, 5), st.integers(1, 5), st.integers(0, 999),
)  # fmt: skip
def test_multi_head_attention_is_that_of_pytorch(sizes, bias, cross, masked, length, memory_length, seed):
    d_model, num_heads = sizes
    generator = numbers(seed)
    ours = (crossing if cross else module)(d_model, num_heads, seed=seed, bias=bias)
    theirs = library_twin(ours)
    states = draw(generator, 2, length, d_model).requires_grad_()
    memory = draw(generator, 2, memory_length, d_model).requires_grad_() if cross else None
    keys = memory_length if cross else length
    mask = torch.rand(2, num_heads, length, keys, generator=generator) < 0.6
    mask[..., 0] = True  # PyTorch's module gives NaN for a row without any key
    mask = mask if masked else None
    mixed = ours(states, memory, mask) if cross else ours(states, mask)
    source = states if memory is None else memory
    blocked = None if mask is None else ~mask.flatten(0, 1)
    expected, _ = theirs(states, source, source, attn_mask=blocked, need_weights=False)
    torch.testing.assert_close(mixed, expected, atol=1e-10, rtol=0)

    upstream = draw(generator, *mixed.shape)
    inputs = [states, *([memory] if cross else [])]
    kinds = ["weight", "bias"] if bias else ["weight"]
    our_inputs = [getattr(part, kind) for kind in kinds for part in (*projections(ours), ours.output)]
    gradients = torch.autograd.grad(mixed, [*inputs, *our_inputs], upstream)
    their_inputs = [theirs.in_proj_weight, theirs.out_proj.weight]
    their_inputs += [theirs.in_proj_bias, theirs.out_proj.bias] if bias else []
    expected = torch.autograd.grad(expected, [*inputs, *their_inputs], upstream)
    flat, expected_flat = (torch.cat([each.flatten() for each in some]) for some in (gradients, expected))
    torch.testing.assert_close(flat, expected_flat, atol=1e-10, rtol=0)  # both in the same order


@pytest.mark.parametrize("shape", [(), (5,), (1, 5), (5, 1), (1, 3, 1, 5), (2, 1, 1, 5), (2, 3, 5, 5)])
@pytest.mark.parametrize("cross", [False, True])
def test_masks_broadcast(shape, cross):
    states = draw(numbers(0), 2, 5, 12).requires_grad_()
    ours = crossing() if cross else module()
    inputs = (states, states) if cross else (states,)
    mask = torch.rand(shape, generator=numbers(1)) < 0.7
    results = [ours(*inputs, each) for each in (mask, mask.expand(2, 3, 5, 5))]
    torch.testing.assert_close(*results, atol=1e-12, rtol=0)
    torch.testing.assert_close(*(torch.autograd.grad(each.sum(), states) for each in results))


@pytest.mark.parametrize("groups", [1, 3])
def test_causal_is_causal_mask_in_a_module_and_its_records(groups):
    ours, states = module(num_key_value_heads=groups), draw(numbers(0), 2, 5, 12)
    with recorded(ours) as weights:
        results = [ours(states, mask) for mask in ("causal", causal_mask(5))]
    torch.testing.assert_close(*results, atol=1e-12, rtol=0)
    assert torch.equal(*weights[""])
    assert (weights[""][0].triu(1) == 0).all() and (weights[""][0].diagonal(dim1=-2, dim2=-1) > 0).all()


@pytest.mark.parametrize("cross", [False, True])
def test_a_query_that_may_attend_to_nothing_gets_the_bias_of_the_output(cross):
    ours = crossing() if cross else module()
    states = draw(numbers(0), 2, 4, 12).requires_grad_()
    mask = padding_mask(torch.tensor([[0, 0, 0, 0], [1, 1, 0, 0]]))
    mixed = ours(states, states, mask) if cross else ours(states, mask)
    torch.testing.assert_close(mixed[0], ours.output.bias.expand(4, 12))
    mixed.sum().backward()
    assert states.grad.isfinite().all() and (states.grad[0] == 0).all()
    assert all(parameter.grad.isfinite().all() for parameter in ours.parameters())


def test_dropout_takes_weights_in_training_only():
    with_dropout, without = module(dropout=0.5), module()
    states = draw(numbers(0), 1, 6, 12)
    torch.testing.assert_close(with_dropout.eval()(states, None), without(states, None), atol=1e-12, rtol=0)
    torch.manual_seed(0)
    runs = with_dropout.train()(states.expand(4000, -1, -1), None)
    assert runs.std(dim=0).min() > 0.01  # each run drops others
    torch.testing.assert_close(
        runs.mean(dim=0), without(states, None)[0], atol=0.05, rtol=0
    )  # kept are scaled


@pytest.mark.parametrize("kind", [MultiHeadAttention, CrossAttention])
@pytest.mark.parametrize(
    ("options", "values"),
    [
        ({"d_model": 12, "num_heads": 5}, "d_model=12, num_heads=5"),
        ({"d_model": 12, "num_heads": 0}, "num_heads=0"),
        ({"d_model": 12, "num_heads": 4, "num_key_value_heads": 3}, "num_key_value_heads=3"),
        ({"d_model": 12, "num_heads": 4, "num_key_value_heads": 0}, "num_key_value_heads=0"),
    ],
)
def test_numbers_that_do_not_divide_are_refused(kind, options, values):
    with pytest.raises(ValueError, match=f"{values}.*has to divide"):
        kind(**options)


def test_modules_refuse_states_memories_and_angles_that_do_not_fit():
    ours, cross, states = module(), crossing(), draw(numbers(0), 2, 5, 12)
    for call in (lambda wrong: ours(wrong, None), lambda wrong: cross(wrong, states, None)):
        for wrong, shape in ((states[0], r"\(5, 12\)"), (states[..., :11], r"\(2, 5, 11\)")):
            with pytest.raises(ValueError, match=rf"hidden_states {shape}.*tokens, 12"):
                call(wrong)
    with pytest.raises(ValueError, match=r"angles \(1, 1, 4, 4\) for heads \(2, 6, 5, 4\)"):
        ours(states, None, angles=rotary_angles(torch.arange(4)[None], 4))
    with pytest.raises(ValueError, match=r"memory \(2, 5, 11\).*tokens, 12"):
        cross(states, states[..., :11], None)
    for rows in (1, 2):
        with pytest.raises(ValueError, match=f"a memory of 3 sequences for {rows}"):
            cross(states[:rows], draw(numbers(0), 3, 5, 12), None)


# The cache


@pytest.mark.parametrize("groups", [1, 3])
def test_the_keys_of_a_memory_are_made_once(groups):
    ours = crossing(num_key_value_heads=groups)
    states, memory = draw(numbers(0), 2, 3, 12), draw(numbers(1), 2, 5, 12)
    mask = padding_mask(torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]]))
    calls = []
    ours.key_value.register_forward_hook(lambda *_: calls.append(1))
    expected = ours(states, memory, mask)
    cache = KeyValueCache(2, groups, 3, 4, states)
    parts = [ours(states[:, t : t + 1], memory, mask, cache=cache) for t in range(3)]
    torch.testing.assert_close(torch.cat(parts, dim=1), expected, atol=1e-12, rtol=0)
    assert len(calls) == 2 and cache.length == 0  # Once without the cache, once with it.
    assert [tuple(each.shape) for each in cache.memory] == [(2, groups, 5, 4)] * 2
    rows = torch.tensor([1, 1, 0])
    cache.select(rows)
    cache.crop(0)
    selected = ours(states[rows], memory[rows], mask[rows], cache=cache)
    torch.testing.assert_close(selected, expected[rows], atol=1e-12, rtol=0)
    assert len(calls) == 2


def keys_and_values(*shape, seed=0):
    return draw(numbers(seed), *shape), draw(numbers(seed + 1), *shape)


def test_appending_copies_nothing_that_is_there():
    key, value = keys_and_values(2, 3, 6, 5)
    cache = KeyValueCache(2, 3, 6, 5, key)
    views = [cache.append(key[:, :, i : i + 2], value[:, :, i : i + 2]) for i in (0, 2, 4)]
    for kind, expected in ((0, key), (1, value)):
        assert len({view[kind].data_ptr() for view in views}) == 1
        assert len({view[kind].untyped_storage().data_ptr() for view in views}) == 1
        assert views[0][kind].untyped_storage().nbytes() == expected.nbytes  # the capacity, from the start
        for length, view in zip((2, 4, 6), views, strict=True):
            assert torch.equal(view[kind], expected[:, :, :length])
    assert views[0][0].data_ptr() != views[0][1].data_ptr()


def test_a_cache_is_of_the_type_it_was_told():
    cache = KeyValueCache(1, 2, 3, 4, torch.empty(7, dtype=torch.bfloat16))
    key, value = cache.append(torch.ones(1, 2, 1, 4), torch.ones(1, 2, 1, 4))
    assert key.dtype == value.dtype == torch.bfloat16
    assert (
        KeyValueCache(1, 2, 3, 4, torch.empty(0, device="meta")).append(key, value)[0].device.type == "meta"
    )


def test_a_full_cache_and_other_sequences_are_refused():
    key, value = keys_and_values(2, 3, 4, 5)
    cache = KeyValueCache(2, 3, 6, 5, key)
    cache.append(key, value)
    with pytest.raises(
        ValueError, match=r"4 tokens of 2 sequences: .* 4 of its capacity of 6 tokens.*larger capacity"
    ):
        cache.append(key, value)
    for rows in (1, 3):
        one = keys_and_values(rows, 3, 1, 5)
        with pytest.raises(
            ValueError, match=f"1 tokens of {rows} sequences: the cache is for 2 seq.*select rows"
        ):
            cache.append(*one)
    assert cache.length == 4
    all_keys, _ = cache.append(key[:, :, :2], value[:, :, :2])  # there is room for two
    assert torch.equal(all_keys, torch.cat([key, key[:, :, :2]], dim=2))


def test_a_cropped_cache_goes_on_from_there():
    key, value = keys_and_values(2, 3, 4, 5)
    cache = KeyValueCache(1, 3, 4, 5, key)
    cache.select(torch.tensor([0, 0]))  # while it is empty
    cache.crop(0)
    cache.append(key, value)
    cache.crop(4)
    cache.crop(1)
    assert cache.length == 1
    more = keys_and_values(2, 3, 2, 5, seed=7)
    for whole, old, new in zip(cache.append(*more), (key, value), more, strict=True):
        assert torch.equal(whole, torch.cat([old[:, :, :1], new], dim=2))
    for length in (4, -1):
        with pytest.raises(ValueError, match=f"keep {length} tokens.*holds 3"):
            cache.crop(length)


# Recording


class TwoAttentions(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = module(seed=1), crossing(seed=2, num_key_value_heads=1)

    def forward(self, states, mask):
        return self.second(self.first(states, mask), states, mask)


def test_recording_keeps_what_the_softmax_gave():
    model, states = TwoAttentions(), draw(numbers(0), 2, 4, 12).requires_grad_()
    mask = padding_mask(torch.tensor([[1, 1, 1, 0], [0, 1, 1, 1]])) & causal_mask(4)
    before = model(states, mask)
    with recorded(model) as weights:
        during = model(states, mask)
        model(states[:, :2], causal_mask(2))
    assert torch.equal(before, during) and torch.equal(before, model(states, mask))
    assert list(weights) == ["first", "second"]
    assert [[tuple(each.shape) for each in calls] for calls in weights.values()] == [
        [(2, 3, 4, 4), (2, 3, 2, 2)]
    ] * 2
    rows = model.first.query_key_value(states)
    query, key = (rows[..., 12 * n : 12 * n + 12].unflatten(-1, (3, 4)).transpose(1, 2) for n in (0, 1))
    torch.testing.assert_close(weights["first"][0], attention_weights(query, key, mask))
    query = model.second.query(model.first(states, mask)).unflatten(-1, (3, 4)).transpose(1, 2)
    key = model.second.key_value(states)[..., None, :4].transpose(1, 2)  # one head of keys for all
    torch.testing.assert_close(weights["second"][0], attention_weights(query, key, mask))
    for calls in weights.values():
        sums = calls[0].sum(dim=-1)
        torch.testing.assert_close(sums, mask.any(-1).double().expand_as(sums))
        assert not calls[0].requires_grad
    assert len(weights["first"]) == 2  # nothing was added after the end


def test_recordings_may_be_nested_and_end_even_with_an_exception():
    model, states = TwoAttentions(), draw(numbers(0), 1, 4, 12)
    with recorded(model) as outer:
        with pytest.raises(ZeroDivisionError), recorded(model) as inner:
            model(states, None)
            raise ZeroDivisionError
        model(states, None)
    assert [len(calls) for record in (inner, outer) for calls in record.values()] == [1, 1, 1, 1]


def test_recording_in_training_does_not_change_what_is_dropped():
    model, states = module(dropout=0.4).train(), draw(numbers(0), 1, 4, 12)
    torch.manual_seed(3)
    before = model(states, None)
    torch.manual_seed(3)
    with recorded(model) as weights:
        assert torch.equal(model(states, None), before)
    assert list(weights) == [""]


def test_there_has_to_be_something_to_record():
    with pytest.raises(ValueError, match="Linear contains no MultiHeadAttention"), recorded(nn.Linear(2, 2)):
        pass


def test_the_names_of_stored_weights_stay():
    for ours, names in (
        (module(), ["query_key_value", "output"]),
        (crossing(), ["query", "key_value", "output"]),
    ):
        assert list(ours.state_dict()) == [f"{name}.{kind}" for name in names for kind in ("weight", "bias")]
