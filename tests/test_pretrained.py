"""Converted weights: our models compute what the library's do, and whatever does not fit is named."""

import json
import random

import pytest
import torch
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    AutoTokenizer,
    BartConfig,
    BartForConditionalGeneration,
    BartModel,
    BertConfig,
    BertForPreTraining,
    BertModel,
    DistilBertConfig,
    DistilBertForMaskedLM,
    DistilBertModel,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    GPT2Config,
    GPT2LMHeadModel,
    GPT2Model,
    LlamaConfig,
    LlamaForCausalLM,
    MarianConfig,
    MarianMTModel,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from chapters_src import resources
from chapters_src.data import emotions
from chapters_src.decoding import start_decoding
from chapters_src.pretrained import LEFT_OUT, NAMES, from_library, load
from chapters_src.pretrained.configurations import BUILDERS

VOCAB_SIZE = 40
CONTEXT = 24
TWO_BASES = {
    "full_attention": {"rope_type": "default", "rope_theta": 300.0},
    "sliding_attention": {"rope_type": "default", "rope_theta": 20.0},
}
NO_IDS = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": 1}


pytestmark = pytest.mark.usefixtures("quiet_library")


def with_heads(model, config, names, widths, **fixed):
    """A function that makes a model of random size; `names` are those of the sizes in its configuration."""

    def make(draw, **settings):
        heads = draw.choice([1, 2, 3])
        width, layers = heads * draw.choice(widths), draw.choice([1, 3])
        sizes = dict(zip(names.split(), (heads, width, layers, CONTEXT, draw.choice([7, 16])), strict=False))
        return model(config(vocab_size=VOCAB_SIZE, **sizes, **fixed, **settings))

    make.__name__ = config.model_type
    return make


BERT_SIZES = "num_attention_heads hidden_size num_hidden_layers max_position_embeddings intermediate_size"
bert = with_heads(BertModel, BertConfig, BERT_SIZES, (2, 5))
distilbert = with_heads(
    DistilBertModel, DistilBertConfig, "n_heads dim n_layers max_position_embeddings hidden_dim", (2, 5)
)
gpt2 = with_heads(GPT2LMHeadModel, GPT2Config, "n_head n_embd n_layer n_positions", (3, 4), **NO_IDS)


def grouped(draw, widths, layers):
    groups = draw.choice([1, 2])
    heads = groups * draw.choice([1, 3])
    return {
        "vocab_size": VOCAB_SIZE, "hidden_size": heads * draw.choice(widths),
        "num_hidden_layers": draw.choice(layers), "num_attention_heads": heads, "num_key_value_heads": groups,
        "intermediate_size": draw.choice([7, 16]), "max_position_embeddings": CONTEXT, **NO_IDS,
    }  # fmt: skip


def llama(draw, **settings):
    return LlamaForCausalLM(LlamaConfig(**grouped(draw, (4, 6), (1, 3)), **settings))


def _of_today(draw):
    return grouped(draw, (4, 5), (2, 3)) | {"head_dim": draw.choice([6, 8]), "tie_word_embeddings": False}


def qwen3(draw, **settings):
    return Qwen3ForCausalLM(Qwen3Config(**_of_today(draw) | settings))


def gemma3(draw, **settings):
    sizes = _of_today(draw)
    kinds = [draw.choice(["sliding_attention", "full_attention"]) for _ in range(sizes["num_hidden_layers"])]
    windows = {"layer_types": kinds, "sliding_window": draw.choice([1, 2, 5])}
    scale = {"query_pre_attn_scalar": sizes["head_dim"]}
    return Gemma3ForCausalLM(Gemma3TextConfig(**sizes | windows | scale | settings))


def translator(draw, model, config, **settings):
    layers, heads = ([draw.choice(each) for each in pair] for pair in (([1, 2], [1, 3]), ([1, 3], [2, 4])))
    sizes = {
        "encoder_layers": layers[0], "decoder_layers": layers[1], "encoder_attention_heads": heads[0],
        "decoder_attention_heads": heads[1], "encoder_ffn_dim": draw.choice([7, 16]),
        "decoder_ffn_dim": draw.choice([8, 11]), "max_position_embeddings": CONTEXT, "d_model": 12,
    }  # fmt: skip
    ids = {"decoder_start_token_id": 2, "forced_eos_token_id": None, **NO_IDS}
    return model(config(vocab_size=VOCAB_SIZE, **sizes, **ids, **settings))


