"""An interactive view of the next-token distribution, with temperature, top-k and top-p. Chapter 13.

All its data is computed here and stored in the page: the logits of a small tree of continuations, exact for
the most probable tokens, and in groups for the many rare ones. The script beside this file
(`next_token_view.js`) does the rest; without it, the page shows the plain distribution.
"""

import heapq
import html
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

_EXACT = 40  # Most probable tokens of a node, whose logits are kept one by one.
_GROUPS = 20  # Groups of all other tokens, wider for rarer ones.
_SHOWN = 20  # Rows without the script.
_BRANCHES = 3  # Tokens of a node that may have children: with more, the tree would be wide, not deep.
_SIGNS = str.maketrans({" ": "␣", "\n": "⏎", "\t": "⇥"})
_STYLE = """
.next-token-view { margin: 1em 0; padding: 0; color: inherit; font-size: 0.95em; max-width: 100%; }
.next-token-view .ntv-body { border: 1px solid rgba(107,114,128,.6); border-radius: 6px; padding: .8em; }
.next-token-view p { margin: .4em 0; }
.next-token-view .ntv-text { font-family: ui-monospace, Menlo, Consolas, monospace; white-space: pre-wrap;
  overflow-wrap: anywhere; min-height: 3em; }
.next-token-view mark { background: rgba(59,104,200,.25); color: inherit; border-radius: .2em; }
.next-token-view button { font: inherit; color: inherit; background: rgba(107,114,128,.12);
  border: 1px solid rgba(107,114,128,.8); border-radius: .3em; padding: .25em .7em; cursor: pointer;
  min-height: 24px; }
.next-token-view button:focus-visible, .next-token-view input:focus-visible { outline: 2px solid currentColor;
  outline-offset: 1px; }
.next-token-view button[aria-disabled="true"] { cursor: default; border-style: dashed; background: none; }
.next-token-view .ntv-tools { display: flex; flex-wrap: wrap; gap: .5em; align-items: center; }
.next-token-view .ntv-sliders { display: grid; grid-template-columns: repeat(auto-fit, minmax(11em, 1fr));
  gap: .3em 1.2em; margin: .7em 0; }
.next-token-view .ntv-slider { display: grid; grid-template-columns: auto auto; }
.next-token-view .ntv-value { text-align: end; font-variant-numeric: tabular-nums; }
.next-token-view input { grid-column: 1 / 3; width: 100%; min-height: 28px; margin: 0;
  accent-color: #3B68C8; }
.next-token-view .ntv-share { height: .5em; border: 1px solid rgba(107,114,128,.8); border-radius: .25em; }
.next-token-view .ntv-kept { height: 100%; background: #3B68C8; }
.next-token-view ol { list-style: none; margin: .6em 0; padding: 0; }
.next-token-view li { margin: 0; }
.next-token-view .ntv-row { display: grid; grid-template-columns: 8.5em 1fr 4em; gap: .6em;
  align-items: center; margin: 2px 0; }
.next-token-view .ntv-token { text-align: start; padding: 0 .4em; overflow: hidden; white-space: nowrap;
  text-overflow: ellipsis; font-family: ui-monospace, Menlo, Consolas, monospace; }
.next-token-view .ntv-bar { position: relative; height: 1em; }
.next-token-view .ntv-fill, .next-token-view .ntv-outline { position: absolute; left: 0; top: 0; height: 100%;
  box-sizing: border-box; min-width: 1px; }
.next-token-view .ntv-fill { background: #3B68C8; }
.next-token-view .ntv-outline { border: 1.5px solid #D9730D; }
.next-token-view .ntv-number { text-align: end; font-variant-numeric: tabular-nums; }
.next-token-view .out .ntv-token { text-decoration: line-through; }
.next-token-view .ntv-chips { display: flex; flex-wrap: wrap; gap: .3em .25em; }
.next-token-view .ntv-chip { border: 1px solid rgba(107,114,128,.9); border-radius: .3em; padding: 0 .4em;
  font-family: ui-monospace, Menlo, Consolas, monospace; }
.next-token-view .ntv-chip.rare { border-style: dotted; border-width: 2px; }
.next-token-view figcaption { font-style: italic; font-size: .95em; margin-top: .5em; text-align: start; }
"""


class _Node(NamedTuple):
    """The distribution after one beginning."""

    tokens: list[int]  # By rank, one of each group.
    logits: list[float]  # The highest is 0.
    next: dict[int, int]  # From a place in `tokens` to a node.


