"""Layers against PyTorch's with the same weights."""

import inspect

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import build, copy_weights, random_states, small_config
from torch import nn

from chapters_src import attention
from chapters_src.attention import causal_mask, padding_mask
from chapters_src.decoding import state
from chapters_src.transformer import (
    Memory,
    TransformerLayer,
    TransformerStack,
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
    result = ours(states, "causal", memory=Memory(memory, attention_mask))
    torch.testing.assert_close(result, expected, atol=1e-10, rtol=0)
    pairs = [
        (ours.attention.query_key_value.weight, theirs.self_attn.in_proj_weight),
        (ours.cross_attention.output.weight, theirs.multihead_attn.out_proj.weight),
        (ours.feed_forward_norm.weight, theirs.norm3.weight),
        (ours.cross_attention_norm.weight, theirs.norm2.weight),
    ]
    assert_same_gradients(result, expected, [states, memory], pairs)


@pytest.mark.parametrize("crossing", [False, True])
@pytest.mark.parametrize("norm_first", [True, False])
def test_dropout_of_a_layer_is_on_the_paths_past_it_and_in_training_only(crossing, norm_first):
    changes = {"norm_first": norm_first}
    dropping, plain = layer_of(crossing, dropout=0.5, **changes), layer_of(crossing, **changes)
    states = random_states(2, 5, 16)
    more = {"memory": Memory(states, None)} if crossing else {}
    assert torch.equal(dropping(states, None, **more), plain(states, None, **more))
    torch.manual_seed(0)
    dropping.train()
    assert not torch.equal(dropping(states, None, **more), dropping(states, None, **more))
    if norm_first:  # with everything that the sublayers make dropped, what came in goes out
        for part in dropping.modules():
            if isinstance(part, nn.Dropout):
                part.p = 1.0
        assert torch.equal(dropping(states, None, **more), states)


@pytest.mark.parametrize("attention_dropout", [0.0, 0.5])
def test_attention_dropout_reaches_the_attention(attention_dropout):
    layer = layer_of(True, attention_dropout=attention_dropout)
    assert layer.attention.dropout == layer.cross_attention.dropout == attention_dropout


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
            plain(states, None, memory=Memory(states, None))
        with pytest.raises(ValueError, match="memory is missing: cross_attention=True"):
            crossing(states, None)


def test_no_mask_of_a_forward_is_ever_filled_in():
    forgettable = []
    for module in (attention, embedding, heads, layers, models, pooling, state):
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
