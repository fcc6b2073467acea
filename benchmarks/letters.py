"""Word vectors with and without letters: gensim's word2vec and fastText on the same text (chapter 02).

    python -m benchmarks.letters

Both read the same 300,000 words of documentation with the same settings (skip-gram, 100 dimensions, window of
five, five noise words, five passes); fastText (Bojanowski and others, 2017, https://arxiv.org/abs/1607.04606)
adds to each word the vectors of its runs of three to six letters. Sixty plurals are taken out of the text
first, so that no vector of theirs is trained.

The figures of the record are a dictionary with "gensim" (its version), "words" (in the text) and "runs", a
list with a dictionary for each seed: "seed"; "pairs", how many pairs such as array and arrays both occur ten
times; "word2vec" and "fastText", the share of them in which the partner is among the ten nearest neighbors;
"word2vec, usual rate", likewise at the learning rate that gensim has by default, half of that of the others;
"unseen", how many plurals were taken out; "unseen found", the share of them whose singular is among the ten
nearest words to the vector that fastText makes of their letters alone.
"""

import argparse
import collections
import random
import re
from pathlib import Path

import gensim
import numpy as np
from gensim.models import FastText, Word2Vec

from chapters_src import records
from chapters_src.data import docstrings
from recipes.output import write_record

WORDS = 300_000
UNSEEN = 60
SETTINGS = dict(sg=1, vector_size=100, window=5, negative=5, sample=1e-4, epochs=5, min_count=5)
SETTINGS |= dict(alpha=0.05, workers=1)


def main(arguments: list[str] | None = None) -> None:
    """Measure at several seeds, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--output", type=Path, default=records.FOLDER / "letters.json")
    parser.add_argument("--words", type=int, default=WORDS, help="how many words of text")
    parser.add_argument("--seeds", type=int, default=4)
    options = parser.parse_args(arguments)
    runs = [measure(options.words, seed) for seed in range(options.seeds)]
    write_record(
        options.output,
        "Words that find their plural, and plurals that were never read, with and without letters.",
        "benchmarks/letters.py",
        {"gensim": gensim.__version__, "words": options.words, "runs": runs},
    )


def measure(num_words: int, seed: int) -> dict[str, float]:
    """Train both on a draw of paragraphs, and look for partners.

    Args:
        num_words: how many words of text.
        seed: of the draw of paragraphs and of plurals, and of both trainings.

    Returns:
        A row of "runs".
    """
    texts = _draw(num_words, seed)
    counts = collections.Counter(word for text in texts for word in text)
    pairs = [
        (word, word + "s")
        for word in sorted(counts)
        if len(word) >= 4 and word.isalpha() and not word.endswith("s")
        if min(counts[word], counts[word + "s"]) >= 10
    ]
    unseen = random.Random(seed).sample(pairs, UNSEEN)
    pairs = sorted({*pairs} - {*unseen})
    removed = {plural for _, plural in unseen}
    texts = [[word for word in text if word not in removed] for text in texts]
    plain = Word2Vec(texts, **SETTINGS, seed=seed).wv
    slower = Word2Vec(texts, **(SETTINGS | {"alpha": 0.025}), seed=seed).wv
    letters = FastText(texts, **SETTINGS, seed=seed, bucket=20_000).wv
    assert not removed & letters.key_to_index.keys()
    return {
        "seed": seed,
        "pairs": len(pairs),
        "word2vec": _found(plain, pairs),
        "word2vec, usual rate": _found(slower, pairs),
        "fastText": _found(letters, pairs),
        "unseen": UNSEEN,
        "unseen found": float(
            np.mean([one in (word for word, _ in letters.most_similar(other)) for one, other in unseen])
        ),
    }


def _draw(num_words: int, seed: int) -> list[list[str]]:
    paragraphs = docstrings.paragraphs()
    random.Random(seed).shuffle(paragraphs)
    texts = []
    for paragraph in paragraphs:
        texts.append(re.findall(r"[a-z0-9]+", paragraph.text.lower()))
        num_words -= len(texts[-1])
        if num_words <= 0:
            break
    return texts


def _found(vectors: object, pairs: list[tuple[str, str]]) -> float:
    return float(np.mean([b in (word for word, _ in vectors.most_similar(a)) for a, b in pairs]))


if __name__ == "__main__":
    main()
