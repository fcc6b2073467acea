"""Checks of the exercises of chapter 08, on the layers of a transformer."""

import copy
import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from chapters_src.exercises.checking import (
    Asked,
    Wrong,
    as_choice,
    as_function,
    check_number,
    compare,
    exercise,
    is_near,
    show,
)

EQUAL = 1e-4  # How far logits may be apart.
BETS = ("same", "another sentence", "broken")
TOKENS = 14  # of 8.5


@exercise("8.1")
def width_of_a_gated_network(gated_width: object) -> str:
    """Compare three matrices of D x W with two of D x 4D."""
    d_model = 96
    slips = {
        "There each of its three matrices is as large as each of the other two.": 4 * d_model,
        "At half of the plain one's width it has fewer parameters.": 2 * d_model,
        "There it has fewer parameters than the plain one.": lambda width: width < d_model * 8 / 3,
    }
    otherwise = "There it has more parameters than the plain one."
    check_number(gated_width, "gated_width", d_model * 8 / 3, slips, otherwise)
    return "Llama's first models have such a width, rounded up."


# 8.2: Llama's layer ----------------------------------------------------------------------------------------

LLAMA_NAMES = {
    "input_layernorm.weight": "norms.0.gain",
    "post_attention_layernorm.weight": "norms.1.gain",
    "self_attn.q_proj.weight": "attention.query.weight",
    "self_attn.k_proj.weight": "attention.key.weight",
    "self_attn.v_proj.weight": "attention.value.weight",
    "self_attn.o_proj.weight": "attention.output.weight",
    "mlp.gate_proj.weight": "feed_forward.gate.weight",
    "mlp.up_proj.weight": "feed_forward.up.weight",
    "mlp.down_proj.weight": "feed_forward.down.weight",
}
LLAMA_SLIPS = {
    "gate": "a Llama whose gate has the activation of Gemma's",
    "exact": "a Llama whose gate has the exact GELU",
    "gain": "a Llama whose norms multiply by 1 + gain; the weights that you get are gains already",
    "neighbors": "a Llama that turns neighboring numbers as a pair",
    "tiled": "a Llama whose heads of keys take turns, and do not serve neighboring queries",
    "base": "a Llama that turns with the base 10,000; its configuration has another one",
    "epsilon": "a Llama with the epsilon 1e-6; its configuration has another one",
    "normalized": "a Llama that normalizes its queries and keys",
    "unscaled": "a Llama whose scores are not divided",
}


@exercise("8.2", takes="a few seconds")
def layer_of_llama(llama_layer: object) -> str:
    """Put two layers into small random Llamas, and compare with the library and with slips."""
    make = as_function(llama_layer, "llama_layer(c)")
    slips = {
        f"They are those of {words}.": lambda theirs, ids, slip=slip: _llama_logits(theirs, ids, slip)
        for slip, words in LLAMA_SLIPS.items()
    }
    return _like_the_library(_llama, lambda theirs, ids: _with_layers(make, theirs, ids), slips)


def _like_the_library(draw_model: Callable, logits_of: Callable, slips: Mapping[str, Callable]) -> str:
    """Compare logits with those of four random models of the library, and with those of slips."""
    generator, largest = torch.Generator().manual_seed(82), 0.0
    for draw in range(4):
        theirs = draw_model(generator)
        ids = torch.randint(50, (2, 12), generator=generator)
        other = torch.cat([ids[:, :-1], (ids[:, -1:] + 1) % 50], dim=1)
        with torch.no_grad():
            expected, found = theirs(ids).logits, logits_of(theirs, ids)
            if not torch.isfinite(found).all():
                asked_back = "Does a mask hide a whole row, or a root get a negative?"
                raise Wrong(f"Your logits are not finite. {asked_back}")
            gap = (found - expected).abs().max().item()
            hints: dict[str, Any] = {
                hint: lambda it, slip=slip, theirs=theirs, ids=ids: is_near(it, slip(theirs, ids), EQUAL)
                for hint, slip in slips.items()
            }
            hints["Earlier tokens see later ones."] = lambda it, theirs=theirs, other=other: (
                not is_near(logits_of(theirs, other)[:, :-1], it[:, :-1], EQUAL)
            )
            start = f"In draw {draw + 1} of four your logits are up to {gap:.2g} off. "
            compare(found, expected, hints, "Which step differs?", start=start, within=EQUAL)
        largest = max(largest, gap)
    return f"In four draws the logits are the library's, up to {largest:.0e}."


