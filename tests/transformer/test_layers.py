"""Layers against PyTorch's with the same weights, and their parts against formulas."""

import inspect
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import build, copy_weights, random_states, small_config
from torch import nn

from chapters_src.attention import KeyValueCache, causal_mask, padding_mask
from chapters_src.transformer import DecoderLayer, EncoderLayer, FeedForward, bodies, embedding, heads, layers

quick = settings(deadline=None, max_examples=25)
PADDING = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 0, 1, 1, 1]])


def twins(ours_kind, theirs_kind, norm_first, activation):
    ours = build(ours_kind, small_config(norm_first=norm_first, activation=activation, norm_epsilon=1e-3))
    theirs = theirs_kind(
        16, 4, 24, dropout=0.0, activation=activation, layer_norm_eps=1e-3, batch_first=True,
        norm_first=norm_first, dtype=torch.float64,
    )  # fmt: skip
    copy_weights(ours, theirs)
    return ours.train(), theirs.train()


def assert_same_gradients(ours, theirs, inputs, pairs):
    """Compare the gradients of the inputs, and of pairs of our weights and theirs."""
    upstream = random_states(*ours.shape, seed=9)
    our_weights, their_weights = ([pair[i] for pair in pairs] for i in (0, 1))
    gradients = torch.autograd.grad(ours, [*inputs, *our_weights], upstream)
    expected = torch.autograd.grad(theirs, [*inputs, *their_weights], upstream)
    for mine, other in zip(gradients, expected, strict=True):
        torch.testing.assert_close(mine, other, atol=1e-9, rtol=1e-9)


@quick
@given(st.booleans(), st.sampled_from(["relu", "gelu"]), st.booleans(), st.booleans(), st.integers(0, 999))
def test_an_encoder_layer_is_that_of_pytorch(norm_first, activation, is_causal, is_padded, seed):
    ours, theirs = twins(EncoderLayer, nn.TransformerEncoderLayer, norm_first, activation)
    states = random_states(3, 5, 16, seed=seed).requires_grad_()
    attention_mask = PADDING if is_padded and not is_causal else torch.ones_like(PADDING)
    mask = causal_mask(5) if is_causal else padding_mask(attention_mask)
    expected = theirs(
        states,
        src_mask=~causal_mask(5) if is_causal else None,
        src_key_padding_mask=attention_mask == 0,
    )
    result = ours(states, mask)
    torch.testing.assert_close(result, expected, atol=1e-10, rtol=0)
    pairs = [
        (ours.attention.projection.weight, theirs.self_attn.in_proj_weight),
        (ours.attention_residual.norm.weight, theirs.norm1.weight),
        (ours.feed_forward_residual.norm.bias, theirs.norm2.bias),
        (ours.feed_forward.up.weight, theirs.linear1.weight),
    ]
    assert_same_gradients(result, expected, [states], pairs)


@quick
@given(st.booleans(), st.sampled_from(["relu", "gelu"]), st.booleans(), st.integers(0, 999))
def test_a_decoder_layer_is_that_of_pytorch(norm_first, activation, is_padded, seed):
    ours, theirs = twins(DecoderLayer, nn.TransformerDecoderLayer, norm_first, activation)
    states = random_states(3, 4, 16, seed=seed).requires_grad_()
    memory = random_states(3, 5, 16, seed=seed + 1).requires_grad_()
    attention_mask = PADDING if is_padded else torch.ones_like(PADDING)
    expected = theirs(states, memory, tgt_mask=~causal_mask(4), memory_key_padding_mask=attention_mask == 0)
    result = ours(states, causal_mask(4), memory, padding_mask(attention_mask))
    torch.testing.assert_close(result, expected, atol=1e-10, rtol=0)
    pairs = [
        (ours.attention.projection.weight, theirs.self_attn.in_proj_weight),
        (ours.cross_attention.projection.weight, theirs.multihead_attn.in_proj_weight),
        (ours.cross_attention.projection.bias, theirs.multihead_attn.in_proj_bias),
        (ours.cross_attention_residual.norm.weight, theirs.norm2.weight),
    ]
    assert_same_gradients(result, expected, [states, memory], pairs)


def layer_norm(x, weight, bias, epsilon):
    """Ba et al. (2016), equation 3: centred, and divided by the root of the mean square."""
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True) + epsilon).sqrt() * weight + bias


def rms_norm(x, weight, epsilon):
    """Zhang & Sennrich (2019), equation 4."""
    return x / (x.square().mean(-1, keepdim=True) + epsilon).sqrt() * weight


def test_norms_are_their_formulas():
    states = 3 + 2 * random_states(2, 5, 16)
    ours = build(layers.make_norm, small_config(norm="layer", norm_epsilon=0.1))
    expected = layer_norm(states, ours.weight, ours.bias, 0.1)
    torch.testing.assert_close(ours(states), expected, atol=1e-12, rtol=0)
    ours = build(layers.make_norm, small_config(norm="rms", norm_epsilon=0.1))
    torch.testing.assert_close(ours(states), rms_norm(states, ours.weight, 0.1), atol=1e-12, rtol=0)
    assert [name for name, _ in ours.named_parameters()] == ["weight"]


