"""Answers to the exercises of chapter 08, with small models."""

import math
from types import SimpleNamespace

import torch
from planted import Planted, defined, planted
from torch import nn
from torch.nn import functional as F

from chapters_src.attention import CrossAttention, MultiHeadAttention


@planted("8.1")
def gate() -> Planted:
    return Planted(
        tuple(defined(8, "gated_width")),
        {
            "each of its three": (384,),
            "half of the plain one's": (192,),
            "more parameters": (300,),
            "fewer parameters": (255,),
        },
        also_right=((256.0,), (torch.tensor(256),)),
        secrets=("256",),
    )


KNOWN = {"torch": torch, "nn": nn, "F": F, "math": math}
OF_TODAY = ("GatedFeedForward", "RMSNorm", "rotate", "SharedAttention", "window_mask", "TodaysLayer")


@planted("8.2")
def llama() -> Planted:
    known = dict(KNOWN)
    *parts, layer, right = defined(8, *OF_TODAY, "LlamaLayer", "llama_layer", **known)
    _, norm, rotate, attention, _, todays = parts

    def with_change(change):
        def llama_layer(c):
            made = layer(c)
            change(made, c)
            return made

        return llama_layer

    def named(name, value):
        return with_change(lambda made, c: setattr(made.feed_forward, name, value))

    class GainPlusOne(norm):
        def forward(self, x):
            return super().forward(x) / self.gain * (1 + self.gain)

    def plus_one(made, c):
        for i in range(2):
            made.norms[i] = GainPlusOne(c.hidden_size, c.rms_norm_eps)

    def in_globals(name, value):
        """The attention, with another function under a name that it calls."""
        changed = dict(KNOWN)
        own = defined(8, *OF_TODAY, "LlamaLayer", "llama_layer", **changed)[-1]
        own.__globals__[name] = value
        return own

    def neighbors(heads, positions, base=10_000):
        d = heads.size(-1)
        order = torch.cat([torch.arange(0, d, 2), torch.arange(1, d, 2)])
        return rotate(heads[..., order], positions, base)[..., order.argsort()]

    def tiled(made, c):
        class Tiled(attention):
            def forward(self, x, mask):
                query, key = self.split(self.query(x)), self.split(self.key(x))
                t = torch.arange(x.size(1))
                query, key = (rotate(each, t, self.base) for each in (query, key))
                key, value = (each.repeat(1, 2, 1, 1) for each in (key, self.split(self.value(x))))
                mixed = F.scaled_dot_product_attention(query, key, value, mask)
                return self.output(mixed.transpose(1, 2).flatten(2))

        made.attention.__class__ = Tiled

    def with_queries(change):
        def hook(made, c):
            made.attention.query.register_forward_hook(lambda module, inputs, query: change(query, c))

        return with_change(hook)

    def normalized(made, c):
        plain = norm(c.head_dim)
        made.attention.query_norm = made.attention.key_norm = plain.requires_grad_(False)
        del plain.gain
        plain.gain = 1.0

    def epsilon(made, c):
        for each in made.norms:
            each.epsilon = 1e-6

    def sees_all(made, c):
        made.attention.register_forward_pre_hook(lambda module, inputs: (inputs[0], inputs[1] | True))

    def one_norm_more(made, c):
        made.attention.query_norm = norm(c.head_dim)

    return Planted(
        (right,),
        {
            "the activation of Gemma's": (named("activation", nn.GELU(approximate="tanh")),),
            "the exact GELU": (named("activation", nn.GELU()),),
            "1 + gain": (with_change(plus_one),),
            "neighboring numbers as a pair": (in_globals("rotate", neighbors),),
            "take turns": (with_change(tiled),),
            "with the base 10,000": (with_change(lambda made, c: setattr(made.attention, "base", 10_000)),),
            "the epsilon 1e-6": (with_change(epsilon),),
            "normalizes its queries": (with_change(normalized),),
            "are not divided": (with_queries(lambda query, c: query * math.sqrt(c.head_dim)),),
            "has attention.query_norm.gain, and Llama has not": (with_change(one_norm_more),),
            "has no feed_forward.up.weight": (with_change(lambda made, c: delattr(made.feed_forward, "up")),),
            "earlier tokens see later ones": (with_change(sees_all),),
            "in draw 1 of four": (with_queries(lambda query, c: query.flip(-1)),),
            "raised KeyError": (lambda c: todays(c, "sliding_attention"),),
        },
        also_right=((layer,),),
        secrets=("SiLU", "silu", "repeat_interleave", "Identity"),
    )


@planted("8.3")
def bias() -> Planted:
    (right,) = defined(8, "alibi", torch=torch)
    slopes = [2.0**-h for h in range(1, 9)]

    def for_eight(num_heads, length):
        return right(8, length) if num_heads == 8 else _of([2.0**-h for h in range(1, num_heads + 1)], length)

    def _of(slopes, length):
        distance = torch.arange(length)[:, None] - torch.arange(length)
        return -torch.tensor(slopes)[:, None, None] * distance

    assert torch.equal(_of(slopes, 5), right(8, 5))
    return Planted(
        (right,),
        {
            "look at the sign": (lambda h, n: -right(h, n),),
            "gives the first head the last one's": (lambda h, n: right(h, n).flip(0),),
            "the slopes of eight heads": (for_eight,),
            "at a distance of": (lambda h, n: right(h, n) ** 2,),
        },
        also_right=(
            (lambda h, n: right(h, n).tril(),),
            (lambda h, n: right(h, n).masked_fill(~torch.ones(n, n).bool().tril(), -math.inf),),
            (lambda h, n: right(h, n).numpy(),),
        ),
        secrets=("arange", "2 **", "-8"),
    )


