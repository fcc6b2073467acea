"""Layers against PyTorch's with the same weights, and their parts against formulas."""

import inspect
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import build, copy_weights, random_states, small_config
from torch import nn

from chapters_src.attention import KeyValueCache, causal_mask, padding_mask, rotary_angles
from chapters_src.transformer import (
    FeedForward,
    TransformerLayer,
    TransformerStack,
    decoding_state,
    embedding,
    heads,
    layers,
    models,
    pooling,
)

quick = settings(deadline=None, max_examples=25)
PADDING = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 0, 1, 1, 1]])


def layer_of(cross_attention=False, **changes):
    return build(TransformerLayer, small_config(cross_attention=cross_attention, **changes))


def twins(theirs_kind, norm_first, activation):
    crossing = theirs_kind is nn.TransformerDecoderLayer
    ours = layer_of(crossing, norm_first=norm_first, activation=activation, norm_epsilon=1e-3)
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
def test_a_layer_is_pytorchs_of_an_encoder(norm_first, activation, is_causal, is_padded, seed):
    ours, theirs = twins(nn.TransformerEncoderLayer, norm_first, activation)
    states = random_states(3, 5, 16, seed=seed).requires_grad_()
    attention_mask = PADDING if is_padded and not is_causal else torch.ones_like(PADDING)
    mask = "causal" if is_causal else padding_mask(attention_mask)
    expected = theirs(
        states,
        src_mask=~causal_mask(5) if is_causal else None,
        src_key_padding_mask=attention_mask == 0,
    )
    result = ours(states, mask)
    torch.testing.assert_close(result, expected, atol=1e-10, rtol=0)
    pairs = [
        (ours.attention.query_key_value.weight, theirs.self_attn.in_proj_weight),
        (ours.attention_norm.weight, theirs.norm1.weight),
        (ours.feed_forward_norm.bias, theirs.norm2.bias),
        (ours.feed_forward.up.weight, theirs.linear1.weight),
    ]
    assert_same_gradients(result, expected, [states], pairs)


@quick
@given(st.booleans(), st.sampled_from(["relu", "gelu"]), st.booleans(), st.integers(0, 999))
def test_a_layer_with_cross_attention_is_pytorchs_of_a_decoder(norm_first, activation, is_padded, seed):
    ours, theirs = twins(nn.TransformerDecoderLayer, norm_first, activation)
    states = random_states(3, 4, 16, seed=seed).requires_grad_()
    memory = random_states(3, 5, 16, seed=seed + 1).requires_grad_()
    attention_mask = PADDING if is_padded else torch.ones_like(PADDING)
    expected = theirs(states, memory, tgt_mask=~causal_mask(4), memory_key_padding_mask=attention_mask == 0)
    result = ours(states, "causal", memory=memory, memory_mask=padding_mask(attention_mask))
    torch.testing.assert_close(result, expected, atol=1e-10, rtol=0)
    pairs = [
        (ours.attention.query_key_value.weight, theirs.self_attn.in_proj_weight),
        (ours.cross_attention.output.weight, theirs.multihead_attn.out_proj.weight),
        (ours.feed_forward_norm.weight, theirs.norm3.weight),
        (ours.cross_attention_norm.weight, theirs.norm2.weight),
    ]
    assert_same_gradients(result, expected, [states, memory], pairs)


def layer_norm(x, weight, bias, epsilon):
    """Ba et al. (2016), equation 3: centered, and divided by the root of the mean square."""
    centered = x - x.mean(-1, keepdim=True)
    return centered / (centered.square().mean(-1, keepdim=True) + epsilon).sqrt() * weight + bias


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


