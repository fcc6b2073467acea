"""The decoding state against computing everything anew. Other tests here use it beside `generate()`."""

import random

import pytest
import torch
from beside_library import NEW_TOKENS, converted_if, is_translator, random_prompts
from beside_library import padded as padded_prompts
from library_models import CONFIGS, IDS, START, VOCAB_SIZE, library_model
from small_models import KINDS, POSITIONS, language_model, padded, random_ids, translator
from transformers import (
    BertConfig,
    BertLMHeadModel,
    MambaConfig,
    MambaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    OpenAIGPTConfig,
    OpenAIGPTLMHeadModel,
    XLNetConfig,
    XLNetLMHeadModel,
)

from chapters_src.attention import KeyValueCache
from chapters_src.decoding import start_decoding

each_kind = pytest.mark.parametrize("changes", list(KINDS.values()), ids=list(KINDS))
all_positions = pytest.mark.parametrize("positions", POSITIONS)
ROWS = [random_ids(length, seed=length) for length in (6, 1, 4)]


pytestmark = pytest.mark.usefixtures("quiet_library")


def close(one, other):
    torch.testing.assert_close(one, other, atol=1e-5, rtol=0)


# The library's models, and ours with their weights


def begin(model, kind, ids, attention_mask, max_new_tokens=NEW_TOKENS):
    targets = torch.full((len(ids), 1), START) if is_translator(kind) else None
    return start_decoding(model, ids, attention_mask, max_new_tokens=max_new_tokens, target_ids=targets)


whose = pytest.mark.parametrize("converted", [True, False], ids=["ours", "library"])


# Rows and places


def anew(model, kind, ids, attention_mask, written):
    """The logits after everything that was written, by a state that is made anew for each row."""
    logits = []
    for row, (source, mask) in enumerate(zip(ids, attention_mask, strict=True)):
        alone = source[mask.bool()][None]
        state = begin(model, kind, alone, None, len(written[row]) + 1)
        for token in written[row]:
            state.step(torch.tensor([token]))
        logits.append(state.next_logits)
    return torch.cat(logits)


@whose
@pytest.mark.parametrize("kind", list(CONFIGS))
def test_rows_can_be_dropped_repeated_and_swapped_at_any_time(kind, converted):
    model = converted_if(converted, library_model(kind, 0))
    ids, attention_mask = padded_prompts(kind, random_prompts(0))
    state = begin(model, kind, ids, attention_mask)
    written = [[] for _ in ids]
    draw = random.Random(0)
    for rows in ([0, 1, 2, 3], [3, 0, 1, 2], [1, 1, 1, 3, 0, 0], [5, 2], [1, 0, 1], [0, 1, 2]):
        chosen = torch.tensor(rows)
        state.select(chosen)
        ids, attention_mask = ids[chosen], attention_mask[chosen]
        written = [list(written[row]) for row in rows]
        close(state.next_logits, anew(model, kind, ids, attention_mask, written))
        new = [draw.randrange(4, VOCAB_SIZE) for _ in rows]
        logits = state.step(torch.tensor(new))
        written = [[*row, token] for row, token in zip(written, new, strict=True)]
        assert torch.equal(logits, state.next_logits)
        close(logits, anew(model, kind, ids, attention_mask, written))


@pytest.mark.parametrize(
    ("kind", "converted"),
    # The library's sliding layers keep too little to go back.
    [(kind, ours) for kind in CONFIGS for ours in (True, False) if ours or kind != "gemma3"],
)
def test_after_a_crop_it_goes_on_from_there(kind, converted):
    model = converted_if(converted, library_model(kind, 1))
    ids, attention_mask = padded_prompts(kind, random_prompts(1))
    state = begin(model, kind, ids, attention_mask)
    start = state.length
    first = torch.randint(4, VOCAB_SIZE, (4, 5), generator=torch.Generator().manual_seed(0))
    after = state.step(first)  # (B, T, V): what follows each
    assert after.shape == (4, 5, VOCAB_SIZE)
    state.crop(start + 2)
    assert state.length == start + 2
    with pytest.raises(ValueError, match=r"after crop.*call step"):
        _ = state.next_logits
    close(state.step(first[:, 2:4]), after[:, 2:4])
    state.select(torch.tensor([2, 0]))
    state.crop(start + 1)
    other = torch.tensor([7, 8])
    written = [[first[2, 0].item(), 7], [first[0, 0].item(), 8]]
    chosen = torch.tensor([2, 0])
    close(state.step(other), anew(model, kind, ids[chosen], attention_mask[chosen], written))
    with pytest.raises(ValueError, match=f"keep {start + 3} tokens: {start + 2} were read"):
        state.crop(start + 3)
    state.crop(start + 2)  # nothing to forget, so the logits stay
    assert state.next_logits.shape == (2, VOCAB_SIZE)


