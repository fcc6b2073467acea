"""Chapter 15 shares a model: its function uploads a folder to a Hub on this computer, which loads it back."""

import ast
import base64
import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import torch
from huggingface_hub import ModelCard, ModelCardData
from loopback_hub import LoopbackHub, _Handler
from transformers import BertConfig

from chapters_src.pretrained import mean_pool_classifier
from paths import notebooks

NAME = "somebody/emotion-classifier"
UPLOAD = """
import sys
from huggingface_hub import HfApi
{share}
share(sys.argv[1], sys.argv[2])
"""
LOAD = """
import sys, torch
from transformers import AutoModelForSequenceClassification
from chapters_src.pretrained import mean_pool_classifier
mean_pool_classifier.register()
model = AutoModelForSequenceClassification.from_pretrained(sys.argv[1]).eval()
ids = torch.tensor([[1, 2, 3, 4]])
torch.save(model(ids, torch.ones_like(ids)).logits, sys.argv[2])
"""


class _Accepting(_Handler):
    """Besides, answers the requests that create a repository and commit small files to it."""

    def do_POST(self):  # noqa: N802
        """Answer one of four requests."""
        self.hub.requests.append(f"POST {self.path}")
        content = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/api/repos/create":
            asked = json.loads(content)
            self.hub.private = asked.get("private") or asked.get("visibility") == "private"
            self._json({"url": f"{self.hub.endpoint}/{asked['organization']}/{asked['name']}"})
        elif self.path == "/api/validate-yaml":
            self._json({"errors": [], "warnings": []})
        elif "/preupload/" in self.path:
            kept = {"uploadMode": "regular", "shouldIgnore": False}
            self._json({"files": [{"path": one["path"], **kept} for one in json.loads(content)["files"]]})
        elif "/commit/" in self.path:
            for line in map(json.loads, content.splitlines()):
                if line["key"] == "file":
                    path = self.hub.repositories[f"models/{NAME}"] / line["value"]["path"]
                    path.write_bytes(base64.b64decode(line["value"]["content"]))
            where = f"{self.hub.endpoint}/{NAME}/commit/0"
            self._json({"success": True, "commitOid": "0" * 40, "commitUrl": where, "hookOutput": ""})
        else:
            self._json({}, 404)

    def _json(self, answer: dict, status: int = 200) -> None:
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def share() -> str:
    """The function's source, from the notebook."""
    path = next(path for path in notebooks() if path.name.startswith("15_"))
    for cell in nbformat.read(path, 4).cells:
        for node in ast.parse(cell.source).body if cell.cell_type == "code" else ():
            if getattr(node, "name", None) == "share":
                return ast.unparse(node)
    raise AssertionError(f"{path.name} defines no function share")


@pytest.fixture
def shared(tmp_path) -> tuple[Path, mean_pool_classifier.MeanPoolClassifier]:
    """A folder as the chapter writes it, with a small model."""
    body = BertConfig(
        vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    config = mean_pool_classifier.MeanPoolConfig(body=body.to_dict(), id2label={0: "sadness", 1: "joy"})
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = mean_pool_classifier.MeanPoolClassifier(config).eval()
    model.save_pretrained(tmp_path / "shared")
    head = ModelCardData(license="apache-2.0", language="en", pipeline_tag="text-classification")
    ModelCard(f"---\n{head.to_yaml()}\n---\n\n# A card\n").save(tmp_path / "shared" / "README.md")
    return tmp_path / "shared", model


@pytest.mark.slow
def test_what_is_shared_can_be_loaded_back(shared, tmp_path):
    folder, model = shared
    (tmp_path / "there").mkdir()
    hub = LoopbackHub({f"models/{NAME}": tmp_path / "there"})
    hub.server.RequestHandlerClass = type("Handler", (_Accepting,), {"hub": hub})
    environment = os.environ | {
        "HF_ENDPOINT": hub.endpoint,
        "HF_HOME": str(tmp_path / "home"),
        "no_proxy": "*",
    }
    environment |= {"HF_TOKEN": "hf_made_up", "HF_HUB_DISABLE_XET": "1", "HF_HUB_OFFLINE": "0"}
    environment["PYTHONPATH"] = str(Path(mean_pool_classifier.__file__).parents[2])

    def run(program: str, *arguments: str) -> None:
        command = [sys.executable, "-c", program, *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr

    with hub:
        run(UPLOAD.format(share=share()), str(folder), NAME)
        assert hub.private, "private until its owner decides otherwise"
        sent = {path.name: path.read_bytes() for path in folder.iterdir()}
        assert {path.name: path.read_bytes() for path in (tmp_path / "there").iterdir()} == sent
        run(LOAD, NAME, str(tmp_path / "logits"))
    ids = torch.tensor([[1, 2, 3, 4]])
    expected = model(ids, torch.ones_like(ids)).logits
    assert torch.equal(torch.load(tmp_path / "logits"), expected)