def _llama(generator: torch.Generator) -> nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=50, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=8, rms_norm_eps=1e-3, attn_implementation="eager",
        rope_parameters={"rope_type": "default", "rope_theta": 500.0},
    )  # fmt: skip
    model = LlamaForCausalLM(config).eval()
    _draw(model, generator)
    return model


def _draw(model: nn.Module, generator: torch.Generator) -> None:
    """Draw all parameters anew, so that nothing hangs on how a library initializes."""
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            one = parameter.ndim == 1 and bool((parameter == 1).all())  # gains
            parameter.copy_(1 + 0.2 * noise if one else 0.3 * noise)


def _with_layers(make: Asked, theirs: Any, ids: Tensor) -> Tensor:
    """Return the logits of the library's model with the reader's layers."""
    weights = theirs.state_dict()
    x = weights["model.embed_tokens.weight"][ids]
    for number in range(theirs.config.num_hidden_layers):
        layer = make.gives(nn.Module, "a module", theirs.config)
        own = {new: weights[f"model.layers.{number}.{old}"] for old, new in LLAMA_NAMES.items()}
        _load(layer.eval(), own)
        x = as_function(layer, "the layer").tensor(x.shape, x)
    x = _rms_norm(x, weights["model.norm.weight"], theirs.config.rms_norm_eps)
    return x @ weights["lm_head.weight"].T


def _load(layer: nn.Module, weights: Mapping[str, Tensor]) -> None:
    named = dict(layer.named_parameters())
    if missing := [name for name in weights if name not in named]:
        raise Wrong(f"Your layer has no {', '.join(missing)}.")
    if extra := [name for name in named if name not in weights]:
        raise Wrong(f"Your layer has {', '.join(extra)}, and Llama has not.")
    for name, tensor in weights.items():
        if named[name].shape != tensor.shape:
            shapes = f"the shape {tuple(named[name].shape)}, not {tuple(tensor.shape)}"
            raise Wrong(f"In your layer {name} has {shapes}.")
        named[name].data = tensor.clone()


def _rms_norm(x: Tensor, gain: Tensor | float, epsilon: float) -> Tensor:
    return gain * x / torch.sqrt(x.square().mean(dim=-1, keepdim=True) + epsilon)


def _llama_logits(model: Any, ids: Tensor, slip: str = "") -> Tensor:
    """Compute a Llama from its formulas, with one slip or none."""
    c, w = model.config, model.state_dict()
    epsilon = 1e-6 if slip == "epsilon" else c.rms_norm_eps
    base = 10_000.0 if slip == "base" else c.rope_parameters["rope_theta"]
    activation = {"gate": lambda x: F.gelu(x, approximate="tanh"), "exact": F.gelu}.get(slip, F.silu)
    length, heads = ids.shape[1], c.num_attention_heads
    shared = heads // c.num_key_value_heads
    causal = torch.ones(length, length, dtype=torch.bool).tril()

    def norm(x: Tensor, name: str) -> Tensor:
        return _rms_norm(x, w[name] + (slip == "gain"), epsilon)

    def split(x: Tensor) -> Tensor:
        return x.unflatten(-1, (-1, c.head_dim)).transpose(1, 2)

    x = w["model.embed_tokens.weight"][ids]
    for number in range(c.num_hidden_layers):
        at = f"model.layers.{number}."
        y = norm(x, at + "input_layernorm.weight")
        query, key, value = (split(y @ w[f"{at}self_attn.{kind}_proj.weight"].T) for kind in "qkv")
        if slip == "normalized":
            query, key = (_rms_norm(each, 1.0, 1e-6) for each in (query, key))
        query, key = (_turned(each, base, slip == "neighbors") for each in (query, key))
        if slip == "tiled":
            key, value = (each.repeat(1, shared, 1, 1) for each in (key, value))
        else:
            key, value = (each.repeat_interleave(shared, dim=1) for each in (key, value))
        scores = query @ key.transpose(-2, -1) / (1 if slip == "unscaled" else math.sqrt(c.head_dim))
        mixed = scores.masked_fill(~causal, -math.inf).softmax(dim=-1) @ value
        x = x + mixed.transpose(1, 2).flatten(2) @ w[at + "self_attn.o_proj.weight"].T
        y = norm(x, at + "post_attention_layernorm.weight")
        wide = activation(y @ w[at + "mlp.gate_proj.weight"].T) * (y @ w[at + "mlp.up_proj.weight"].T)
        x = x + wide @ w[at + "mlp.down_proj.weight"].T
    x = _rms_norm(x, w["model.norm.weight"], c.rms_norm_eps)  # The last norm is the check's own.
    return x @ w["lm_head.weight"].T