# Ours, against one forward over everything


@all_positions
@each_kind
@pytest.mark.parametrize("chunks", [[1] * 7, [4, 3], [5, 1, 1]], ids=str)
def test_steps_are_the_same_as_one_forward(changes, positions, chunks):
    model, ids = language_model(**changes | {"positions": positions}), random_ids(3, 9)
    whole = model(ids, None)
    state = start_decoding(model, ids[:, :2], None, max_new_tokens=7)
    close(state.next_logits, whole[:, 1])
    for size in chunks:
        past = state.length
        close(state.step(ids[:, past : past + size]), whole[:, past : past + size])
    assert state.length == state.capacity == 9


@all_positions
@each_kind
@pytest.mark.parametrize("side", ["right", "left"])
def test_prompts_may_be_padded_on_either_side(changes, positions, side):
    model = language_model(**changes | {"positions": positions})
    ids, attention_mask = padded(ROWS, side)
    state = start_decoding(model, ids, attention_mask, max_new_tokens=3)
    new = random_ids(3, 3, seed=9)
    steps = [state.next_logits, *(state.step(new[:, t]) for t in range(3))]
    for i, row in enumerate(ROWS):
        alone = torch.cat([row, new[i]])[None]
        close(torch.stack(steps)[:, i], model(alone, None)[0, len(row) - 1 :])


@all_positions
@pytest.mark.parametrize("shared", [True, False])
def test_an_encoder_decoder_goes_on_with_its_memory(positions, shared):
    model = translator(positions=positions, share_embedding=shared)
    source, source_mask = padded(ROWS)
    target = random_ids(3, 6, seed=1)
    whole = model(source, source_mask, target, None)
    state = start_decoding(model, source, source_mask, max_new_tokens=4, target_ids=target[:, :2])
    close(state.next_logits, whole[:, 1])
    close(state.step(target[:, 2:5]), whole[:, 2:5])
    close(state.step(target[:, 5]), whole[:, 5])


def test_logits_are_copies_that_may_be_changed_in_place():
    model, ids = language_model(), random_ids(2, 4)
    state = start_decoding(model, ids, None, max_new_tokens=3)
    logits = state.next_logits
    expected = logits.clone()
    logits[:, 3] = -torch.inf
    logits /= 0.7
    assert torch.equal(state.next_logits, expected)
    after = state.step(random_ids(2))
    after += 1
    torch.testing.assert_close(state.next_logits, after - 1)


@whose
def test_an_interrupted_step_is_noticed(converted):
    """Some layers have taken up the token, others not: to go on would be wrong in silence."""
    model = converted_if(converted, library_model("gpt2", 0))
    layer = model.decoder.stack.layers[1] if converted else model.transformer.h[1]
    state = start_decoding(model, random_ids(2, 4), None, max_new_tokens=3)

    def interrupt(*_):
        raise KeyboardInterrupt

    hook = layer.register_forward_pre_hook(interrupt)
    with pytest.raises(KeyboardInterrupt):
        state.step(random_ids(2))
    hook.remove()
    for call in (state.step, state.select):
        with pytest.raises(ValueError, match=r"interrupted.*start decoding again"):
            call(torch.tensor([0, 1]))


def test_a_compiled_model_decodes_as_it_is():
    model, ids = language_model(), random_ids(2, 4)
    compiled = torch.compile(model, backend="eager")
    states = [start_decoding(each, ids, None, max_new_tokens=2) for each in (model, compiled)]
    assert torch.equal(states[0].next_logits, states[1].next_logits)


