"""Models can be compiled and exported whole: no forward looks at a value, or depends on one batch's shape."""

import contextlib

import pytest
import torch
from small_models import KINDS, build, padded, random_ids, random_states, small_config, without_windows
from torch.export import Dim
from torch.utils._python_dispatch import TorchDispatchMode

from chapters_src.decoding import start_decoding
from chapters_src.transformer import (
    ClassificationHead,
    Decoder,
    Encoder,
    EncoderDecoder,
    LanguageModel,
    TransformerStack,
)

each_kind = pytest.mark.parametrize("changes", list(KINDS.values()), ids=list(KINDS))
# Between them they have every setting that a forward branches on; tracing takes seconds each.
two_kinds = pytest.mark.parametrize("changes", [KINDS["bert"], KINDS["llama"]], ids=["bert", "llama"])
ROWS = [random_ids(length, seed=length) for length in (6, 3, 4)]
LONGER = [random_ids(length, seed=length) for length in (9, 2, 7, 9)]


class Translator(EncoderDecoder):
    """With the configurations of one kind on both sides."""

    def __init__(self, config):
        options = {name: getattr(config, name) for name in config.__dataclass_fields__}
        super().__init__(config, type(config)(**options | {"cross_attention": True}), share_embedding=True)


class Classifier(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.encoder, self.head = Encoder(config), ClassificationHead(config.d_model, 3)

    def forward(self, ids, attention_mask):
        return self.head(self.encoder(ids, attention_mask), attention_mask)


def inputs(kind, rows, is_padded):
    """Give a batch for a kind of model, with padding or without."""
    if is_padded:
        ids, attention_mask = padded(rows)
    else:
        ids, attention_mask = random_ids(len(rows), max(map(len, rows))), None
    return (ids, attention_mask, *padded(rows[::-1])) if kind is Translator else (ids, attention_mask)


def small(kind, changes):
    """A configuration for a kind of model; those with an encoder have no sliding layers."""
    return small_config(**(changes if kind in (Decoder, LanguageModel) else without_windows(changes)))


MODELS = [Encoder, Decoder, LanguageModel, Translator, Classifier]


@pytest.mark.slow
@pytest.mark.parametrize("is_padded", [True, False], ids=["padded", "full"])
@pytest.mark.parametrize("kind", MODELS)
@two_kinds
def test_models_compile_without_a_break(changes, kind, is_padded):
    model = build(kind, small(kind, changes))
    compiled = torch.compile(model, fullgraph=True, backend="eager", dynamic=True)
    for rows in (ROWS, LONGER):
        batch = inputs(kind, rows, is_padded)
        torch.testing.assert_close(compiled(*batch), model(*batch), atol=1e-12, rtol=0)
    torch._dynamo.reset()


def test_a_stack_compiles_and_trains_compiled():
    model = build(TransformerStack, small_config(vocab_size=None, max_length=None)).train()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")  # the backward is traced, too
    patches = random_states(2, 5, 16).requires_grad_()
    gradients = [
        torch.autograd.grad(each(patches, None).square().sum(), patches) for each in (model, compiled)
    ]
    torch.testing.assert_close(*gradients)
    torch._dynamo.reset()


@pytest.mark.slow
@pytest.mark.parametrize("is_padded", [True, False], ids=["padded", "full"])
@pytest.mark.parametrize("kind", MODELS)
@two_kinds
def test_models_are_exported_for_any_batch_and_length(changes, kind, is_padded):
    model = build(kind, small(kind, changes))
    batch, length = Dim("batch", min=2, max=64), Dim("length", min=2, max=20)
    source = (
        {0: batch, 1: Dim("source_length", min=2, max=20)} if kind is Translator else {0: batch, 1: length}
    )
    shapes = [source, source if is_padded else None]
    shapes += [{0: batch, 1: length}] * 2 if kind is Translator else []
    # What it is traced with has no padding at all: nothing of that may stay in the trace.
    traced = inputs(kind, ROWS, is_padded)
    traced = tuple(
        torch.ones_like(each) if i % 2 and each is not None else each for i, each in enumerate(traced)
    )
    program = torch.export.export(model, traced, dynamic_shapes=tuple(shapes)).module()
    for rows in (ROWS, LONGER, LONGER[:2]):
        given = inputs(kind, rows, is_padded)
        torch.testing.assert_close(program(*given), model(*given), atol=1e-12, rtol=0)


class Synchronizations(TorchDispatchMode):
    """Counts what would make the processor wait for a graphics card."""

    WAITING = ("_local_scalar_dense", "nonzero", "is_nonzero", "equal", "masked_select", "unique")

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        if function.overloadpacket.__name__.startswith(self.WAITING):
            self.seen.append(str(function))
        return function(*arguments, **(keywords or {}))


@contextlib.contextmanager
def nothing_waits():
    with Synchronizations() as counted:
        yield
    assert not counted.seen


@pytest.mark.parametrize("is_padded", [True, False], ids=["padded", "full"])
@pytest.mark.parametrize("kind", MODELS)
@each_kind
def test_no_forward_and_no_step_waits_for_a_value(changes, kind, is_padded):
    model = build(kind, small(kind, changes))
    batch = inputs(kind, ROWS, is_padded)
    documents = {"documents": batch[0]} if kind in (Decoder, LanguageModel) else {}
    with nothing_waits():
        model(*batch)
        model(*batch, **documents)
    if kind in (LanguageModel, Translator):
        targets = random_ids(3, 1) if kind is Translator else None
        state = start_decoding(model, *batch[:2], max_new_tokens=9, target_ids=targets)
        new, rows = random_ids(3), torch.tensor([2, 0, 0, 1])
        with nothing_waits():
            state.step(new)
            state.select(rows)
            state.step(new[rows.clamp(max=2)][:4])
            state.crop(state.length - 1)
            state.step(random_ids(4, 2))


def test_the_count_of_waiting_counts():
    with pytest.raises(AssertionError), nothing_waits():
        bool(torch.ones(3).all())
    with pytest.raises(AssertionError), nothing_waits():
        torch.ones(3).max().item()


@pytest.mark.parametrize("kind", [Encoder, LanguageModel])
def test_a_causal_batch_without_padding_goes_to_the_fused_kernel_without_a_mask(kind, monkeypatch):
    seen = []
    attend = torch.nn.functional.scaled_dot_product_attention

    def watched(*arguments, **options):
        seen.append((options["attn_mask"] is None, options["is_causal"]))
        return attend(*arguments, **options)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", watched)
    model = build(kind, small_config())
    model(random_ids(2, 5), None)
    model(*padded(ROWS))
    is_causal = kind is LanguageModel
    assert seen == [(True, is_causal)] * 2 + [(False, False)] * 2