@dataclass(frozen=True)
class NextTokenView:
    """A view of the next token, for a notebook. Made by `next_token_view`."""

    data: dict[str, Any]  # Everything that the script reads.
    caption: str

    def distribution(self) -> list[tuple[str, float]]:
        """Return the most probable tokens after the prompt, with their probabilities."""
        first = self.data["nodes"][0]
        weights = np.exp(first["logits"]) * self.data["counts"]
        shares = np.exp(first["logits"]) / weights.sum()
        texts = [self.data["texts"][place] for place in first["tokens"]]
        return list(zip(texts[:_SHOWN], shares[:_SHOWN].tolist(), strict=False))

    def _repr_html_(self) -> str:
        script = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
        data = json.dumps(self.data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
        rows = self.distribution()
        bars = "".join(_row(text, share, rows[0][1]) for text, share in rows)
        prompt = html.escape(self.data["prompt"])
        return (
            f'<figure class="next-token-view"><style>{_STYLE}</style>'
            f'<div class="ntv-body"><p class="ntv-text">{prompt}</p><ol>{bars}</ol></div>'
            f"<figcaption>{html.escape(self.caption)}</figcaption>"
            f'<script type="application/json">{data}</script><script>{script}</script></figure>'
        )

    def __repr__(self) -> str:
        rows = (f"{text.translate(_SIGNS)}: {share:.3f}" for text, share in self.distribution())
        return "\n".join([self.caption, self.data["prompt"], *rows])


def next_token_view(
    next_logits: Callable[[list[int]], Any],
    text_of: Callable[[list[int]], str],
    prompt: Sequence[int],
    caption: str,
    *,
    hidden: int = 0,
    num_nodes: int = 45,
) -> NextTokenView:
    """Compute a small tree of continuations, for a reader to heat, truncate, sample and follow.

    The tree grows where the probability is: each new node is the most probable beginning without a node that
    continues another with one of its three best tokens.

    Args:
        next_logits: returns the logits of the next token, (V,), after a list of ids.
        text_of: returns the text of a list of ids.
        prompt: the ids at the root of the tree.
        caption: a sentence about what is shown.
        hidden: number of ids to hide at the start of the prompt, such as a start token.
        num_nodes: number of nodes, at about half a kilobyte each.

    Returns:
        The view.

    Raises:
        ValueError: the vocabulary is too small for groups, or there is no node.
    """
    if num_nodes < 1:
        raise ValueError(f"num_nodes={num_nodes}: at least the prompt needs its distribution")
    nodes: list[_Node] = []
    # Minus log-probability, order, ids, parent and place in it.
    waiting: list[tuple[float, int, list[int], tuple[_Node, int] | None]] = [(0.0, 0, list(prompt), None)]
    order, counts = 0, np.empty(0)
    while waiting and len(nodes) < num_nodes:
        cost, _, ids, parent = heapq.heappop(waiting)
        logits = np.asarray(next_logits(ids), dtype=np.float64)
        node, counts = _summed_up(logits)
        if parent is not None:
            above, place = parent
            above.next[place] = len(nodes)
        nodes.append(node)
        surprise = np.log(np.exp(node.logits) @ counts) - np.array(node.logits)
        for place in range(_BRANCHES):
            order += 1
            step = (cost + surprise[place], order, [*ids, node.tokens[place]], (node, place))
            heapq.heappush(waiting, step)
    used = sorted({token for node in nodes for token in node.tokens})
    names = {token: place for place, token in enumerate(used)}
    data = {
        "prompt": text_of(list(prompt)[hidden:]),
        "vocab_size": int(counts.sum()),
        "exact": _EXACT,
        "counts": counts.tolist(),
        "texts": [text_of([token]) for token in used],
        "nodes": [node._asdict() | {"tokens": [names[token] for token in node.tokens]} for node in nodes],
    }
    return NextTokenView(data, caption)


def _summed_up(logits: np.ndarray) -> tuple[_Node, np.ndarray]:
    """Keep the best tokens one by one, and group the others by rank.

    A group has the mean probability of its tokens, and the name of the middle one.

    Returns:
        The node, and the number of tokens in each of its entries.
    """
    if len(logits) < _EXACT + 2 * _GROUPS:
        raise ValueError(f"a vocabulary of {len(logits)} is too small: {_EXACT + 2 * _GROUPS} are needed")
    order = np.argsort(-logits, kind="stable")
    ranked = logits[order] - logits[order[0]]
    edges = np.round(np.geomspace(_EXACT, len(logits), _GROUPS + 1)).astype(int)
    edges = np.maximum(edges, _EXACT + np.arange(_GROUPS + 1))  # No group is empty.
    edges[-1] = len(logits)
    starts, sizes = edges[:-1], np.diff(edges)
    grouped = np.log(np.add.reduceat(np.exp(ranked), starts) / sizes)
    tokens = [*order[:_EXACT].tolist(), *order[starts + sizes // 2].tolist()]
    kept = np.concatenate([ranked[:_EXACT], grouped]).round(2)
    counts = np.concatenate([np.ones(_EXACT, dtype=int), sizes])
    return _Node(tokens, kept.tolist(), {}), counts


def _row(text: str, share: float, most: float) -> str:
    token = html.escape(text.translate(_SIGNS))
    return (
        f'<li class="ntv-row"><span class="ntv-token">{token}</span><span class="ntv-bar">'
        f'<span class="ntv-fill" style="width:{100 * share / most:.1f}%"></span></span>'
        f'<span class="ntv-number">{share:.1%}</span></li>'
    )
