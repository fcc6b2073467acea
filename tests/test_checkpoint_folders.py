"""Folders of ours: saved and loaded bit for bit, whole or not at all; and exported for the library."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    BertModel,
    GPT2LMHeadModel,
    LlamaForCausalLM,
)

from chapters_src.pretrained import export, load, save, to_library
from chapters_src.transformer import Config, Decoder, Encoder, EncoderDecoder, LanguageModel

VOCAB_SIZE, CONTEXT = 40, 24
SIZES = {
    "vocab_size": VOCAB_SIZE, "max_length": CONTEXT, "d_model": 24, "num_layers": 2, "num_heads": 4,
    "feed_forward_width": 20,
}  # fmt: skip
BERT = Config(
    **SIZES, positions="learned", num_token_types=2, embedding_norm=True, norm_first=False, activation="gelu"
)
GPT2 = Config(**SIZES, positions="learned", activation="gelu_tanh")
LLAMA = Config(
    **SIZES, positions="rotary", norm="rms", activation="silu", gated=True, bias=False,
    num_key_value_heads=2, tie_weights=False,
)  # fmt: skip
FIRST = Config(**SIZES, norm_first=False)
CROSSING = replace(FIRST, cross_attention=True)


pytestmark = pytest.mark.usefixtures("quiet_library")


def randomized(model):
    """Make every number count: no zeros, no ones."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.4 * torch.randn(parameter.shape, generator=generator))
    return model.eval()


def translator(share_embedding=False, head_bias=False, **changes):
    decoder = replace(CROSSING, **changes)
    return EncoderDecoder(FIRST, decoder, share_embedding=share_embedding, head_bias=head_bias)


MODELS = {
    "encoder": lambda: Encoder(BERT),
    "decoder": lambda: Decoder(GPT2),
    "decoder that cross-attends": lambda: Decoder(CROSSING),
    "tied language model": lambda: LanguageModel(GPT2),
    "untied language model": lambda: LanguageModel(LLAMA),
    "translator": translator,
    "translator, shared, bias": lambda: translator(True, True),
    "translator, untied, shared": lambda: translator(True, tie_weights=False),
}
each_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)


def settings(model):
    if isinstance(model, EncoderDecoder):
        bias = model.head.projection.bias is not None
        return model.encoder.config, model.decoder.config, model.share_embedding, bias
    return model.config


def same(one, other):
    one, other = one.state_dict(), other.state_dict()
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


# Saved and loaded


@each_model
def test_what_is_loaded_is_what_was_saved(make, tmp_path):
    model = randomized(make()).train()
    save(model, tmp_path / "new" / "folder")
    loaded = load(tmp_path / "new" / "folder")
    assert type(loaded) is type(model) and settings(loaded) == settings(model)
    assert same(loaded, model) and not loaded.training and model.training
    stored = sum(tensor.numel() for tensor in load_file(tmp_path / "new/folder/model.safetensors").values())
    for each in (loaded, model):  # tied weights are stored once, and tied again
        assert sum(parameter.numel() for parameter in each.parameters()) == stored
    assert all(parameter.requires_grad for parameter in loaded.parameters())
    assert {path.name for path in (tmp_path / "new").iterdir()} == {"folder"}
    assert {path.name for path in (tmp_path / "new/folder").iterdir()} == {"config.json", "model.safetensors"}
    assert (tmp_path / "new/folder").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@each_model
def test_half_precision_is_kept_in_the_file_and_loaded_as_float32(make, dtype, tmp_path):
    model = randomized(make()).to(dtype)
    save(model, str(tmp_path / "folder"))
    tensors = load_file(tmp_path / "folder/model.safetensors")
    assert {tensor.dtype for tensor in tensors.values()} == {dtype}
    loaded = load(str(tmp_path / "folder"))
    assert {parameter.dtype for parameter in loaded.parameters()} == {torch.float32}
    assert same(loaded, model.float())


@pytest.mark.parametrize("how", [save, export])
def test_what_is_there_already_is_left_alone(how, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("mine")
    for name in ("folder", "file"):
        with pytest.raises(FileExistsError, match=f"{name} exists already: choose another folder"):
            how(LanguageModel(GPT2), tmp_path / name)
    assert list((tmp_path / "folder").iterdir()) == [] and (tmp_path / "file").read_text() == "mine"
    assert len(list(tmp_path.iterdir())) == 2


@pytest.fixture
def saved(tmp_path):
    save(randomized(LanguageModel(GPT2)), tmp_path / "saved")
    return tmp_path / "saved"


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_missing_file_is_named(saved, name):
    (saved / name).unlink()
    with pytest.raises(FileNotFoundError, match=f"saved has no {name}: .*complete"):
        load(saved)


@pytest.mark.parametrize("keep", [0, -1])
def test_damaged_weights_are_named(saved, keep):
    file = saved / "model.safetensors"
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(ValueError, match=r"model\.safetensors is damaged"):
        load(saved)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda tensors: tensors.pop("decoder.stack.norm.bias"), "decoder.stack.norm.bias"),
        (lambda tensors: tensors.update({"decoder.more": torch.ones(2)}), "decoder.more"),
        (lambda tensors: tensors.update({"decoder.stack.norm.bias": torch.ones(9)}), "size mismatch"),
    ],
)
def test_weights_of_another_model_are_named(saved, change, name):
    tensors = load_file(saved / "model.safetensors")
    change(tensors)
    save_file(tensors, saved / "model.safetensors")
    with pytest.raises(
        ValueError, match=rf"(?s)model\.safetensors is damaged or belongs to another model.*{name}"
    ):
        load(saved)


