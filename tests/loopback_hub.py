"""A Hub on this computer: it serves what a test has made, by the part of the Hub's protocol that is needed.

Three requests are answered, for models and for data sets: what a repository holds (`GET /api/models/ID`, also
with `/revision/NAME` behind it), and the head and the content of one of its files (`HEAD` and
`GET /ID/resolve/REVISION/FILE`). Besides, it stands in for other hosts: `GET /HOST/PATH` is a file of the
folder "web". The rest is a 404.
Whatever is asked for is noted in `requests`; `fault` and `spoilt` make the Hub misbehave from then on.
"""

import hashlib
import http.server
import json
import re
import threading
from pathlib import Path

REVISION = "0123456789abcdef0123456789abcdef01234567"
LARGE = (".safetensors", ".parquet")  # Kept in the store for large files, which has a sha256 for each.
FAULTS = (
    "hanging",  # Accepts requests, never answers.
    "broken",  # Answers each request with error 503.
    "not a Hub",  # Answers each request with a page, as a guest network does.
    "files missing",  # Lists files that it does not have.
    "cut off",  # Announces 100,000 bytes, sends 1,000, and closes the connection.
)


class LoopbackHub:
    """Serve folders as repositories, inside a `with` block.

    Args:
        repositories: from ids such as "models/owner/name" and "datasets/owner/name" to folders; "web" to one
            that has a folder for each host.
    """

    def __init__(self, repositories: dict[str, Path]):
        self.repositories = repositories
        self.requests: list[str] = []
        self.fault: str | None = None  # One of FAULTS.
        self.spoilt: set[str] = set()  # Names of files in which one bit is another; their length stays.
        self.released = threading.Event()  # Ends requests that hang.
        handler = type("Handler", (_Handler,), {"hub": self})
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.endpoint = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self) -> "LoopbackHub":
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *exception) -> None:
        self.released.set()
        self.server.shutdown()
        self.server.server_close()

    def described(self, repository: str, with_hashes: bool) -> dict:
        """What the Hub says about a repository: its revision and its files."""
        folder = self.repositories[repository]
        files = []
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            hashes = self._hashes(path) if with_hashes else {}
            files.append({"rfilename": path.relative_to(folder).as_posix(), **hashes})
        return {"id": repository.split("/", 1)[1], "sha": REVISION, "siblings": files}

    @staticmethod
    def _hashes(path: Path) -> dict:
        content = path.read_bytes()
        result = {"size": len(content), "blobId": git_hash(content)}
        if path.suffix in LARGE:
            sha256 = hashlib.sha256(content).hexdigest()
            result["lfs"] = {"sha256": sha256, "size": len(content), "pointerSize": 134}
        return result


