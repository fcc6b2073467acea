"""The classifier of chapter 05, as others get it: a folder that the library's pipeline loads."""

import json
import shutil
import subprocess
import sys

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    AutoModelForSequenceClassification,
    BertConfig,
    DistilBertConfig,
    PreTrainedTokenizerFast,
    pipeline,
)

from chapters_src.pretrained import mean_pool_classifier
from chapters_src.pretrained.mean_pool_classifier import MeanPoolClassifier, MeanPoolConfig
from chapters_src.transformer.pooling import mean_pool

NAMES = ["calm", "cross", "keen"]
TEXTS = ["a b c", "b", "c c a b"]
SIZES = {"vocab_size": 5, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2}
BODIES = {
    "BERT": BertConfig(**SIZES, intermediate_size=16),
    "DistilBERT": DistilBertConfig(vocab_size=5, dim=8, n_layers=2, n_heads=2, hidden_dim=16),
}


@pytest.fixture(params=BODIES)
def model(request):
    torch.manual_seed(0)
    config = MeanPoolConfig(
        body=BODIES[request.param].to_dict(),
        id2label=dict(enumerate(NAMES)),
        label2id={name: i for i, name in enumerate(NAMES)},
    )
    return MeanPoolClassifier(config).eval()


@pytest.fixture
def tokenizer():
    words = models.WordLevel({"[PAD]": 0, "[UNK]": 1, "a": 2, "b": 3, "c": 4}, unk_token="[UNK]")
    tokenizer = Tokenizer(words)
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]")


@pytest.fixture
def folder(model, tokenizer, tmp_path):
    mean_pool_classifier.register()
    model.save_pretrained(tmp_path / "shared")
    tokenizer.save_pretrained(tmp_path / "shared")
    return tmp_path / "shared"


def logits_of(model, tokenizer):
    with torch.inference_mode():
        return model(**tokenizer(TEXTS, padding=True, return_tensors="pt")).logits


def test_it_is_a_head_on_the_mean_of_the_tokens(model, tokenizer):
    batch = tokenizer(TEXTS, padding=True, return_tensors="pt")
    ids, mask = batch["input_ids"], batch["attention_mask"]
    pooled = mean_pool(model.body(ids, mask).last_hidden_state, mask)
    torch.testing.assert_close(model(ids, mask).logits, model.head(pooled))
    output = model(ids, mask, labels=torch.tensor([0, 2, 1]))
    expected = -output.logits.log_softmax(dim=-1)[range(3), [0, 2, 1]].mean()
    torch.testing.assert_close(output.loss, expected)


def test_one_line_loads_it_with_equal_logits(model, tokenizer, folder):
    loaded = pipeline("text-classification", model=str(folder))
    rows = loaded(TEXTS, top_k=None, function_to_apply="none")
    found = [[{r["label"]: r["score"] for r in row}[name] for name in NAMES] for row in rows]
    torch.testing.assert_close(torch.tensor(found), logits_of(model, tokenizer))
    again = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    assert torch.equal(logits_of(again, tokenizer), logits_of(model, tokenizer))


def test_the_old_argument_for_all_scores_is_ignored(folder):
    """Chapter 05 says so."""
    loaded = pipeline("text-classification", model=str(folder))
    assert loaded(TEXTS, return_all_scores=True) == loaded(TEXTS)
    assert [len(row) for row in loaded(TEXTS, top_k=None)] == [len(NAMES)] * len(TEXTS)


ELSEWHERE = """
import json, sys
from transformers import pipeline
folder, texts = sys.argv[1], json.loads(sys.argv[2])
assert not any(name.startswith("chapters_src") for name in sys.modules)
try:
    pipeline("text-classification", model=folder, trust_remote_code=False)
    raise SystemExit("code of a stranger ran without being asked for")
except ValueError:
    pass
loaded = pipeline("text-classification", model=folder, trust_remote_code=True)
print(json.dumps(loaded(texts, top_k=None, function_to_apply="none")))
"""


@pytest.mark.parametrize("model", ["BERT"], indirect=True)
def test_where_the_package_is_missing_the_folder_carries_the_code(model, tokenizer, folder, tmp_path):
    assert {file.name for file in folder.glob("*.py")} == {"mean_pool_classifier.py"}
    moved = shutil.move(folder, tmp_path / "elsewhere")
    command = [sys.executable, "-I", "-c", ELSEWHERE, str(moved), json.dumps(TEXTS)]
    environment = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path), "PATH": ""}
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert run.returncode == 0, run.stderr
    rows = json.loads(run.stdout.splitlines()[-1])
    found = [[{r["label"]: r["score"] for r in row}[name] for name in NAMES] for row in rows]
    torch.testing.assert_close(torch.tensor(found), logits_of(model, tokenizer))
