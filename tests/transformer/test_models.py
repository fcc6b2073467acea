"""Bodies: against PyTorch's stacks, and by what must hold whatever the weights are."""

import copy
import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_model, save_model
from small_models import (
    KINDS,
    POSITIONS,
    VOCAB_SIZE,
    copy_weights,
    decoder,
    encoder,
    language_model,
    padded,
    random_ids,
    random_states,
    small_config,
    translator,
)
from torch import nn

from chapters_src.attention import causal_mask, recorded
from chapters_src.transformer import (
    Cache,
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderDecoder,
    LanguageModel,
    Memory,
    sinusoidal_positions,
)

each_kind = pytest.mark.parametrize("changes", list(KINDS.values()), ids=list(KINDS))
all_positions = pytest.mark.parametrize("positions", POSITIONS)
ROWS = [random_ids(length, seed=length) for length in (6, 1, 4)]


def all_ones(ids):
    return torch.ones_like(ids)


def close(one, other):
    torch.testing.assert_close(one, other, atol=1e-5, rtol=0)  # rotary angles are in single precision


# Against PyTorch


@pytest.mark.parametrize("norm_first", [True, False])
def test_an_encoder_is_that_of_pytorch(norm_first):
    ours = encoder(norm_first=norm_first)
    layer = nn.TransformerEncoderLayer(
        16, 4, 24, 0.0, "relu", batch_first=True, norm_first=norm_first, dtype=torch.float64
    )
    norm = nn.LayerNorm(16, dtype=torch.float64) if norm_first else None
    theirs = nn.TransformerEncoder(layer, 2, norm, enable_nested_tensor=False)
    for mine, other in zip(ours.layers, theirs.layers, strict=True):
        copy_weights(mine, other)
    if norm_first:
        theirs.norm.load_state_dict(ours.norm.state_dict())
    ids, attention_mask = padded(ROWS)
    embedded = ours.embedding.tokens(ids) + sinusoidal_positions(6, 16)
    expected = theirs(embedded, src_key_padding_mask=attention_mask == 0)
    torch.testing.assert_close(ours(ids, attention_mask), expected, atol=1e-10, rtol=0)
    assert norm_first or isinstance(ours.norm, nn.Identity)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("norm_first", [True, False])
def test_an_encoder_decoder_is_that_of_pytorch(norm_first):
    ours = translator(norm_first=norm_first, num_layers=3, tie_weights=False, head_bias=True)
    theirs = nn.Transformer(
        16, 4, 3, 3, 24, 0.0, batch_first=True, norm_first=norm_first, dtype=torch.float64
    )
    for body in ("encoder", "decoder"):
        here, there = getattr(ours, body), getattr(theirs, body)
        for mine, other in zip(here.layers, there.layers, strict=True):
            copy_weights(mine, other)
        if norm_first:
            there.norm.load_state_dict(here.norm.state_dict())
        else:
            there.norm = None  # PyTorch normalises once more; the paper's post-norm model does not
    source, source_mask = padded(ROWS)
    target, target_mask = padded(ROWS[::-1])
    blocked = source_mask == 0
    states = theirs(
        ours.encoder.embedding.tokens(source) + sinusoidal_positions(6, 16),
        ours.decoder.embedding.tokens(target) + sinusoidal_positions(6, 16),
        tgt_mask=~causal_mask(6),
        src_key_padding_mask=blocked,
        memory_key_padding_mask=blocked,
        tgt_key_padding_mask=target_mask == 0,
    )
    expected = states @ ours.head.vocabulary.weight.T + ours.head.vocabulary.bias
    logits = ours(source, source_mask, target, target_mask)
    is_token = target_mask.bool()
    torch.testing.assert_close(logits[is_token], expected[is_token], atol=1e-10, rtol=0)
    weights = [ours.encoder.embedding.tokens.weight, ours.decoder.embedding.tokens.weight]
    mine, other = (torch.autograd.grad(y[is_token].square().sum(), weights) for y in (logits, expected))
    for gradient, expected_gradient in zip(mine, other, strict=True):
        torch.testing.assert_close(gradient, expected_gradient, atol=1e-7, rtol=1e-7)


