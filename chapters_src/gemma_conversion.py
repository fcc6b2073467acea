"""Convert Gemma 3 from a GGUF file, where its weights are packed, to a folder that the libraries load.

`resources.checkpoint("gemma")` calls it, once on each computer. A GGUF file is a header (settings, the whole
vocabulary, names and shapes of the tensors), and then the tensors, most of them packed into 4 to 8 bits a
weight. The folder gets

- `model.safetensors`: the weights, unpacked and rounded to half precision;
- `config.json` and `generation_config.json`, made of the settings;
- `tokenizer.json` and `tokenizer_config.json`, made of the vocabulary.

The libraries can load such files themselves, but need minutes of processor time and 3.4 GB of memory for it:
their reader makes several Python objects for each of 262,144 pieces, and their models unpack all weights at
once. Here the header is read directly, and a matrix is unpacked a few thousand rows at a time.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

import json
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

_MAGIC = b"GGUF"
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9  # Kinds of values in the header; the others are numbers, here as `struct` names them.
_ALIGNMENT = 32  # The tensors begin at a multiple of so many bytes.
_ROWS = 8192  # Unpacked at a time: 21 MB of Gemma's embedding in single precision.
_CONTROL, _USER_DEFINED = 3, 4  # Types of pieces that are never cut, nor made from parts.

_MODULES = {  # From the names of llama.cpp to those of Transformers.
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "post_ffw_norm": "post_feedforward_layernorm",
}
_SETTINGS = {
    "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size",
    "block_count": "num_hidden_layers",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "attention.sliding_window": "sliding_window",
}
# What the file does not say, because it is the same in all of Gemma 3: every sixth layer sees everything, the
# others a window and with a rotary base of their own.
_FULL_EVERY = 6
_LOCAL_BASE = 10_000.0
_END_OF_TURN = "<end_of_turn>"


class Tensor(NamedTuple):
    """Where a tensor is in the file, and how it is packed."""

    name: str
    shape: tuple[int, ...]  # As in PyTorch: the length of a row is last.
    kind: int  # A GGMLQuantizationType.
    start: int  # From the beginning of the file, in bytes.


class _Cursor:
    """Reads values of a header one after the other. All of them are little-endian."""

    def __init__(self, data: bytes):
        self.data = data
        self.place = 0

    def numbers(self, codes: str) -> tuple:
        found = struct.unpack_from(f"<{codes}", self.data, self.place)
        self.place += struct.calcsize(f"<{codes}")
        return found

    def string(self) -> str:
        (length,) = self.numbers("Q")
        self.place += length
        return self.data[self.place - length : self.place].decode()

    def value(self, kind: int) -> Any:
        if kind == _STRING:
            return self.string()
        if kind != _ARRAY:
            return self.numbers(_NUMBERS[kind])[0]
        kind, count = self.numbers("IQ")
        if kind in _NUMBERS:
            return list(self.numbers(f"{count}{_NUMBERS[kind]}"))
        return [self.value(kind) for _ in range(count)]


def convert(data: bytes, folder: Path) -> None:
    """Write the weights, the settings and the tokenizer of a Gemma 3 into an existing folder.

    `data` is the content of a GGUF file of architecture "gemma3".

    Raises:
        ValueError: it is no GGUF file, or one of another architecture.
        OSError: the folder cannot be written, or the disk is full.
    """
    settings, tensors = read_header(data)
    architecture = settings["general.architecture"]
    if architecture != "gemma3":
        raise ValueError(f"a GGUF file of the architecture {architecture!r}: only 'gemma3' is converted")
    _write_json(folder / "config.json", _config(settings, tensors))
    _write_json(folder / "generation_config.json", _generation_config(settings))
    _write_tokenizer(folder, settings)
    _write_weights(folder, data, tensors)


def read_header(data: bytes) -> tuple[dict, list[Tensor]]:
    """Read what a GGUF file, version 2 or 3, has before its tensors: the settings by name, and the tensors.

    Lists such as the vocabulary are among the settings.

    Raises:
        ValueError: it is no GGUF file of these versions.
    """
    cursor = _Cursor(data)
    magic, version, num_tensors, num_settings = cursor.numbers("4sIQQ")
    if magic != _MAGIC or version not in (2, 3):
        raise ValueError(f"no GGUF file of version 2 or 3: it begins with {data[:8]!r}")
    settings = {}
    for _ in range(num_settings):
        name = cursor.string()
        settings[name] = cursor.value(*cursor.numbers("I"))
    found = []
    for _ in range(num_tensors):
        name = cursor.string()
        shape = cursor.numbers(f"{cursor.numbers('I')[0]}Q")[::-1]  # Theirs begins with the length of a row.
        found.append(Tensor(name, shape, *cursor.numbers("IQ")))
    alignment = settings.get("general.alignment", _ALIGNMENT)
    first = -(-cursor.place // alignment) * alignment
    return settings, [tensor._replace(start=first + tensor.start) for tensor in found]


# Settings -------------------------------------------------------------------------------------------------


def _config(settings: Mapping[str, Any], tensors: list[Tensor]) -> dict:
    config = {ours: settings[f"gemma3.{theirs}"] for theirs, ours in _SETTINGS.items()}
    rotary = {"full_attention": settings["gemma3.rope.freq_base"], "sliding_attention": _LOCAL_BASE}
    layers = range(1, config["num_hidden_layers"] + 1)
    return config | {
        "architectures": ["Gemma3ForCausalLM"],
        "model_type": "gemma3_text",
        "vocab_size": len(settings["tokenizer.ggml.tokens"]),
        "layer_types": ["sliding_attention" if i % _FULL_EVERY else "full_attention" for i in layers],
        "rope_parameters": {
            kind: {"rope_type": "default", "rope_theta": base} for kind, base in rotary.items()
        },
        "query_pre_attn_scalar": config["head_dim"],
        # The header has it in single precision.
        "rms_norm_eps": float(f"{settings['gemma3.attention.layer_norm_rms_epsilon']:.6g}"),
        "hidden_activation": "gelu_pytorch_tanh",
        "attention_bias": False,
        "tie_word_embeddings": all(tensor.name != "output.weight" for tensor in tensors),
        # Not of the file, but what to compute in, and so what `from_pretrained` makes of the weights by
        # default: Gemma's activations are too large for half precision, and processors are slow with it.
        "dtype": "float32",
        **_special_ids(settings),
    }


def _generation_config(settings: Mapping[str, Any]) -> dict:
    """Greedy; a continuation also ends where a turn of a conversation does."""
    ids = _special_ids(settings)
    pieces = settings["tokenizer.ggml.tokens"]
    if _END_OF_TURN in pieces:
        ids["eos_token_id"] = [ids["eos_token_id"], pieces.index(_END_OF_TURN)]
    return {**ids, "do_sample": False}


def _special_ids(settings: Mapping[str, Any]) -> dict:
    theirs = {"bos": "bos", "eos": "eos", "pad": "padding"}
    return {f"{ours}_token_id": settings[f"tokenizer.ggml.{name}_token_id"] for ours, name in theirs.items()}


def _write_json(path: Path, content: dict) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False), encoding="utf-8")


# Tokenizer ------------------------------------------------------------------------------------------------


def _write_tokenizer(folder: Path, settings: Mapping[str, Any]) -> None:
    """Write byte-pair encoding with Gemma's pieces. Spaces are "▁", and unknown characters become bytes."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    spelled = settings["tokenizer.ggml.tokens"]  # There, two and more spaces are spaces.
    pieces = [piece if piece.strip(" ") else "▁" * len(piece) for piece in spelled]
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    bos, eos, pad, unknown = (
        pieces[settings[f"tokenizer.ggml.{name}_token_id"]] for name in ("bos", "eos", "padding", "unknown")
    )
    model = models.BPE(
        vocabulary, list(_merges(pieces, vocabulary)), unk_token=unknown, fuse_unk=True, byte_fallback=True
    )
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{bos} $A", pair=f"{bos} $A {bos}:1 $B:1", special_tokens=[(bos, vocabulary[bos])]
    )
    kinds = list(zip(spelled, settings["tokenizer.ggml.token_type"], strict=True))
    control = [AddedToken(piece, normalized=False, special=True) for piece, kind in kinds if kind == _CONTROL]
    whole = [piece for piece, kind in kinds if kind == _USER_DEFINED and piece in vocabulary]
    tokenizer.add_special_tokens(control)
    tokenizer.add_tokens([AddedToken(piece, normalized=False) for piece in whole])
    (folder / "tokenizer.json").write_text(tokenizer.to_str(), encoding="utf-8")
    names = {"bos_token": bos, "eos_token": eos, "pad_token": pad, "unk_token": unknown}
    padded = {"padding_side": "left", "model_max_length": settings["gemma3.context_length"]}
    _write_json(folder / "tokenizer_config.json", {"tokenizer_class": "GemmaTokenizer", **names, **padded})


