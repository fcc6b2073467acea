"""Answers to the exercises of chapter 07, with a small encoder and made-up weights."""

import math

import torch
import torch.nn.functional as F
from planted import Planted, defined, planted
from transformers import BertConfig, BertModel

from chapters_src.exercises.chapter_07 import _changes, _rank


@planted("7.1")
def derivative() -> Planted:
    (right,) = defined(7, "softmax_jacobian", torch=torch)

    def diagonal_only(scores):
        w = scores.softmax(dim=-1)
        return torch.diag(w * (1 - w))

    def plus(scores):
        w = scores.softmax(dim=-1)
        return torch.diag(w) + torch.outer(w, w)

    def wrong_sign(scores):
        w = scores.softmax(dim=-1)
        return torch.diag(w * (1 - w)) + torch.outer(w, w) - torch.diag(w * w)

    def negative(scores):
        w = scores.softmax(dim=-1)
        return torch.outer(w, w) - torch.diag(w)

    return Planted(
        (right,),
        {
            "all else is 0": (diagonal_only,),
            "a row of your table adds up to": (plus,),
            "the diagonal is right; look": (wrong_sign,),
            "differs from that of automatic": (negative,),
        },
        also_right=((lambda scores: torch.autograd.functional.jacobian(lambda s: s.softmax(-1), scores),),),
        secrets=("outer", "-w_i w_j"),
    )


@planted("7.2")
def before() -> Planted:
    eye = torch.eye(12)
    shift = eye.roll(-1, dims=1)
    shift[0] = 0
    return Planted(
        (100 * shift, eye),
        {
            "looks at the token after": (100 * eye.roll(1, dims=1), eye),
            "looks at the token itself": (100 * eye, eye),
            "has to be sharper": (3 * shift, eye),
            "have no product": (100 * shift, eye[:, :7]),
            "of some token's weight.": (eye * 0, eye),
        },
        also_right=(
            (30 * eye.roll(-1, dims=1), eye),
            (eye, 50 * shift.T),
            (60 * shift.double(), eye.double()),
        ),
        secrets=("roll", "100"),
    )


def small_encoder() -> tuple[BertModel, dict]:
    with torch.random.fork_rng():
        torch.manual_seed(2)
        settings = {"num_hidden_layers": 4, "hidden_size": 24, "num_attention_heads": 12}
        encoder = BertModel(BertConfig(vocab_size=30, intermediate_size=24, **settings)).eval()
        for layer, body in enumerate(
            encoder.encoder.layer
        ):  # later layers move the result more, as in a real one
            body.attention.output.dense.weight.data *= 4.0 * (layer + 1) ** 2
        ids = torch.randint(30, (3, 7))
    return encoder, {
        "input_ids": ids,
        "attention_mask": (torch.arange(7) < torch.tensor([[7], [4], [6]])).long(),
    }


@planted("7.3")
def ranks() -> Planted:
    encoder, batch = small_encoder()
    change = _changes(encoder, batch)
    right = _rank(change[1], 3), _rank(change[3], 1)
    over_all = _rank(change.flatten(), 15), _rank(change.flatten(), 37)
    return Planted(
        right,
        {
            "ranks among all heads": over_all,
            "count from 1": (right[0] - 1, right[1] - 1),
            "upside down": (13 - right[0], 13 - right[1]),
            "are not their ranks": (right[0], right[1] + 20),
        },
        {"encoder": encoder, "batch": batch},
        also_right=((float(right[0]), torch.tensor(right[1])),),
        secrets=(f"({right[0]}, {right[1]})",),
    )


@planted("7.4")
def cheat() -> Planted:
    return Planted(
        (math.log(20) / 12,),
        {
            "the honest loss": (math.log(20),),
            "One of them cannot": (0.0,),
            "if one position cheats": (math.log(20) * 11 / 12,),
            "what some training reaches": (0.285,),
            "is in bits": (math.log2(20) / 12,),
            "how many positions do": (1.5,),
        },
        also_right=((0.25,), (torch.tensor(0.2496),)),
        secrets=("0.25", "0.250", "1/12", "last"),
    )


def run(text):
    """Words as tokens; head 0.1 attends to the word `so` places on, where `so` is the number in the text."""
    tokens = ["[CLS]", *text.lower().split(), "[SEP]"]
    generator = torch.Generator().manual_seed(sum(map(ord, text)))
    scores = torch.randn((2, 3, len(tokens), len(tokens)), generator=generator)
    if "loyal" in text:
        scores[0, 1, tokens.index("asks"), -2] += 20
    if "early" in text:
        scores[1, 2, tokens.index("asks"), -2] += 20
    return tokens, scores.softmax(dim=-1), None


