"""Answers to the exercises of chapter 03, with small tokenizers."""

import random

from planted import Planted, defined
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from chapters_src.tokenization import BytePairTokenizer, UnigramTokenizer, WordPieceTokenizer
from paths import PACKAGE, ROOT

PROSE = [
    text for text in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("\n\n") if text.strip()
]
SIZE = 500
END = "<|endoftext|>"


def library_bpe(pre_tokenizer, size: int = SIZE) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=[END], show_progress=False)
    tokenizer.train_from_iterator(PROSE, trainer)
    return tokenizer


def per_token(tokenize, texts) -> float:
    return sum(map(len, texts)) / sum(len(tokenize(text)) for text in texts)


def planted() -> dict[str, Planted]:
    """Every exercise of the chapter."""
    bpe = BytePairTokenizer.train(PROSE[10:], vocab_size=SIZE, special_tokens=(END,))
    return {
        "3.1": Planted(
            (5,),
            {"number of characters": (4,), "combining mark": (6,), "too few": (1,), "too many": (12,)},
            secrets=("5", "five"),
        ),
        "3.2": typed_text(bpe),
        "3.3": packed_characters(bpe),
        "3.4": years(),
        "3.5": dropout(),
        "3.6": code(bpe),
    }


def typed_text(bpe: BytePairTokenizer) -> Planted:
    library = Tokenizer(models.BPE(bpe.vocabulary, bpe.merges))
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    library.add_special_tokens([END])
    return Planted(
        tuple(defined(3, "encode_user_text", library_bpe=library)),
        {
            "whoever types it can end the text": (lambda text: library.encode(text).ids,),
            "does not keep what was typed": (lambda text: bpe.encode(text.replace(END, "")),),
            "splits it differently": (lambda text: [id for letter in text for id in bpe.encode(letter)],),
            "does not have": (lambda text: [id + 10_000 for id in bpe.encode(text)],),
            "wanted a list of ids": (lambda text: library.encode(text),),
        },
        {"bpe": bpe},
        also_right=((bpe.encode,),),
        secrets=("encode_special_tokens",),
    )


def packed_characters(bpe: BytePairTokenizer) -> Planted:
    unigram = UnigramTokenizer.train(PROSE[10:], vocab_size=300)
    held_out = [*PROSE[:10], "Größe, naïveté, über, café " * 20]
    spaces = pre_tokenizers.Metaspace(prepend_scheme="first")
    spaces_only = library_bpe(spaces)
    tokens = {
        "BPE": bpe.tokenize,
        "BPE, split at spaces only": lambda text: spaces_only.encode(text).tokens,
        "Unigram": unigram.tokenize,
    }
    packed = {name: per_token(tokenize, held_out) for name, tokenize in tokens.items()}

    def each(ratio) -> dict:
        return {name: ratio(tokenize) for name, tokenize in tokens.items()}

    mean = each(lambda tokenize: sum(per_token(tokenize, [text]) for text in held_out) / len(held_out))
    in_bytes = each(lambda f: sum(len(t.encode()) for t in held_out) / sum(len(f(t)) for t in held_out))
    return Planted(
        (packed, spaces_only),
        {
            "upside down": ({name: 1 / value for name, value in packed.items()}, spaces_only),
            "each paragraph's own ratio": (mean, spaces_only),
            "bytes per token": (in_bytes, spaces_only),
            "tokens per paragraph": (
                each(lambda f: sum(len(f(t)) for t in held_out) / len(held_out)),
                spaces_only,
            ),
            "Is it rounded": ({name: round(value, 1) for name, value in packed.items()}, spaces_only),
            "too small": (each(lambda f: per_token(f, PROSE) / 2), spaces_only),
            "has no pre-tokenizer": (packed, library_bpe(None)),
            "does not split at spaces only": (packed, library_bpe(pre_tokenizers.ByteLevel())),
            "a larger vocabulary packs more": (packed, library_bpe(spaces, SIZE + 9)),
            "a dictionary": (3.9, spaces_only),
        },
        {"bpe": bpe, "unigram": unigram, "held_out": held_out},
        also_right=(({name: round(value, 2) for name, value in packed.items()}, spaces_only),),
        secrets=tuple(f"{value:.2f}" for value in packed.values()),
    )