def _turned(x: Tensor, base: float, neighbors: bool) -> Tensor:
    half = x.shape[-1] // 2
    angles = torch.arange(x.shape[-2])[:, None] * base ** (-torch.arange(half) / half)
    a, b = (x[..., ::2], x[..., 1::2]) if neighbors else (x[..., :half], x[..., half:])
    turned = a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()
    return torch.stack(turned, dim=-1).flatten(-2) if neighbors else torch.cat(turned, dim=-1)


# 8.3 and 8.4 -----------------------------------------------------------------------------------------------


@exercise("8.3")
def alibi_from_its_definition(alibi: object) -> str:
    """Compare each number with its definition, below and on the diagonal."""
    asked = as_function(alibi, "alibi(num_heads, length)")
    for num_heads, length in ((8, 6), (8, 40), (4, 7), (16, 5)):
        called, shape = asked.called(num_heads, length), (num_heads, length, length)
        found = asked.tensor(shape, num_heads, length).float().tril()
        heads = torch.arange(1, num_heads + 1).view(-1, 1, 1)
        distance = (torch.arange(length)[:, None] - torch.arange(length)).tril()
        wanted = -(2.0 ** (-8 * heads / num_heads)) * distance
        slips = {
            " favors what is far away: look at the sign.": -wanted,
            " has the right slopes, and gives the first head the last one's.": wanted.flip(0),
            f" has the slopes of eight heads. Here are {num_heads}.": -(2.0**-heads) * distance,
        }
        h, i, j = np.unravel_index(int((found - wanted).abs().argmax()), shape)
        otherwise = f"[{h}, {i}, {j}] is {show(found[h, i, j])}: head {h + 1}, at a distance of {i - j}."
        compare(found, wanted, slips, otherwise, start=called, within=1e-5)
    return "It is defined for any length, and depends on the distance only."


@exercise("8.4")
def what_a_cache_saves(times_without_cache: object) -> str:
    """Compare with the mean of 1 to 32."""
    slips = {
        "That is true of the first token alone. The last one is computed once in both ways.": 32,
        "So many are computed without a cache. How many tokens are computed with one?": sum(range(1, 33)),
        "Writing without a cache takes more, not less.": lambda times: 0 < times < 1,
        "So many times is too few.": lambda times: times < 16,
    }
    otherwise = "So many times is too many."
    check_number(times_without_cache, "times_without_cache", 16.5, slips, otherwise, within=0.5)
    return "On long texts the scores and averages of attention add to it."


# 8.5: sabotage ---------------------------------------------------------------------------------------------