@pytest.mark.parametrize("crossing", [False, True])
@pytest.mark.parametrize("norm_first", [True, False])
def test_dropout_of_a_layer_is_on_the_paths_past_it_and_in_training_only(crossing, norm_first):
    changes = {"norm_first": norm_first}
    dropping, plain = layer_of(crossing, dropout=0.5, **changes), layer_of(crossing, **changes)
    states = random_states(2, 5, 16)
    more = {"memory": states, "memory_mask": None} if crossing else {}
    assert torch.equal(dropping(states, None, **more), plain(states, None, **more))
    torch.manual_seed(0)
    dropping.train()
    assert not torch.equal(dropping(states, None, **more), dropping(states, None, **more))
    if norm_first:  # with everything that the sublayers make dropped, what came in goes out
        for part in dropping.modules():
            if isinstance(part, nn.Dropout):
                part.p = 1.0
        assert torch.equal(dropping(states, None, **more), states)


@pytest.mark.parametrize("crossing", [False, True])
def test_pre_norm_and_post_norm_are_what_they_are_called(crossing):
    """Xiong et al. (2020), figure 1, written with the layer's own modules."""
    states, memory = random_states(2, 5, 16), random_states(2, 3, 16, seed=1)
    for norm_first in (True, False):
        layer, x = layer_of(crossing, norm_first=norm_first), states
        steps = [(layer.attention_norm, lambda x, layer=layer: layer.attention(x, None))]
        if crossing:
            cross = layer.cross_attention
            steps += [(layer.cross_attention_norm, lambda x, cross=cross: cross(x, memory, None))]
        steps += [(layer.feed_forward_norm, layer.feed_forward)]
        for norm, sublayer in steps:
            x = x + sublayer(norm(x)) if norm_first else norm(x + sublayer(x))
        result = layer(states, None, memory=memory if crossing else None, memory_mask=None)
        torch.testing.assert_close(result, x, atol=1e-12, rtol=0)


