"""Low-rank updates of our language models, against PEFT on the library's."""

import copy
import json

import peft
import pytest
import torch
from library_models import VOCAB_SIZE, library_model
from safetensors.torch import load_file, save_file

from chapters_src.pretrained import (
    LowRankLinear,
    add_low_rank,
    from_library,
    load_low_rank,
    merge_low_rank,
    save_low_rank,
    without_low_rank,
)

pytestmark = pytest.mark.usefixtures("quiet_library")
TYPES = {"gemma3": "gemma3_text", "qwen3": "qwen3", "llama": "llama"}
IDS = torch.randint(4, VOCAB_SIZE, (3, 9), generator=torch.Generator().manual_seed(1))


def pair(kind):
    with torch.no_grad():
        theirs = library_model(kind, seed=0)
    return theirs, from_library(theirs.config, theirs.state_dict()).double().eval()


def trained(model):
    """Make the updates something, as training would."""
    generator = torch.Generator().manual_seed(5)
    for parameter in (p for p in model.parameters() if p.requires_grad):
        parameter.data = (0.3 * torch.randn(parameter.shape, generator=generator)).half().to(parameter)
    return model


@pytest.mark.parametrize("kind", TYPES)
@torch.no_grad()
def test_what_we_save_peft_reads_with_the_same_logits(kind, tmp_path):
    theirs, ours = pair(kind)
    before = ours(IDS, None)
    add_low_rank(ours, rank=2, alpha=5)
    assert torch.equal(ours(IDS, None), before), "B is zero"
    expected = trained(ours)(IDS, None)
    assert (expected - before).abs().max() > 0.1
    save_low_rank(ours, tmp_path / "new", model_type=TYPES[kind], base="a/base")
    with_peft = peft.PeftModel.from_pretrained(theirs, tmp_path / "new")
    torch.testing.assert_close(with_peft(IDS).logits, expected, atol=1e-5, rtol=1e-5)
    again = load_low_rank(pair(kind)[1], tmp_path / "new", model_type=TYPES[kind])
    torch.testing.assert_close(again(IDS, None), expected, atol=1e-5, rtol=1e-5)
    assert sum(p.numel() for p in again.parameters() if p.requires_grad) == sum(
        p.numel() for p in ours.parameters() if p.requires_grad
    )


@torch.no_grad()
def test_what_peft_has_trained_we_read_with_the_same_logits(tmp_path):
    """It has an A of its own for each of query, key and value."""
    theirs, ours = pair("gemma3")
    targets = ["q_proj", "k_proj", "v_proj", "o_proj"]
    config = peft.LoraConfig(r=2, lora_alpha=3, target_modules=targets, task_type="CAUSAL_LM")
    with_peft = trained(peft.get_peft_model(theirs, config)).eval()
    with_peft.save_pretrained(tmp_path)
    load_low_rank(ours, tmp_path, model_type="gemma3_text")
    expected = with_peft(IDS).logits
    torch.testing.assert_close(ours(IDS, None), expected, atol=1e-5, rtol=1e-5)
    assert ours.decoder.stack.layers[0].attention.query_key_value.A.shape[0] == 6
    assert ours.decoder.stack.layers[0].attention.output.A.shape[0] == 2


def test_only_the_updates_get_a_gradient():
    _, model = pair("gemma3")
    before = copy.deepcopy(model.state_dict())
    add_low_rank(model, 2, 4)
    model(IDS, None).logsumexp(-1).sum().backward()
    moved = {name for name, p in model.named_parameters() if p.grad is not None}
    assert moved and all(name.rpartition(".")[2] in "AB" for name in moved)
    weights = {name.replace(".linear.", "."): value for name, value in model.state_dict().items()}
    assert all(torch.equal(weights[name], value) for name, value in before.items())