@planted("8.4")
def cache() -> Planted:
    return Planted(
        tuple(defined(8, "times_without_cache")),
        {
            "true of the first token alone": (32,),
            "are computed with one": (528,),
            "takes more, not less": (2 / 33,),
            "times is too many": (20,),
            "times is too few": (15,),
        },
        also_right=((16.43,), (17,)),
        secrets=("16", "16.5", "17"),
    )


WORDS = ["<pad>", "Das", "Haus", "ist", "alt.", "neu.", "rot", "\n", "zwei", "ganz"]
RIGHT = [1, 2, 3, 4, 7, 8, 8, 8, 8, 8, 8, 8, 8, 8]


class Little(nn.Module):
    """Writes what its table says at each place."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(F.one_hot(torch.tensor([0, *RIGHT]), len(WORDS)).float())
        self.unused = nn.Parameter(torch.zeros(2))

    def forward(self, ids):
        return self.table[: ids.size(1) + 1][1:][None]

    def head(self, states):
        return states


@planted("8.5")
def bets() -> Planted:
    model, ids = Little(), torch.tensor([[1]])

    def write(*words):
        def sabotage(model):
            for place, word in enumerate(words, 1):
                model.table.data[place] = 2 * F.one_hot(torch.tensor(word), len(WORDS))

        return sabotage

    def scale(model):
        model.table.data *= 1.5

    def not_a_number(model):
        model.table.data *= math.nan

    def shape(model):
        model.table = nn.Parameter(torch.zeros(3))

    tokenizer = SimpleNamespace(decode=lambda ids: " ".join(WORDS[i] for i in ids).replace(" \n ", "\n"))
    given = {"model": model, "ids": ids, "tokenizer": tokenizer}

    def next_line(model):  # The line stays; what comes after it does not.
        model.table.data *= 1.5
        model.table.data[6] = 2 * F.one_hot(torch.tensor(9), len(WORDS))

    def later(model):  # The first token's logits stay.
        model.table.data[2] = 2 * F.one_hot(torch.tensor(6), len(WORDS))

    other, broken = write(1, 2, 3, 5), write(9, 9, 9, 9, 9)
    return Planted(
        (other, "another sentence"),
        {
            "counts as 'another sentence'": (other, "same"),
            "counts as 'broken'": (broken, "another sentence"),
            "counts as 'same'": (scale, "broken"),
            "changes nothing here": (lambda model: model.unused.data.add_(1), "same"),
            "(NaN)": (not_a_number, "broken"),
            "does not run": (shape, "broken"),
        },
        given,
        also_right=((scale, "same"), (next_line, "same"), (later, "another sentence"), (broken, "broken")),
        secrets=("1e12", "1e+12", "1000000"),
    )


@planted("8.6")
def gpt2() -> Planted:
    known = KNOWN | {"MultiHeadAttention": MultiHeadAttention, "CrossAttention": CrossAttention}
    feed_forward, _, tanh, right = defined(
        8, "FeedForward", "Layer", "TanhFeedForward", "gpt2_logits", **known
    )

    def exact(tensors, ids, num_heads):
        right.__globals__["TanhFeedForward"] = feed_forward
        try:
            return right(tensors, ids, num_heads)
        finally:
            right.__globals__["TanhFeedForward"] = tanh

    def changed(change):
        def gpt2_logits(tensors, ids, num_heads):
            return right({name: change(name, tensor) for name, tensor in tensors.items()}, ids, num_heads)

        return gpt2_logits

    def square(name, tensor):
        return tensor.T if name.endswith("attn.c_proj.weight") else tensor

    def forgot_wpe(name, tensor):
        return tensor * 0 if "wpe" in name else tensor

    def no_last(tensors, ids, num_heads):
        own = F.layer_norm
        seen = []

        def keep(x, shape, *others):
            if tensors["transformer.ln_f.weight"] is others[0]:
                seen.append(x)
                return x
            return own(x, shape, *others)

        F.layer_norm = keep
        try:
            return right(tensors, ids, num_heads)
        finally:
            F.layer_norm = own

    def sees_all(tensors, ids, num_heads):
        logits = right(tensors, ids, num_heads)
        return logits + right(tensors, ids[:, -1:], num_heads)

    return Planted(
        (right,),
        {
            "square matrix": (changed(square),),
            "Which GELU": (exact,),
            "do not know where they stand": (changed(forgot_wpe),),
            "bare sum": (no_last,),
            "earlier tokens see later ones": (sees_all,),
            "in draw 1 of four": (lambda tensors, ids, heads: 2 * right(tensors, ids, heads),),
        },
        secrets=("tanh", ".T"),
    )