def test_only_the_attention_inside_a_sequence_is_rotary():
    config = small_config(positions="rotary", rotary_base=50.0, cross_attention=True, num_layers=1)
    stack = build(TransformerStack, config)
    states, memory = random_states(1, 3, 16), random_states(1, 4, 16, seed=1)
    places = torch.arange(3)[None]
    here, shifted, spread = (
        stack(states, None, positions=each, memory=memory, memory_mask=None)
        for each in (places, places + 7, places * 7)
    )
    torch.testing.assert_close(here, shifted, atol=1e-4, rtol=0)  # only distances count
    assert (here - spread).abs().max() > 0.01
    angles = rotary_angles(places, 4, base=50.0)
    expected = stack.norm(stack.layers[0](states, None, angles=angles, memory=memory, memory_mask=None))
    torch.testing.assert_close(here, expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("attention_dropout", [0.0, 0.5])
def test_attention_dropout_reaches_the_attention(attention_dropout):
    layer = layer_of(True, attention_dropout=attention_dropout)
    assert layer.attention.dropout == layer.cross_attention.dropout == attention_dropout


def cache_for(layer, states, capacity):
    attention = layer.attention
    return KeyValueCache(len(states), attention.num_key_value_heads, capacity, attention.head_dim, states)


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("groups", [1, 4])
def test_a_layer_with_a_cache_is_the_same_as_without(norm_first, groups):
    states, memory = random_states(2, 4, 16), random_states(2, 5, 16, seed=1)
    layer = layer_of(True, norm_first=norm_first, num_key_value_heads=groups)
    crossing = {"memory": memory, "memory_mask": padding_mask(PADDING[1:])}
    whole = layer(states, "causal", **crossing)
    crossing["memory"] = layer.cross_attention.keys_and_values(memory)
    cache = cache_for(layer, states, 4)
    parts = [layer(states[:, i : i + 1], None, **crossing, cache=cache) for i in range(4)]
    torch.testing.assert_close(torch.cat(parts, dim=1), whole, atol=1e-12, rtol=0)
    assert cache.length == 4


@pytest.mark.parametrize("positions", ["rotary", "none"])
@pytest.mark.parametrize("norm_first", [True, False])
def test_a_stack_with_caches_is_the_same_as_without(positions, norm_first):
    config = small_config(positions=positions, norm_first=norm_first, cross_attention=True, num_layers=3)
    stack, states = build(TransformerStack, config), random_states(2, 5, 16)
    memory, places = random_states(2, 4, 16, seed=1), torch.arange(5)[None]
    whole = stack(states, "causal", positions=places, memory=memory, memory_mask=None)
    caches = [cache_for(layer, states, 5) for layer in stack.layers]
    ready = [layer.cross_attention.keys_and_values(memory) for layer in stack.layers]
    parts = []
    for start, end in ((0, 3), (3, 4), (4, 5)):
        mask = causal_mask(end - start, end)
        chunk, here = states[:, start:end], places[:, start:end]
        parts.append(stack(chunk, mask, positions=here, memory=ready, memory_mask=None, caches=caches))
    torch.testing.assert_close(torch.cat(parts, dim=1), whole, atol=1e-6, rtol=0)  # angles in float32


# The stack: vectors in, vectors out


def test_a_stack_needs_no_vocabulary():
    """Patches of a picture: PyTorch's stack with the same weights, and gradients for all of it."""
    stack = build(TransformerStack, small_config(vocab_size=None, max_length=None))
    layer = nn.TransformerEncoderLayer(
        16, 4, 24, 0.0, "relu", batch_first=True, norm_first=True, dtype=torch.float64
    )
    theirs = nn.TransformerEncoder(
        layer, 2, nn.LayerNorm(16, dtype=torch.float64), enable_nested_tensor=False
    )
    for mine, other in zip(stack.layers, theirs.layers, strict=True):
        copy_weights(mine, other)
    theirs.norm.load_state_dict(stack.norm.state_dict())
    picture = random_states(2, 8, 8)
    patches = picture.unfold(1, 4, 4).unfold(2, 4, 4).reshape(2, 4, 16)  # (B, T, D)
    result = stack(patches, None)
    torch.testing.assert_close(result, theirs(patches), atol=1e-10, rtol=0)
    result.square().sum().backward()
    assert all((weight.grad != 0).any() for weight in stack.parameters())


@pytest.mark.parametrize("norm_first", [True, False])
def test_a_stack_is_its_layers_and_for_pre_norm_a_last_norm(norm_first):
    stack, states = build(TransformerStack, small_config(norm_first=norm_first)), random_states(2, 5, 16)
    x = states
    for layer in stack.layers:
        x = layer(x, "causal")
    expected = stack.norm(x) if norm_first else x
    assert torch.equal(stack(states, "causal"), expected)
    assert (norm_first and (expected != x).any()) or isinstance(stack.norm, nn.Identity)


def test_a_stack_and_a_layer_refuse_what_does_not_fit():
    states, rotary = random_states(2, 5, 16), build(TransformerStack, small_config(positions="rotary"))
    with pytest.raises(ValueError, match=r"positions=None: rotary.*\(2, 5\) or \(1, 5\)"):
        rotary(states, None)
    with pytest.raises(ValueError, match=r"positions=\(5,\).*\(2, 5\)"):
        rotary(states, None, positions=torch.arange(5))
    with pytest.raises(ValueError, match=r"positions=\(1, 4\).*\(1, 5\)"):
        rotary(states, None, positions=torch.arange(4)[None])
    with pytest.raises(ValueError, match=r"angles \(3, 1, 5, 4\)"):
        rotary(states, None, positions=torch.arange(5).expand(3, 5))
    for kind in (TransformerLayer, TransformerStack):
        plain, crossing = build(kind, small_config()), build(kind, small_config(cross_attention=True))
        with pytest.raises(ValueError, match="memory is not expected: cross_attention=False"):
            plain(states, None, memory=states, memory_mask=None)
        with pytest.raises(ValueError, match="memory is missing: cross_attention=True"):
            crossing(states, None)
        with pytest.raises(ValueError, match="memory_mask is missing: pass None"):
            crossing(states, None, memory=states)


def test_no_mask_of_a_forward_is_ever_filled_in():
    forgettable = []
    for module in (decoding_state, embedding, heads, layers, models, pooling):
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
                    if is_mask and parameter.default not in (inspect.Parameter.empty, ...):
                        forgettable.append((name, function.__name__, parameter.name))
    assert not forgettable
