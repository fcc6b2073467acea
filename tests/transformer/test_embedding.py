"""Embeddings: the paper's positions entry by entry, and the sum that goes into the first layer."""

import math

import pytest
import torch
from small_models import POSITIONS, VOCAB_SIZE, build, random_ids, small_config
from torch import nn

from chapters_src.transformer import Embedding, Encoder, sinusoidal_positions


@pytest.mark.parametrize(("max_length", "d_model"), [(1, 2), (7, 10), (600, 4)])
def test_sinusoidal_positions_are_the_formula_of_the_paper(max_length, d_model):
    table = sinusoidal_positions(max_length, d_model)
    concatenated = sinusoidal_positions(max_length, d_model, concatenated=True)
    assert table.shape == concatenated.shape == (max_length, d_model) and table.dtype == torch.float32
    assert torch.equal(concatenated, torch.cat([table[:, 0::2], table[:, 1::2]], dim=1))
    for position in range(max_length):
        for i in range(d_model // 2):
            angle = position / 10_000 ** (2 * i / d_model)
            assert table[position, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[position, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


def test_sinusoidal_positions_need_pairs():
    with pytest.raises(ValueError, match=r"d_model=5.* even"):
        sinusoidal_positions(3, 5)


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("num_token_types", [0, 2])
@pytest.mark.parametrize("scale_embedding", [False, True])
def test_an_embedding_is_the_sum_of_its_tables(positions, num_token_types, scale_embedding):
    options = {"num_token_types": num_token_types, "scale_embedding": scale_embedding}
    ours = build(Embedding, small_config(positions=positions, **options))
    ids, places = random_ids(2, 5), torch.tensor([[0, 1, 2, 3, 4], [3, 3, 7, 19, 0]])
    types = torch.tensor([[0, 0, 1, 1, 1], [0, 1, 0, 1, 0]]) if num_token_types else None
    expected = torch.zeros(2, 5, 16, dtype=torch.float64)
    for b in range(2):
        for t in range(5):
            expected[b, t] += ours.tokens.weight[ids[b, t]].detach() * (4 if scale_embedding else 1)
            if positions == "learned":
                expected[b, t] += ours.positions.weight[places[b, t]].detach()
            if positions == "sinusoidal":
                expected[b, t] += sinusoidal_positions(20, 16)[places[b, t]]
            if positions == "sinusoidal_concatenated":
                expected[b, t] += sinusoidal_positions(20, 16, concatenated=True)[places[b, t]]
            if num_token_types:
                expected[b, t] += ours.types.weight[types[b, t]].detach()
    torch.testing.assert_close(ours(ids, places, types), expected, atol=1e-12, rtol=0)
    one_for_all = ours(ids, places[:1], types)
    torch.testing.assert_close(one_for_all, ours(ids, places[:1].expand(2, 5), types))
    if num_token_types:
        assert torch.equal(ours(ids, places), ours(ids, places, torch.zeros_like(ids)))


@pytest.mark.parametrize("positions", ["sinusoidal", "sinusoidal_concatenated"])
def test_sinusoids_are_no_parameter_are_not_stored_and_move_along(positions):
    ours = Embedding(small_config(positions=positions))
    concatenated = positions == "sinusoidal_concatenated"
    assert torch.equal(ours.sinusoids, sinusoidal_positions(20, 16, concatenated=concatenated))
    assert list(ours.state_dict()) == ["tokens.weight"]
    assert ours.double().sinusoids.dtype == torch.float64
    assert ours.to("meta").sinusoids.device.type == "meta"


@pytest.mark.parametrize("missing", ["vocab_size", "max_length"])
@pytest.mark.parametrize("kind", [Embedding, Encoder])
def test_an_embedding_needs_a_vocabulary_and_a_context(kind, missing):
    with pytest.raises(ValueError, match=f"{missing}=None.*needs both.*TransformerStack"):
        kind(small_config(**{missing: None}))


def test_norm_and_dropout_come_last():
    ours = build(Embedding, small_config(embedding_norm=True, norm="rms", dropout=0.5))
    plain = build(Embedding, small_config())
    ids, places = random_ids(400, 5), torch.arange(5)[None]
    assert isinstance(ours.norm, nn.RMSNorm)
    plain.tokens.weight.data.copy_(ours.tokens.weight)
    expected = ours.norm(plain(ids, places))
    torch.testing.assert_close(ours(ids, places), expected)
    torch.manual_seed(0)
    dropped = ours.train()(ids, places)
    assert 0.45 < (dropped == 0).double().mean() < 0.55
    torch.testing.assert_close(dropped[dropped != 0], 2 * expected[dropped != 0])


def test_an_embedding_refuses_what_does_not_fit():
    ours = build(Embedding, small_config(num_token_types=2))
    ids, places = random_ids(2, 5), torch.arange(5)[None]
    with pytest.raises(IndexError):  # PyTorch's error: a forward looks at no value
        ours(ids.clone().index_fill_(1, torch.tensor([2]), VOCAB_SIZE), places)
    with pytest.raises(IndexError):
        ours(ids, places + 16)
    with pytest.raises(ValueError, match=r"ids \(5,\), torch.int64: .*\(batch, tokens\)"):
        ours(ids[0], places)
    with pytest.raises(ValueError, match=r"ids \(2, 5\), torch.float32: expected integers"):
        ours(ids.float(), places)
    with pytest.raises(ValueError, match=r"positions \(1, 5\), torch.float32: expected integers"):
        ours(ids, places.float())
    with pytest.raises(ValueError, match=r"positions \(5,\), .*each of the ids \(2, 5\)"):
        ours(ids, places[0])
    with pytest.raises(ValueError, match=r"positions \(1, 4\), .*each of the ids \(2, 5\)"):
        ours(ids, places[:, :4])
    with pytest.raises(ValueError, match=r"positions \(3, 5\) for ids \(2, 5\).*one per token"):
        ours(ids, places.expand(3, 5))
    with pytest.raises(ValueError, match=r"token_types \(1, 5\) for ids \(2, 5\).*num_token_types=2"):
        ours(ids, places, torch.zeros_like(places))
    without = build(Embedding, small_config())
    with pytest.raises(ValueError, match=r"num_token_types=0.*none for a model without types"):
        without(ids, places, torch.zeros_like(ids))
    ours(ids, places + 15)  # the last position of the context