@torch.no_grad()
def test_updates_can_be_merged_and_switched_off():
    _, model = pair("gemma3")
    before = model(IDS, None)
    expected = trained(add_low_rank(model, 2, 4))(IDS, None)
    with without_low_rank(model):
        assert torch.equal(model(IDS, None), before)
    assert torch.equal(model(IDS, None), expected), "they are on again"
    with pytest.raises(KeyError), without_low_rank(model):
        raise KeyError
    assert torch.equal(model(IDS, None), expected), "also after an error"
    merge_low_rank(model)
    torch.testing.assert_close(model(IDS, None), expected)
    assert not any(isinstance(module, LowRankLinear) for module in model.modules())


def test_a_generator_makes_it_repeatable():
    drawn = [
        add_low_rank(pair("llama")[1], 2, 4, torch.Generator().manual_seed(seed)).state_dict()
        for seed in (1, 1, 2)
    ]
    name = "decoder.stack.layers.0.attention.output.A"
    assert torch.equal(drawn[0][name], drawn[1][name]) and not torch.equal(drawn[0][name], drawn[2][name])


def test_errors_say_what_is_wrong(tmp_path):
    _, model = pair("gemma3")
    with pytest.raises(ValueError, match="rank=0"):
        add_low_rank(model, 0, 4)
    with pytest.raises(ValueError, match="add them with add_low_rank"):
        save_low_rank(model, tmp_path / "a", model_type="gemma3_text", base="b")
    add_low_rank(model, 2, 4)
    with pytest.raises(ValueError, match="updates already"):
        add_low_rank(model, 2, 4)
    with pytest.raises(ValueError, match="model_type='gemma'"):
        save_low_rank(model, tmp_path / "a", model_type="gemma", base="b")
    with pytest.raises(ValueError, match="no matrices of its own"):
        save_low_rank(model, tmp_path / "a", model_type="gpt2", base="b")
    assert not (tmp_path / "a").exists()
    save_low_rank(model, tmp_path / "a", model_type="gemma3_text", base="b")
    with pytest.raises(FileExistsError):
        save_low_rank(model, tmp_path / "a", model_type="gemma3_text", base="b")
    with pytest.raises(FileNotFoundError, match="is not a folder"):
        load_low_rank(model, tmp_path / "none", model_type="gemma3_text")


def test_damaged_adapters_are_refused(tmp_path):
    _, model = pair("gemma3")
    add_low_rank(model, 2, 4)
    folder = tmp_path / "a"
    save_low_rank(model, folder, model_type="gemma3_text", base="b")
    config, weights = folder / "adapter_config.json", folder / "adapter_model.safetensors"
    with pytest.raises(ValueError, match=r"updates of other matrices, such as .*layers\.2"):
        load_low_rank(pair("llama")[1], folder, model_type="llama")
    settings = json.loads(config.read_text())
    config.write_text(json.dumps(settings | {"peft_type": "IA3"}))
    with pytest.raises(ValueError, match="not of plain low-rank updates: 'IA3'"):
        load_low_rank(model, folder, model_type="gemma3_text")
    config.write_text(json.dumps(settings))
    tensors = load_file(weights)
    extra = tensors | {"base_model.model.model.layers.0.mlp.up_proj.lora_A.weight": torch.zeros(2, 12)}
    save_file(extra, weights)
    with pytest.raises(ValueError, match=r"updates of other matrices, such as .*up_proj"):
        load_low_rank(model, folder, model_type="gemma3_text")
    save_file({name: tensor for name, tensor in list(tensors.items())[1:]}, weights)
    with pytest.raises(ValueError, match="is it of another model"):
        load_low_rank(model, folder, model_type="gemma3_text")
    weights.write_bytes(b"no safetensors")
    with pytest.raises(ValueError, match="is damaged"):
        load_low_rank(model, folder, model_type="gemma3_text")
    weights.unlink()
    with pytest.raises(FileNotFoundError, match=r"has no adapter_model\.safetensors"):
        load_low_rank(model, folder, model_type="gemma3_text")
