"""Vectors of texts: the same as for each text alone, whatever the batch."""

import pytest
import torch
from transformers import AutoTokenizer, BertConfig, BertModel

from chapters_src import resources
from chapters_src.features import extract, first_token, mean_pool

TEXTS = [
    "No.",
    "the cat sat on the mat, looking at me",
    "I am tired",
    "word " * 60,
    "Ünïcödé 🙂 works",
    "No.",
]


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(resources.checkpoint("encoder"))


@pytest.fixture(scope="module")
def model(tokenizer):
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 24}
    config = BertConfig(vocab_size=len(tokenizer), max_position_embeddings=40, **sizes)
    return BertModel(config)  # in training mode, with dropout: extract has to see to that


def alone(model, tokenizer, text, pool):
    """One text without padding, one layer after the other."""
    batch = tokenizer([text], truncation=True, max_length=40, return_tensors="pt")
    with torch.no_grad():
        layers = model.eval()(**batch, output_hidden_states=True).hidden_states
    return torch.stack([pool(layer[0]) for layer in layers])


@pytest.mark.parametrize("batch_size", [1, 2, 5, 100])
@pytest.mark.parametrize(
    ("pool", "definition"),
    [(mean_pool, lambda layer: layer.mean(0)), (first_token, lambda layer: layer[0])],
    ids=["mean", "first"],
)
def test_each_text_gets_the_vectors_it_has_alone(model, tokenizer, batch_size, pool, definition):
    model.train()
    vectors = extract(model, tokenizer, TEXTS, pool, batch_size)
    expected = torch.stack([alone(model, tokenizer, text, definition) for text in TEXTS])
    assert vectors.shape == (len(TEXTS), 4, 16)
    torch.testing.assert_close(vectors, expected, atol=1e-5, rtol=0)
    assert not vectors.requires_grad


def test_texts_of_similar_length_go_together(model, tokenizer):
    lengths = []
    handle = model.register_forward_pre_hook(
        lambda _, args, kwargs: lengths.append(kwargs["input_ids"].shape[1]), with_kwargs=True
    )
    extract(model, tokenizer, ["a", "b " * 30, "c", "d " * 29], batch_size=2)
    handle.remove()
    assert lengths == [32, 3]  # with [CLS] and [SEP]


def test_a_long_text_is_cut_off_at_the_context(model, tokenizer):
    whole, cut = extract(model, tokenizer, ["word " * 500, "word " * 38])
    torch.testing.assert_close(whole, cut)


def test_first_token_refuses_what_does_not_fit():
    with pytest.raises(ValueError, match=r"\(2, 3, 4\).*\(2, 4\)"):
        first_token(torch.ones(2, 3, 4), torch.ones(2, 4, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"torch.float32.*integers or booleans"):
        first_token(torch.ones(2, 3, 4), torch.ones(2, 3))


def test_first_token_refuses_padding_on_the_left():
    with pytest.raises(ValueError, match="padding_side"):
        first_token(torch.ones(1, 2, 4), torch.tensor([[0, 1]]))


@pytest.mark.parametrize(
    ("texts", "batch_size", "error", "message"),
    [
        ("one text", 8, TypeError, "single string, 'one text'"),
        ([], 8, ValueError, "0 texts"),
        (["a", " "], 8, ValueError, r"empty ones at \[1\]"),
        (["a"], 0, ValueError, "batch_size=0"),
    ],
)
def test_bad_input_is_refused(model, tokenizer, texts, batch_size, error, message):
    with pytest.raises(error, match=message):
        extract(model, tokenizer, texts, batch_size=batch_size)
