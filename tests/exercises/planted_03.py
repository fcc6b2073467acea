"""Answers to the exercises of chapter 03, with small tokenizers."""

import copy
import json
import random
import re
import tempfile
from functools import partial
from itertools import pairwise
from pathlib import Path

import torch
import transformers
from planted import Planted, defined, planted
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from chapters_src.tokenization import BytePairTokenizer, WordPieceTokenizer
from paths import PACKAGE, ROOT

PAGES = [ROOT / name for name in ("CONTRIBUTING.md", "STYLE.md", "MAINTAINING.md")]
PROSE = [t for page in PAGES for t in page.read_text(encoding="utf-8").split("\n\n") if t.strip()]
SIZE = 500
END = "<|endoftext|>"
MARKS = ["<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>"]


@planted("3.1")
def long_texts() -> Planted:
    (right,) = defined(3, "windows")

    def cut(ids, room, step, extra=0, ends=([101], [102])):
        found, start = [], 0
        while True:
            found.append([*ends[0], *ids[start : start + room], *ends[1]])
            if start + room + extra >= len(ids):
                return found
            start += step

    def to_the_end(ids, limit, overlap):  # as range(0, len(ids), step) does
        starts = range(0, max(len(ids), 1), limit - 2 - overlap)
        return [[101, *ids[i : i + limit - 2], 102] for i in starts]

    return Planted(
        (right,),
        {
            "has to hold [CLS] and [SEP] too": (lambda ids, n, o: cut(ids, n, n - o),),
            "stand in two neighboring": (lambda ids, n, o: cut(ids, n - 2, n - o),),
            "how far a window moves on": (lambda ids, n, o: cut(ids, n - 2, o),),
            "as if nothing were repeated": (lambda ids, n, o: cut(ids, n - 2, n - 2),),
            "All of the last one stands": (
                lambda ids, n, o: [*right(ids, n, o), [101, *ids[-o:], 102]] if o else right(ids, n, o),
            ),
            "too many": (lambda ids, n, o: [[101, token_id, 102] for token_id in ids],),
            "too few": (lambda ids, n, o: [[101, *ids[: n - 2], 102]],),
            "over its limit": (lambda ids, n, o: cut(ids, n - 2 if len(ids) > 200 else n, n - 2 - o),),
            "without 101 in front": (lambda ids, n, o: cut(ids, n - 2, n - 2 - o, ends=([], [])),),
            "loses": (lambda ids, n, o: cut(ids, n - 2, n - 2 - o, extra=2),),
            "gives no window": (lambda ids, n, o: right(ids, n, o) if ids else [],),
            "look there": (lambda ids, n, o: to_the_end(ids, n, o) if len(ids) < 200 else right(ids, n, o),),
        },
        also_right=(
            (lambda ids, n, o: tuple(map(tuple, right(ids, n, o))),),
            (lambda ids, n, o: map(torch.tensor, right(ids, n, o)),),
        ),
        secrets=("53", "94", "126"),
    )


def small_gemma() -> Tokenizer:
    """Like Gemma's: bytes for what is no piece, spaces written as ▁, marks that are cut out first."""
    trained = Tokenizer(models.BPE(unk_token="<unk>"))
    trained.normalizer = normalizers.Replace(" ", "▁")
    trained.train_from_iterator(PROSE, trainers.BpeTrainer(vocab_size=SIZE, show_progress=False))
    model = json.loads(trained.to_str())["model"]
    learned = sorted(model["vocab"], key=model["vocab"].get)
    pieces = [*MARKS, *(f"<0x{byte:02X}>" for byte in range(256)), *learned]
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    merges = [tuple(pair) for pair in model["merges"]]
    gemma = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    gemma.normalizer = normalizers.Replace(" ", "▁")
    gemma.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    gemma.add_special_tokens([AddedToken(mark, special=True, normalized=False) for mark in MARKS])
    return gemma


