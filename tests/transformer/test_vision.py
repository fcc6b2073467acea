"""Pictures as sequences: patches pixel by pixel, and the library's model with the same weights."""

import pytest
import torch
from safetensors.torch import save_file
from small_models import build, random_states
from torch import nn
from transformers import ViTConfig, ViTForImageClassification

from chapters_src.transformer import Config, PatchEmbedding, VisionTransformer, patches

SHAPE = {"image_size": 6, "patch_size": 2, "num_channels": 3}  # 9 patches.


def config(**changes):
    sizes = {"d_model": 16, "num_layers": 2, "num_heads": 4, "feed_forward_width": 24}
    return Config(**(sizes | {"positions": "learned", "activation": "gelu"} | changes))


def model(**changes):
    return build(VisionTransformer, config(**changes), num_classes=5, **SHAPE)


@pytest.fixture
def images():
    return random_states(4, 3, 6, 6)


@pytest.mark.parametrize(("height", "width", "size"), [(6, 6, 2), (6, 6, 3), (4, 8, 4), (3, 5, 1)])
def test_patches_are_squares_row_by_row(height, width, size):
    images = random_states(2, 3, height, width)
    found = patches(images, size)
    assert found.shape == (2, height // size * (width // size), 3 * size * size)
    for n in range(found.size(1)):
        row, column = divmod(n, width // size)
        square = images[:, :, row * size : (row + 1) * size, column * size : (column + 1) * size]
        assert torch.equal(found[:, n], square.flatten(1))


@pytest.mark.parametrize("size", [0, 4, 7])
def test_patches_have_to_fill_the_picture(size):
    with pytest.raises(ValueError, match=rf"patch_size={size}"):
        patches(torch.zeros(2, 3, 6, 6), size)
    with pytest.raises(ValueError, match=r"\(6, 6\)"):
        patches(torch.zeros(6, 6), 2)


@pytest.mark.parametrize("positions", ["learned", "none"])
def test_an_embedding_is_a_linear_layer_on_patches_and_a_row_for_each_position(positions, images):
    embedding = build(PatchEmbedding, config(positions=positions), **SHAPE)
    weight, bias = embedding.projection.weight.flatten(1), embedding.projection.bias
    expected = patches(images, 2) @ weight.T + bias
    rows = embedding.positions if positions == "learned" else torch.zeros(10, 16, dtype=torch.float64)
    found = embedding(images)
    torch.testing.assert_close(found[:, 1:], expected + rows[1:])
    for first in found[:, 0]:
        torch.testing.assert_close(first, embedding.class_token + rows[0])


# Our names -> those of published checkpoints, which the library knows whatever it calls its own modules.
NAMES = {
    "embedding.projection.": "vit.embeddings.patch_embeddings.projection.",
    "embedding.class_token": "vit.embeddings.cls_token",
    "embedding.positions": "vit.embeddings.position_embeddings",
    "stack.layers.": "vit.encoder.layer.",
    "stack.norm.": "vit.layernorm.",
    "attention.output.": "attention.output.dense.",
    "attention_norm.": "layernorm_before.",
    "feed_forward_norm.": "layernorm_after.",
    "feed_forward.up.": "intermediate.dense.",
    "feed_forward.down.": "output.dense.",
    "head.": "classifier.",
}


def published(ours):
    """The weights as a published checkpoint names and shapes them."""
    tensors = {}
    for name, tensor in ours.state_dict().items():
        for start, theirs in NAMES.items():
            name = name.replace(start, theirs)
        if "query_key_value" in name:
            for part, rows in zip(("query", "key", "value"), tensor.chunk(3), strict=True):
                tensors[name.replace("query_key_value", f"attention.{part}")] = rows.contiguous()
        else:
            dimensions = 3 if name.endswith(("cls_token", "position_embeddings")) else tensor.ndim
            tensors[name] = tensor.view(*(dimensions - tensor.ndim) * (1,), *tensor.shape).contiguous()
    return tensors


def test_it_is_the_librarys_vision_transformer(images, tmp_path):
    ours = model()
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 24}
    ViTConfig(**sizes, **SHAPE, num_labels=5, layer_norm_eps=1e-5).save_pretrained(tmp_path)
    save_file(published(ours), tmp_path / "model.safetensors", metadata={"format": "pt"})
    theirs, report = ViTForImageClassification.from_pretrained(
        tmp_path, dtype=torch.float64, output_loading_info=True
    )
    assert not any(report.values()), report
    expected = theirs.eval()(images).logits
    torch.testing.assert_close(ours(images, None), expected, atol=1e-10, rtol=0)
    states = theirs.vit(images).last_hidden_state
    torch.testing.assert_close(ours.encode(images, None), states, atol=1e-10, rtol=0)


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64])
def test_hidden_patches_are_not_looked_at(images, dtype):
    seeing = model()
    mask = torch.ones(4, 9, dtype=dtype)
    torch.testing.assert_close(seeing(images, mask), seeing(images, None))
    mask[1, 4] = 0  # The patch in the middle of the second picture.
    changed = images.clone()
    changed[1, :, 2:4, 2:4] += 1
    assert torch.equal(seeing(changed, mask), seeing(images, mask))
    assert not torch.allclose(seeing(changed, None)[1], seeing(images, None)[1], atol=1e-3)
    mask[:] = 0  # Then only the class token is left.
    assert torch.equal(seeing(images, mask), seeing(torch.zeros_like(images), mask))