def years() -> Planted:
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    whole = [str(year) for year in range(1990, 2022)]
    pieces = [*special, *whole, *(f"{prefix}{digit}" for prefix in ("", "##") for digit in range(10))]
    wordpiece = WordPieceTokenizer({piece: i for i, piece in enumerate(pieces)})
    return Planted(
        (whole,),
        {
            "becomes 4 tokens": (list(range(1990, 2030)),),
            "so are other years": (range(1990, 2010),),
            "so is another year": (range(1990, 2021),),
            "not among the years": (range(1980, 2022),),
            "Not a single year": ([],),
            "wanted a list of years": (32,),
        },
        {"wordpiece": wordpiece},
        also_right=((range(1990, 2022),), (set(map(int, whole)),)),
        secrets=("2021", "2022", "32 "),
    )


def dropout() -> Planted:
    _, encode_word, right = defined(3, "merge", "encode_word", "encode_with_dropout")

    def keeps_at_rate(word, merges, rate, generator):
        return encode_word(word, [pair for pair in merges if generator.random() < rate])

    def stops_at_first(word, merges, rate, generator):
        kept = []
        for pair in merges:
            if generator.random() < rate:
                break
            kept.append(pair)
        return encode_word(word, kept)

    def one_draw(word, merges, rate, generator):
        return encode_word(word, [] if generator.random() < rate else merges)

    def another_generator(word, merges, rate, generator):
        return right(word, merges, rate, random)

    def drops_pieces(word, merges, rate, generator):
        return [piece for piece in encode_word(word, merges) if generator.random() >= rate]

    def never(word, merges, rate, generator):
        return encode_word(word, merges)

    def pops(word, merges, rate, generator):
        merges.pop()
        return encode_word(word, merges)

    def a_string(word, merges, rate, generator):
        return " ".join(right(word, merges, rate, generator))

    def by_place(word, merges, rate, generator):
        pieces = list(word)
        for pair in merges:
            i = 0
            while i < len(pieces) - 1:
                if tuple(pieces[i : i + 2]) == pair and generator.random() >= rate:
                    pieces[i : i + 2] = ["".join(pair)]
                i += 1
        return pieces

    return Planted(
        (right,),
        {
            "at this rate no merge may be skipped": (keeps_at_rate,),
            "skip the second merge": (stops_at_first,),
            "get a draw of its own": (one_draw,),
            "draw from `generator` alone": (another_generator,),
            "does not spell the word": (drops_pieces,),
            "some merge was not skipped": (never,),
            "changes its argument": (pops,),
            "wanted a list of pieces": (a_string,),
            "not what `encode_word` makes": (lambda word, *others: [word[:2], word[2:]],),
        },
        also_right=((by_place,),),
        secrets=("merges if", "random() >="),
    )


def code(bpe: BytePairTokenizer) -> Planted:
    sources = [path.read_text(encoding="utf-8") for path in sorted((PACKAGE / "tokenization").glob("*.py"))]
    training, held_out = sources[2:], sources[:2]
    code_bpe = BytePairTokenizer.train(training, vocab_size=SIZE)
    at_home = {
        "prose": per_token(bpe.encode, PROSE) / per_token(code_bpe.encode, PROSE),
        "code": per_token(code_bpe.encode, held_out) / per_token(bpe.encode, held_out),
    }
    larger = BytePairTokenizer.train(training, vocab_size=SIZE + 50)
    upside_down = {name: 1 / factor for name, factor in at_home.items()}
    means = {name: sum(_factor(*pair, text) for text in texts) / len(texts) for name, pair, texts in (
        ("prose", (bpe, code_bpe), PROSE), ("code", (code_bpe, bpe), held_out))}  # fmt: skip
    return Planted(
        (code_bpe, at_home, training, held_out),
        {
            "the larger would win": (larger, at_home, training, held_out),
            "in the training code too": (code_bpe, at_home, training, sources[:4]),
            "upside down": (code_bpe, upside_down, training, held_out),
            "a short one counts": (code_bpe, means, training, held_out),
            "too large": (code_bpe, {"prose": 3.0, "code": 3.0}, training, held_out),
            "has to be a tokenizer": (code_bpe.encode, at_home, training, held_out),
            "has to be a list of texts": (code_bpe, at_home, "".join(training), held_out),
        },
        {"bpe": bpe, "prose": PROSE},
        also_right=((code_bpe, {n: round(f, 1) for n, f in at_home.items()}, training, held_out),),
        secrets=tuple(f"{factor:.2f}" for factor in at_home.values()),
    )


def _factor(home, guest, text: str) -> float:
    return len(guest.encode(text)) / len(home.encode(text))
