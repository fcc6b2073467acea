"""Models: against PyTorch's stacks, and by what must hold whatever the weights are."""

import copy
import math

import pytest
import torch
import torch.nn.functional as F
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
    without_windows,
)
from torch import nn

from chapters_src.attention import causal_mask
from chapters_src.transformer import (
    Decoder,
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


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("norm_first", [True, False])
def test_an_encoder_decoder_is_that_of_pytorch(norm_first):
    ours = translator(norm_first=norm_first, num_layers=3, tie_weights=False, head_bias=True)
    theirs = nn.Transformer(
        16, 4, 3, 3, 24, 0.0, batch_first=True, norm_first=norm_first, dtype=torch.float64
    )
    for side in ("encoder", "decoder"):
        here, there = getattr(ours, side).stack, getattr(theirs, side)
        for mine, other in zip(here.layers, there.layers, strict=True):
            copy_weights(mine, other)
        if norm_first:
            there.norm.load_state_dict(here.norm.state_dict())
        else:
            there.norm = None  # PyTorch normalizes once more; the paper's post-norm model does not
    source, source_mask = padded(ROWS)
    target, target_mask = padded(ROWS[::-1])
    blocked = source_mask == 0
    states = theirs(
        4 * ours.encoder.embedding.tokens(source) + sinusoidal_positions(6, 16),
        4 * ours.decoder.embedding.tokens(target) + sinusoidal_positions(6, 16),
        tgt_mask=~causal_mask(6),
        src_key_padding_mask=blocked,
        memory_key_padding_mask=blocked,
        tgt_key_padding_mask=target_mask == 0,
    )
    expected = states @ ours.head.projection.weight.T + ours.head.projection.bias
    logits = ours(source, source_mask, target, target_mask)
    is_token = target_mask.bool()
    torch.testing.assert_close(logits[is_token], expected[is_token], atol=1e-10, rtol=0)
    weights = [ours.encoder.embedding.tokens.weight, ours.decoder.embedding.tokens.weight]
    mine, other = (torch.autograd.grad(y[is_token].square().sum(), weights) for y in (logits, expected))
    for gradient, expected_gradient in zip(mine, other, strict=True):
        torch.testing.assert_close(gradient, expected_gradient, atol=1e-7, rtol=1e-7)


# What a token sees


def causal_models(batch=2, **changes):
    """Three models as functions of target ids and attention mask."""
    alone, crossing = decoder(**changes), translator(**changes)
    source = random_ids(batch, 4, seed=5)
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
def test_only_positions_tell_an_encoder_the_order(positions):
    model, ids = encoder(positions=positions), random_ids(2, 7)
    attention_mask = torch.tensor([[1, 1, 1, 1, 1, 1, 0], [1, 1, 0, 1, 1, 1, 1]])
    order = torch.randperm(7, generator=torch.Generator().manual_seed(0))
    shuffled = model(ids[:, order], attention_mask[:, order])
    difference = (shuffled - model(ids, attention_mask)[:, order]).abs().amax()
    assert difference < 1e-10 if positions == "none" else difference > 0.01


# Padding


@all_positions
@each_kind
def test_a_padded_batch_is_each_sequence_alone(changes, positions):
    changes = changes | {"positions": positions}
    reading, writing = encoder(**changes), language_model(**changes)
    for side in ("right", "left"):
        ids, attention_mask = padded(ROWS, side)
        for model in (reading, writing):  # tokens are counted, so padding has no place of its own
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


# No mask, and a mask of one's own


@all_positions
@each_kind
def test_none_is_a_mask_of_ones(changes, positions):
    changes, ids, source = changes | {"positions": positions}, random_ids(3, 6), random_ids(3, 5, seed=1)
    for model in (encoder(**changes), decoder(**changes), language_model(**changes)):
        close(model(ids, None), model(ids, all_ones(ids)))
    model = translator(**changes)
    expected = model(source, all_ones(source), ids, all_ones(ids))
    for source_mask in (None, all_ones(source)):
        for target_mask in (None, all_ones(ids)):
            close(model(source, source_mask, ids, target_mask), expected)
    assert model.encode(source, None).attention_mask is None


def packed(rows, num_left, num_right):
    """Documents in a row, with padding in the first and in the last of them: ids, mask, documents."""
    numbers = [torch.full((len(row),), 7 - i) for i, row in enumerate(rows)]  # any numbers will do
    sides = (num_left, num_right)
    attention_mask = F.pad(torch.ones(sum(map(len, rows)), dtype=torch.int64), sides)
    documents = F.pad(torch.cat(numbers), (num_left, 0), value=7)
    documents = F.pad(documents, (0, num_right), value=int(documents[-1]))
    return F.pad(torch.cat(rows), sides), attention_mask, documents


@all_positions
@each_kind
@pytest.mark.parametrize("padding", [(0, 0), (2, 0), (0, 2)])
def test_documents_packed_into_a_row_have_what_each_has_alone(changes, positions, padding):
    rows = [[ROWS[0], ROWS[2], ROWS[1]], [ROWS[2], ROWS[1], ROWS[0]]]  # 6 + 4 + 1 and 4 + 1 + 6 tokens
    parts = zip(*(packed(row, *padding) for row in rows), strict=True)
    ids, attention_mask, documents = map(torch.stack, parts)
    is_token = attention_mask.bool()
    if padding == (0, 0):
        attention_mask = None
    source = random_ids(1, 4, seed=5)
    crossing = translator(**changes | {"positions": positions})
    memory = crossing.encode(source, None)
    for model, options in (
        (decoder(**changes | {"positions": positions}), {}),
        (language_model(**changes | {"positions": positions}), {}),
        (crossing.decoder, {"memory": memory}),
        (crossing.decode, {"memory": memory}),
    ):
        outputs = model(ids, attention_mask, documents=documents, **options)
        for row, output, kept in zip(rows, outputs, is_token, strict=True):
            for document, part in zip(row, output[kept].split([*map(len, row)]), strict=True):
                close(part, model(document[None], None, **options)[0])


@each_kind
def test_an_expanded_padding_mask_does_not_replace_the_causal_mask(changes):
    """It used to be taken as it was, so that tokens saw what follows them."""
    ids, is_token = random_ids(2, 5), torch.tensor([[1, 1, 1, 0, 0], [1] * 5]).bool()
    for model in causal_models(**changes).values():
        for mask in (is_token[:, None, None].expand(2, 1, 5, 5), is_token[:, None].expand(2, 5, 5)):
            with pytest.raises(ValueError, match=r"attention_mask \(2, .*expected \(2, 5\).*`documents`"):
                model(ids, mask)


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
    before = model.head.projection.weight.detach().clone()
    for _ in range(3):
        F.cross_entropy(model(ids, all_ones(ids), ids, all_ones(ids)).flatten(0, 1), ids.flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()
    twin = copy.deepcopy(model)
    for each in (model, twin):
        tables = [each.head.projection, each.encoder.embedding.tokens, each.decoder.embedding.tokens]
        assert all(table.weight is tables[0].weight for table in tables)
    assert twin.head.projection.weight is not model.head.projection.weight
    change = (model.head.projection.weight - before).abs()
    assert (change.amax(dim=1) > 0.05).all()  # every row was trained


@pytest.mark.parametrize(("share", "tie", "tables"), [(1, 1, 1), (1, 0, 2), (0, 1, 2), (0, 0, 3)])
def test_what_is_not_tied_has_its_own_matrix(share, tie, tables):
    model = translator(share_embedding=bool(share), tie_weights=bool(tie))
    matrices = [model.encoder.embedding.tokens, model.decoder.embedding.tokens, model.head.projection]
    assert len({id(matrix.weight) for matrix in matrices}) == tables
    alone = language_model(tie_weights=bool(tie))
    assert (alone.head.projection.weight is alone.decoder.embedding.tokens.weight) == bool(tie)
    assert alone.head.projection.bias is None


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
    assert not config.scales_embedding
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


@pytest.mark.parametrize("share", [True, False])
def test_a_scaled_embedding_starts_with_the_inverse_of_its_scale_in_every_model(share):
    torch.manual_seed(0)
    config = small_config(d_model=64, vocab_size=400)
    crossing = small_config(d_model=64, vocab_size=400, cross_attention=True)
    both = EncoderDecoder(config, crossing, share_embedding=share)
    for model in (Encoder(config), LanguageModel(config).decoder, both.encoder, both.decoder):
        assert spread(model.embedding.tokens.weight) == 1 / 8
        assert model.embedding.scale == 8


def test_a_head_that_is_not_tied_starts_small():
    torch.manual_seed(0)
    model = LanguageModel(small_config(vocab_size=400, tie_weights=False))
    assert spread(model.head.projection.weight) == 0.02
    ids = random_ids(4, 9)
    loss = F.cross_entropy(model(ids, all_ones(ids)).flatten(0, 1), ids.flatten())
    assert loss.item() == pytest.approx(math.log(400), rel=0.02)  # no entry is preferred


def count_by_hand(config):
    """How many numbers a body learns, from its configuration."""
    d, width, b = config.d_model, config.feed_forward_width, int(config.bias)
    norm = 2 * d if config.norm == "layer" else d
    groups = config.num_key_value_heads or config.num_heads
    queries, keys_and_values = config.num_heads * config.head_dim, 2 * groups * config.head_dim
    attention = (d + b) * (queries + keys_and_values) + queries * d + b * d
    of_heads = 2 * config.head_dim * norm // d * config.query_key_norm  # of self-attention only
    feed_forward = (2 + config.gated) * d * width + b * (width * (1 + config.gated) + d)
    attentions = 2 if config.cross_attention else 1
    norms = (attentions + 1) * norm * (1 + config.norm_output)
    layer = attentions * attention + of_heads + feed_forward + norms
    embedding = config.vocab_size * d + config.num_token_types * d + norm * config.embedding_norm
    embedding += config.max_length * d * (config.positions == "learned")
    return embedding + config.num_layers * layer + norm * config.norm_first


def learned(model):
    return sum(weight.numel() for weight in model.parameters() if weight.requires_grad)


@each_kind
def test_parameters_are_as_many_as_by_hand(changes):
    config, crossing = (
        small_config(cross_attention=cross, **without_windows(changes)) for cross in (False, True)
    )
    assert learned(Encoder(config)) == learned(Decoder(config)) == count_by_hand(config)
    assert learned(Decoder(crossing)) == count_by_hand(crossing)
    head = 0 if config.tie_weights else VOCAB_SIZE * 16
    assert learned(LanguageModel(config)) == count_by_hand(config) + head
    both = EncoderDecoder(config, crossing, share_embedding=True, head_bias=True)
    expected = count_by_hand(config) + count_by_hand(crossing) - VOCAB_SIZE * 16 + head + VOCAB_SIZE
    assert learned(both) == expected


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
        assert torch.equal(model.decode(ids, attention_mask, model.encode(ids, attention_mask)), expected)
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
    assert EncoderDecoder(plain, larger, share_embedding=False).head.projection.out_features == 30


def test_inputs_have_to_fit():
    reading, writing, crossing = encoder(), decoder(), translator()
    ids = random_ids(2, 5)
    for model in (reading, writing):
        with pytest.raises(
            ValueError, match=r"attention_mask \(2, 4\).* ids \(2, 5\): expected \(2, 5\), integers"
        ):
            model(ids, all_ones(ids)[:, :4])
        with pytest.raises(ValueError, match=r"ids \(5,\): expected \(batch, tokens\)"):
            model(ids[0], all_ones(ids)[0])
        with pytest.raises(ValueError, match=r"ids \(2, 0\): .*at least one token"):
            model(ids[:, :0], all_ones(ids)[:, :0])
        with pytest.raises(ValueError, match=r"21 tokens exceed max_length=20"):
            model(random_ids(1, 21), None)
    with pytest.raises(ValueError, match=r"positions \(1, 4\).* ids \(2, 5\)"):
        writing(ids, None, positions=torch.arange(4)[None])
    with pytest.raises(ValueError, match=r"\(2, 1, 5, 5\)"):
        reading(ids, torch.ones(2, 1, 5, 5, dtype=torch.bool))
    with pytest.raises(ValueError, match=r"documents \(2, 4\) for ids \(2, 5\)"):
        writing(ids, None, documents=ids[:, :4])
    for wrong in (ids.double(), ids.bool()):
        with pytest.raises(ValueError, match=rf"documents \(2, 5\), {wrong.dtype}.*number of each"):
            writing(ids, None, documents=wrong)
    memory = Memory(random_states(2, 5, 16), all_ones(ids))
    with pytest.raises(ValueError, match="memory is not expected: cross_attention=False"):
        writing(ids, all_ones(ids), memory=memory)
    with pytest.raises(ValueError, match="memory is missing: cross_attention=True"):
        crossing.decoder(ids, all_ones(ids))
    with pytest.raises(ValueError, match="a memory of 3 sequences for 2"):
        crossing.decode(ids, all_ones(ids), Memory(random_states(3, 5, 16), None))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_a_mask_of_floating_point_is_an_error(dtype):
    """0 and 1, or 0 and minus infinity: nobody can tell which is meant without looking."""
    ids, crossing = random_ids(2, 5), translator()
    wrong, right = all_ones(ids).to(dtype), all_ones(ids)
    calls = [
        lambda: encoder()(ids, wrong),
        lambda: decoder()(ids, wrong),
        lambda: language_model()(ids, wrong),
        lambda: language_model()(ids, wrong[:, None, None].expand(2, 1, 5, 5)),
        lambda: crossing(ids, wrong, ids, right),
        lambda: crossing(ids, right, ids, wrong),
        lambda: crossing.encode(ids, wrong),
        lambda: crossing.decode(ids, right, Memory(random_states(2, 5, 16), wrong)),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=rf"attention_mask .*{dtype}.*integers or booleans"):
            call()