# What a token sees


def causal_models(**changes):
    """Three models as functions of target ids and attention mask."""
    alone, crossing = decoder(**changes), translator(**changes)
    source = random_ids(2, 4, seed=5)
    return {
        "decoder": alone,
        "language model": language_model(**changes),
        "encoder-decoder": lambda ids, mask: crossing(source, all_ones(source), ids, mask),
    }


@all_positions
@each_kind
def test_a_changed_token_changes_itself_and_what_comes_after_it_only(changes, positions):
    ids = random_ids(2, 7)
    for name, model in causal_models(**changes | {"positions": positions}).items():
        before = model(ids, all_ones(ids))
        for at in (0, 3, 6):
            changed = ids.clone()
            changed[:, at] = (changed[:, at] + 1) % VOCAB_SIZE
            difference = (model(changed, all_ones(ids)) - before).abs().amax(dim=(0, 2))
            assert (difference[:at] < 1e-12).all(), (name, at)
            assert (difference[at:] > 1e-6).all(), (name, at)


@all_positions
def test_an_encoder_sees_both_sides(positions):
    model, ids = encoder(positions=positions), random_ids(2, 7)
    changed = ids.clone()
    changed[:, 3] = (changed[:, 3] + 1) % VOCAB_SIZE
    difference = (model(changed, all_ones(ids)) - model(ids, all_ones(ids))).abs().amax(dim=(0, 2))
    assert (difference > 1e-6).all()


@all_positions
def test_only_positions_tell_an_encoder_the_order(positions):
    model, ids = encoder(positions=positions), random_ids(2, 7)
    attention_mask = torch.tensor([[1, 1, 1, 1, 1, 1, 0], [1, 1, 0, 1, 1, 1, 1]])
    order = torch.randperm(7, generator=torch.Generator().manual_seed(0))
    shuffled = model(ids[:, order], attention_mask[:, order])
    difference = (shuffled - model(ids, attention_mask)[:, order]).abs().amax()
    assert difference < 1e-10 if positions == "none" else difference > 0.01


def test_a_decoder_without_positions_still_tells_the_order():
    model, ids = decoder(positions="none"), torch.tensor([[1, 2, 3]])
    swapped = torch.tensor([[2, 1, 3]])
    difference = model(ids, all_ones(ids))[:, 2] - model(swapped, all_ones(ids))[:, 2]
    assert difference.abs().max() > 0.01  # what its neighbours saw differs


def test_the_encoder_reaches_the_target_through_cross_attention():
    model, source, target = translator(), random_ids(2, 5), random_ids(2, 4, seed=1)
    before = model(source, all_ones(source), target, all_ones(target))
    source[:, 4] = (source[:, 4] + 1) % VOCAB_SIZE
    difference = model(source, all_ones(source), target, all_ones(target)) - before
    assert (difference.abs().amax(dim=2) > 1e-6).all()


# Padding


@all_positions
@each_kind
def test_a_padded_batch_is_each_sequence_alone(changes, positions):
    changes = changes | {"positions": positions}
    reading, writing = encoder(**changes), language_model(**changes)
    for side in ("right", "left"):
        ids, attention_mask = padded(ROWS, side)
        models = (
            [writing] if side == "left" and positions in ("learned", "sinusoidal") else [writing, reading]
        )
        for model in models:  # a decoder counts its tokens; an encoder has places
            batch = model(ids, attention_mask)
            for row, outputs, is_token in zip(ROWS, batch, attention_mask.bool(), strict=True):
                close(outputs[is_token], model(row[None], all_ones(row[None]))[0])
            assert batch.isfinite().all()


@all_positions
@pytest.mark.parametrize("side", ["right", "left"])
def test_a_padded_batch_of_pairs_is_each_pair_alone(positions, side):
    model = translator(positions=positions, share_embedding=True)
    source, source_mask = padded(ROWS)
    targets = ROWS[::-1]
    target, target_mask = padded(targets, side)
    batch = model(source, source_mask, target, target_mask)
    for i, (row, target_row) in enumerate(zip(ROWS, targets, strict=True)):
        alone = model(row[None], all_ones(row[None]), target_row[None], all_ones(target_row[None]))
        close(batch[i][target_mask[i].bool()], alone[0])