def _merges(pieces: list[str], vocabulary: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Yield every way to make a piece of two others, in order of ids: the file itself has no merges."""
    for piece in pieces:
        for cut in range(len(piece) - 1, 0, -1):
            if piece[:cut] in vocabulary and piece[cut:] in vocabulary:
                yield piece[:cut], piece[cut:]


# Weights --------------------------------------------------------------------------------------------------


def _write_weights(folder: Path, data: bytes, tensors: list[Tensor]) -> None:
    from safetensors.numpy import save

    weights = {_module(tensor.name): unpack(data, tensor, np.float16) for tensor in tensors}
    # Not `save_file`: of a full disk it makes an error of its own, and the file is for its owner only.
    (folder / "model.safetensors").write_bytes(save(weights, metadata={"format": "pt"}))


def _module(name: str) -> str:
    """Return the name of a tensor in Transformers: "blk.3.attn_q.weight" is in the fourth layer."""
    if name == "output.weight":
        return "lm_head.weight"
    if not name.startswith("blk."):
        return f"{_MODULES[name.removesuffix('.weight')]}.weight"
    _, layer, module, _ = name.split(".")
    return f"model.layers.{layer}.{_MODULES[module]}.weight"


def unpack(data: bytes, tensor: Tensor, dtype: type[np.floating] = np.float32) -> np.ndarray:
    """Unpack one of the tensors that the header of a GGUF file lists: its weights, in its shape.

    They are unpacked in single precision and then rounded to `dtype`. From those of a norm, 1 is subtracted:
    the file has what a token is multiplied by, and Transformers adds the 1.
    """
    from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
    from gguf.quants import dequantize

    kind = GGMLQuantizationType(tensor.kind)
    weights_in_block, bytes_of_block = GGML_QUANT_SIZES[kind]
    *rows, width = tensor.shape
    packed = np.frombuffer(
        data, np.uint8, int(np.prod(tensor.shape)) // weights_in_block * bytes_of_block, tensor.start
    ).reshape(-1, width // weights_in_block * bytes_of_block)
    result = np.empty((len(packed), width), dtype)
    for i in range(0, len(packed), _ROWS):
        unpacked = dequantize(packed[i : i + _ROWS], kind)
        result[i : i + _ROWS] = unpacked - 1 if tensor.name.endswith("norm.weight") else unpacked
    return result.reshape(*rows, width)