@pytest.mark.parametrize("is_padded", [True, False])
def test_a_selection_of_rows_that_are_not_there_changes_nothing(is_padded):
    model = language_model()
    ids, attention_mask = padded(ROWS, "left") if is_padded else (random_ids(3, 6), None)
    state, other = (start_decoding(model, ids, attention_mask, max_new_tokens=3) for _ in range(2))
    for rows in ([0, 3], [-1, 0]):
        with pytest.raises(IndexError):
            state.select(torch.tensor(rows))
    assert torch.equal(state.next_logits, other.next_logits)
    assert torch.equal(state.step(random_ids(3)), other.step(random_ids(3)))


def test_a_model_with_a_sliding_window_refuses_a_crop():
    sizes = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3, "num_key_value_heads": 1}
    config = MistralConfig(vocab_size=VOCAB_SIZE, intermediate_size=16, sliding_window=3, **sizes, **IDS)
    model = MistralForCausalLM(config).eval()
    state = start_decoding(model, random_ids(2, 5), None, max_new_tokens=3)
    state.step(random_ids(2))
    with pytest.raises(ValueError, match="MistralForCausalLM uses a sliding window"):
        state.crop(4)


def test_sliding_layers_hold_little_more_than_their_window_and_can_go_back_as_far():
    window, spare, length = 5, KeyValueCache.SPARE, 400
    sliding = {"positions": "rotary", "sliding_window": window, "sliding_layers": (0, 2), "num_layers": 3}
    model, ids = language_model(max_length=length, **sliding), random_ids(2, length)
    whole = model(ids, None)
    for chunks in ([1] * 300, [3, 90, 200, 7], [300]):
        state = start_decoding(model, ids[:, :100], None, max_new_tokens=300)
        for size in chunks:
            past = state.length
            close(state.step(ids[:, past : past + size]), whole[:, past : past + size])
        places = [cache._key.size(2) for cache in state._caches]
        assert places == [window - 1 + 2 * spare, length, window - 1 + 2 * spare]
        state.crop(length - spare)
        close(state.step(ids[:, length - spare : length - 9]), whole[:, length - spare : length - 9])
        with pytest.raises(ValueError, match=rf"sliding layers have discarded.*after 99 tokens.*{spare} tok"):
            state.crop(99)
        close(state.step(ids[:, -9:]), whole[:, -9:])  # A crop that was refused changed nothing.


def test_a_window_of_the_whole_context_is_none():
    sliding = {"positions": "rotary", "sliding_window": 20, "sliding_layers": (0, 1)}
    ids, attention_mask = padded(ROWS, "left")
    outputs = [
        language_model(**changes)(ids, attention_mask) for changes in ({"positions": "rotary"}, sliding)
    ]
    assert torch.equal(*outputs)


def test_hooks_and_adapters_on_any_module_take_effect():
    """No weight is used past its module."""
    source, target = random_ids(2, 5), random_ids(2, 4, seed=1)
    plain = translator()
    expected = start_decoding(plain, source, None, max_new_tokens=3, target_ids=target[:, :1])
    names = [name for name, module in plain.named_modules() if isinstance(module, torch.nn.Linear)]
    for name in names:
        model = translator()
        hook = model.get_submodule(name).register_forward_hook(lambda module, inputs, output: output * 1.5)
        state = start_decoding(model, source, None, max_new_tokens=3, target_ids=target[:, :1])
        assert not torch.allclose(state.next_logits, expected.next_logits), name
        hook.remove()


# What is refused


