"""The start page: its picture, the road through the chapters, and what it shows of the book.

Whatever stands there comes from the book itself: the tokenizer of the language model, a head of the encoder,
`_toc.yml`, the executed notebooks and their records. So nothing on the page has to be kept up by hand.
"""

import ast
import json
import os
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat

from execute import record
from paths import EXECUTED, PACKAGE, ROOT, notebooks
from website import claim_lines, claims, sections
from website.road import Chapter, chapters, raw, road

if TYPE_CHECKING:
    from chapters_src.tokenization import BytePairTokenizer

TYPED = "The gradient of a bagpipe is undefined."  # what the picture shows before anybody types
LAYER, HEAD = 1, 3  # the head that chapter 07's search found and tested on new sentences
# Two pairs in which only the pronoun changes, and one in which both names have its gender.
SENTENCES = (
    "Emma called David because she was late",
    "Emma called David because he was late",
    "Paul visited Julia because she felt sick",
    "Paul visited Julia because he felt sick",
    "Peter thanked David because he was grateful",
    "Peter thanked David because he was kind",
)
MEANT = ("emma", "david", "julia", "paul", "peter", "david")  # who the pronoun is, to a reader
PRONOUNS = {"he", "she"}
SHOWN = {"claim": ("07", "18087c5a"), "parity": ("03", "d2f7b5e2")}  # chapter, and the id of a cell


class FrontFailed(Exception):
    """The start page wants to show something that the book no longer has."""


def write(generated: Path, static: Path) -> None:
    """Write what `book/index.md` includes, and the data of the picture; nothing if it includes none of it.

    Args:
        generated: where the included parts go.
        static: the folder of scripts and styles; `front.js` there reads `front_data.js`.
    """
    if "../generated/front_" not in (ROOT / "book" / "index.md").read_text(encoding="utf-8"):
        return
    book = chapters()
    looks = [look | {"meant": who} for look, who in zip(attention(SENTENCES), MEANT, strict=True)]
    tokenizer = language_model_tokenizer()
    first = tokenizer.vocabulary["".join(tokenizer.merges[0])]  # ids of merges are in order, after the bytes
    data = {"merges": "\n".join(map(" ".join, tokenizer.merges)), "first": first, "looks": looks}
    (static / "front_data.js").write_text(
        f"window.frontData = {json.dumps(data, ensure_ascii=False, separators=(',', ':'))};\n",
        encoding="utf-8",
    )
    parts = {
        "proof": proof(),
        "buttons": buttons(book),
        "picture": picture(looks[0], tokenizer),
        "road": road(book),
        "shown": shown(),
    }
    for name, text in parts.items():
        (generated / f"front_{name}.md").write_text(text, encoding="utf-8")


# --- What the book has.


def language_model_tokenizer() -> "BytePairTokenizer":
    """The tokenizer of the language model, as the book's own."""
    from chapters_src.tokenization import BytePairTokenizer

    path = PACKAGE / "weights" / "language-model" / "tokenizer.json"
    model = json.loads(path.read_text(encoding="utf-8"))["model"]
    return BytePairTokenizer(model["vocab"], model["merges"], ["<|endoftext|>"])


def attention(texts: Sequence[str]) -> list[dict]:
    """How one head of the encoder spreads its attention over each of some sentences.

    Returns:
        For each its tokens, the weights in thousandths, a row for each token that attends, and the place of
        the pronoun.
    """
    os.environ["HF_HUB_OFFLINE"] = "1"  # before the libraries are imported
    import torch
    from transformers import AutoModel, AutoTokenizer
    from transformers.utils import logging

    from chapters_src import resources

    logging.disable_progress_bar()
    checkpoint = resources.checkpoint("encoder")
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    encoder = AutoModel.from_pretrained(checkpoint, attn_implementation="eager").eval()
    found = []
    for text in texts:
        batch = tokenizer(text, return_tensors="pt")
        with torch.inference_mode():
            weights = encoder(**batch, output_attentions=True).attentions[LAYER][0, HEAD]
        tokens = tokenizer.convert_ids_to_tokens(batch.input_ids[0])
        rows = [[round(1000 * weight) for weight in row] for row in weights.tolist()]
        pronoun = next(place for place, token in enumerate(tokens) if token in PRONOUNS)
        found.append({"tokens": tokens, "weights": rows, "from": pronoun})
    return found


# --- The first screen.


def proof() -> str:
    """One line on what stands behind the book, counted in this build."""
    tested = claims.all_claims()
    compared = sum(map(_asserts, notebooks()))
    return raw(
        f'<p class="front-proof"><a href="claims.html"><b>{sum(map(len, tested.values())):,}</b> tested '
        f"claims</a> and <b>{compared:,}</b> checks of correctness in <b>{len(tested)}</b> notebooks"
        '<span class="front-wide">, all executed for this page</span>. A false one stops the build.</p>'
    )


def buttons(book: Sequence[Chapter]) -> str:
    """Two ways to begin: the first chapter, and the one for readers who know tokenizers."""
    first, later = book[0], next(chapter for chapter in book if chapter.number == "07")
    links = (
        f'<a class="front-button front-main" href="{first.page}">Start at {first.number}'
        f'<span class="front-wide">: {escape(first.title)}</span></a>',
        f'<a class="front-button" href="{later.page}">I know tokenizers: {later.number}</a>',
    )
    return raw(
        '<link rel="stylesheet" href="../_static/front.css">'
        f'<p class="front-buttons">{" ".join(links)}</p>'
        '<script src="../_static/front_data.js" defer></script>'
        '<script src="../_static/language_model/tokenizer.js" defer></script>'
        '<script src="../_static/front.js" defer></script>'
    )