FORMULAS = {
    "relu": lambda x: x.clamp(min=0),
    "gelu": lambda x: x * 0.5 * (1 + torch.erf(x / math.sqrt(2))),
    "gelu_tanh": lambda x: x * 0.5 * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "silu": lambda x: x / (1 + torch.exp(-x)),
}


@pytest.mark.parametrize("activation", list(FORMULAS))
@pytest.mark.parametrize("bias", [True, False])
def test_the_feed_forward_part_is_its_formula(activation, bias):
    states, function = random_states(2, 5, 16), FORMULAS[activation]
    plain = build(FeedForward, small_config(activation=activation, bias=bias))
    gated = build(FeedForward, small_config(activation=activation, bias=bias, gated=True))
    for part in (plain, gated):
        assert {name.split(".")[1] for name, _ in part.named_parameters()} == (
            {"weight", "bias"} if bias else {"weight"}
        )
    zero = torch.zeros(1)

    def linear(x, part):
        return x @ part.weight.T + (zero if part.bias is None else part.bias)

    expected = linear(function(linear(states, plain.up)), plain.down)
    torch.testing.assert_close(plain(states), expected, atol=1e-10, rtol=0)
    expected = linear(function(linear(states, gated.gate)) * linear(states, gated.up), gated.down)
    torch.testing.assert_close(gated(states), expected, atol=1e-10, rtol=0)
    assert plain.gate is None and plain.up.weight.shape == (24, 16)


@pytest.mark.parametrize("kind", [EncoderLayer, DecoderLayer])
@pytest.mark.parametrize("norm_first", [True, False])
def test_dropout_of_a_layer_is_on_the_paths_past_it_and_in_training_only(kind, norm_first):
    changes = {"norm_first": norm_first}
    dropping = build(kind, small_config(dropout=0.5, **changes))
    plain, states = build(kind, small_config(**changes)), random_states(2, 5, 16)
    more = (states, None) if kind is DecoderLayer else ()
    assert torch.equal(dropping(states, None, *more), plain(states, None, *more))
    torch.manual_seed(0)
    dropping.train()
    assert not torch.equal(dropping(states, None, *more), dropping(states, None, *more))
    if norm_first:  # with everything that the parts make dropped, what came in goes out
        for part in dropping.modules():
            if isinstance(part, nn.Dropout):
                part.p = 1.0
        assert torch.equal(dropping(states, None, *more), states)


def test_only_the_attention_inside_a_sequence_is_rotary():
    layer = build(DecoderLayer, small_config(positions="rotary", rotary_base=50.0))
    assert layer.attention.rotary.base == 50.0 and layer.cross_attention.rotary is None
    states, memory = random_states(1, 3, 16), random_states(1, 4, 16, seed=1)
    here = layer(states, None, memory, None, positions=torch.arange(3)[None])
    shifted = layer(states, None, memory, None, positions=torch.arange(3)[None] + 7)
    spread = layer(states, None, memory, None, positions=torch.arange(3)[None] * 7)
    torch.testing.assert_close(here, shifted, atol=1e-4, rtol=0)  # only distances count
    assert (here - spread).abs().max() > 0.01


@pytest.mark.parametrize("attention_dropout", [0.0, 0.5])
def test_attention_dropout_reaches_the_attention(attention_dropout):
    layer = build(DecoderLayer, small_config(attention_dropout=attention_dropout))
    assert layer.attention.dropout == layer.cross_attention.dropout == attention_dropout


@pytest.mark.parametrize("norm_first", [True, False])
def test_layers_with_caches_are_the_same_as_without(norm_first):
    states, memory = random_states(2, 4, 16), random_states(2, 5, 16, seed=1)
    memory_mask = padding_mask(PADDING[1:])
    layer = build(DecoderLayer, small_config(norm_first=norm_first))
    whole = layer(states, causal_mask(4), memory, memory_mask)
    own, cross = KeyValueCache(), KeyValueCache()
    parts = [
        layer(states[:, i : i + 1], None, memory, memory_mask, cache=own, cross_cache=cross) for i in range(4)
    ]
    torch.testing.assert_close(torch.cat(parts, dim=1), whole, atol=1e-12, rtol=0)
    assert (own.length, cross.length) == (4, 5)


def test_no_mask_of_a_forward_is_ever_filled_in():
    forgettable = []
    for module in (bodies, embedding, heads, layers):
        for name, thing in vars(module).items():
            if name.startswith("_") or getattr(thing, "__module__", None) != module.__name__:
                continue
            functions = [thing]
            if inspect.isclass(thing):
                functions += [
                    function
                    for method, function in vars(thing).items()
                    if inspect.isfunction(function) and not method.startswith("_")
                ]
            for function in functions:
                for parameter in inspect.signature(function).parameters.values():
                    is_mask = "mask" in parameter.name or parameter.name == "may_answer"
                    if is_mask and parameter.default is not inspect.Parameter.empty:
                        forgettable.append((name, function.__name__, parameter.name))
    assert not forgettable