@pytest.mark.parametrize("content", ["", '{"architecture": "Enc', "[]", "\0\0"])
def test_a_damaged_configuration_is_named(saved, content):
    (saved / "config.json").write_text(content)
    with pytest.raises(ValueError, match=r"config\.json is damaged"):
        load(saved)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architecture": "Perceptron"}, "architecture='Perceptron' is not one of Encoder, Decoder, Lang"),
        ({"architecture": ["Encoder"]}, "does not describe one of our models"),
        ({"architecture": "EncoderDecoder"}, "does not describe one of our models: 'encoder'"),
        ({"config": {"d_model": 8}}, "missing .* required"),
        ({"config": None}, "does not describe one of our models"),
        ({"more": {"color": 1}}, "unexpected keyword argument 'color'"),
        ({"more": {"num_heads": 5}}, "num_heads=5 has to be a divisor"),
    ],
)
def test_settings_that_describe_no_model_are_named(saved, changes, message):
    content = json.loads((saved / "config.json").read_text())
    content["config"] |= changes.pop("more", {})
    (saved / "config.json").write_text(json.dumps(content | changes))
    with pytest.raises(ValueError, match=r"config\.json does not describe one of our models") as error:
        load(saved)
    error.match(message)


def test_other_models_are_not_saved(tmp_path):
    with pytest.raises(TypeError, match="Linear is not one of Encoder, Decoder, LanguageModel and Enc"):
        save(nn.Linear(2, 2), tmp_path / "folder")
    for model, name in (
        (Decoder(GPT2), "Decoder"),
        (translator(), "EncoderDecoder"),
        (nn.Linear(2, 2), "Li"),
    ):
        for how in (to_library, lambda model: export(model, tmp_path / "folder")):
            with pytest.raises(
                TypeError, match=f"{name}.*only an Encoder or a LanguageModel can be exported"
            ):
                how(model)
    assert list(tmp_path.iterdir()) == []


# Exported


def padded_batch(side):
    ids = torch.randint(VOCAB_SIZE, (3, 9), generator=torch.Generator().manual_seed(0))
    mask = torch.zeros_like(ids)
    for row, length in enumerate((9, 1, 5)):
        mask[row, slice(length) if side == "right" else slice(9 - length, 9)] = 1
    return ids, mask, (mask.cumsum(dim=1) - 1).clamp(min=0)


def largest_difference(ours, theirs, mask):
    return (ours - theirs)[mask.bool()].abs().max().item()


ENCODERS = [BERT, replace(BERT, num_token_types=0), replace(BERT, activation="gelu_tanh", norm_epsilon=0.1)]
WRITERS = [
    GPT2, replace(GPT2, tie_weights=False, activation="relu", norm_epsilon=0.1), LLAMA,
    replace(LLAMA, tie_weights=True, bias=True, num_key_value_heads=None, rotary_base=50.0),
]  # fmt: skip


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("config", ENCODERS)
@torch.no_grad()
def test_an_exported_encoder_gives_the_library_our_vectors(config, side, tmp_path):
    ours = randomized(Encoder(config))
    export(ours, tmp_path / "folder")
    theirs = AutoModel.from_pretrained(tmp_path / "folder").eval()
    assert isinstance(theirs, BertModel)
    ids, mask, places = padded_batch(side)
    types = (ids % 2) * mask if config.num_token_types else None
    expected = ours(ids, mask, types)
    given = theirs(ids, attention_mask=mask, token_type_ids=types, position_ids=places).last_hidden_state
    assert largest_difference(given, expected, mask) < 1e-4


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("config", WRITERS)
@torch.no_grad()
def test_an_exported_language_model_gives_the_library_our_logits(config, side, tmp_path):
    ours = randomized(LanguageModel(config))
    export(ours, tmp_path / "folder")
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "folder").eval()
    assert isinstance(theirs, LlamaForCausalLM if config.positions == "rotary" else GPT2LMHeadModel)
    ids, mask, places = padded_batch(side)
    given = theirs(ids, attention_mask=mask, position_ids=places).logits
    assert largest_difference(given, ours(ids, mask), mask) < 1e-4