def use(hub: LoopbackHub, home: Path, monkeypatch) -> None:
    """Choose full resources from this Hub, with empty caches in `home`, as HF_HOME does in a new process."""
    import datasets
    import huggingface_hub

    monkeypatch.setenv("BOOK_RESOURCES", "full")
    monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(home / "hub"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", home / "datasets")


def git_hash(content: bytes) -> str:
    """The name that Git gives to a file with this content."""
    return hashlib.sha1(f"blob {len(content)}\0".encode() + content).hexdigest()


class _Handler(http.server.BaseHTTPRequestHandler):
    hub: LoopbackHub

    def do_GET(self):
        self.hub.requests.append(f"{self.command} {self.path}")
        if self.hub.fault == "hanging":
            self.hub.released.wait()
        elif self.hub.fault == "broken":
            self._answer(503, b"")
        elif self.hub.fault == "not a Hub":
            self._answer(200, b"<p>Please accept our terms.</p>")
        elif described := re.fullmatch(
            r"/api/((?:models|datasets)/[^/]+/[^/?]+)(/revision/[^/?]+)?(\?.*)?", self.path
        ):
            self._describe(described[1], with_hashes="blobs=true" in self.path.lower())
        elif resolved := re.fullmatch(r"/(datasets/)?([^/]+/[^/]+)/resolve/([^/]+)/(.+)", self.path):
            self._send_file((resolved[1] or "models/") + resolved[2], resolved[3], resolved[4])
        elif "web" in self.hub.repositories:
            self._send_file("web", REVISION, self.path.lstrip("/"))
        else:
            self._answer(404, b"", {"X-Error-Code": "EntryNotFound"})

    do_HEAD = do_GET  # noqa: N815

    def _describe(self, repository: str, with_hashes: bool) -> None:
        if repository not in self.hub.repositories:
            self._answer(404, b"{}", {"X-Error-Code": "RepoNotFound"})
        else:
            self._answer(200, json.dumps(self.hub.described(repository, with_hashes)).encode())

    def _send_file(self, repository: str, revision: str, name: str) -> None:
        folder = self.hub.repositories.get(repository)
        known = folder is not None and revision in (REVISION, "main") and (folder / name).is_file()
        if not known or self.hub.fault == "files missing":
            self._answer(404, b"", {"X-Error-Code": "EntryNotFound"})
            return
        content = (folder / name).read_bytes()
        hashed = hashlib.sha256(content).hexdigest() if name.endswith(LARGE) else git_hash(content)
        headers = {"ETag": f'"{hashed}"', "X-Repo-Commit": REVISION}
        if not self.hub.spoilt.isdisjoint((name, name.rpartition("/")[2])):
            content = content[:-1] + bytes([content[-1] ^ 1])
        self._answer(200, content, headers)

    def _answer(self, status: int, content: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        cut_off = self.hub.fault == "cut off"
        self.send_header("Content-Length", "100000" if cut_off else str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content[:1000] if cut_off else content)

    def log_message(self, *arguments):
        pass


# What the Hub of the tests serves ------------------------------------------------------------------------

MODEL = "models/distilbert/distilbert-base-uncased"
LANGUAGE_MODELS = ("models/openai-community/gpt2", "models/openai-community/gpt2-xl")
WRITERS = (  # Encoder-decoders, from the kind that Transformers has to the repository.
    ("bart", "models/facebook/bart-large-cnn"),
    ("t5", "models/google-t5/t5-small"),
    ("pegasus", "models/saumyasinha0510/Pegasus_CNN_DailyMail"),
)
GEMMAS = ("models/unsloth/gemma-3-270m", "models/unsloth/gemma-3-270m-it")
TRANSLATOR = "models/Helsinki-NLP/opus-mt-en-de"
HEADS = (  # On encoders: the class that Transformers has for it, its labels, and the repository.
    (
        "DistilBertForSequenceClassification",
        ("NEGATIVE", "POSITIVE"),
        "models/distilbert/distilbert-base-uncased-finetuned-sst-2-english",
    ),
    (
        "BertForTokenClassification",
        ("O", "B-MISC", "I-MISC", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC"),
        "models/dslim/bert-base-NER",
    ),
    ("DistilBertForQuestionAnswering", (), "models/distilbert/distilbert-base-cased-distilled-squad"),
)
EMOTION = "datasets/dair-ai/emotion"
NEWS, DIALOGUES = "datasets/abisee/cnn_dailymail", "datasets/knkarthick/samsum"
MULTI30K = "datasets/bentrevett/multi30k"
LABELS = ("sadness", "joy", "love", "anger", "fear", "surprise")
SIZES = {"train": 360, "validation": 90, "test": 90}


def make_emotion(folder: Path) -> Path:
    """Write a data set with the files, columns and card of `dair-ai/emotion`, and a few hundred rows."""
    import pandas as pd

    parts = {"split": tuple(SIZES), "unsplit": ("train",)}
    label = {"class_label": {"names": {str(i): label for i, label in enumerate(LABELS)}}}
    features = [{"name": "text", "dtype": "string"}, {"name": "label", "dtype": label}]
    infos, configs = [], []
    for part, splits in parts.items():
        infos.append({"config_name": part, "features": features})
        files = [{"split": split, "path": f"{part}/{split}-*"} for split in splits]
        configs.append({"config_name": part, "data_files": files})
        (folder / part).mkdir(parents=True)
    head = json.dumps({"dataset_info": infos, "configs": configs})  # JSON is YAML, too.
    (folder / "README.md").write_text(f"---\n{head}\n---\n# Made up for a test\n", encoding="utf-8")
    rows, start = messages(sum(SIZES.values())), 0
    for split, size in SIZES.items():
        table = pd.DataFrame(rows[start : start + size], columns=["text", "label"])
        table.to_parquet(folder / "split" / f"{split}-00000-of-00001.parquet", index=False)
        start += size
    whole = pd.DataFrame(rows, columns=["text", "label"])
    whole.to_parquet(folder / "unsplit" / "train-00000-of-00001.parquet", index=False)
    return folder


WORDS = {
    "sadness": ("gloomy", "lonely", "hopeless", "miserable", "empty"),
    "joy": ("cheerful", "happy", "glad", "content", "delighted"),
    "love": ("tender", "caring", "fond", "loving", "devoted"),
    "anger": ("furious", "irritated", "bitter", "outraged", "annoyed"),
    "fear": ("afraid", "nervous", "scared", "anxious", "uneasy"),
    "surprise": ("amazed", "astonished", "stunned", "surprised", "shocked"),
}
OPENINGS = (
    "i feel",
    "i am feeling",
    "today i felt",
    "somehow i feel",
    "i started to feel",
    "she left me feeling",
)
ENDINGS = (
    "about the news",
    "when i think of home",
    "this morning",
    "after the call",
    "and i said so",
    "again",
)


def messages(count: int) -> list[tuple[str, int]]:
    """Distinct messages with their labels: some word in each says what it is. Two classes are rare."""
    import random

    generator = random.Random(0)
    every = [
        (f"{opening} {word} and {other} {ending}", i)
        for i, label in enumerate(LABELS)
        for word in WORDS[label]
        for other in WORDS[label]
        for opening in OPENINGS
        for ending in ENDINGS
        if word != other and (label not in ("love", "surprise") or ending in ENDINGS[:2])
    ]
    return generator.sample(every, count)


def make_model(folder: Path, tokenizer_folder: Path) -> Path:
    """Write a DistilBERT with random weights: the layers and heads of the published one, only narrow.

    Args:
        folder: where the model goes.
        tokenizer_folder: holds tokenizer.json and vocab.txt of `bert-base-uncased`.
    """
    import torch
    from transformers import DistilBertConfig, DistilBertForMaskedLM

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = DistilBertForMaskedLM(DistilBertConfig(dim=48, hidden_dim=96, n_layers=6, n_heads=12))
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    tokenizer = json.loads((tokenizer_folder / "tokenizer.json").read_text(encoding="utf-8"))
    tokenizer |= {"truncation": None, "padding": None}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": true, "model_max_length": 512}')
    (folder / "vocab.txt").write_bytes((tokenizer_folder / "vocab.txt").read_bytes())
    (folder / "pytorch_model.bin").write_bytes(b"pickled weights, which nobody is to fetch")
    return folder


def make_head(folder: Path, model_class: str, labels: tuple[str, ...], tokenizer_folder: Path) -> Path:
    """Write an encoder with a head and random weights, narrow, as one of `HEADS`.

    Args:
        folder: where the model goes.
        model_class: of Transformers.
        labels: of the head's outputs; none for a model that answers questions.
        tokenizer_folder: as for `make_model`.
    """
    import torch
    import transformers

    make_model(folder, tokenizer_folder)
    kind = getattr(transformers, model_class)
    sizes = {"dim": 48, "hidden_dim": 96, "n_layers": 2, "n_heads": 4}
    if model_class.startswith("Bert"):
        sizes = {"hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4}
    if labels:
        sizes |= {"id2label": dict(enumerate(labels)), "label2id": {name: i for i, name in enumerate(labels)}}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        kind(kind.config_class(**sizes)).save_pretrained(folder)
    if labels:  # These repositories have the vocabulary alone.
        (folder / "tokenizer.json").unlink()
    (folder / "special_tokens_map.json").write_text('{"unk_token": "[UNK]", "pad_token": "[PAD]"}')
    return folder


def make_language_model(folder: Path) -> Path:
    """Write a GPT-2 with random weights, narrow, whose tokenizer has learned from this file."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes = {"vocab_size": 600, "n_positions": 512, "n_embd": 24, "n_layer": 2, "n_head": 2}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=0, eos_token_id=0))
        for parameter in model.parameters():
            if parameter.ndim == 2:  # As it is, nearly all tokens would be equally probable.
                parameter.data.mul_(15)
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    end = "<|endoftext|>"
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=[end],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train([__file__], trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    tokenizer.model.save(str(folder))  # vocab.json and merges.txt
    settings = {"tokenizer_class": "GPT2Tokenizer", "bos_token": end, "eos_token": end, "unk_token": end}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings | {"model_max_length": 512}))
    return folder


def make_gemma(folder: Path, *, attention_of_270m: bool = False) -> Path:
    """Write a Gemma 3 with random weights in bfloat16, narrow, whose tokenizer has learned from this file.

    With `attention_of_270m` its attention is that of Gemma 3 270M, so that low-rank updates fit.
    """
    import torch
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import Gemma3ForCausalLM, Gemma3TextConfig

    names = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "<start_of_turn>", "<end_of_turn>"]
    settings = {"vocab_size": 600, "special_tokens": names, "show_progress": False}
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.Fuse()])
    tokenizer.train([__file__], trainers.BpeTrainer(**settings))
    tokenizer.post_processor = processors.TemplateProcessing(single="<bos> $A", special_tokens=[("<bos>", 2)])
    sizes = {"hidden_size": 24, "intermediate_size": 48, "num_hidden_layers": 6, "head_dim": 8}
    sizes |= {"num_attention_heads": 2, "num_key_value_heads": 1, "sliding_window": 16}
    if attention_of_270m:
        sizes |= {"hidden_size": 640, "num_hidden_layers": 18, "head_dim": 256, "num_attention_heads": 4}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        config = Gemma3TextConfig(vocab_size=tokenizer.get_vocab_size(), **sizes, query_pre_attn_scalar=8)
        Gemma3ForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    kinds = {f"{name}_token": f"<{name}>" for name in ("pad", "eos", "bos", "unk", "mask")}
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "GemmaTokenizer", **kinds}))
    return folder


def make_writer(folder: Path, kind: str) -> Path:
    """Write an encoder-decoder with random weights, narrow, whose tokenizer has learned from this file.

    Args:
        folder: where the model goes.
        kind: "bart", "t5" or "pegasus".
    """
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import AutoConfig, AutoModelForSeq2SeqLM

    sizes = {"vocab_size": 800, "d_model": 24, "pad_token_id": 1, "eos_token_id": 2}
    sizes |= {"decoder_start_token_id": 2}
    if kind == "t5":
        sizes |= {"d_kv": 12, "d_ff": 48, "num_layers": 2, "num_heads": 2}
    else:
        sizes |= {"encoder_layers": 2, "encoder_attention_heads": 2, "encoder_ffn_dim": 48}
        sizes |= {"decoder_layers": 2, "decoder_attention_heads": 2, "decoder_ffn_dim": 48}
        sizes |= {"max_position_embeddings": 600, "bos_token_id": 0, "forced_eos_token_id": None}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = AutoModelForSeq2SeqLM.from_config(AutoConfig.for_model(kind, **sizes))
    model.save_pretrained(folder)
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    settings = {"vocab_size": 400, "special_tokens": special, "show_progress": False}
    if kind == "bart":
        tokenizer, byte_level = Tokenizer(models.BPE()), pre_tokenizers.ByteLevel
        tokenizer.pre_tokenizer = byte_level(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(initial_alphabet=byte_level.alphabet(), **settings)
    else:
        tokenizer = Tokenizer(models.Unigram())
        tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
        trainer = trainers.UnigramTrainer(unk_token="<unk>", **settings)
    tokenizer.train([__file__], trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    tokenizer.model.save(str(folder))  # For BART vocab.json and merges.txt.
    names = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>", "mask_token": "<mask>"}
    (folder / "special_tokens_map.json").write_text(json.dumps(names))
    names |= {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 512}
    (folder / "tokenizer_config.json").write_text(json.dumps(names))
    return folder


def make_translator(folder: Path) -> Path:
    """Write a Marian with random weights, narrow, and the two SentencePiece files of its tokenizer."""
    import sentencepiece
    import torch
    from transformers import MarianConfig, MarianMTModel

    folder.mkdir(parents=True)
    pieces = []
    for side in ("source", "target"):
        place = folder / f"{side}.spm"
        with place.open("wb") as file:
            sentencepiece.SentencePieceTrainer.train(
                input=__file__, model_writer=file, vocab_size=300, hard_vocab_limit=False, minloglevel=2
            )
        trained = sentencepiece.SentencePieceProcessor(model_file=str(place))
        pieces += [trained.id_to_piece(i) for i in range(len(trained))]
    names = list(dict.fromkeys(["</s>", "<unk>", *pieces, "<pad>"]))
    (folder / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(names)}))
    (folder / "tokenizer_config.json").write_text('{"source_lang": "en", "target_lang": "de"}')
    sides = ("encoder", "decoder")
    sizes = {f"{side}_layers": 2 for side in sides} | {f"{side}_attention_heads": 2 for side in sides}
    sizes |= {f"{side}_ffn_dim": 48 for side in sides} | {"d_model": 24, "vocab_size": len(names)}
    ids = {"pad_token_id": len(names) - 1, "decoder_start_token_id": len(names) - 1, "eos_token_id": 0}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        config = MarianConfig(**sizes, **ids, forced_eos_token_id=0, max_position_embeddings=512)
        MarianMTModel(config).save_pretrained(folder)
    (folder / "pytorch_model.bin").write_bytes(b"pickled weights, which nobody is to fetch")
    return folder


def make_pairs(folder: Path) -> Path:
    """Write a data set with the files and columns of Multi30k, and a few dozen rows each."""
    folder.mkdir(parents=True)
    told = [text for text, _ in messages(120)]
    for name, part in (("train", told[:80]), ("val", told[80:100]), ("test", told[100:])):
        rows = [{"en": text, "de": text[::-1]} for text in part]
        lines = "".join(f"{json.dumps(row)}\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    return folder


def make_web(folder: Path) -> Path:
    """Write what the book takes from other hosts: vectors, their catalog, and two books.

    The vectors, for the words of `messages`, are random; each book has a few hundred of its sentences.
    """
    import gzip
    import random

    from chapters_src import resources

    def place(address: str) -> Path:
        path = folder / address.removeprefix("https://")
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    generator = random.Random(0)
    words = sorted({word for text, _ in messages(540) for word in text.split()} | {".", ",", "the"})
    lines = [f"{len(words)} 50"]
    lines += [" ".join([word, *(f"{generator.gauss(0, 1):.5f}" for _ in range(50))]) for word in words]
    ((file, address),) = resources.DATA_SETS["glove"].full.addresses.items()
    place(address).write_bytes(gzip.compress("\n".join([*lines, ""]).encode(), mtime=0))
    checksum = hashlib.md5(place(address).read_bytes()).hexdigest()
    listed = {"models": {file.removesuffix(".gz"): {"file_name": file, "checksum": checksum}}}
    place(resources.DATA_SETS["glove"].full.catalog).write_text(json.dumps(listed), encoding="utf-8")
    told = messages(540)
    parts = {
        "alice.txt": [t for t, label in told if label in (0, 3, 4)],
        "oz.txt": [t for t, label in told if label in (1, 2, 5)],
    }
    for file, address in resources.DATA_SETS["alice-and-oz"].full.addresses.items():
        sentences = " ".join(f"{text.capitalize()}." for text in parts[file])
        text = f"Of the library\n*** START OF THE PROJECT GUTENBERG EBOOK {file} ***\n\n{sentences}\n\n"
        place(address).write_text(
            f"\ufeff{text}*** END OF THE PROJECT GUTENBERG EBOOK ***\nTerms", encoding="utf-8"
        )
    return folder


def make_texts(folder: Path) -> dict[str, Path]:
    """Write data sets with the files and columns of CNN/DailyMail and of SAMSum, and a dozen rows each.

    Returns:
        From ids to folders, as `LoopbackHub` takes them.
    """
    import pandas as pd

    told = [text for text, _ in messages(48)]
    news = [" ".join(f"{text.capitalize()}." for text in told[i : i + 4]) for i in range(0, 48, 4)]
    chats = ["\n".join(f"Ann: {text}" for text in told[i : i + 4]) for i in range(0, 48, 4)]
    (folder / "news" / "3.0.0").mkdir(parents=True)
    (folder / "dialogues").mkdir()
    rows = {"article": news, "highlights": told[::4], "id": [str(i) for i in range(12)]}
    pd.DataFrame(rows).to_parquet(folder / "news" / "3.0.0" / "test-00000-of-00001.parquet", index=False)
    rows = {"id": range(12), "dialogue": chats, "summary": told[::4]}
    pd.DataFrame(rows).to_csv(folder / "dialogues" / "test.csv", index=False)
    return {NEWS: folder / "news", DIALOGUES: folder / "dialogues"}