@planted("3.2")
def typed_text() -> Planted:
    gemma = small_gemma()
    names = ("join", "encode", "safe_encode")
    _, encode, right = defined(3, *names, gemma_vocabulary=gemma.get_vocab(), pairwise=pairwise)

    def plain(text):
        return gemma.encode(text, add_special_tokens=False).ids

    def without_marks(text):
        for mark in MARKS:
            text = text.replace(mark, "")
        return plain(text)

    def elsewhere(text):  # as many tokens, with a boundary at another place
        for i in range(len(text)):
            ids = encode(text[:i]) + encode(text[i:])
            if len(ids) == len(encode(text)) and ids != encode(text):
                return ids
        return encode(text)

    def wary_of_tags(text):
        parts = text if re.search("<[a-z]+>", text) else [text]
        return [token_id for part in parts for token_id in encode(part)]

    def by_option(text):
        gemma.encode_special_tokens = True
        ids = plain(text)
        gemma.encode_special_tokens = False
        return ids

    return Planted(
        (right,),
        {
            "one of them <end_of_turn>": (plain,),
            "one of them <unk>": (lambda text: plain(text) if "<unk>" in text else encode(text),),
            "loses something that was typed": (without_marks,),
            "changes what was typed": (lambda text: encode(text.replace("_", "__")),),
            "and in training this text was": (lambda text: [i for letter in text for i in encode(letter)],),
            "('write <name> here') is safe": (wary_of_tags,),
            "not those of the training": (elsewhere,),
            "begins with <bos>": (
                lambda text: encode(text) if "<" in text else [2, *encode(text)],
            ),
            "does not have": (lambda text: [token_id + 10_000 for token_id in encode(text)],),
        },
        {"gemma": gemma},
        also_right=((encode,), (by_option,)),
        secrets=("encode_special_tokens", "join", "encode(text)"),
    )  # fmt: skip


@planted("3.3")
def dropout() -> Planted:
    join, right = defined(3, "join", "join_with_dropout", pairwise=pairwise)

    def places(pieces, vocabulary):
        return [(vocabulary[a + b], i) for i, (a, b) in enumerate(pairwise(pieces)) if a + b in vocabulary]

    def general(word, vocabulary, keeps, goes_on=False):
        pieces = list(word)
        while found := places(pieces, vocabulary):
            kept = [place for place in found if keeps(place)]
            if not kept and goes_on:
                continue
            if not kept:
                break
            _, i = min(kept)
            pieces[i : i + 2] = [pieces[i] + pieces[i + 1]]
        return pieces

    def for_the_whole_word(word, vocabulary, rate, generator):
        dropped = {id for id in sorted(vocabulary.values()) if generator.random() < rate}
        return general(word, vocabulary, lambda place: place[0] not in dropped)

    def only_the_best(word, vocabulary, rate, generator):  # one draw a round
        pieces = list(word)
        while found := places(pieces, vocabulary):
            if generator.random() < rate:
                break
            _, i = min(found)
            pieces[i : i + 2] = [pieces[i] + pieces[i + 1]]
        return pieces

    def never_done(word, vocabulary, rate, generator):
        if rate == 1:
            return list(word)
        return general(word, vocabulary, lambda place: generator.random() >= rate, goes_on=True)

    return Planted(
        (right,),
        {
            "more than it should": (for_the_whole_word,),
            "is each place left out by a draw": (only_the_best,),
            "When is a word done, if in a round": (never_done,),
            "it never ends": (
                lambda w, v, rate, g: general(w, v, lambda place: g.random() >= rate, goes_on=True),
            ),
            "fewer than it should": (lambda w, v, rate, g: right(w, v, rate if rate == 1 else rate / 2, g),),
            "at this rate nothing may be left out": (
                lambda w, v, rate, g: general(w, v, lambda place: g.random() < rate),
            ),
            "all give the same pieces": (lambda w, v, rate, g: right(w, v, rate, random.Random(2)),),
            "draw from `generator` alone": (lambda w, v, rate, g: right(w, v, rate, random),),
            "some place was not left out": (lambda w, v, rate, g: join(w, v),),
            "does not spell the word": (
                lambda w, v, rate, g: [x for x in join(w, v) if g.random() >= rate],
            ),
            "not what `join` makes": (lambda w, v, rate, g: [w[:2], w[2:]],),
            "comes out in": (almost_right(right),),
        },
        also_right=((lambda w, v, rate, g: tuple(right(w, v, rate, g)),),),
        secrets=("random() >=", "if not joints"),
    )  # fmt: skip


def almost_right(right):
    """The right mean with the wrong splits: pieces in reverse order of length, where that spells the word."""

    def longest_in_front(word, vocabulary, rate, generator):
        found = right(word, vocabulary, rate, generator)
        if rate in (0, 1) or word != "training":
            return found
        first = len(word) - len(found) + 1
        return [word[:first], *word[first:]]

    return longest_in_front


