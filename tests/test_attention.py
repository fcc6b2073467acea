"""Attention against a loop over single numbers in float64, against PyTorch's two forms, and by property."""

import copy
import inspect
import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

from chapters_src import attention
from chapters_src.attention import (
    KeyValueCache,
    MultiHeadAttention,
    RotaryPositions,
    attention_weights,
    causal_mask,
    padding_mask,
    recorded,
    scaled_dot_product_attention,
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
    shape = shape[draw_from(st.integers(0, 3)) :]  # a mask may have fewer dimensions
    share = draw_from(st.sampled_from([0.0, 0.2, 0.6, 1.0]))
    mask = torch.rand(shape, generator=generator) < share  # some rows have nothing to attend to
    return query, key, value, draw_from(st.sampled_from([mask, None]))


def one_by_one(query, key, value, mask):
    """The definition, number by number."""
    batch, heads, queries, width = query.shape
    keys = key.size(2)
    allowed = torch.ones(batch, heads, queries, keys, dtype=torch.bool)
    allowed = allowed if mask is None else mask.expand_as(allowed)
    weights, mixed = (torch.zeros(batch, heads, queries, n).double() for n in (keys, value.size(-1)))
    for b in range(batch):
        for h in range(heads):
            for i in range(queries):
                seen = [j for j in range(keys) if allowed[b, h, i, j]]
                scores = [
                    sum(float(query[b, h, i, d] * key[b, h, j, d]) for d in range(width)) / width**0.5
                    for j in seen
                ]
                exponentials = [math.exp(score - max(scores)) for score in scores]
                for j, exponential in zip(seen, exponentials, strict=True):
                    weights[b, h, i, j] = exponential / sum(exponentials)
                    mixed[b, h, i] += weights[b, h, i, j] * value[b, h, j].detach()
    return weights, mixed


@quick
@given(problems())
def test_attention_is_its_definition_number_by_number(problem):
    query, key, value, mask = problem
    weights, mixed = one_by_one(query, key, value, mask)
    torch.testing.assert_close(attention_weights(query, key, mask), weights, atol=1e-12, rtol=0)
    torch.testing.assert_close(
        scaled_dot_product_attention(query, key, value, mask), mixed, atol=1e-12, rtol=0
    )


@quick
@given(problems())
def test_attention_and_its_gradients_are_those_of_pytorch(problem):
    *inputs, mask = problem
    inputs = [each.requires_grad_() for each in inputs]
    ours = scaled_dot_product_attention(*inputs, mask)
    mask = None if mask is None else torch.atleast_2d(mask)  # PyTorch refuses (S,)
    theirs = F.scaled_dot_product_attention(*inputs, attn_mask=mask)
    torch.testing.assert_close(ours, theirs, atol=1e-10, rtol=0)
    upstream = draw(numbers(1), *ours.shape)
    for mine, other in zip(
        torch.autograd.grad(ours, inputs, upstream),
        torch.autograd.grad(theirs, inputs, upstream),
        strict=True,
    ):
        torch.testing.assert_close(mine, other, atol=1e-10, rtol=0)


@quick
@given(problems())
def test_rows_add_up_to_one_or_are_all_zeros(problem):
    query, key, _, mask = problem
    weights = attention_weights(query, key, mask)
    allowed = torch.ones_like(weights, dtype=torch.bool) if mask is None else mask.expand_as(weights)
    torch.testing.assert_close(weights.sum(-1), allowed.any(-1).double(), atol=1e-12, rtol=0)
    assert (weights[~allowed] == 0).all()


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


def test_causal_mask_is_made_on_the_device_asked_for():
    assert causal_mask(3, device=torch.device("meta")).device.type == "meta"


@pytest.mark.parametrize(("queries", "keys"), [(0, 0), (0, 3), (4, 3), (-1, 3)])
def test_causal_mask_refuses_what_has_no_meaning(queries, keys):
    with pytest.raises(ValueError, match=f"{queries} queries and {keys} keys.* no more queries than keys"):
        causal_mask(queries, keys)


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.float32, torch.uint8])
def test_padding_mask_hides_padding_from_every_head_and_query(dtype):
    mask = padding_mask(torch.tensor([[1, 1, 0], [0, 1, 1]]).to(dtype))
    assert mask.dtype == torch.bool and mask.shape == (2, 1, 1, 3)
    assert mask.flatten(1).tolist() == [[True, True, False], [False, True, True]]
    combined = mask & causal_mask(3)
    assert combined.shape == (2, 1, 3, 3)
    assert combined[1, 0].tolist() == [[False] * 3, [False, True, False], [False, True, True]]