@exercise("8.5", takes="a few seconds")
def sabotage_and_bet(sabotage: object, bet: object, *, model: nn.Module, ids: Tensor, tokenizer: Any) -> str:
    """Let both models write, and compare."""
    change = as_function(sabotage, "sabotage(model)", may_give_none=True)
    as_choice(bet, "bet", BETS)
    changed = copy.deepcopy(model)
    change(changed)
    try:
        (right, logits), (found, moved) = _written(model, ids), _written(changed, ids)
    except Exception as error:
        raise Wrong(f"The changed model does not run: {type(error).__name__}: {error}") from None
    if not torch.isfinite(moved).all():
        raise Wrong(
            "The changed model's logits are not numbers (NaN): a mask hides a whole row, or a root gets a "
            "negative."
        )
    if torch.equal(logits, moved):
        raise Wrong(f"Your change changes nothing here: all {TOKENS} tokens have the same logits.")
    before, line = (tokenizer.decode(tokens).split("\n")[0].strip() for tokens in (right, found))
    outcome = _outcome(before, line)
    if outcome == "same":
        said = "It writes the same line"
    else:
        first = next(i for i in range(TOKENS) if right[i] != found[i])
        said = f"From token {first + 1} on it writes otherwise"
    said += f": {show(line)}, and a logit of the first has moved by {(logits - moved)[0].abs().max():.2g}"
    if outcome != bet:
        raise Wrong(f"{said}. That counts as {outcome!r}.")
    return f"{said}. You bet on that."


def _outcome(before: str, line: str) -> str:
    if line == before:
        return "same"
    return "another sentence" if len(line.split()) > 1 and line.endswith((".", "!", "?")) else "broken"


def _written(model: Any, ids: Tensor) -> tuple[list[int], Tensor]:
    """Return the tokens that a model writes greedily, and the logits of each."""
    length, each = ids.shape[1], []
    with torch.inference_mode():
        for _ in range(TOKENS):
            each.append(model.head(model(ids)[:, -1:])[0])
            ids = torch.cat([ids, each[-1].argmax(dim=-1, keepdim=True)], dim=1)
    return ids[0, length:].tolist(), torch.cat(each)


# 8.6: GPT-2 ------------------------------------------------------------------------------------------------


@exercise("8.6", takes="a few seconds")
def gpt2_from_the_librarys_tensors(gpt2_logits: object) -> str:
    """Compare with the library in four draws, and with GPT-2s that have a slip."""
    asked = as_function(gpt2_logits, "gpt2_logits(tensors, ids, num_heads)")
    return _like_the_library(_gpt2, lambda theirs, ids: _logits_of(asked, theirs, ids), GPT2_SLIPS)


def _logits_of(asked: Asked, theirs: Any, ids: Tensor) -> Tensor:
    tensors = {name: tensor.clone() for name, tensor in theirs.state_dict().items()}
    shape = (*ids.shape, theirs.config.vocab_size)
    return asked.tensor(shape, MappingProxyType(tensors), ids, theirs.config.n_head).float()


def _gpt2(generator: torch.Generator) -> nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=50, n_positions=16, n_embd=32, n_layer=2, n_head=4, bos_token_id=1, eos_token_id=2
    )
    model = GPT2LMHeadModel(config).eval()
    _draw(model, generator)
    return model


def _changed(change: Callable[[Any], object]) -> Callable[[nn.Module, Tensor], Tensor]:
    """Make a function that returns the logits of a changed copy."""

    def logits(model: nn.Module, ids: Tensor) -> Tensor:
        other = copy.deepcopy(model)
        change(other.transformer)
        return other(ids).logits

    return logits


def _square_not_transposed(body: Any) -> None:
    for block in body.h:
        block.attn.c_proj.weight.copy_(block.attn.c_proj.weight.T.clone())


def _exact_gelu(body: Any) -> None:
    for block in body.h:
        block.mlp.act = nn.GELU()


GPT2_SLIPS = {
    "A square matrix does not complain when it is not transposed.": _changed(_square_not_transposed),
    "Which GELU does your feed-forward network have?": _changed(_exact_gelu),
    "The head reads the bare sum of the stream.": _changed(lambda body: setattr(body, "ln_f", nn.Identity())),
    "Its tokens do not know where they stand.": _changed(lambda body: body.wpe.weight.zero_()),
}