@planted("3.4")
def new_piece() -> Planted:
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    text = "does auto_place look at the size of figure before it moves legend?"
    words = re.findall(r"[a-z]+|[_?]", text)
    vocabulary = {piece: i for i, piece in enumerate([*special, *words])}
    config = transformers.BertConfig(
        vocab_size=len(vocabulary), hidden_size=8, num_hidden_layers=1, num_attention_heads=1,
        intermediate_size=8,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        encoder = transformers.BertModel(copy.deepcopy(config))
        with torch.no_grad():
            encoder.get_input_embeddings().weight.normal_()

    def tokenizer(*added):
        made = transformers.BertTokenizer(vocab=vocabulary)
        made.add_tokens(list(added))
        return made

    pretrained, as_special = tokenizer(), tokenizer()
    as_special.add_special_tokens({"additional_special_tokens": ["auto_place"]})
    before = pretrained("auto_place", add_special_tokens=False)["input_ids"]

    grown = len(vocabulary) + 1

    def model(row=None, size=grown, change=0.0):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            made = transformers.BertModel(copy.deepcopy(config))
            made.load_state_dict(encoder.state_dict())
            made.resize_token_embeddings(size)
        weight = made.get_input_embeddings().weight
        with torch.no_grad():
            if row is not None:
                weight[len(vocabulary)] = row
            weight[3] += change
        return made

    old = encoder.get_input_embeddings().weight.detach()
    mean, mine = old[before].mean(dim=0), tokenizer("auto_place")
    return Planted(
        (mine, model(mean)),
        {
            "would raise an IndexError": (mine, model(size=len(vocabulary))),
            "close to the mean of *all* rows": (mine, model(old.mean(dim=0))),
            "the sum of its old rows": (mine, model(old[before].sum(dim=0))),
            "not the mean of the rows": (mine, model(old[before[0]])),
            "old rows have changed": (mine, model(mean, change=0.5)),
            f"for {len(vocabulary) + 1} pieces": (mine, model(mean, size=64)),
            "and then 'auto_place'": (tokenizer(), model(mean)),
            f"has {grown + 1} pieces": (
                tokenizer("two more", "auto_place"),
                model(mean, size=len(vocabulary) + 2),
            ),
            "is a special token now": (as_special, model(mean)),
            "own tokenizer was changed": (pretrained, model(mean)),
            "own model was changed": (mine, encoder),
        },
        {"pretrained": pretrained, "encoder": encoder},
        secrets=("torch.no_grad", ".mean(dim=0)"),
    )


@planted("3.5")
def own_texts() -> Planted:
    bpe = BytePairTokenizer.train(PROSE[10:], vocab_size=SIZE, special_tokens=(END,))
    sources = [path.read_text(encoding="utf-8") for path in sorted((PACKAGE / "tokenization").glob("*.py"))]
    training, held_out = sources[4:], [*sources[:4], PROSE[-1] * 10]
    trained = BytePairTokenizer.train(training, vocab_size=SIZE, special_tokens=(END,))

    def saved(tokenizer, byte_level=True, space_in_front=False):
        if byte_level:
            made = Tokenizer(models.BPE(tokenizer.vocabulary, tokenizer.merges))
            made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=space_in_front)
            made.decoder = decoders.ByteLevel()
        else:
            made = Tokenizer(models.WordPiece(tokenizer.vocabulary, unk_token="[UNK]"))
            made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        folder = Path(tempfile.mkdtemp())
        transformers.PreTrainedTokenizerFast(tokenizer_object=made).save_pretrained(folder)
        return folder

    def factor(texts):
        return sum(len(bpe.encode(t)) for t in texts) / sum(len(trained.encode(t)) for t in texts)

    folder = saved(trained)
    squeezed = [" ".join(text.split()) for text in held_out]
    factors = {"as it is": factor(held_out), "squeezed": factor(squeezed)}
    changed = partial(dict, factors)
    of_prose = {"as it is": factor(PROSE), "squeezed": factor([" ".join(text.split()) for text in PROSE])}
    assert of_prose["as it is"] < 1  # no lead that could be in the white space
    larger = saved(BytePairTokenizer.train(training, vocab_size=SIZE + 50))
    smaller = saved(BytePairTokenizer.train(training, vocab_size=SIZE - 50))
    wordpiece = saved(WordPieceTokenizer.train(training, vocab_size=SIZE), byte_level=False)
    return Planted(
        (folder, training, held_out, factors),
        {
            "the larger has an advantage": (larger, training, held_out, factors),
            "have no pairs left": (smaller, training, held_out, factors),
            "a space too many in front": (saved(trained, space_in_front=True), training, held_out, factors),
            "Is it byte-level?": (wordpiece, training, held_out, factors),
            "in the training too": (folder, training, [*held_out, training[0]], factors),
            "bytes. Measure on": (folder, training, held_out[:1], factors),
            "upside down": (folder, training, held_out, changed(**{"as it is": 1 / factors["as it is"]})),
            "too large": (folder, training, held_out, changed(squeezed=3.0)),
            "too small": (folder, training, held_out, changed(squeezed=0.2)),
            "`tokenizer.json`": (Path(tempfile.mkdtemp()), training, held_out, factors),
            "a dictionary with two numbers": (folder, training, held_out, 1.8),
        },
        {"bpe": bpe},
        also_right=(
            (str(folder), training, held_out, {name: round(value, 1) for name, value in factors.items()}),
            (folder, training, PROSE, of_prose),
        ),
        secrets=tuple(f"{value:.2f}" for value in factors.values()),
    )