def test_what_stands_at_padding_does_not_matter():
    ids, attention_mask = padded(ROWS)
    other = torch.where(attention_mask == 1, ids, 7)
    is_token = attention_mask.bool()
    for model in (encoder(), language_model()):
        assert torch.equal(model(ids, attention_mask)[is_token], model(other, attention_mask)[is_token])
    model = translator()
    before, after = (model(x, attention_mask, x, attention_mask)[is_token] for x in (ids, other))
    assert torch.equal(before, after)


@each_kind
def test_a_sequence_of_nothing_but_padding_gives_finite_numbers_and_gradients(changes):
    ids = random_ids(2, 4)
    attention_mask = torch.tensor([[0, 0, 0, 0], [0, 1, 1, 1]])
    model = translator(**changes).train()
    for outputs, trained in [
        (model.encoder(ids, attention_mask), model.encoder),
        (model(ids, attention_mask, ids, attention_mask), model),
        (model(ids, attention_mask, ids, all_ones(ids)), model),
    ]:
        assert outputs.isfinite().all()
        trained.zero_grad()
        outputs.square().sum().backward()
        weights = [weight for weight in trained.parameters() if weight.requires_grad]
        assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in weights)


@pytest.mark.parametrize("one_for_all", [True, False])
def test_positions_that_are_given_are_used(one_for_all):
    model, ids = language_model(positions="learned"), random_ids(2, 4)
    places = torch.tensor([[7, 0, 19, 3]]) if one_for_all else torch.tensor([[7, 0, 19, 3], [5, 5, 1, 2]])
    with_places = model(ids, all_ones(ids), positions=places)
    table = model.decoder.embedding.positions.weight
    for i in range(2):
        other = copy.deepcopy(model)  # what stands at those places, put where the count starts
        other.decoder.embedding.positions.weight.data[:4] = table[places[i % len(places)]]
        close(with_places[i : i + 1], other(ids[i : i + 1], all_ones(ids[i : i + 1])))


# The cache


def decode_in_chunks(model, ids, attention_mask, chunks, **options):
    cache, parts, past = model.new_cache(), [], 0
    for size in chunks:
        end = past + size
        given = {name: value[:, past:end] for name, value in options.items()}
        parts.append(model(ids[:, past:end], attention_mask[:, :end], cache=cache, **given))
        past = end
        assert cache.length == past
    return torch.cat(parts, dim=1)


@all_positions
@each_kind
def test_cached_is_the_same_as_uncached(changes, positions):
    model, ids = language_model(**changes | {"positions": positions}), random_ids(3, 7)
    whole = model(ids, all_ones(ids))
    for chunks in ([1] * 7, [4, 3], [7], [5, 1, 1]):
        close(decode_in_chunks(model, ids, all_ones(ids), chunks), whole)


@all_positions
@pytest.mark.parametrize("side", ["right", "left"])
def test_cached_is_the_same_as_uncached_with_padding(positions, side):
    model = language_model(positions=positions)
    prompts, attention_mask = padded(ROWS, side)
    ids = torch.cat([prompts, random_ids(3, 3, seed=9)], dim=1)  # three tokens are written after each prompt
    attention_mask = torch.cat([attention_mask, torch.ones(3, 3, dtype=torch.int64)], dim=1)
    counted = (attention_mask.cumsum(dim=1) - 1).clamp(min=0)
    for chunks in ([1] * 9, [6, 1, 1, 1], [6, 3]):
        for options in ({}, {"positions": counted}):
            logits = decode_in_chunks(model, ids, attention_mask, chunks, **options)
            for i in range(3):
                alone = ids[i][attention_mask[i].bool()][None]
                close(logits[i][attention_mask[i].bool()], model(alone, all_ones(alone))[0])


