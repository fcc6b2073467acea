"""The weights that the site carries: rounded as by a plain loop, and written whole or not at all."""

import base64
import json
import math
import re
import zlib
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from website import language_model


def rounded_by_hand(row: list[float]) -> tuple[list[int], float]:
    """Round to the nearest of 255 values, row by row, in plain Python."""
    scale = max(abs(number) for number in row) / 127 or 1.0
    return [round(number / scale) for number in row], scale


def test_rounding_is_that_of_a_plain_loop():
    matrix = np.random.default_rng(0).normal(0, 3, (40, 24)).astype(np.float32)
    matrix[0], matrix[1, 3] = 0, 1000
    weights, scales = language_model.quantized(matrix)
    assert (weights.dtype, scales.dtype) == (np.int8, np.float32)
    for row, ours, scale in zip(matrix.tolist(), weights.tolist(), scales.tolist(), strict=True):
        expected, expected_scale = rounded_by_hand(row)
        assert scale == pytest.approx(expected_scale, rel=1e-6)
        assert ours == expected
        assert row == pytest.approx([weight * scale for weight in ours], abs=scale * 0.501)
    assert np.abs(weights).max(axis=1).tolist() == [0, *[127] * 39]


@pytest.mark.parametrize("bad", [math.inf, math.nan])
def test_what_is_no_number_is_refused(bad):
    with pytest.raises(ValueError, match="infinite numbers or NaN"):
        language_model.quantized(np.array([[1.0, bad]], np.float32))


@pytest.fixture
def tensors() -> dict[str, np.ndarray]:
    generator = np.random.default_rng(1)
    shapes = {"embedding": (30, 8), "norm": (8,), "up": (16, 8), "down": (8, 16), "other_norm": (5,)}
    return {name: generator.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


@pytest.fixture
def checkpoint(tmp_path, tensors, monkeypatch) -> Path:
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text('{"hidden_size": 8}')
    (folder / "tokenizer.json").write_text('{"piece": "Ġa"}', encoding="utf-8")
    monkeypatch.setattr(language_model, "kernel", lambda: b"\0asm")
    return folder


def unpacked(table: dict[str, dict], content: bytes, name: str) -> np.ndarray:
    """What the page makes of a tensor."""
    entry = table[name]
    shape, size = entry["shape"], math.prod(entry["shape"])
    if "scales" not in entry:
        return np.frombuffer(content, "<f4", size, entry["weights"])
    weights = np.frombuffer(content, np.int8, size, entry["weights"]).reshape(shape)
    return weights * np.frombuffer(content, "<f4", shape[0], entry["scales"])[:, None]


def test_what_is_written_is_what_the_page_reads(checkpoint, tensors, tmp_path):
    folder = tmp_path / "site" / "language_model"
    language_model.write(folder, checkpoint)
    head = (folder / "weights.js").read_text(encoding="ascii")
    shipped = json.loads(head.removeprefix("languageModel.shipped = ").removesuffix(";\n"))
    assert shipped["config"] == {"hidden_size": 8} and shipped["tokenizer"] == {"piece": "Ġa"}
    assert base64.b64decode(shipped["kernel"]) == b"\0asm"
    content = b""
    for number, part in enumerate(shipped["parts"]):
        text = (folder / f"weights-{number + 1}.js").read_text(encoding="ascii")
        place, encoded = re.fullmatch(r'languageModel\.shipped\.received\[(\d+)\] = "(.*)";\n', text).groups()
        decoded = base64.b64decode(encoded)
        assert (int(place), len(decoded)) == (number, part["length"])
        assert zlib.adler32(decoded) == part["checksum"]
        content += decoded
    assert len(shipped["parts"]) == language_model.NUM_PARTS
    assert len(list(folder.iterdir())) == language_model.NUM_PARTS + 1
    for name, tensor in tensors.items():
        entry = shipped["tensors"][name]
        assert entry.get("scales", entry["weights"]) % 4 == 0, "a Float32Array has to be aligned"
        step = 0 if tensor.ndim == 1 else np.abs(tensor).max() / 254 * 1.01
        np.testing.assert_allclose(unpacked(shipped["tensors"], content, name), tensor, rtol=0, atol=step)


def test_nothing_is_left_of_a_failure(checkpoint, tmp_path, monkeypatch):
    def failing():
        raise language_model.KernelFailed("no")

    monkeypatch.setattr(language_model, "kernel", failing)
    with pytest.raises(language_model.KernelFailed):
        language_model.write(tmp_path / "site" / "language_model", checkpoint)
    assert not (tmp_path / "site" / "language_model").exists()


def test_bfloat16_is_read_as_the_library_reads_it(tmp_path):
    import torch
    from safetensors.torch import save_file as save_tensors

    tensor = torch.randn(7, 8, generator=torch.Generator().manual_seed(0)).bfloat16()
    save_tensors({"a": tensor}, tmp_path / "model.safetensors")
    found = language_model.read_tensors(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(found["a"], tensor.float().numpy())


def test_what_the_page_could_not_run_is_refused(tmp_path):
    with pytest.raises(ValueError, match="7 columns: they have to be a multiple of 8"):
        language_model.packed({"odd": np.ones((2, 7), np.float32)})
    save_file({"a": np.ones((2, 8), np.float16)}, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="F16: bfloat16 or float32 is needed"):
        language_model.read_tensors(tmp_path / "model.safetensors")


@pytest.mark.slow
def test_the_kernel_compiles_to_less_than_a_kilobyte():
    found = language_model.kernel()
    assert found.startswith(b"\0asm") and len(found) < 1000