def test_padding_mask_refuses_other_shapes_and_values():
    with pytest.raises(ValueError, match=r"\(3,\).*\(batch, length\)"):
        padding_mask(torch.ones(3))
    additive = torch.tensor([[0.0, -1e9]])
    with pytest.raises(ValueError, match=r"from -1e\+09|-1000000000.* to 0.*`mask == 0`"):
        padding_mask(additive)
    assert padding_mask(additive == 0).flatten().tolist() == [True, False]  # the way out
    with pytest.raises(ValueError, match="from 0 to 2"):
        padding_mask(torch.tensor([[0, 1, 2]]))


def test_no_mask_is_ever_filled_in():
    forgettable = []
    for name, thing in vars(attention).items():
        if name.startswith("_") or getattr(thing, "__module__", None) != attention.__name__:
            continue
        for function in [thing, thing.forward] if hasattr(thing, "forward") else [thing]:
            for parameter in inspect.signature(function).parameters.values():
                if "mask" in parameter.name and parameter.default is not inspect.Parameter.empty:
                    forgettable.append((name, parameter.name))
    assert not forgettable


def test_attention_refuses_what_does_not_fit():
    query, key = torch.zeros(2, 3, 4, 8), torch.zeros(2, 3, 5, 8)
    with pytest.raises(ValueError, match=r"\(2, 3, 4, 8\).*\(2, 3, 5, 7\).*last dimension"):
        attention_weights(query, key[..., :7], None)
    with pytest.raises(ValueError, match=r"\(2, 3, 4, 8\).*\(4, 3, 5, 8\).*the same, or 1"):
        attention_weights(query, torch.zeros(4, 3, 5, 8), None)
    with pytest.raises(ValueError, match=r"torch.float32.*boolean.*may attend"):
        attention_weights(query, key, torch.zeros(4, 5))
    for shape in [(5, 4), (3, 1, 4, 5), (1, 2, 3, 4, 5)]:  # the last would make the scores larger
        with pytest.raises(ValueError, match=rf"{(shape[0])}, .*\(2, 3, 4, 5\)"):
            attention_weights(query, key, torch.ones(shape, dtype=torch.bool))
    with pytest.raises(ValueError, match=r"\(2, 3, 5, 8\).*\(2, 3, 6, 8\).*one value"):
        scaled_dot_product_attention(query, key, torch.zeros(2, 3, 6, 8), None)


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
    ours = RotaryPositions(head_dim, base)(heads, positions)
    torch.testing.assert_close(ours, expected, atol=2e-5, rtol=0)
    torch.testing.assert_close(ours.norm(dim=-1), heads.norm(dim=-1), atol=1e-6, rtol=0)


def test_rotary_positions_are_those_of_llama():
    query, key = draw(numbers(0), 2, 3, 7, 8), draw(numbers(1), 2, 3, 7, 8)
    positions = torch.arange(7)[None]
    angles = positions[..., None] / 10_000.0 ** (torch.arange(0, 8, 2) / 8)
    angles = torch.cat([angles, angles], dim=-1).double()
    theirs = apply_rotary_pos_emb(query, key, angles.cos(), angles.sin())
    rotary = RotaryPositions(8)
    for ours, other in zip((query, key), theirs, strict=True):
        torch.testing.assert_close(rotary(ours, positions), other, atol=1e-6, rtol=0)


@quick
@given(st.integers(0, 300), st.integers(0, 300), st.integers(0, 300))
def test_scores_depend_on_the_distance_only(at, distance, shift):
    rotary = RotaryPositions(8)
    query, key = draw(numbers(2), 1, 1, 1, 8), draw(numbers(3), 1, 1, 1, 8)

    def score(query_at, key_at):
        return (rotary(query, torch.tensor([[query_at]])) * rotary(key, torch.tensor([[key_at]]))).sum()

    here, there = score(at + distance, at), score(at + distance + shift, at + shift)
    torch.testing.assert_close(here, there, atol=1e-3, rtol=0)
    torch.testing.assert_close(score(distance, 0), here, atol=1e-3, rtol=0)


def test_far_positions_stay_apart_in_half_precision():
    heads, positions = draw(numbers(0), 1, 1, 2, 16, dtype=torch.float32), torch.tensor([[10_000, 10_001]])
    exact, rounded = RotaryPositions(16), RotaryPositions(16).to(torch.bfloat16)
    result = rounded(heads.bfloat16(), positions)
    assert result.dtype == torch.bfloat16
    torch.testing.assert_close(result.float(), exact(heads, positions), atol=0.05, rtol=0)