@planted("7.5")
def own() -> Planted:
    holds = [(f"loyal number {i} asks w{i}", "asks", f"w{i}") for i in range(16)]
    fails = [(f"{'early' if i < 8 else 'later'} number {i} asks w{i}", "asks", f"w{i}") for i in range(16)]
    shared = [*holds[:-1], ("loyal and again asks w3", "asks", "w3")]
    ranks_of_all = run_ranks(fails)
    return Planted(
        (holds, "holds"),
        {
            "not what the last eight sentences say": (holds, "fails"),
            "a target in both halves": (shared, "holds"),
            "a list of 16 triples": (holds[:10], "holds"),
            "is 0 times among the tokens": ([("loyal asks this", "asks", "that"), *holds[1:]], "holds"),
            "sentence, word that attends": ([("loyal asks w0", "asks"), *holds[1:]], "holds"),
            "A sentence occurs twice": ([holds[1], *holds[1:]], "holds"),
        },
        {"run": run},
        also_right=((fails, "holds" if ranks_of_all <= 3 else "fails"), (tuple(holds), "holds")),
        secrets=("0.1", "1.2"),
    )


def run_ranks(relation) -> int:
    """The rank on the last eight of the head that is best on the first eight."""
    rows = []
    for sentence, asks, asked in relation:
        tokens, weights, _ = run(sentence)
        rows.append(weights[:, :, tokens.index(asks), tokens.index(asked)].flatten())
    first, last = torch.stack(rows).view(2, 8, -1).mean(dim=1)
    return int((last >= last[first.argmax()]).sum())


@planted("7.6")
def blocks() -> Planted:
    (right,) = defined(7, "attend_in_blocks", torch=torch, math=math)
    (attend,) = defined(7, "attend", math=math)

    def from_infinity(query, key, value, mask, block):
        highest = torch.full((*query.shape[:-1], 1), -math.inf)
        return in_blocks(query, key, value, mask, block, highest)

    def not_corrected(query, key, value, mask, block):
        highest = torch.full((*query.shape[:-1], 1), torch.finfo(torch.float32).min)
        return in_blocks(query, key, value, mask, block, highest, correct=False)

    def without_maximum(query, key, value, mask, block):
        weights = (query @ key.mT / key.shape[-1] ** 0.5).exp() * mask
        return weights @ value / weights.sum(dim=-1, keepdim=True).clamp(min=1e-30)

    def without_root(query, key, value, mask, block):
        return attend(query * key.shape[-1] ** 0.5, key, value, mask)

    def flat_table(query, key, value, mask, block):
        inputs = (each.flatten(0, 1) for each in (query, key, value))
        return attend(*inputs, mask).unflatten(0, query.shape[:2])

    def without_the_rest(query, key, value, mask, block):
        kept = key.shape[-2] // block * block
        return right(query, key[..., :kept, :], value[..., :kept, :], mask[..., :kept], block)

    def zero_for_nan(query, key, value, mask, block):
        return from_infinity(query, key, value, mask, block).nan_to_num()

    def from_zero(query, key, value, mask, block):
        return in_blocks(query, key, value, mask, block, torch.zeros(*query.shape[:-1], 1))

    def fused(query, key, value, mask, block):
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)

    return Planted(
        (right,),
        {
            "some outputs are NaN": (from_infinity,),
            "Did a NaN become a zero": (zero_for_nan,),
            "far below zero": (from_zero,),
            "still computes a table": (flat_table,),
            "keys are left out": (without_the_rest,),
            "Are the old sums corrected": (not_corrected,),
            "an exponential overflows": (without_maximum,),
            "differ from attention with the whole table": (without_root,),
        },
        also_right=((fused,),),
        secrets=("finfo", "exp", "clamp"),
    )


def in_blocks(query, key, value, mask, block, highest, correct=True):
    total, mixed = torch.zeros_like(highest), torch.zeros_like(value)
    for start in range(0, key.shape[-2], block):
        part = slice(start, start + block)
        scores = query @ key[..., part, :].mT / key.shape[-1] ** 0.5
        scores = scores.masked_fill(~mask[..., part], -math.inf)
        higher = torch.maximum(highest, scores.amax(dim=-1, keepdim=True))
        factor = (highest - higher).exp() if correct else torch.ones_like(total)
        weights = (scores - higher).exp()
        total = total * factor + weights.sum(dim=-1, keepdim=True)
        mixed = mixed * factor + weights @ value[..., part, :]
        highest = higher
    return mixed / total.clamp(min=1e-30)