def test_a_start_looks_at_values_once():
    model, crossing = language_model(), translator()
    ids = random_ids(2, 5)
    with pytest.raises(ValueError, match=r"id 23 in row 1, place 3, is not in 0 \.\.\. 22.*tokenizer"):
        start_decoding(model, ids.index_put((torch.tensor(1), torch.tensor(3)), torch.tensor(23)), None,
                       max_new_tokens=1)  # fmt: skip
    with pytest.raises(ValueError, match=r"row 1 has no token"):
        start_decoding(model, ids, torch.tensor([[1] * 5, [0] * 5]), max_new_tokens=1)
    with pytest.raises(ValueError, match=r"attention_mask \(2, 4\) for ids \(2, 5\)"):
        start_decoding(model, ids, torch.ones(2, 4, dtype=torch.long), max_new_tokens=1)
    with pytest.raises(ValueError, match=r"values from 0 to 2"):
        start_decoding(model, ids, 2 * torch.eye(2, 5).long(), max_new_tokens=1)
    with pytest.raises(ValueError, match=r"ids \(5,\).*\(batch, tokens\)"):
        start_decoding(model, ids[0], None, max_new_tokens=1)
    with pytest.raises(ValueError, match=r"max_new_tokens=16 after 5 tokens.*limited to 20"):
        start_decoding(model, ids, None, max_new_tokens=16)
    with pytest.raises(ValueError, match="target_ids are missing"):
        start_decoding(crossing, ids, None, max_new_tokens=1)
    with pytest.raises(ValueError, match="target_ids are only for an encoder-decoder"):
        start_decoding(model, ids, None, max_new_tokens=1, target_ids=ids)
    with pytest.raises(ValueError, match="1 rows of target_ids for 2 sources"):
        start_decoding(crossing, ids, None, max_new_tokens=1, target_ids=ids[:1])
    with pytest.raises(ValueError, match=r"training mode.*eval\(\)"):
        start_decoding(model.train(), ids, None, max_new_tokens=1)
    with pytest.raises(TypeError, match="Linear: expected a LanguageModel"):
        start_decoding(torch.nn.Linear(2, 2).eval(), ids, None, max_new_tokens=1)


@pytest.mark.parametrize(
    ("model_class", "config"),
    [
        (OpenAIGPTLMHeadModel, OpenAIGPTConfig(n_embd=16, n_layer=1, n_head=2, vocab_size=VOCAB_SIZE)),
        (MambaForCausalLM, MambaConfig(hidden_size=16, num_hidden_layers=1, vocab_size=VOCAB_SIZE)),
        (XLNetLMHeadModel, XLNetConfig(d_model=16, n_layer=1, n_head=2, d_inner=16, vocab_size=VOCAB_SIZE)),
        (
            BertLMHeadModel,  # Not told to be a decoder, it returns a cache that is None.
            BertConfig(
                hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
                vocab_size=VOCAB_SIZE,
            ),
        ),
    ],
    ids=["first GPT", "Mamba", "XLNet", "BERT"],
)  # fmt: skip
def test_a_model_without_a_key_value_cache_is_refused(model_class, config):
    model = model_class(config).eval()
    with pytest.raises(TypeError, match=rf"{model_class.__name__} returns no key-value cache.*generate\(\)"):
        start_decoding(model, random_ids(2, 5), None, max_new_tokens=1)


def test_padding_leaves_room_in_the_context():
    """What counts is how many tokens a row has, not how wide the batch is."""
    model = language_model()
    ids, attention_mask = padded([random_ids(4), random_ids(2)], "left")
    ids = torch.nn.functional.pad(ids, (13, 0))
    attention_mask = torch.nn.functional.pad(attention_mask, (13, 0))
    state = start_decoding(model, ids, attention_mask, max_new_tokens=16)
    for _ in range(16):
        assert state.step(random_ids(2)).isfinite().all()


def test_a_step_refuses_what_does_not_fit():
    state = start_decoding(language_model(), random_ids(2, 5), None, max_new_tokens=2)
    with pytest.raises(ValueError, match=r"3 more tokens: 5 of the capacity of 7 are used.*max_new_tokens"):
        state.step(random_ids(2, 3))
    with pytest.raises(ValueError, match=r"torch\.float32"):
        state.step(torch.ones(2))
    with pytest.raises(ValueError, match=r"ids \(1,\).* for 2 sequences.*select"):
        state.step(random_ids(1))
    with pytest.raises(ValueError, match=r"rows \(2,\), torch\.float32"):
        state.select(torch.ones(2))
    with pytest.raises(IndexError):
        state.select(torch.tensor([2]))
    assert state.length == 5
    assert state.step(random_ids(2, 2)).shape == (2, 2, 23)  # still as it was