@pytest.mark.parametrize("head_dim", [7, 0])
def test_rotary_positions_need_pairs(head_dim):
    with pytest.raises(ValueError, match=f"head_dim={head_dim}.* even"):
        RotaryPositions(head_dim)


# Multi-head attention


def module(d_model=12, num_heads=3, seed=0, dtype=torch.float64, **options):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        built = MultiHeadAttention(d_model, num_heads, **options)
    for bias in (built.projection.bias, built.output.bias):
        if bias is not None:
            nn.init.normal_(bias, std=0.5, generator=numbers(seed))
    return built.to(dtype)


def library_twin(ours):
    """PyTorch's module with our weights: its stacked projection has the same order."""
    with_bias = ours.projection.bias is not None
    theirs = nn.MultiheadAttention(
        ours.output.in_features, ours.num_heads, bias=with_bias, batch_first=True, dtype=torch.float64
    )
    weights = {"in_proj_weight": ours.projection.weight, "out_proj.weight": ours.output.weight}
    if with_bias:
        weights |= {"in_proj_bias": ours.projection.bias, "out_proj.bias": ours.output.bias}
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
    ours = module(d_model, num_heads, seed, bias=bias)
    theirs = library_twin(ours)
    states = draw(generator, 2, length, d_model).requires_grad_()
    memory = draw(generator, 2, memory_length, d_model).requires_grad_() if cross else None
    keys = memory_length if cross else length
    mask = torch.rand(2, num_heads, length, keys, generator=generator) < 0.6
    mask[..., 0] = True  # PyTorch's module gives NaN for a row without any key
    mask = mask if masked else None
    mixed = ours(states, mask, memory=memory)
    source = states if memory is None else memory
    blocked = None if mask is None else ~mask.flatten(0, 1)
    expected, _ = theirs(states, source, source, attn_mask=blocked, need_weights=False)
    torch.testing.assert_close(mixed, expected, atol=1e-10, rtol=0)

    upstream = draw(generator, *mixed.shape)
    inputs = [states, *([memory] if cross else [])]
    our_inputs = [*inputs, ours.projection.weight, ours.output.weight]
    their_inputs = [*inputs, theirs.in_proj_weight, theirs.out_proj.weight]
    if bias:
        our_inputs += [ours.projection.bias, ours.output.bias]
        their_inputs += [theirs.in_proj_bias, theirs.out_proj.bias]
    gradients = torch.autograd.grad(mixed, our_inputs, upstream)
    for mine, other in zip(gradients, torch.autograd.grad(expected, their_inputs, upstream), strict=True):
        torch.testing.assert_close(mine, other, atol=1e-10, rtol=0)