def test_only_positions_tell_where_a_patch_is(images):
    order = torch.tensor([3, 0, 8, 1, 2, 7, 6, 4, 5])
    rows = images.unfold(2, 2, 2).unfold(3, 2, 2)  # (B, C, 3, 3, 2, 2)
    shuffled = rows.flatten(2, 3)[:, :, order].unflatten(2, (3, 3))
    shuffled = shuffled.permute(0, 1, 2, 4, 3, 5).reshape(images.shape)
    assert torch.equal(patches(shuffled, 2), patches(images, 2)[:, order])
    blind, seeing = model(positions="none"), model()
    torch.testing.assert_close(blind(shuffled, None), blind(images, None))
    assert not torch.allclose(seeing(shuffled, None), seeing(images, None), atol=1e-3)
    expected = seeing(images, None)
    with torch.no_grad():  # Whoever shuffles the table in the same way gets the same model.
        seeing.embedding.positions[1:] = seeing.embedding.positions[1:][order]
    torch.testing.assert_close(seeing(shuffled, None), expected)


def test_every_parameter_has_a_gradient_and_dropout_drops(images):
    dropping = model(dropout=0.5).train()
    dropping(images, None).square().sum().backward()
    assert [name for name, p in dropping.named_parameters() if p.grad is None or not p.grad.any()] == []
    assert not torch.equal(dropping.embedding(images), dropping.embedding(images))
    assert torch.equal(dropping.eval().embedding(images), dropping.embedding(images))


def test_a_fresh_one_is_ready_to_learn():
    """Positions and class token start small and not alike."""
    fresh = VisionTransformer(config(), num_classes=5, **SHAPE)
    for table in (fresh.embedding.positions, fresh.embedding.class_token):
        assert 0.01 < table.std() < 0.04
    assert isinstance(fresh.stack.norm, nn.LayerNorm)


def test_what_does_not_fit_is_named(images):
    for changes, message in (
        ({"positions": "rotary"}, "positions='rotary'"),
        ({"cross_attention": True}, "cross_attention=False"),
    ):
        with pytest.raises(ValueError, match=message):
            VisionTransformer(config(**changes), num_classes=5, **SHAPE)
    with pytest.raises(ValueError, match="image_size=6, patch_size=4"):
        PatchEmbedding(config(), image_size=6, patch_size=4, num_channels=1)
    with pytest.raises(ValueError, match=r"images \(4, 6, 6\): expected \(batch, 3, 6, 6\)"):
        model()(images[:, 0], None)
    with pytest.raises(ValueError, match=r"patch_mask \(4, 10\) for 4 images of 9 patches"):
        model()(images, torch.ones(4, 10))
    with pytest.raises(ValueError, match="float"):
        model()(images, torch.ones(4, 9))
