"""Our transformer against the libraries' with the same weights, and all heads at once against one by one.

Peak memory is the maximum of PyTorch's allocator in a training step, beyond the weights and the optimizer's
state. Compiled speed is measured if there is a C++ compiler.
"""

import copy
import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile
from transformers import BertModel

from benchmarks.measure import Result, taking_turns
from chapters_src import resources
from chapters_src.attention import MultiHeadAttention
from chapters_src.pretrained import load
from chapters_src.transformer import Config, EncoderDecoder

BATCH_SIZE, LENGTH = 32, 64
SHAPE = {"vocab_size": 4_000, "d_model": 256, "num_layers": 3, "num_heads": 4, "feed_forward_width": 1_024}


def results() -> list[Result]:
    """Compare encoders, training steps and projections.

    Returns:
        One result for each line of the table.
    """
    torch.set_num_threads(2)
    torch.manual_seed(0)
    try:
        return [*encoders(), *training_steps(), heads_together_or_one_by_one()]
    finally:
        torch.set_num_threads(1)


def encoders() -> list[Result]:
    """Compare the forward pass of the book's encoder: ours and the library's, without and with padding."""
    print(f"encoder: {BATCH_SIZE} x {LENGTH} tokens", file=sys.stderr, flush=True)
    folder = resources.checkpoint("encoder")
    ours = load(folder)
    theirs = BertModel.from_pretrained(folder, add_pooling_layer=False, attn_implementation="sdpa").eval()
    ids, full, padded = batch(ours.config.vocab_size)
    lines = []
    kinds = ((full, None, "no padding"), (padded, padded, f"from {LENGTH // 2} tokens up, padded"))
    for mask, own, about in kinds:  # Ours is told by None that nothing is padding.
        with torch.inference_mode():
            expected = theirs(ids, attention_mask=mask).last_hidden_state
            torch.testing.assert_close(ours(ids, own)[mask], expected[mask], atol=1e-4, rtol=0)
        what = f"encoder of the book, {BATCH_SIZE} x {LENGTH} tokens, {about}: forward"
        ways = inferring(ours, ids, own), inferring(theirs, ids, mask)
        lines.append(taking_turns(what, ways[0], "the Transformers library's `BertModel`", ways[1], 60))
    if any(shutil.which(compiler) for compiler in ("c++", "g++", "clang++", "cl")):  # Inductor needs one.
        compiled = inferring(torch.compile(ours, fullgraph=True), ids, None)
        torch.testing.assert_close(compiled(), ours(ids, None), atol=1e-4, rtol=0)
        what = f"encoder of the book, {BATCH_SIZE} x {LENGTH} tokens, compiled: forward"
        lines.append(taking_turns(what, compiled, "the same as it is", inferring(ours, ids, None), 40))
    return lines


def inferring(model: nn.Module, ids: Tensor, mask: Tensor | None) -> Callable[[], Tensor]:
    """Make a function that runs a model, ours or the library's, on one batch."""

    @torch.inference_mode()
    def run() -> Tensor:
        return model(ids, attention_mask=mask)

    return run


class TheirsInOurPlace(nn.Module):
    """`nn.Transformer` between our embeddings and our head, with the weights of a model of ours."""

    def __init__(self, ours: EncoderDecoder, config: Config) -> None:
        super().__init__()
        self.embeddings = nn.ModuleList([ours.encoder.embedding, ours.decoder.embedding])
        self.head = ours.head
        self.transformer = nn.Transformer(
            config.d_model,
            config.num_heads,
            config.num_layers,
            config.num_layers,
            config.feed_forward_width,
            dropout=config.dropout,
            norm_first=True,
            batch_first=True,
        )
        for mine, stack in (
            (ours.encoder.stack, self.transformer.encoder),
            (ours.decoder.stack, self.transformer.decoder),
        ):
            stack.norm.load_state_dict(mine.norm.state_dict())
            for layer, theirs in zip(mine.layers, stack.layers, strict=True):
                self.copy_layer(layer, theirs)

    @staticmethod
    def copy_layer(ours: nn.Module, theirs: nn.Module) -> None:
        """Take the weights of a layer. Its dropout inside the feed-forward network goes, as ours has none."""
        theirs.dropout = nn.Identity()
        fused = ours.attention.query_key_value
        copies = [(theirs.self_attn, ours.attention, fused.weight, fused.bias)]
        norms = [ours.attention_norm, ours.feed_forward_norm]
        if ours.cross_attention is not None:
            two = ours.cross_attention.query, ours.cross_attention.key_value
            weight, bias = torch.cat([each.weight for each in two]), torch.cat([each.bias for each in two])
            copies.append((theirs.multihead_attn, ours.cross_attention, weight, bias))
            norms.insert(1, ours.cross_attention_norm)
        for other, mine, weight, bias in copies:
            other.in_proj_weight.data = weight.detach().clone()
            other.in_proj_bias.data = bias.detach().clone()
            other.out_proj.load_state_dict(mine.output.state_dict())
        for number, norm in enumerate(norms, start=1):
            getattr(theirs, f"norm{number}").load_state_dict(norm.state_dict())
        theirs.linear1.load_state_dict(ours.feed_forward.up.state_dict())
        theirs.linear2.load_state_dict(ours.feed_forward.down.state_dict())

    def forward(self, source: Tensor, source_mask: Tensor, target: Tensor, target_mask: Tensor) -> Tensor:
        """Compute the logits, from the arguments of our `EncoderDecoder`. Their masks hide what is True."""
        embedded = [
            embedding(ids, torch.arange(ids.size(1))[None])
            for embedding, ids in zip(self.embeddings, (source, target), strict=True)
        ]
        length = target.size(1)
        states = self.transformer(
            *embedded,
            tgt_mask=torch.ones(length, length, dtype=torch.bool).triu(diagonal=1),
            src_key_padding_mask=~source_mask,
            tgt_key_padding_mask=~target_mask,
            memory_key_padding_mask=~source_mask,
        )
        return self.head(states)


