"""A decoder on an encoder: what is frozen, what is saved, and that loading gives the same model again."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from chapters_src.pretrained import load_on_encoder, on_encoder, save_on_encoder
from chapters_src.transformer import Config, Encoder

SIZES = {"d_model": 16, "num_layers": 3, "num_heads": 2, "feed_forward_width": 24, "vocab_size": 30}
DECODER = Config(**SIZES | {"num_layers": 2}, max_length=12, cross_attention=True, positions="rotary")
SOURCE, TARGET = torch.randint(30, (2, 7)), torch.randint(30, (2, 5))


@pytest.fixture
def encoder():
    torch.manual_seed(0)
    return Encoder(Config(**SIZES, max_length=20, positions="learned", norm_first=False)).eval()


def answer(model):
    with torch.no_grad():
        return model.eval()(SOURCE, None, TARGET, None)


def trained(model):
    """Train for some steps, so that nothing keeps its beginning."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(parameters, 0.01)
    for _ in range(5):
        loss = torch.nn.functional.cross_entropy(
            model(SOURCE, None, TARGET, None).flatten(0, 1), TARGET.flatten()
        )
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return model


@pytest.mark.parametrize("rank", [0, 2])
@pytest.mark.parametrize("num_layers", [0, 1, 3])
def test_it_begins_as_the_encoder_and_leaves_it_alone(encoder, rank, num_layers):
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    model = on_encoder(encoder, DECODER, rank=rank, num_layers=num_layers)
    with torch.no_grad():
        hidden = encoder.embedding(SOURCE, torch.arange(7)[None])
        for layer in encoder.stack.layers[: num_layers or 3]:
            hidden = layer(hidden, None)
        torch.testing.assert_close(model.encode(SOURCE, None).hidden_states, hidden)
    changed = trained(model).encode(SOURCE, None).hidden_states
    assert (rank == 0) == torch.equal(changed, hidden), "only updates change what the encoder says"
    assert all(torch.equal(value, before[name]) for name, value in encoder.state_dict().items())
    assert torch.equal(model.head.projection.weight, before["embedding.tokens.weight"]), "frozen and shared"
    names = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    assert all(
        name.startswith(("decoder.stack.", "head.projection.bias")) or "weight.0" in name for name in names
    )


@pytest.mark.parametrize("rank", [0, 2])
def test_what_is_loaded_is_what_was_saved(encoder, rank, tmp_path):
    model = trained(on_encoder(encoder, DECODER, rank=rank, num_layers=2))
    save_on_encoder(model, encoder, tmp_path / "model")
    again = load_on_encoder(tmp_path / "model", encoder)
    difference = (answer(again) - answer(model)).abs().max()
    assert 0 < difference < 0.01, "16 bits, and no more than that"
    assert (answer(again) - answer(on_encoder(encoder, DECODER, num_layers=2))).abs().max() > 0.1
    tensors = load_file(tmp_path / "model" / "model.safetensors")
    assert all(tensor.dtype == torch.float16 for tensor in tensors.values())
    assert sum(map(torch.Tensor.numel, tensors.values())) == sum(
        parameter.numel() for parameter in model.parameters() if parameter.requires_grad
    )
    plain = on_encoder(encoder, DECODER, num_layers=2)
    assert again.state_dict().keys() == plain.state_dict().keys(), "updates are added, not kept"


def test_what_does_not_fit_is_refused(encoder, tmp_path):
    with pytest.raises(ValueError, match="num_layers=4 from 0 to 3"):
        on_encoder(encoder, DECODER, num_layers=4)
    with pytest.raises(ValueError, match="rank=-1"):
        on_encoder(encoder, DECODER, rank=-1)
    with pytest.raises(ValueError, match="same d_model"):
        on_encoder(encoder, Config(**SIZES | {"d_model": 8}, max_length=12, cross_attention=True))
    folder = tmp_path / "model"
    save_on_encoder(on_encoder(encoder, DECODER, rank=1), encoder, folder)
    with pytest.raises(FileExistsError, match="exists already"):
        save_on_encoder(on_encoder(encoder, DECODER), encoder, folder)
    other = Encoder(encoder.config)
    with pytest.raises(ValueError, match="trained with another encoder"):
        load_on_encoder(folder, other)
    weights = folder / "model.safetensors"
    tensors = load_file(weights)
    tensors.pop("head.projection.bias")
    save_file(tensors, weights)
    with pytest.raises(ValueError, match=r"damaged: \['head.projection.bias'\]"):
        load_on_encoder(folder, encoder)
    weights.write_bytes(b"nothing")
    with pytest.raises(ValueError, match="damaged"):
        load_on_encoder(folder, encoder)
    weights.unlink()
    with pytest.raises(FileNotFoundError, match=r"has no model\.safetensors"):
        load_on_encoder(folder, encoder)
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(settings | {"architecture": "Encoder"}))
    with pytest.raises(ValueError, match="architecture='Encoder'"):
        load_on_encoder(folder, encoder)
