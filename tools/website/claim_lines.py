"""Show the claims that a cell printed as sentences, apart from its other lines.

`claim` (chapters_src/notebook.py) prints a line for each claim. On the site such a line becomes a paragraph,
which `book/_static/cards.css` sets off.
"""

import re
from collections.abc import Iterable
from itertools import groupby

PRINTED = re.compile(
    r'(<div class="output stream[^"]*"><div class="highlight"><pre>)(?:<span></span>)?'
    r"(.*?)</pre></div>\s*</div>",
    re.DOTALL,
)
CLAIM = re.compile(r"(✓|✗(?= here it came out otherwise)) (.+)")


def as_sentences(page: str) -> str:
    """Replace each line of a claim in the outputs of a page by a paragraph.

    Args:
        page: HTML, in which a printed output is one block.
    """
    return PRINTED.sub(_apart, page)


def _apart(match: re.Match) -> str:
    opening, printed = match.groups()
    lines = printed.split("\n")
    if not any(map(CLAIM.fullmatch, lines)):
        return match[0]
    parts = []
    for claimed, group in groupby(lines, lambda line: bool(CLAIM.fullmatch(line))):
        if claimed:
            parts.append(paragraphs(group))
        elif text := "\n".join(group).strip("\n"):
            parts.append(f"{opening}<span></span>{text}\n</pre></div>\n</div>")
    return "\n".join(parts)


def paragraphs(lines: Iterable[str]) -> str:
    """Return a block of claims, a paragraph each, from their lines in HTML."""
    return f'<div class="output claims">{"".join(map(_sentence, lines))}</div>'


def _sentence(line: str) -> str:
    mark, sentence = CLAIM.fullmatch(line).groups()
    kind = "claim" if mark == "✓" else "claim otherwise"
    return f'<p class="{kind}"><span class="claim-mark">{mark}</span> <span>{sentence}</span></p>'