def bart(draw, **settings):
    return translator(draw, BartForConditionalGeneration, BartConfig, **settings)


def marian(draw, **settings):
    return translator(draw, MarianMTModel, MarianConfig, **settings)


LANGUAGE_MODELS = (gpt2, llama, qwen3, gemma3)
EVERY_KIND = (bert, distilbert, *LANGUAGE_MODELS, bart, marian)


def made(kind, seed, **settings):
    """A small model of random size; all weights are random, those too that the library starts at 0 or 1."""
    model = kind(random.Random(seed), **settings).eval()
    generator = torch.Generator().manual_seed(seed)
    for name, tensor in model.state_dict().items():
        is_sines = model.config.model_type == "marian" and "embed_positions" in name
        if tensor.is_floating_point() and not is_sines:
            around = 1.0 if "norm" in name.lower() or "ln_" in name else 0.0
            tensor.copy_(around + 0.4 * torch.randn(tensor.shape, generator=generator))
    return model


def converted(theirs):
    return from_library(theirs.config, theirs.state_dict())


def padded_batch(seed, side, length=11, lowest=0):
    """Four sequences of different lengths, and the mask that says where they are."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(lowest, VOCAB_SIZE, (4, length), generator=generator)
    mask = torch.zeros_like(ids)
    for row, tokens in enumerate((length, 1, length - 3, 4)):
        if side == "right":
            mask[row, :tokens] = 1
        else:
            mask[row, -tokens:] = 1
    return ids, mask


def positions_of(mask):
    return (mask.cumsum(dim=1) - 1).clamp(min=0)


def largest_difference(ours, theirs, mask):
    return (ours - theirs)[mask.bool()].abs().max().item()


def run_ours(model, ids, mask):
    return model(ids, mask)


def run_theirs(model, ids, mask):
    return model(ids, attention_mask=mask, position_ids=positions_of(mask)).logits


def translate_theirs(model, source, source_mask, target, target_mask):
    return model(
        source,
        attention_mask=source_mask,
        decoder_input_ids=target,
        decoder_attention_mask=target_mask,
    ).logits


SEEDS = range(3)


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("activation", ["gelu", "relu", "gelu_new", "silu"])
@torch.no_grad()
def test_bert_gives_the_librarys_hidden_states(seed, activation, side):
    theirs = made(bert, seed, hidden_act=activation)
    ids, mask = padded_batch(seed, side)
    types = (ids % 2) * mask
    places = positions_of(mask)
    expected = theirs(ids, mask, token_type_ids=types, position_ids=places).last_hidden_state
    ours = converted(theirs)
    assert largest_difference(ours(ids, mask, types), expected, mask) < 1e-4
    assert not ours.training


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("activation", ["gelu", "relu"])
@torch.no_grad()
def test_distilbert_gives_the_librarys_hidden_states(seed, activation):
    theirs = made(distilbert, seed, activation=activation)
    ids, mask = padded_batch(seed, "right")
    expected = theirs(ids, attention_mask=mask).last_hidden_state
    assert largest_difference(converted(theirs)(ids, mask), expected, mask) < 1e-4


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (gpt2, {}),
        (gpt2, {"tie_word_embeddings": False, "n_inner": 9, "activation_function": "relu"}),
        (gpt2, {"layer_norm_epsilon": 0.1, "activation_function": "gelu_pytorch_tanh"}),
        (llama, {}),
        (llama, {"tie_word_embeddings": True, "attention_bias": True, "mlp_bias": True, "rms_norm_eps": 0.1}),
        (llama, {"rope_parameters": {"rope_type": "default", "rope_theta": 50.0}, "hidden_act": "gelu"}),
        (llama, {"head_dim": 8}),
        (qwen3, {}),
        (qwen3, {"tie_word_embeddings": True, "rms_norm_eps": 0.1}),
        (qwen3, {"use_sliding_window": True, "sliding_window": 3, "max_window_layers": 1}),
        (gemma3, {}),
        (gemma3, {"tie_word_embeddings": True, "rms_norm_eps": 0.1}),
        (gemma3, {"layer_types": None, "num_hidden_layers": 6}),
        (gemma3, {"rope_parameters": TWO_BASES, "hidden_activation": "silu"}),
    ],
)
@torch.no_grad()
def test_language_models_give_the_librarys_logits(kind, settings, seed, side):
    theirs = made(kind, seed, **settings)
    ids, mask = padded_batch(seed, side)
    ours = converted(theirs)
    # Gemma has more norms, which amplify rounding: in float32 both are up to 1e-3 away from float64.
    most = 1e-3 if kind is gemma3 else 1e-4
    assert largest_difference(run_ours(ours, ids, mask), run_theirs(theirs, ids, mask), mask) < most
    assert not ours.training


TRANSLATORS = [
    (bart, {}),
    (bart, {"scale_embedding": True, "activation_function": "relu"}),
    (bart, {"tie_word_embeddings": False}),
    (marian, {"activation_function": "swish", "scale_embedding": True}),
    (marian, {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": VOCAB_SIZE + 3}),
    (marian, {"tie_word_embeddings": False}),
]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("kind", "settings"), TRANSLATORS)
@torch.no_grad()
def test_translators_give_the_librarys_logits(kind, settings, seed):
    theirs = made(kind, seed, **settings)
    batch = (*padded_batch(seed, "right"), *padded_batch(seed + 1, "right", length=7))
    ours = converted(theirs)
    assert largest_difference(ours(*batch), translate_theirs(theirs, *batch), batch[-1]) < 1e-4
    assert not ours.training


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_gradients_are_the_librarys_too(kind):
    theirs = made(kind, 0)
    ids, mask = padded_batch(0, "right", lowest=3)
    ours = converted(theirs)
    if kind in (bert, distilbert):
        results = ours(ids, mask), theirs(ids, attention_mask=mask).last_hidden_state
    elif kind in LANGUAGE_MODELS:
        results = run_ours(ours, ids, mask), run_theirs(theirs, ids, mask)
    else:
        batch = (ids, mask, *padded_batch(1, "right", length=7, lowest=3))
        results, mask = (ours(*batch), translate_theirs(theirs, *batch)), batch[-1]
    for result in results:
        result[mask.bool()].log_softmax(dim=-1)[:, 5].sum().backward()
    # Gradients have the names and places of the weights they belong to, so they can be converted like those.
    # The library's bias of the logits is not trained.
    gradients = {name: p.grad for name, p in theirs.named_parameters() if p.grad is not None}
    left_out = {name: p.detach() for name, p in theirs.named_parameters() if p.grad is None}
    expected = dict(from_library(theirs.config, left_out | gradients).named_parameters())
    compared = [name for name, p in ours.named_parameters() if p.grad is not None]
    assert set(compared) == {name for name, p in ours.named_parameters() if p.requires_grad}
    for name in compared:
        if name != "head.projection.bias":
            gradient = dict(ours.named_parameters())[name].grad
            if kind is gemma3 and "norm" in name:  # To a weight of Gemma's norms the conversion adds 1.
                gradient = gradient + 1
            torch.testing.assert_close(gradient, expected[name], atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_the_embedded_encoder_layer_by_layer_in_float64():
    folder = resources.checkpoint("encoder")
    tokenizer, ours = AutoTokenizer.from_pretrained(folder), load(folder).double()
    theirs = AutoModel.from_pretrained(folder).eval().double()
    texts = [*emotions.load()["test"][:4]["text"], "one long text " * 30]
    batch = tokenizer(texts, padding=True, return_tensors="pt")
    layers = []
    for layer in ours.stack.layers:
        layer.register_forward_hook(lambda _module, _inputs, states: layers.append(states))
    ours(batch["input_ids"], batch["attention_mask"])
    expected = theirs(**batch, output_hidden_states=True).hidden_states[1:]
    assert len(layers) == len(expected) == 6
    for states, wanted in zip(layers, expected, strict=True):
        assert largest_difference(states, wanted, batch["attention_mask"]) < 1e-10


@pytest.mark.full
@torch.inference_mode()
def test_gemma_on_a_text_longer_than_its_window():
    """The real weights: logits, and what both write after two prompts of different lengths, with a cache."""
    folder = resources.checkpoint("gemma")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ours, theirs = load(folder), AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    window = theirs.config.sliding_window
    assert sum(parameter.numel() for parameter in ours.parameters()) == 268_098_176
    text = " ".join(emotions.load()["train"][:30]["text"])
    batch = tokenizer([text, text[: len(text) // 2]], padding=True, return_tensors="pt")
    ids, mask = batch["input_ids"], batch["attention_mask"]
    assert window < ids.size(1) < 2 * window and mask[1, 0] == 0
    expected = run_theirs(theirs, ids, mask)
    assert largest_difference(run_ours(ours, ids, mask), expected, mask) < 1e-3 < expected.std()
    written = theirs.generate(**batch, max_new_tokens=16, min_new_tokens=16, do_sample=False)
    state, new = start_decoding(ours, ids, mask, max_new_tokens=16), []
    for _ in range(16):
        logits = state.next_logits
        logits[:, [1, 106]] = -torch.inf  # Both write on: these two would end it.
        new.append(logits.argmax(dim=-1))
        if len(new) < 16:
            state.step(new[-1])
    assert torch.equal(torch.stack(new, dim=1), written[:, ids.size(1) :])


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_nothing_stays_random(kind):
    theirs = made(kind, 0)
    torch.manual_seed(1)
    one = converted(theirs).state_dict()
    torch.manual_seed(2)
    before = torch.get_rng_state()
    other = converted(theirs).state_dict()
    assert torch.equal(torch.get_rng_state(), before)  # Whoever loads a model changes no draws.
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_weights_are_copies(kind):
    theirs = made(kind, 0)
    before = {name: tensor.clone() for name, tensor in theirs.state_dict().items()}
    for parameter in converted(theirs).parameters():
        parameter.detach().zero_()
    assert all(torch.equal(tensor, before[name]) for name, tensor in theirs.state_dict().items())


@pytest.mark.parametrize(
    ("kind", "settings", "sides", "number"),
    [
        (gpt2, {}, ["decoder"], 1),
        (llama, {"tie_word_embeddings": True}, ["decoder"], 1),
        (bart, {}, ["encoder", "decoder"], 1),
        (marian, {}, ["encoder", "decoder"], 1),
        (marian, {"share_encoder_decoder_embeddings": False}, ["decoder"], 1),
        (bart, {"tie_word_embeddings": False}, ["encoder", "decoder"], 3),
    ],
)
def test_tied_weights_stay_one_tensor(kind, settings, sides, number):
    ours = converted(made(kind, 0, **settings))
    names = [*(f"{side}.embedding.tokens" for side in sides), "head.projection"]
    assert len({ours.get_submodule(name).weight for name in names}) == number


def test_marians_sines_are_no_parameters():
    theirs = made(marian, 0)
    ours = converted(theirs)
    assert all(parameter.requires_grad for parameter in ours.parameters())
    assert not any("position" in name or "sinus" in name for name in ours.state_dict())
    for mine, other in ((ours.encoder, theirs.model.encoder), (ours.decoder, theirs.model.decoder)):
        torch.testing.assert_close(mine.embedding.sinusoids, other.embed_positions.weight, atol=1e-6, rtol=0)


def test_dropout_is_taken_over():
    ours = converted(made(bart, 0, dropout=0.25, attention_dropout=0.5))
    for stack in (ours.encoder, ours.decoder):
        assert (stack.config.dropout, stack.config.attention_dropout) == (0.25, 0.5)


# Files as they are found: other names, tensors that stand for several, tensors that are left out.


def same(one, other):
    one, other = one.state_dict(), other.state_dict()
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_berts_heads_and_older_names():
    body = made(bert, 0)
    full = BertForPreTraining(body.config)
    full.bert.load_state_dict(body.state_dict())
    older = {
        name.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta"): tensor
        for name, tensor in full.state_dict().items()
    }
    assert any("gamma" in name for name in older) and any(name.startswith("cls.") for name in older)
    older["bert.embeddings.position_ids"] = torch.arange(CONTEXT)[None]
    assert same(from_library(full.config, older), converted(body))


def test_distilberts_head():
    body = made(distilbert, 0)
    full = DistilBertForMaskedLM(body.config)
    full.distilbert.load_state_dict(body.state_dict())
    assert same(from_library(full.config, full.state_dict()), converted(body))


def test_gpt2_without_its_head():
    full = made(gpt2, 0)
    body = GPT2Model(full.config)
    body.load_state_dict(full.transformer.state_dict())
    masks = {"h.0.attn.bias": torch.ones(1, 1, CONTEXT, CONTEXT), "h.0.attn.masked_bias": torch.tensor(-1e4)}
    assert same(from_library(body.config, body.state_dict() | masks), converted(full))


def test_bart_without_its_head_and_with_each_name_of_the_shared_embedding():
    full = made(bart, 0)
    full.final_logits_bias.zero_()
    body = BartModel(full.config)
    body.load_state_dict(full.model.state_dict())
    tensors = body.state_dict()
    one_tensor = {"shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"}
    assert one_tensor < tensors.keys()
    for name in one_tensor:
        fewer = {key: value for key, value in tensors.items() if key == name or key not in one_tensor}
        assert same(from_library(body.config, fewer), converted(full))


def test_marians_table_of_sines_is_compared_and_not_copied():
    theirs = made(marian, 0)
    tensors = theirs.state_dict()
    tables = [name for name in tensors if "embed_positions" in name]
    assert len(tables) == 2
    without = {name: tensor for name, tensor in tensors.items() if name not in tables}
    halved = tensors | {name: tensors[name].half() for name in tables}
    for each in (without, halved):
        assert same(from_library(theirs.config, each), converted(theirs))
    for name in tables:
        with pytest.raises(ValueError, match=rf"not sinusoidal.*{name.removeprefix('model.')}"):
            from_library(theirs.config, tensors | {name: tensors[name].flip(1)})


def test_half_precision_becomes_float32():
    theirs = made(gpt2, 0).half()
    ours = converted(theirs)
    assert {parameter.dtype for parameter in ours.parameters()} == {torch.float32}
    assert torch.equal(ours.decoder.embedding.tokens.weight, theirs.transformer.wte.weight.float())


@pytest.mark.parametrize(
    ("model", "left_out"),
    [
        (lambda: BertModel(BertConfig()), "pooler"),
        (lambda: GPT2LMHeadModel(GPT2Config()), "nothing"),
        (lambda: BartForConditionalGeneration(BartConfig()), "nothing"),
        (lambda: Qwen3ForCausalLM(Qwen3Config()), "nothing"),
        (lambda: Gemma3ForCausalLM(Gemma3TextConfig()), "nothing"),
    ],
)
def test_published_sizes_have_the_librarys_number_of_parameters(model, left_out):
    with torch.device("meta"):
        theirs = model()
        ours = BUILDERS[theirs.config.model_type](theirs.config)
    count = sum(parameter.numel() for parameter in ours.parameters())
    expected = sum(p.numel() for name, p in theirs.named_parameters() if not name.startswith(left_out))
    if theirs.config.model_type == "bart":
        stack = theirs.config
        expected += (
            stack.vocab_size - 2 * 2 * stack.d_model
        )  # The bias is a buffer there; two rows are unused.
    assert count == expected


# Errors


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_every_missing_tensor_is_named(kind):
    theirs = made(kind, 0)
    tensors = theirs.state_dict()
    with pytest.raises(ValueError) as everything:
        from_library(theirs.config, {})
    tied = {"shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"}
    may_be_absent = tied | {"final_logits_bias", "wte.weight"}
    for name in tensors:
        bare = name.removeprefix("transformer." if kind is gpt2 else "model.")
        left_out = bare.startswith("pooler")
        computed = bare == "final_logits_bias" or (kind is marian and "embed_positions" in bare)
        assert (bare in str(everything.value)) == (not left_out and not computed)
        if left_out or computed or (bare in may_be_absent and kind not in (llama, qwen3, gemma3)):
            from_library(theirs.config, {key: t for key, t in tensors.items() if key != name})
            continue
        with pytest.raises(ValueError, match=rf"missing: {bare}.*\(\d+") as error:
            from_library(theirs.config, {key: t for key, t in tensors.items() if key != name})
        assert str(error.value).count("missing") == 1


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_every_misshapen_tensor_is_named(kind):
    theirs = made(kind, 0)
    tensors = theirs.state_dict()
    for name in tensors:
        bare = name.removeprefix("transformer." if kind is gpt2 else "model.")
        if bare.startswith("pooler"):
            continue
        longer = torch.cat([tensors[name], tensors[name][:1]])
        shape = ", ".join(map(str, longer.shape))
        with pytest.raises(ValueError) as error:
            from_library(theirs.config, {**tensors, name: longer})
        assert f"misshapen: {bare} ({shape}" in str(error.value)


@pytest.mark.parametrize(("more", "problem"), [(1, "missing"), (-1, "left over")])
def test_another_number_of_layers_than_in_the_file(more, problem):
    theirs = made(gpt2, 1)
    layers = theirs.config.n_layer
    assert layers > 1
    theirs.config.n_layer += more
    with pytest.raises(ValueError) as error:
        converted(theirs)
    lines = str(error.value).splitlines()[1:]
    assert len(lines) == 12 and all(f"{problem}: h.{min(layers, layers + more)}." in line for line in lines)


def test_projections_whose_sum_only_is_right():
    """Query, key and value are of one matrix of ours, but each has rows of its own."""
    theirs = made(bert, 0)
    tensors = dict(theirs.state_dict())
    name = "encoder.layer.0.attention.self.{}.weight"
    width = theirs.config.hidden_size
    tensors[name.format("query")] = torch.ones(width + 1, width)
    tensors[name.format("key")] = torch.ones(width - 1, width)
    with pytest.raises(ValueError) as error:
        from_library(theirs.config, tensors)
    assert str(error.value).count("misshapen") == 2


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        (bert, lambda t: {"encoder.layer.9.new": t[:2]}, r"left over: encoder\.layer\.9\.new \(2, \d+\)"),
        (bert, lambda t: {"bert.embeddings.LayerNorm.bias": t}, "two tensors for embeddings.LayerNorm.bias"),
        (
            bert,
            lambda t: {"embeddings.word_embeddings.weight": t.char()},
            r"not floating point: .*torch\.int8",
        ),
        (gpt2, lambda t: {"lm_head.weight": t + 1}, "not: wte.weight and lm_head.weight"),
    ],
    ids=["surplus", "twice", "quantized", "tied that differ"],
)
def test_tensors_that_do_not_fit_are_named(kind, change, message):
    theirs = made(kind, 0)
    more = change(theirs.get_input_embeddings().weight.detach())
    with pytest.raises(ValueError, match=message):
        from_library(theirs.config, theirs.state_dict() | more)


@pytest.mark.parametrize(
    ("kind", "setting", "value"),
    [
        (bert, "is_decoder", True),
        (bert, "add_cross_attention", True),
        (bert, "position_embedding_type", "relative_key"),
        (bert, "hidden_act", "quick_gelu"),
        (gpt2, "add_cross_attention", True),
        (gpt2, "scale_attn_weights", False),
        (gpt2, "scale_attn_by_inverse_layer_idx", True),
        (gpt2, "activation_function", "tanh"),
        (llama, "mlp_bias", True),
        (llama, "hidden_act", "relu6"),
        (qwen3, "attention_bias", True),
        (qwen3, "hidden_act", "relu6"),
        (gemma3, "query_pre_attn_scalar", 5),
        (gemma3, "attn_logit_softcapping", 50.0),
        (gemma3, "final_logit_softcapping", 30.0),
        (gemma3, "use_bidirectional_attention", True),
        (bart, "is_encoder_decoder", False),
        (bart, "activation_function", "mish"),
        (marian, "activation_function", "mish"),
    ],
)
def test_settings_that_ours_lacks_are_named(kind, setting, value):
    theirs = made(kind, 0)
    setattr(theirs.config, setting, value)
    with pytest.raises(ValueError, match=f"{setting}={value!r}"):
        converted(theirs)


LINEAR = {"rope_type": "linear", "factor": 2.0, "rope_theta": 10_000.0}
TWO_KINDS = {"layer_types": ["sliding_attention", "full_attention"], "num_hidden_layers": 2}


@pytest.mark.parametrize(
    ("kind", "settings", "change"),
    [
        (llama, {}, LINEAR),
        (llama, {}, {"rope_type": "default", "rope_theta": 10_000.0, "partial_rotary_factor": 0.5}),
        (gemma3, TWO_KINDS, {"full_attention": LINEAR}),
        (gemma3, TWO_KINDS, {"sliding_attention": LINEAR}),
    ],
)
def test_other_rotary_positions_are_refused(kind, settings, change):
    theirs = made(kind, 0, **settings)
    theirs.config.rope_parameters |= change
    with pytest.raises(ValueError, match=r"with rope_parameters=.*('linear'|0\.5)"):
        converted(theirs)


def test_other_kinds_of_layers_are_refused():
    theirs = made(qwen3, 0, num_hidden_layers=2)
    theirs.config.layer_types = ["full_attention", "chunked_attention"]
    with pytest.raises(ValueError, match="layer_types chunked_attention: not supported"):
        converted(theirs)


def test_other_kinds_of_model_are_refused():
    config = BertConfig()
    config.model_type = "mbart"
    with pytest.raises(
        ValueError,
        match="model_type='mbart' is not one of bert, distilbert, gpt2, llama, qwen3, gemma3_text, bart",
    ):
        from_library(config, {})


def test_the_tables_name_the_same_kinds_of_model():
    assert NAMES.keys() == BUILDERS.keys() == LEFT_OUT.keys()


# Folders


@pytest.mark.parametrize("shards", [False, True])
@pytest.mark.parametrize("kind", EVERY_KIND)
def test_folders_are_read_back(kind, shards, tmp_path):
    theirs = made(kind, 0)
    theirs.save_pretrained(tmp_path, max_shard_size="4KB" if shards else "1GB")
    assert (
        len(list(tmp_path.glob("*.safetensors"))) > 1 if shards else (tmp_path / "model.safetensors").exists()
    )
    expected = converted(theirs).state_dict()
    for name, tensor in load(tmp_path).state_dict().items():
        torch.testing.assert_close(tensor, expected[name], atol=1e-6, rtol=0)  # sines are computed


@pytest.fixture
def folder(tmp_path):
    made(bert, 0).save_pretrained(tmp_path)
    return tmp_path


@pytest.fixture
def shards(tmp_path):
    made(bert, 0).save_pretrained(tmp_path, max_shard_size="4KB")
    return tmp_path


def test_no_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"is not a folder.*snapshot_download"):
        load(tmp_path / "absent")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(FileNotFoundError, match=f"has no {name}"):
        load(str(folder))


def test_a_missing_shard_is_named(shards):
    name = sorted(shards.glob("*.safetensors"))[1].name
    (shards / name).unlink()
    with pytest.raises(FileNotFoundError, match=f"has no {name}"):
        load(shards)


def test_one_file_counts_more_than_an_index(folder):
    """The library reads in this order too."""
    (folder / "model.safetensors.index.json").write_text('{"weight_map": {"x": "absent.safetensors"}}')
    assert same(load(folder), converted(made(bert, 0)))


@pytest.mark.parametrize("keep", [0, -1])
def test_damaged_weights_are_named(folder, keep):
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(ValueError, match=r"model\.safetensors is damaged"):
        load(folder)


@pytest.mark.parametrize("content", ["", "{}", '{"weight_map": {}}', '{"weight_map": []}'])
def test_a_damaged_index_is_named(shards, content):
    (shards / "model.safetensors.index.json").write_text(content)
    with pytest.raises(ValueError, match=r"index\.json is damaged"):
        load(shards)


@pytest.mark.parametrize("settings", [{"model_type": "t5"}, {}])
def test_a_folder_of_another_kind(folder, settings):
    (folder / "config.json").write_text(json.dumps(settings))
    with pytest.raises(ValueError, match=r"config\.json has model_type=.*not one of bert"):
        load(folder)