@all_positions
def test_cached_is_the_same_as_uncached_behind_an_encoder(positions):
    model = translator(positions=positions)
    source, source_mask = padded(ROWS)
    target = random_ids(3, 5, seed=1)
    whole = model(source, source_mask, target, all_ones(target))
    memory, cache = model.encode(source, source_mask), model.new_cache()
    assert isinstance(memory, Memory) and isinstance(cache, Cache)
    parts = [
        model.decode(target[:, t : t + 1], all_ones(target[:, : t + 1]), memory, cache=cache)
        for t in range(5)
    ]
    close(torch.cat(parts, dim=1), whole)


def test_after_a_selection_the_chosen_sequences_go_on():
    model = translator(positions="rotary")
    source, source_mask = padded(ROWS)
    target, rows = random_ids(3, 5, seed=1), torch.tensor([2, 0, 0, 1])
    memory, cache = model.encode(source, source_mask), model.new_cache()
    model.decode(target[:, :3], all_ones(target[:, :3]), memory, cache=cache)
    cache.select(rows)
    chosen = Memory(memory.hidden_states[rows], memory.attention_mask[rows])
    target = torch.cat([target[rows, :3], random_ids(4, 2, seed=2)], dim=1)
    went_on = model.decode(target[:, 3:], all_ones(target), chosen, cache=cache)
    close(went_on, model.decode(target, all_ones(target), chosen)[:, 3:])


@all_positions
def test_after_a_crop_it_goes_on_from_there(positions):
    model, ids = language_model(positions=positions), random_ids(2, 6)
    cache = model.new_cache()
    model(ids, all_ones(ids), cache=cache)
    cache.crop(4)
    assert cache.length == 4
    other = torch.cat([ids[:, :4], random_ids(2, 3, seed=7)], dim=1)
    close(model(other[:, 4:], all_ones(other), cache=cache), model(other, all_ones(other))[:, 4:])
    with pytest.raises(ValueError, match=r"keep 9 tokens.*holds 7"):
        cache.crop(9)


def test_a_crop_keeps_what_was_made_of_the_encoder():
    model, source, target = translator(), random_ids(2, 5), random_ids(2, 4, seed=1)
    memory, cache = model.encode(source, all_ones(source)), model.new_cache()
    model.decode(target, all_ones(target), memory, cache=cache)
    cache.crop(1)
    again = model.decode(target[:, 1:], all_ones(target), memory, cache=cache)
    close(again, model.decode(target, all_ones(target), memory)[:, 1:])


@settings(deadline=None, max_examples=20)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.booleans(), st.sampled_from(POSITIONS))
def test_any_lengths_padded_and_cached_give_what_each_gives_alone(lengths, on_the_left, positions):
    model = language_model(positions=positions, num_layers=1)
    rows = [random_ids(length, seed=length) for length in lengths]
    ids, attention_mask = padded(rows, "left" if on_the_left else "right")
    logits = decode_in_chunks(model, ids, attention_mask, [1] * ids.size(1))
    for row, outputs, is_token in zip(rows, logits, attention_mask.bool(), strict=True):
        close(outputs[is_token], model(row[None], all_ones(row[None]))[0])


@all_positions
def test_one_source_can_serve_many_targets(positions):
    model, source, target = translator(positions=positions), random_ids(1, 5), random_ids(3, 4, seed=1)
    one, many = (model.encode(each, all_ones(each)) for each in (source, source.expand(3, 5)))
    close(model.decode(target, all_ones(target), one), model.decode(target, all_ones(target), many))


# Weights