@pytest.mark.parametrize("config", ENCODERS + WRITERS)
def test_an_exported_model_comes_back_tensor_for_tensor(config, tmp_path):
    ours = randomized((Encoder if config in ENCODERS else LanguageModel)(config))
    export(ours, tmp_path / "folder")
    theirs = to_library(ours)
    assert not theirs.training
    for parameter in theirs.parameters():  # They are copies.
        parameter.detach().zero_()
    back = load(tmp_path / "folder")
    if config.num_token_types or config not in ENCODERS:
        assert same(back, ours)
    else:  # BERT always has types
        types = back.state_dict().pop("embedding.types.weight")
        assert (types == 0).all() and types.shape == (1, 24)
    assert len(list(back.parameters())) >= len(list(ours.parameters()))


LACKING = {
    ("BERT", BERT): [
        {"positions": "sinusoidal"}, {"norm": "rms"}, {"norm_first": True}, {"embedding_norm": False},
        {"gated": True}, {"bias": False}, {"scale_embedding": True}, {"num_key_value_heads": 2},
    ],
    ("GPT-2", GPT2): [
        {"positions": "none"}, {"positions": "sinusoidal_concatenated"}, {"norm": "rms"},
        {"norm_first": False}, {"embedding_norm": True}, {"gated": True}, {"bias": False},
        {"scale_embedding": True}, {"num_key_value_heads": 2}, {"num_token_types": 2},
    ],
    ("Llama", LLAMA): [
        {"norm": "layer"}, {"norm_first": False}, {"embedding_norm": True}, {"gated": False},
        {"scale_embedding": True}, {"num_token_types": 2}, {"dropout": 0.1},
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("library", "changes"), [(key, each) for key, changes in LACKING.items() for each in changes], ids=str
)
def test_settings_that_the_library_lacks_are_refused_by_name(library, changes, tmp_path):
    name, config = library
    ((setting, value),) = changes.items()
    model = (Encoder if config is BERT else LanguageModel)(replace(config, **changes))
    with pytest.raises(ValueError, match=f"{setting}={value!r}.*{name}( needs|.*{setting}=)"):
        export(model, tmp_path / "folder")
    assert list(tmp_path.iterdir()) == []


def test_ids_of_numpy_are_exported(tmp_path):
    model = randomized(LanguageModel(GPT2))
    export(model, tmp_path / "folder", eos_token_id=np.int64(3), pad_token_id=np.uint8(0))
    config = AutoModelForCausalLM.from_pretrained(tmp_path / "folder").config
    assert (config.bos_token_id, config.eos_token_id, config.pad_token_id) == (None, 3, 0)
    with pytest.raises(TypeError, match="integer"):
        export(model, tmp_path / "other", eos_token_id=3.0)


# An index must not lead out of its folder


@pytest.mark.parametrize(
    "file",
    ["../x.safetensors", "{}/x.safetensors", "a/b.safetensors", "a\\b.safetensors", "x.bin", "..", "", 7],
)
def test_an_index_names_bare_safetensors_files_only(file, tmp_path):
    folder = tmp_path / "folder"
    to_library(randomized(Encoder(BERT))).save_pretrained(folder)
    (folder / "a").mkdir()
    file = file.format(tmp_path) if isinstance(file, str) else file
    whole = folder / "model.safetensors"
    tensors = load_file(whole)
    for place in (tmp_path / "x.safetensors", folder / "a/b.safetensors", folder / "x.bin"):
        save_file(tensors, place)  # the weights are there: only the name is refused
    whole.rename(folder / "part.safetensors")
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": dict.fromkeys(tensors, "part.safetensors")}))
    assert same(load(folder), randomized(Encoder(BERT)))
    index.write_text(json.dumps({"weight_map": dict.fromkeys(tensors, file)}))
    with pytest.raises(ValueError, match=r"index\.json names .*bare names.*do not trust") as error:
        load(folder)
    assert repr(file) in str(error.value)


@pytest.mark.parametrize("config", [GPT2, LLAMA], ids=["gpt2", "llama"])
def test_an_exported_model_stops_at_the_id_that_ends_a_text(config, tmp_path):
    model = randomized(LanguageModel(config))
    ids = torch.tensor([[1, 2, 3]])
    with torch.no_grad():
        end = model(ids, None)[0, -1].argmax().item()  # What it writes first.
    export(model, tmp_path / "talks", pad_token_id=0)
    export(model, tmp_path / "stops", eos_token_id=end, pad_token_id=0)
    lengths = [
        AutoModelForCausalLM.from_pretrained(tmp_path / name)
        .generate(ids, do_sample=False, max_new_tokens=6)
        .size(1)
        for name in ("talks", "stops")
    ]
    assert lengths == [9, 4]


def test_an_exported_model_keeps_its_type(tmp_path):
    export(randomized(LanguageModel(LLAMA)).bfloat16(), tmp_path / "half")
    tensors = load_file(tmp_path / "half" / "model.safetensors")
    assert {tensor.dtype for tensor in tensors.values()} == {torch.bfloat16}