def training_steps() -> list[Result]:
    """Compare time and memory of a training step: our encoder-decoder and PyTorch's."""
    config = Config(**SHAPE, max_length=LENGTH, dropout=0.1, attention_dropout=0.1)
    decoder = Config(**SHAPE, max_length=LENGTH, dropout=0.1, attention_dropout=0.1, cross_attention=True)
    ours = EncoderDecoder(config, decoder, share_embedding=True)
    theirs = TheirsInOurPlace(copy.deepcopy(ours), config)
    ids, _, mask = batch(config.vocab_size)
    text = (ids, mask, ids.flip(0), mask.flip(0))
    ours.eval(), theirs.train()  # In evaluation theirs takes another path; without dropout it need not.
    for part in theirs.modules():
        if isinstance(part, nn.Dropout):
            part.p = 0.0
        if isinstance(part, nn.MultiheadAttention):
            part.dropout = 0.0
    torch.testing.assert_close(ours(*text)[text[3]], theirs(*text)[text[3]], atol=1e-4, rtol=0)
    theirs = TheirsInOurPlace(copy.deepcopy(ours), config)
    steps = [training_step(model.train(), text) for model in (ours, theirs)]
    print(f"training step: {BATCH_SIZE} x {LENGTH} tokens", file=sys.stderr, flush=True)
    peaks = [peak_megabytes(step) for step in steps]
    what = f"encoder-decoder, 3 + 3 layers, d_model 256, {BATCH_SIZE} x {LENGTH} tokens: a training step"
    return [
        taking_turns(what, steps[0], "`nn.Transformer`", steps[1], 40),
        Result(f"{what}, peak of memory", peaks[0], "`nn.Transformer`", peaks[1], unit="MB"),
    ]


def training_step(model: nn.Module, text: tuple[Tensor, Tensor, Tensor, Tensor]) -> Callable[[], None]:
    """Make a function that does one step: forward, loss, backward, AdamW."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)

    def step() -> None:
        optimizer.zero_grad()
        logits = model(*text)[:, :-1]
        labels = text[2][:, 1:].masked_fill(~text[3][:, 1:], -100)
        F.cross_entropy(logits.flatten(0, 1), labels.flatten()).backward()
        optimizer.step()

    return step


class OneModulePerHead(nn.Module):
    """Multi-head attention as it is often drawn: each head with three projections of its own."""

    def __init__(self, together: MultiHeadAttention) -> None:
        super().__init__()
        matrices, biases = (
            parameter.detach().unflatten(0, (3, together.num_heads, together.head_dim))
            for parameter in (together.query_key_value.weight, together.query_key_value.bias)
        )
        d_model = together.query_key_value.in_features
        self.heads = nn.ModuleList()
        for head in range(together.num_heads):
            self.heads.append(nn.ModuleList(nn.Linear(d_model, together.head_dim) for _ in range(3)))
            for i, projection in enumerate(self.heads[-1]):
                projection.load_state_dict({"weight": matrices[i, head], "bias": biases[i, head]})
        self.output = copy.deepcopy(together.output)

    def forward(self, hidden_states: Tensor, mask: None) -> Tensor:
        """Compute (B, T, d_model) -> (B, T, d_model)."""
        collected = [
            F.scaled_dot_product_attention(
                *(projection(hidden_states) for projection in head), attn_mask=mask
            )
            for head in self.heads
        ]
        return self.output(torch.cat(collected, dim=-1))


def heads_together_or_one_by_one() -> Result:
    """Compare one projection for all heads with three for each head: forward and backward."""
    together = MultiHeadAttention(384, 12)
    one_by_one = OneModulePerHead(together)
    hidden_states = torch.randn(BATCH_SIZE, LENGTH, 384, requires_grad=True)
    gradients = []
    for module in (together, one_by_one):
        gradients.append(torch.autograd.grad(module(hidden_states, None).square().sum(), hidden_states)[0])
    torch.testing.assert_close(*gradients, atol=1e-4, rtol=1e-4)
    print("heads together or one by one", file=sys.stderr, flush=True)
    what = f"attention, 12 heads of 32, {BATCH_SIZE} x {LENGTH} tokens: forward and backward, one projection"
    return taking_turns(
        what,
        lambda: together(hidden_states, None).sum().backward(),
        "three projections for each head",
        lambda: one_by_one(hidden_states, None).sum().backward(),
        40,
    )


def batch(vocab_size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Make random ids, a mask without padding, and one with: lengths from half of the longest up."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(vocab_size, (BATCH_SIZE, LENGTH), generator=generator)
    lengths = torch.linspace(LENGTH // 2, LENGTH, BATCH_SIZE).round()
    return ids, torch.ones_like(ids).bool(), torch.arange(LENGTH) < lengths[:, None]


def peak_megabytes(step: Callable[[], None]) -> float:
    """Measure the peak memory of tensors during a step, beyond the memory before it."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        step()
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        profiled.export_chrome_trace(str(trace))
        events = json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
    return max(event["args"]["Total Allocated"] for event in events if event["name"] == "[memory]") / 1e6
