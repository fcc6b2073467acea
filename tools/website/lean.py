"""Make the rendered pages light: each loads only what it uses.

Scripts and styles that Sphinx, the theme and the extensions put on every page are removed where they are not
needed. A few icons (`book/_static/icons.css`) replace the theme's icon script (half a megabyte) and fonts.
Formulas are already typeset (`formulas.py`). Pictures and attention views load lazily
(`book/_static/lazy_views.js`).
"""

import re
import shutil
from pathlib import Path

from website import claim_lines, formulas, tables, views

# What no page needs: icon script and fonts, Sphinx's own search (ours: search_index.py), MathJax, languages.
UNUSED = (
    "_static/scripts/fontawesome.js",
    "_static/vendor/fontawesome",
    "_static/searchtools.js",
    "_static/language_data.js",
    "_static/sphinx_highlight.js",
    "_static/locales",
    "_static/vendor/mathjax/tex-mml-chtml.js",
    "searchindex.js",
)
# Files that a page needs if its text has this.
NEEDED = {
    "sphinx-design.min.css": r'class="(?:[^"]* )?sd-',
    "design-tabs.js": r'class="(?:[^"]* )?sd-tab',
    "togglebutton.css": r'class="(?:[^"]* )?toggle[" ]|class="(?:[^"]* )?admonition (?:[^"]* )?dropdown[" ]',
    "togglebutton.js": r'class="(?:[^"]* )?toggle[" ]|class="(?:[^"]* )?admonition (?:[^"]* )?dropdown[" ]',
    "copybutton.css": r'<div class="(?:[^"]* )?highlight[" ]',
    "copybutton.js": r'<div class="(?:[^"]* )?highlight[" ]',
    "clipboard.min.js": r'<div class="(?:[^"]* )?highlight[" ]',
    "pygments.css": r'<div class="(?:[^"]* )?highlight[" ]',
    "mystnb.": r'<div class="(?:[^"]* )?cell[" ]',
    "quiz.js": r'<section id="five-questions"',
    "quiz.css": r'<section id="five-questions"',
    "lazy_views.js": r"<script type=\"text/view\">",
    "language_model/start.js": r'<div class="(?:[^"]* )?language-model[" ]',
    "language_model/view.css": r'<div class="(?:[^"]* )?language-model[" ]',
}
ASSET = re.compile(r'[ \t]*<(?:script|link)\b[^>]*?(?:src|href)="(?:\.\./)*([^"?]*)[^>]*>(?:</script>)?\n?')
INLINE_MATHJAX = re.compile(r"[ \t]*<script>window\.MathJax = .*?</script>\n?")
ARTICLE = re.compile(r"<article\b.*</article>", re.DOTALL)
# Scripts that cells show, those of attention views among them. BertViz writes its data twice, the second time
# into a comment.
OUTPUT_SCRIPT = re.compile(r'<script type="application/javascript">(.*?)</script>', re.DOTALL)
DATA_AGAIN = re.compile(r"; // HACK: .* is a template marker [^\n]*")
IMAGE = re.compile(r'<img\b(?![^>]*\bloading=)([^>]*\bsrc="([^"]*)"[^>]*)>')
SVG_SIZE = re.compile(r'<svg\b[^>]*?\bviewBox="\S+ \S+ (\S+) (\S+)"')
# In the theme's style sheet: Font Awesome's notices, fonts, movements, and rules that begin with its classes.
ICON_NOTICE = re.compile(r"/\*!(?:(?!\*/).)*?Font Awesome.*?\*/", re.DOTALL)
ICON_FONT = re.compile(r"@font-face\{[^}]*Font Awesome[^}]*\}")
ICON_MOVEMENT = re.compile(r"@(?:-webkit-)?keyframes fa-[\w-]+\{(?:[^{}]*\{[^{}]*\})*\}")
ICON_RULE = re.compile(r"(?<=[{};/])\s*(?:\.fa[\w-]*(?:[.:][\w:-]+)*,?)+\{[^{}]*\}")


def make_lean(site: Path) -> None:
    """Rewrite the pages of a rendered site, and delete unused files."""
    paths = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.relative_to(site).parts]
    pages = {path: path.read_text(encoding="utf-8") for path in paths}
    pages = formulas.typeset_pages(site, pages)
    for path, text in pages.items():
        page = claim_lines.as_sentences(tables.align_words(lean(text, path.parent)))
        path.write_text(page, encoding="utf-8")
    styles = site / "_static" / "styles" / "pydata-sphinx-theme.css"
    styles.write_text(without_icons(styles.read_text(encoding="utf-8")), encoding="utf-8")
    for path in [*(site / name for name in UNUSED), *(site / "_static").rglob("*.map")]:
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def lean(page: str, folder: Path) -> str:
    """Return a page that loads only what it uses.

    Args:
        page: the HTML of a page.
        folder: the folder of the page, to find its pictures.
    """
    scripts = [script for script in OUTPUT_SCRIPT.findall(page) if "bertviz" in script]
    page = views.make_room(OUTPUT_SCRIPT.sub(_waiting, page), scripts)
    article = ARTICLE.search(page)
    if article:
        pictures = IMAGE.sub(lambda match: _lazy(match, folder), article[0])
        page = page[: article.start()] + pictures + page[article.end() :]
    page = INLINE_MATHJAX.sub("", page)
    return ASSET.sub(lambda match: match[0] if _is_needed(match[1], page) else "", page)


def _is_needed(asset: str, page: str) -> bool:
    signs = (sign for name, sign in NEEDED.items() if f"/{name}" in asset)
    return not asset.endswith(UNUSED) and all(re.search(sign, page) for sign in signs)


def _waiting(script: re.Match) -> str:
    """Turn the script of an attention view into data, for `lazy_views.js` to run later."""
    if "bertviz" not in script[1]:
        return script[0]
    return f'<script type="text/view">{views.larger(DATA_AGAIN.sub(";", script[1]))}</script>'


def _lazy(match: re.Match, folder: Path) -> str:
    """Make a picture load lazily, with its size, so that the layout does not shift."""
    more, file = 'loading="lazy"', folder / match[2]
    if file.suffix == ".svg" and "height=" not in match[1] and file.is_file():
        size = SVG_SIZE.search(file.read_text(encoding="utf-8"))
        if size:
            more += f' width="{float(size[1]):.0f}" height="{float(size[2]):.0f}"'
    return f"<img {more}{match[1]}>"


def without_icons(styles: str) -> str:
    """Remove the icon fonts and their two thousand rules from the theme's style sheet."""
    for pattern in (ICON_NOTICE, ICON_FONT, ICON_MOVEMENT):
        styles = pattern.sub("", styles)
    return ICON_RULE.sub("", styles)
