"""The parts of chapter 16 on Gemma itself: PEFT reads what we save, and untuned it does not end its turn."""

import peft
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from chapters_src import resources
from chapters_src.assistant import answer, answer_batch, encode_pair
from chapters_src.pretrained import add_low_rank, load, save_low_rank, without_low_rank

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quiet_library")]
QUESTIONS = [
    ("With version 3.1 everything was fine.", "Which version was fine?", "3.1."),
    ("The ferry leaves at 8:15.", "Who steers it?", "The passage does not say."),
]


@pytest.fixture(scope="module")
def gemma():
    folder = resources.checkpoint("gemma")
    model = add_low_rank(load(folder), 8, 16, torch.Generator().manual_seed(0)).eval()
    generator = torch.Generator().manual_seed(1)
    for name, parameter in model.named_parameters():
        if name.endswith(".B"):
            parameter.data = (0.01 * torch.randn(parameter.shape, generator=generator)).half().float()
        if name.endswith(".A"):
            parameter.data = parameter.data.half().float()
    return model, AutoTokenizer.from_pretrained(folder), folder


def batch_of(tokenizer):
    return answer_batch([encode_pair(tokenizer, *each) for each in QUESTIONS], tokenizer.pad_token_id)


@torch.no_grad()
def test_peft_on_the_librarys_gemma_has_the_same_logits(gemma, tmp_path):
    ours, tokenizer, folder = gemma
    save_low_rank(ours, tmp_path / "new", model_type="gemma3_text", base="google/gemma-3-270m")
    assert sum(file.stat().st_size for file in (tmp_path / "new").iterdir()) < 1.6e6
    theirs = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    theirs = peft.PeftModel.from_pretrained(theirs, tmp_path / "new").eval()
    ids = batch_of(tokenizer)["ids"][:1]
    found, expected = ours(ids, None), theirs(ids).logits
    torch.testing.assert_close(found, expected, atol=2e-3, rtol=1e-3)
    with without_low_rank(ours):
        assert (ours(ids, None) - found).abs().max() > 0.1, "the updates do something"


def test_the_base_model_does_not_end_its_turn(gemma):
    model, tokenizer, _ = gemma
    with without_low_rank(model):
        written = answer(model, tokenizer, [each[:2] for each in QUESTIONS], max_new_tokens=12)
    assert not any(one.ended for one in written)
