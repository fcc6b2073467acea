"""What Gemma writes below documents when asked for a summary in several ways: the lines of chapter 14.

    python recipes/gemma_summaries.py --output build/gemma-summaries

Every fifth document of the test split is read, up to `MOST_WORDS` words of it, and continued greedily up to
the end of a line. The ways to ask are

- "line break": the text and a line break, nothing else;
- "TL;DR": the text, and "TL;DR:" on a line of its own;
- "form": "Text: ..." and "In one line:", without examples;
- "examples 0" to "examples 3": three pairs of the training split stand before it in this form, other ones in
  each draw; "mixed up 0" to "mixed up 3": the same three, and each text has the line of the next one;
- "messages": three messages with their lines, from the chapter, stand before it.

All draws but the first, and "messages", are tried on every second of these documents only.

The output holds a file for each way that is done, so an interrupted run goes on where it was. The figures of
the record are

- "documents": a key of each document (`key_of`), so that a page knows which pair of its own it is;
- "draws": the keys of the three pairs of each draw;
- "messages": the examples of the last way;
- "lines": for each way what Gemma wrote, a line for each document that it read.

`--smoke` asks for two documents in two ways; its record stays in the output.
"""

import hashlib
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import torch
from torch import nn
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from chapters_src import pretrained, resources
from chapters_src.data import summaries
from chapters_src.data.summaries import Pair
from chapters_src.decoding import Stop, greedy
from recipes.output import kept, options_of_runs, parser_of_runs, write_record

EVERY = 5  # Documents of the test split, of which one is read.
MOST_WORDS = 120  # Of a document.
LONGEST_EXAMPLE = 45  # Words.
NUM_DRAWS, NUM_EXAMPLES = 4, 3
BATCH, MOST_TOKENS = 8, 40

Examples = Sequence[tuple[str, str]]  # Texts with their lines.

MESSAGES: Examples = (
    (
        "Hello, my order 5512 was to arrive on Tuesday and has not. I have called three times, and each time "
        "a friendly voice told me to wait. My mother's birthday is on Saturday.",
        "The vase has not arrived.",
    ),
    (
        "Dear team, since the update your app shows all my appointments one hour late. I missed the dentist, "
        "which I did not mind, and my daughter's concert, which I did.",
        "The app shows the wrong time.",
    ),
    (
        "Good morning, I teach thirty children with your program for spelling. Since Wednesday it says that "
        "every answer is wrong, even when it is right. Two of them cried.",
        "Right answers are marked as wrong.",
    ),
)


def key_of(pair: Pair) -> str:
    """Return twelve characters that tell a pair of a text and its line from all others."""
    return hashlib.sha256(f"{pair.body}\n{pair.summary}".encode()).hexdigest()[:12]


def plain(text: str) -> str:
    """Return the beginning of a text in one line."""
    return " ".join(text.split()[:MOST_WORDS])


def drawn(pairs: Sequence[Pair], draw: int) -> list[Pair]:
    """Draw three short pairs for examples."""
    short = [pair for pair in pairs if len(pair.body.split()) <= LONGEST_EXAMPLE]
    order = np.random.default_rng(draw).permutation(len(short))
    return [short[i] for i in order[:NUM_EXAMPLES]]


def mixed_up(examples: Examples) -> list[tuple[str, str]]:
    """Give each text the line of the next one."""
    texts, lines = zip(*examples, strict=True)
    return list(zip(texts, [*lines[1:], lines[0]], strict=True))


def by_example(examples: Examples, text: str) -> str:
    """Return a prompt: texts with their lines, and a text without one."""
    shown = "".join(f"Text: {body}\nIn one line: {line}\n\n" for body, line in examples)
    return f"{shown}Text: {text}\nIn one line:"


def ways(texts: Sequence[str], training: Sequence[Pair]) -> dict[str, list[str]]:
    """Return the prompts of each way to ask, one for each text."""
    found = {
        "line break": [f"{text}\n" for text in texts],
        "TL;DR": [f"{text}\nTL;DR:" for text in texts],
        "form": [by_example([], text) for text in texts],
    }
    for draw in range(NUM_DRAWS):
        examples = [(plain(pair.body), pair.summary) for pair in drawn(training, draw)]
        some = texts if draw == 0 else texts[::2]
        found[f"examples {draw}"] = [by_example(examples, text) for text in some]
        found[f"mixed up {draw}"] = [by_example(mixed_up(examples), text) for text in some]
    return found | {"messages": [by_example(MESSAGES, text) for text in texts[::2]]}


def written(model: nn.Module, tokenizer: PreTrainedTokenizerBase, prompts: Sequence[str]) -> list[str]:
    """Continue each prompt up to the end of the line."""
    ids = [tokenizer(prompt).input_ids for prompt in prompts]
    stop = Stop((1, 106), "\n", tokenizer)
    batches = (ids[i : i + BATCH] for i in range(0, len(ids), BATCH))
    return [c.text.strip() for b in batches for c in greedy(model, b, max_new_tokens=MOST_TOKENS, stop=stop)]


def main(arguments: Sequence[str] | None = None) -> None:
    """Ask in all ways, and write the record."""
    parser = parser_of_runs("Let Gemma summarize documents of chapter 14.", "gemma_summaries")
    options = options_of_runs(parser, arguments)
    splits = summaries.pairs().splits
    documents = splits["test"][::EVERY][: 2 if options.smoke else None]
    prompts = ways([plain(pair.body) for pair in documents], splits["train"])
    folder = resources.checkpoint("gemma")
    model, tokenizer = pretrained.load(folder).eval(), AutoTokenizer.from_pretrained(folder)
    lines = {}
    for way in list(prompts)[: 2 if options.smoke else None]:
        path = options.output / f"{way.replace(' ', '-').replace(';', '')}.json"
        lines[way] = kept(path, partial(written, model, tokenizer, prompts[way]))
        print(way, *lines[way][:2], sep=" | ", flush=True)
    figures = {
        "documents": [key_of(pair) for pair in documents],
        "draws": [[key_of(pair) for pair in drawn(splits["train"], draw)] for draw in range(NUM_DRAWS)],
        "messages": MESSAGES,
        "lines": lines,
    }
    what = "Lines that Gemma 3 270M wrote below documents of the test split, asked in several ways."
    write_record(options.record, what, "recipes/gemma_summaries.py", figures)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
