"""Layers: where dropout acts, and what they refuse; `test_whole_models.py` compares them with PyTorch's."""

import inspect

import pytest
import torch
from small_models import build, random_states, small_config
from torch import nn

from chapters_src import attention
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


def layer_of(cross_attention=False, **changes):
    return build(TransformerLayer, small_config(cross_attention=cross_attention, **changes))


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