def test_tied_weights_are_one_tensor_that_stays_one():
    torch.manual_seed(0)
    options = {"encoder": small_config(), "decoder": small_config(cross_attention=True)}
    model = EncoderDecoder(**options, share_embedding=True)
    ids = random_ids(2, 5)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    before = model.head.vocabulary.weight.detach().clone()
    for _ in range(3):
        F.cross_entropy(model(ids, all_ones(ids), ids, all_ones(ids)).flatten(0, 1), ids.flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()
    twin = copy.deepcopy(model)
    for each in (model, twin):
        tables = [each.head.vocabulary, each.encoder.embedding.tokens, each.decoder.embedding.tokens]
        assert all(table.weight is tables[0].weight for table in tables)
    assert twin.head.vocabulary.weight is not model.head.vocabulary.weight
    change = (model.head.vocabulary.weight - before).abs()
    assert (change.amax(dim=1) > 0.05).all()  # every row was trained


@pytest.mark.parametrize(("share", "tie", "tables"), [(1, 1, 1), (1, 0, 2), (0, 1, 2), (0, 0, 3)])
def test_what_is_not_tied_has_its_own_matrix(share, tie, tables):
    model = translator(share_embedding=bool(share), tie_weights=bool(tie))
    matrices = [model.encoder.embedding.tokens, model.decoder.embedding.tokens, model.head.vocabulary]
    assert len({id(matrix.weight) for matrix in matrices}) == tables
    alone = language_model(tie_weights=bool(tie))
    assert (alone.head.vocabulary.weight is alone.decoder.embedding.tokens.weight) == bool(tie)
    assert alone.head.vocabulary.bias is None


@each_kind
def test_a_model_survives_being_stored(changes, tmp_path):
    model, other = (
        translator(share_embedding=True, head_bias=True, **changes),
        EncoderDecoder(
            small_config(**changes), small_config(cross_attention=True, **changes),
            share_embedding=True, head_bias=True,
        ).double().eval(),
    )  # fmt: skip
    ids = random_ids(2, 5)
    inputs = (ids, all_ones(ids), ids, all_ones(ids))
    expected = model(*inputs)
    save_model(model, str(tmp_path / "model.safetensors"))
    assert load_model(other, str(tmp_path / "model.safetensors")) == (set(), [])
    assert torch.equal(other(*inputs), expected)
    again = EncoderDecoder(
        small_config(**changes), small_config(cross_attention=True, **changes),
        share_embedding=True, head_bias=True,
    ).double().eval()  # fmt: skip
    again.load_state_dict(model.state_dict())
    assert torch.equal(again(*inputs), expected)
    if changes.get("tie_weights", True):
        assert other.head.vocabulary.weight is other.encoder.embedding.tokens.weight


def spread(weight):
    return pytest.approx(weight.std().item(), rel=0.08)


@pytest.mark.parametrize("kind", ["encoder", "decoder", "crossing"])
def test_initial_weights(kind):
    torch.manual_seed(0)
    config = small_config(
        d_model=64, feed_forward_width=128, num_layers=3, vocab_size=100, max_length=64, positions="learned",
        num_token_types=64, gated=True, cross_attention=kind == "crossing",
    )  # fmt: skip
    model = (Encoder if kind == "encoder" else Decoder)(config)
    parts = 3 if kind == "crossing" else 2
    assert spread(model.embedding.tokens.weight) == 0.02
    assert spread(model.embedding.positions.weight) == 0.02
    assert spread(model.embedding.types.weight) == 0.02
    for name, weight in model.named_parameters():
        if name.endswith("bias"):
            assert (weight == 0).all()
        elif "norm" in name:
            assert (weight == 1).all()
        elif name.endswith(("output.weight", "down.weight")):
            assert spread(weight) == 0.02 / math.sqrt(parts * 3)
        else:
            assert spread(weight) == 0.02
        assert "bias" in name or "norm" in name or abs(weight.mean()) < 0.001


def test_sinusoidal_positions_are_left_as_they_are():
    model = Encoder(small_config())
    assert torch.equal(model.embedding.positions.weight, sinusoidal_positions(20, 16))


def test_a_head_that_is_not_tied_starts_small():
    torch.manual_seed(0)
    model = LanguageModel(small_config(vocab_size=400, tie_weights=False))
    assert spread(model.head.vocabulary.weight) == 0.02
    ids = random_ids(4, 9)
    loss = F.cross_entropy(model(ids, all_ones(ids)).flatten(0, 1), ids.flatten())
    assert loss.item() == pytest.approx(math.log(400), rel=0.02)  # no entry is preferred


def count_by_hand(config):
    """How many numbers a body learns, from its configuration."""
    d, width, b = config.d_model, config.feed_forward_width, int(config.bias)
    norm = 2 * d if config.norm == "layer" else d
    groups = config.num_key_value_heads or config.num_heads
    keys_and_values = 2 * groups * config.head_dim
    attention = d * (d + keys_and_values) + b * (d + keys_and_values) + d * d + b * d
    feed_forward = (2 + config.gated) * d * width + b * (width * (1 + config.gated) + d)
    attentions = 2 if config.cross_attention else 1
    layer = attentions * (attention + norm) + feed_forward + norm
    embedding = config.vocab_size * d + config.num_token_types * d + norm * config.embedding_norm
    embedding += config.max_length * d * (config.positions == "learned")
    return embedding + config.num_layers * layer + norm * config.norm_first


def learned(model):
    return sum(weight.numel() for weight in model.parameters() if weight.requires_grad)


@each_kind
def test_parameters_are_as_many_as_by_hand(changes):
    config, crossing = small_config(**changes), small_config(cross_attention=True, **changes)
    assert learned(Encoder(config)) == learned(Decoder(config)) == count_by_hand(config)
    assert learned(Decoder(crossing)) == count_by_hand(crossing)
    head = 0 if config.tie_weights else VOCAB_SIZE * 16
    assert learned(LanguageModel(config)) == count_by_hand(config) + head
    both = EncoderDecoder(config, crossing, share_embedding=True, head_bias=True)
    expected = count_by_hand(config) + count_by_hand(crossing) - VOCAB_SIZE * 16 + head + VOCAB_SIZE
    assert learned(both) == expected


def test_gpt2_and_bert_have_their_published_sizes():
    with torch.device("meta"):
        gpt2 = LanguageModel(
            small_config(
                vocab_size=50_257, d_model=768, num_layers=12, num_heads=12, feed_forward_width=3072,
                max_length=1024, **KINDS["gpt2"],
            )
        )  # fmt: skip
        bert = Encoder(
            small_config(
                vocab_size=30_522, d_model=768, num_layers=12, num_heads=12, feed_forward_width=3072,
                max_length=512, num_token_types=2, **KINDS["bert"],
            )
        )  # fmt: skip
    assert learned(gpt2) == 124_439_808
    assert learned(bert) == 109_482_240 - (768 * 768 + 768)  # without the pooler


# Using them


@each_kind
def test_dropout_is_active_in_training_only(changes):
    ids = random_ids(2, 5)
    inputs = (ids, all_ones(ids), ids, all_ones(ids))
    for dropout in ({"dropout": 0.3}, {"attention_dropout": 0.3}):
        dropping, plain = translator(**changes, **dropout), translator(**changes)
        assert torch.equal(dropping(*inputs), plain(*inputs))
        assert not torch.equal(dropping.train()(*inputs), dropping(*inputs))


@each_kind
def test_models_run_in_other_precisions_and_without_gradients(changes):
    model = translator(**changes).float()
    ids, attention_mask = padded(ROWS)
    inputs = (ids, attention_mask, ids, attention_mask)
    expected = model(*inputs)
    with torch.inference_mode():
        assert torch.equal(model(*inputs), expected)
        memory, cache = model.encode(ids, attention_mask), model.new_cache()
        model.decode(ids[:, :1], attention_mask[:, :1], memory, cache=cache)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rough = model(*inputs)
        rough.float().square().mean().backward()
    assert rough.dtype == torch.bfloat16 and rough.isfinite().all()
    relative = (rough.float() - expected).norm() / expected.norm()
    assert relative < 0.05
    assert all(weight.grad.isfinite().all() for weight in model.parameters() if weight.requires_grad)
    exact = copy.deepcopy(model).double()(*inputs)
    assert exact.dtype == torch.float64
    torch.testing.assert_close(exact.float(), expected, atol=1e-3, rtol=1e-3)
    assert model.bfloat16()(*inputs).isfinite().all()


def test_every_attention_of_a_model_can_be_recorded():
    model = translator(num_layers=2)
    source, source_mask = padded(ROWS)
    target, target_mask = padded(ROWS[::-1])
    before = model(source, source_mask, target, target_mask)
    with recorded(model) as weights:
        assert torch.equal(model(source, source_mask, target, target_mask), before)
    names = [
        "decoder.layers.{}.attention",
        "decoder.layers.{}.cross_attention",
        "encoder.layers.{}.attention",
    ]
    assert set(weights) == {name.format(i) for name in names for i in range(2)}
    for name, (each,) in weights.items():
        torch.testing.assert_close(each.sum(-1), torch.ones_like(each.sum(-1)))
        hidden = target_mask if name.startswith("decoder") and "cross" not in name else source_mask
        assert (each[(hidden == 0)[:, None, None].expand_as(each)] == 0).all()


def test_token_types_reach_the_encoder():
    model, ids = encoder(num_token_types=2), random_ids(2, 5)
    types = torch.tensor([[0, 0, 0, 1, 1]] * 2)
    assert not torch.allclose(model(ids, all_ones(ids), types), model(ids, all_ones(ids)))
    assert torch.equal(model(ids, all_ones(ids), types * 0), model(ids, all_ones(ids)))


# What is refused


def test_configurations_have_to_fit():
    plain, crossing = small_config(), small_config(cross_attention=True)
    with pytest.raises(ValueError, match=r"encoder .*cross_attention=False"):
        Encoder(crossing)
    with pytest.raises(ValueError, match=r"no encoder .*cross_attention=False"):
        LanguageModel(crossing)
    with pytest.raises(ValueError, match=r"cross_attention=False .*cross-attention .* needed"):
        EncoderDecoder(plain, plain, share_embedding=False)
    with pytest.raises(ValueError, match=r"d_model=32, the encoder d_model=16.*same d_model"):
        EncoderDecoder(plain, small_config(cross_attention=True, d_model=32), share_embedding=False)
    larger = small_config(cross_attention=True, vocab_size=30)
    with pytest.raises(ValueError, match=r"vocabularies of 23 and 30 .*share_embedding=False"):
        EncoderDecoder(plain, larger, share_embedding=True)
    assert EncoderDecoder(plain, larger, share_embedding=False).head.vocabulary.out_features == 30


def test_inputs_have_to_fit():
    reading, writing, crossing = encoder(), decoder(), translator()
    ids = random_ids(2, 5)
    for model in (reading, writing):
        with pytest.raises(
            ValueError, match=r"ids \(2, 5\) and attention_mask \(2, 4\).*\(2, 5\) are needed"
        ):
            model(ids, all_ones(ids)[:, :4])
        with pytest.raises(ValueError, match=r"ids \(5,\) .*\(batch, tokens\)"):
            model(ids[0], all_ones(ids)[0])
        with pytest.raises(ValueError, match=r"ids \(2, 0\) .*at least one token"):
            model(ids[:, :0], all_ones(ids)[:, :0])
        with pytest.raises(ValueError, match="values from 0 to 2"):
            model(ids, 2 * torch.eye(2, 5).long())
        with pytest.raises(ValueError, match=r"position 20 .*max_length"):
            model(random_ids(1, 21), torch.ones(1, 21))
    cache = writing.new_cache()
    writing(ids, all_ones(ids), cache=cache)
    with pytest.raises(ValueError, match=r"\(2, 1\) .*mask \(2, 6\) .*the 5 in the cache"):
        writing(ids[:, :1], all_ones(ids)[:, :1], cache=cache)
    with pytest.raises(ValueError, match=r"holds 2 sequences and 1 came"):
        writing(ids[:1, :1], torch.ones(1, 6), cache=cache)
    memory = Memory(random_states(2, 5, 16), all_ones(ids))
    with pytest.raises(ValueError, match="cross_attention=False, and memory is not wanted"):
        writing(ids, all_ones(ids), memory=memory)
    with pytest.raises(ValueError, match="cross_attention=True, and memory is missing"):
        crossing.decoder(ids, all_ones(ids))
    with pytest.raises(ValueError, match=r"\(2, 4, 5, 4\).*\(3, 4, 5, 4\)"):
        crossing.decode(ids, all_ones(ids), Memory(random_states(3, 5, 16), torch.ones(3, 5)))


def test_a_decoder_with_cross_attention_has_layers_for_it():
    assert all(isinstance(layer, DecoderLayer) for layer in translator().decoder.layers)
    assert not any(isinstance(layer, DecoderLayer) for layer in decoder().layers)
