"""Models on a graphics card: what they compute there is what they compute on the processor."""

import pytest
import torch
from small_models import KINDS, language_model, padded, random_ids, translator

from chapters_src.decoding import start_decoding

pytestmark = [pytest.mark.cuda, pytest.mark.slow]
each_kind = pytest.mark.parametrize("changes", list(KINDS.values()), ids=list(KINDS))
ROWS = [random_ids(length, seed=length) for length in (6, 1, 4)]


def on_card(*tensors):
    return [None if each is None else each.cuda() for each in tensors]


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float32, 1e-3), (torch.bfloat16, 0.15), (torch.float16, 0.02)]
)
@each_kind
def test_a_padded_batch_gives_on_a_card_what_it_gives_on_the_processor(changes, dtype, tolerance, side):
    model = translator(**changes).float()
    batch = (*padded(ROWS), *padded(ROWS[::-1], side))
    expected = model(*batch)
    model.cuda()
    with torch.autocast("cuda", dtype, enabled=dtype != torch.float32):
        logits = model(*on_card(*batch)).float().cpu()
    is_token = batch[-1].bool()
    difference = (logits - expected)[is_token].norm() / expected[is_token].norm()
    assert difference < tolerance


@each_kind
def test_a_sequence_of_nothing_but_padding_gives_finite_numbers_and_gradients(changes):
    """For a row that may attend to nothing a kernel could give NaN."""
    model = translator(**changes).float().cuda().train()
    ids, attention_mask = on_card(random_ids(2, 4), torch.tensor([[0, 0, 0, 0], [0, 1, 1, 1]]))
    for dtype in (torch.float32, torch.bfloat16):
        model.zero_grad()
        with torch.autocast("cuda", dtype, enabled=dtype != torch.float32):
            outputs = model(ids, attention_mask, ids, attention_mask)
        outputs.float().square().sum().backward()
        assert outputs.isfinite().all()
        assert all(weight.grad is None or weight.grad.isfinite().all() for weight in model.parameters())


@each_kind
def test_a_state_decodes_on_a_card_as_on_the_processor(changes):
    model = language_model(**changes)
    ids, attention_mask = padded(ROWS, "left")
    written = []
    for device in ("cpu", "cuda"):
        state = start_decoding(model.to(device), ids.to(device), attention_mask.to(device), max_new_tokens=9)
        state.select(torch.tensor([2, 0, 0, 1], device=device))
        new = [state.next_logits.argmax(-1)]
        while len(new) < 9:
            new.append(state.step(new[-1]).argmax(-1))
        written.append(torch.stack(new, dim=1).tolist())
    assert written[0] == written[1]


@each_kind
def test_no_step_waits_for_the_card(changes):
    model = language_model(**changes).cuda()
    ids, attention_mask = on_card(*padded(ROWS, "left"))
    state = start_decoding(model, ids, attention_mask, max_new_tokens=9)
    new = random_ids(3).cuda()
    model(ids, attention_mask)
    torch.cuda.set_sync_debug_mode("error")
    try:
        model(ids, attention_mask)
        model(ids, None)
        state.step(new)
        state.step(new)
    finally:
        torch.cuda.set_sync_debug_mode("default")