def picture(look: dict, tokenizer: "BytePairTokenizer") -> str:
    """The picture that does something; without JavaScript it stays as it is written here."""
    pieces = tokenizer.tokenize(TYPED)
    chips = "".join(
        f'<li class="front-chip"><bdi>{escape(piece.replace("Ġ", "␣"))}</bdi>'
        f"<small>{tokenizer.vocabulary[piece]}</small></li>"
        for piece in pieces
    )
    row = look["weights"][look["from"]]
    heads = "".join(
        _attended(token, weight, place == look["from"])
        for place, (token, weight) in enumerate(zip(look["tokens"], row, strict=True))
    )
    options = "".join(f"<option>{escape(sentence)}</option>" for sentence in SENTENCES)
    return raw(f"""<figure class="front-picture" id="front-picture">
<div class="front-panel">
<p class="front-still"><b>Text becomes tokens</b>, each with a number.</p>
<p class="front-field" hidden><label for="front-text"><b>Type a sentence</b>: text becomes tokens.</label>
<input id="front-text" type="text" maxlength="160" autocomplete="off" spellcheck="false"
 value="{escape(TYPED)}"></p>
<ol class="front-chips" id="front-tokens" role="list" aria-label="Tokens">{chips}</ol>
<p class="front-said" id="front-count" role="status">{len(pieces)} tokens for {len(TYPED)} characters</p>
</div>
<div class="front-panel">
<p class="front-still"><b>Tokens attend to tokens.</b> Who is meant?</p>
<p class="front-field" hidden><label for="front-sentence"><b>Choose a sentence</b>: who is meant?</label>
<select id="front-sentence">{options}</select></p>
<ol class="front-chips" id="front-attention" role="list" aria-label="Attention weights">{heads}</ol>
<p class="front-ask" id="front-ask" role="group" aria-labelledby="front-question" hidden></p>
<p class="front-said" id="front-look" role="status">{_said(look)}</p>
</div>
<figcaption>The tokenizer is the language model’s, {len(tokenizer.merges):,} merges; <a
 href="../notebooks/03_tokenization.html#byte-pair-encoding">chapter 03</a> builds it. The weights are those
 of a head that seems to know who is meant. Compare the last two sentences, as <a
 href="../notebooks/07_attention_from_scratch.html#what-one-sentence-does-not-show">chapter 07</a>
 does.</figcaption>
</figure>""")


def _attended(token: str, weight: int, attends: bool) -> str:
    chosen = ' aria-current="true"' if attends else ""
    return (
        f'<li class="front-chip front-weight"{chosen} style="--weight:{weight / 1000:.3f}">'
        f"<bdi>{escape(token)}</bdi><small>{weight / 10:.0f}%</small></li>"
    )


def _said(look: dict) -> str:
    row, tokens = look["weights"][look["from"]], look["tokens"]
    most = sorted(range(len(row)), key=lambda place: -row[place])[:3]
    return f"{tokens[look['from']]} attends to " + ", ".join(f"{tokens[i]} {row[i] / 10:.0f}%" for i in most)


# --- What is different here.


def shown() -> str:
    """Two cells of the book with what they printed, and the sums over all notebooks."""
    held = claims.all_claims()
    number = sum(map(len, held.values()))
    asserts = sum(map(_asserts, notebooks()))
    known = [found for found in map(record, notebooks()) if found]
    hosts = sum(len(found["network"]) for found in known)
    minutes = sum(found["seconds"] for found in known) / 60
    return f"""**A claim.** What the picture's last two sentences show, tested on more such pairs.
{_cell("claim")}

All {number} such sentences are in the [index of claims](../book/claims.md), each with the place where
it was tested.

**An equality.** {_cell("parity")}

There are {asserts} such checks of correctness in the notebooks. Where a library does the same thing, they
compare with the library.

**A network.** While the {len(known)} notebooks of this site ran, Python's sockets were watched: they were
asked for {hosts or "no"} other {"hosts" if hosts > 1 else "host"}. Together the notebooks took
{minutes:.0f} minutes.
"""


def _cell(kind: str) -> str:
    """A cell of an executed notebook as the start page shows it: its place, its code, what it printed."""
    number, wanted = SHOWN[kind]
    path = next(iter(ROOT.glob(f"notebooks/{number}_*.ipynb")))
    done = EXECUTED / path.name
    notebook = nbformat.read(done if done.exists() else path, 4)
    for cell, section in zip(notebook.cells, sections.sections(notebook), strict=True):
        if cell.get("id") == wanted:
            printed = "".join(o.text for o in cell.outputs if o.output_type == "stream").strip().split("\n")
            lines = "\n".join(line for line in printed if not claim_lines.CLAIM.fullmatch(line))
            tested = [escape(line, quote=False) for line in printed if claim_lines.CLAIM.fullmatch(line)]
            output = f"\n\n```text\n{lines}\n```" if lines else ""
            output += f"\n\n{raw(claim_lines.paragraphs(tested))}" if tested else ""
            where = f"[{section.title}](../notebooks/{path.name}#{section.anchor})"
            return f"From chapter {number}, {where}:\n\n```python\n{cell.source}\n```{output}"
    raise FrontFailed(
        f"{path.name} has no cell with the id {wanted!r}: choose another one in SHOWN (front.py)"
    )


def _asserts(path: Path) -> int:
    """How many `assert` statements, and calls of `assert_close` and its like, a notebook has."""
    found = 0
    for cell in nbformat.read(path, 4).cells:
        if cell.cell_type == "code":
            tree = ast.parse(re.sub(r"(?m)^(\s*)[%!].*$", r"\1pass", cell.source))
            found += sum(isinstance(node, ast.Assert) or _compares(node) for node in ast.walk(tree))
    return found


def _compares(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    return name in ("assert_close", "assert_allclose", "assert_equal")