@pytest.mark.parametrize("shape", [(), (5,), (1, 5), (5, 1), (3, 1, 5), (2, 1, 1, 5), (2, 3, 5, 5)])
def test_masks_broadcast(shape):
    ours, states = module(), draw(numbers(0), 2, 5, 12).requires_grad_()
    mask = torch.rand(shape, generator=numbers(1)) < 0.7
    results = [ours(states, each) for each in (mask, mask.expand(2, 3, 5, 5))]
    torch.testing.assert_close(*results, atol=1e-12, rtol=0)
    torch.testing.assert_close(*(torch.autograd.grad(each.sum(), states) for each in results))


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("cross", [False, True])
def test_heads_that_share_keys_are_heads_with_equal_keys(groups, cross):
    shared = module(16, 4, num_key_value_heads=groups)
    full = module(16, 4)
    query, key, value = shared.projection.weight.split([16, 4 * groups, 4 * groups])
    query_bias, key_bias, value_bias = shared.projection.bias.split([16, 4 * groups, 4 * groups])

    def repeat(rows):  # head h uses the keys of group h // (4 / groups)
        heads = rows.unflatten(0, (groups, 4))
        return torch.cat([heads[head // (4 // groups)] for head in range(4)])

    with torch.no_grad():
        full.projection.weight.copy_(torch.cat([query, repeat(key), repeat(value)]))
        full.projection.bias.copy_(torch.cat([query_bias, repeat(key_bias), repeat(value_bias)]))
    full.output.load_state_dict(shared.output.state_dict())
    states, memory = draw(numbers(1), 2, 5, 16), draw(numbers(2), 2, 6, 16) if cross else None
    mask = None if cross else causal_mask(5)
    torch.testing.assert_close(
        shared(states, mask, memory=memory), full(states, mask, memory=memory), atol=1e-12, rtol=0
    )
    assert shared.projection.weight.shape == (16 + 2 * 4 * groups, 16)


@pytest.mark.parametrize("groups", [1, 2])
def test_rotary_attention_turns_queries_and_keys_and_not_values(groups):
    rotary = RotaryPositions(6)
    ours = module(12, 2, rotary=rotary, num_key_value_heads=groups)
    states, positions = draw(numbers(0), 2, 5, 12), torch.tensor([[0, 1, 2, 3, 4], [0, 0, 0, 1, 2]])
    rows = ours.projection(states)
    by_head = []
    for head in range(2):
        group = 2 + head * groups // 2
        query, key, value = (rows[..., 6 * n : 6 * n + 6] for n in (head, group, group + groups))
        query, key = (rotary(each[:, None], positions)[:, 0] for each in (query, key))
        by_head.append(scaled_dot_product_attention(query, key, value, causal_mask(5)))
    expected = ours.output(torch.cat(by_head, dim=-1))
    torch.testing.assert_close(
        ours(states, causal_mask(5), positions=positions), expected, atol=1e-12, rtol=0
    )


def test_a_query_that_may_attend_to_nothing_gets_the_bias_of_the_output():
    ours = module()
    states = draw(numbers(0), 2, 4, 12).requires_grad_()
    mask = padding_mask(torch.tensor([[0, 0, 0, 0], [1, 1, 0, 0]]))
    mixed = ours(states, mask)
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


@pytest.mark.parametrize(
    ("options", "values"),
    [
        ({"d_model": 12, "num_heads": 5}, "d_model=12, num_heads=5"),
        ({"d_model": 12, "num_heads": 0}, "num_heads=0"),
        ({"d_model": 12, "num_heads": 4, "num_key_value_heads": 3}, "num_key_value_heads=3"),
        ({"d_model": 12, "num_heads": 4, "num_key_value_heads": 0}, "num_key_value_heads=0"),
    ],
)
def test_numbers_that_do_not_divide_are_refused(options, values):
    with pytest.raises(ValueError, match=f"{values}.*have to divide"):
        MultiHeadAttention(**options)


def test_multi_head_attention_refuses_what_does_not_fit():
    with pytest.raises(ValueError, match=r"head_dim=8.*head_dim=4"):
        MultiHeadAttention(12, 3, rotary=RotaryPositions(8))
    plain, rotary = module(), module(rotary=RotaryPositions(4))
    states, positions = draw(numbers(0), 2, 5, 12), torch.arange(5)[None]
    with pytest.raises(ValueError, match=r"hidden_states \(5, 12\).*tokens, 12"):
        plain(states[0], None)
    with pytest.raises(ValueError, match=r"hidden_states \(2, 5, 11\).*tokens, 12"):
        plain(states[..., :11], None)
    with pytest.raises(ValueError, match=r"memory \(2, 5, 11\).*tokens, 12"):
        plain(states, None, memory=states[..., :11])
    with pytest.raises(ValueError, match=r"positions were given.*leave them out"):
        plain(states, None, positions=positions)
    with pytest.raises(ValueError, match=r"positions=None.*needs those of its tokens, \(2, 5\) or \(1, 5\)"):
        rotary(states, None)
    with pytest.raises(ValueError, match=r"positions=\(5,\).*\(2, 5\)"):
        rotary(states, None, positions=positions[0])
    with pytest.raises(ValueError, match=r"positions=\(1, 4\).*\(1, 5\)"):
        rotary(states, None, positions=positions[:, :4])
    with pytest.raises(ValueError, match=r"memory.*rotary=None"):
        rotary(states, None, memory=states, positions=positions)
    with pytest.raises(ValueError, match=r"\(2, 3, 5, 4\).*\(3, 3, 5, 4\)"):
        plain(states, None, memory=draw(numbers(0), 3, 5, 12))
    with pytest.raises(ValueError, match=r"torch.int64.*boolean"):
        plain(states, torch.ones(5, 5, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"\(2, 5\).*\(2, 3, 5, 5\)"):  # an attention mask as it comes
        plain(states, torch.ones(2, 5, dtype=torch.bool))


# The cache


@pytest.mark.parametrize("chunks", [[1] * 7, [3, 4], [7], [5, 1, 1]])
@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("is_rotary", [False, True])
def test_cached_is_the_same_as_uncached(chunks, groups, is_rotary):
    ours = module(num_key_value_heads=groups, rotary=RotaryPositions(4) if is_rotary else None)
    states, cache, parts, past = draw(numbers(0), 2, 7, 12), KeyValueCache(), [], 0
    positions = torch.arange(7)[None]

    def given_positions(start, end):
        return positions[:, start:end] if is_rotary else None

    whole = ours(states, causal_mask(7), positions=given_positions(0, 7))
    for size in chunks:
        end = past + size
        mask = causal_mask(size, end)
        parts.append(ours(states[:, past:end], mask, positions=given_positions(past, end), cache=cache))
        past = end
        assert cache.length == past
    torch.testing.assert_close(torch.cat(parts, dim=1), whole, atol=1e-12, rtol=0)
    assert cache.key.shape == cache.value.shape == (2, groups, 7, 4)


def test_the_keys_of_a_memory_are_computed_once():
    ours, cache = module(), KeyValueCache()
    states, memory = draw(numbers(0), 2, 3, 12), draw(numbers(1), 2, 5, 12)
    expected = ours(states, None, memory=memory)
    torch.testing.assert_close(ours(states[:, :2], None, memory=memory, cache=cache), expected[:, :2])
    assert cache.length == 5
    unused = torch.full_like(memory, math.nan)
    torch.testing.assert_close(ours(states[:, 2:], None, memory=unused, cache=cache), expected[:, 2:])
    assert cache.length == 5


def test_a_cache_selects_and_crops():
    cache = KeyValueCache()
    cache.select(torch.tensor([0]))  # of an empty one nothing is left
    cache.crop(0)
    assert cache.length == 0
    key, value = draw(numbers(0), 2, 3, 4, 5), draw(numbers(1), 2, 3, 4, 5)
    cache.append(key[:, :, :3], value[:, :, :3])
    all_keys, all_values = cache.append(key[:, :, 3:], value[:, :, 3:])
    assert torch.equal(all_keys, key) and torch.equal(all_values, value)
    cache.select(torch.tensor([1, 1, 0]))
    assert torch.equal(cache.key, key[[1, 1, 0]]) and torch.equal(cache.value, value[[1, 1, 0]])
    cache.crop(2)
    assert cache.length == 2
    assert torch.equal(cache.key, key[[1, 1, 0], :, :2]) and torch.equal(cache.value, value[[1, 1, 0], :, :2])
    with pytest.raises(ValueError, match=r"holds 3 sequences and 2 came.*select"):
        cache.append(key, value)
    assert cache.length == 2
    for length in (3, -1):
        with pytest.raises(ValueError, match=f"keep {length} tokens.*holds 2"):
            cache.crop(length)


# Recording


class TwoAttentions(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = module(seed=1), module(seed=2, num_key_value_heads=1)

    def forward(self, states, mask):
        return self.second(self.first(states, mask), mask)


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
    rows = model.first.projection(states)
    query, key = (rows[..., 12 * n : 12 * n + 12].unflatten(-1, (3, 4)).transpose(1, 2) for n in (0, 1))
    torch.testing.assert_close(weights["first"][0], attention_weights(query, key, mask))
    for calls in weights.values():
        sums = calls[0].sum(dim=-1)
        torch.testing.assert_close(sums, mask.any(-1).double().expand_as(sums))
        assert not calls[0].requires_grad
    assert len(weights["first"]) == 2  # nothing was added after the end


def test_recording_ends_even_with_an_exception():
    model, states = TwoAttentions(), draw(numbers(0), 1, 4, 12)
    with pytest.raises(ZeroDivisionError), recorded(model) as weights:
        raise ZeroDivisionError
    model(states, None)
    assert weights == {"first": [], "second": []}


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


def test_a_module_can_be_copied_saved_and_used_in_other_precisions():
    ours = module(rotary=RotaryPositions(4), dtype=torch.float32)
    assert set(ours.state_dict()) == {
        "projection.weight", "projection.bias", "output.weight", "output.bias"
    }  # fmt: skip
    states, positions = draw(numbers(0), 2, 5, 12, dtype=torch.float32), torch.arange(5)[None]
    expected = ours(states, causal_mask(5), positions=positions)
    twin = copy.deepcopy(ours)
    assert torch.equal(twin(states, causal_mask(5), positions=positions), expected)
    with torch.inference_mode():
        assert torch.equal(ours(states, causal_mask(5), positions=positions), expected)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rough = ours(states, causal_mask(5), positions=positions)
        weights = attention_weights(states, states, causal_mask(5))
    assert rough.dtype == torch.bfloat16 and weights.isfinite().all()
    torch.testing.assert_close(rough.float(), expected, atol=0.05, rtol=0)
