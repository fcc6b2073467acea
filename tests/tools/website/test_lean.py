"""A page loads what it uses: what is taken off, what stays, and what is put off until it is near."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from paths import ROOT
from website import lean

ICONS = (ROOT / "book" / "_static" / "icons.css").read_text(encoding="utf-8")
HEAD = """<link href="../_static/styles/pydata-sphinx-theme.css?digest=5" rel="stylesheet" />
<link rel="stylesheet" type="text/css" href="../_static/copybutton.css?v=7" />
<link rel="stylesheet" type="text/css" href="../_static/mystnb.11b3.css" />
<script defer src="../_static/scripts/fontawesome.js?digest=5"></script>
<script src="../_static/copybutton.js?v=2"></script>
<script src="../_static/lazy_views.js?v=2"></script>
<script src="../_static/quiz.js?v=2"></script>
<script src="../_static/togglebutton.js?v=2"></script>
<script src="../_static/language_model/start.js?v=2"></script>
<link rel="stylesheet" type="text/css" href="../_static/language_model/view.css?v=7" />
<script>window.MathJax = {"options": {}}</script>
<script defer="defer" src="../_static/vendor/mathjax/tex-mml-chtml.js?v=c"></script>
<script src="../_static/searchtools.js"></script>
<script src="../searchindex.js"></script>
<script src="../_static/search.js"></script>
<link rel="search" title="Search" href="../search.html" />
"""


def loaded(page: str) -> set[str]:
    return set(re.findall(r'(?:src|href)="(?:\.\./)*(?:_static/)?([\w./-]+)', page))


ALWAYS = {"styles/pydata-sphinx-theme.css", "search.js", "search.html"}


@pytest.mark.parametrize(
    ("body", "more"),
    [
        ("<p>highlight, cell, toggle</p>", set()),
        ('<pre><div class="notranslate highlight">', {"copybutton.css", "copybutton.js"}),
        ('<div class="cell tag_hide-cell docutils">', {"mystnb.11b3.css"}),
        ('<div class="toggle docutils">', {"togglebutton.js"}),
        ('<section id="five-questions">', {"quiz.js"}),
        ('<script type="application/javascript">let bertviz = 1</script>', {"lazy_views.js"}),
        (
            '<div class="language-model" data-preset="next">',
            {"language_model/start.js", "language_model/view.css"},
        ),
    ],
)
def test_a_page_loads_what_its_text_asks_for(tmp_path, body, more):
    assert loaded(lean.lean(f"{HEAD}<article>{body}</article>", tmp_path)) == ALWAYS | more


def test_nothing_of_a_page_is_lost_but_what_it_loads(tmp_path):
    body = "<article><p>A paragraph.</p><script>let own = 1</script></article>"
    page = lean.lean(f"<head>\n{HEAD}</head>{body}", tmp_path)
    assert page.endswith(f"</head>{body}") and "MathJax" not in page


def test_attention_views_wait_and_carry_their_data_once(tmp_path):
    data = '{"attn": [[0.1, 0.2]], "root_div_id": "bertviz-1"}'
    script = (
        '<script type="application/javascript">\n'
        f"const params = {data}; // HACK: {data} is a template marker that is replaced by actual params.\n"
        "draw(params);</script>"
    )
    other = '<script type="application/javascript">another()</script>'
    page = lean.lean(f"<article>{script}{other}</article>", tmp_path)
    assert page == (
        f'<article><script type="text/view">\nconst params = {data};\ndraw(params);</script>{other}</article>'
    )


def test_pictures_load_when_they_are_near_and_keep_their_place(tmp_path):
    (tmp_path / "a.svg").write_text('<svg width="9pt" viewBox="0 0 331.2 200.7"></svg>', encoding="utf-8")
    page = lean.lean(
        '<img src="logo.svg"><article><img alt="A" src="a.svg" /><img loading="eager" src="b.png"></article>',
        tmp_path,
    )
    assert '<img src="logo.svg">' in page and '<img loading="eager" src="b.png">' in page
    assert '<img loading="lazy" width="331" height="201" alt="A" src="a.svg" />' in page


STYLES = (
    ':root{--x:1}/*!\n * Font Awesome\n */.fa{font-family:FA}.fa-0:before{content:"\\30"}.fa-a,.fa-b{a:1}'
    '@font-face{font-family:"Font Awesome 6";src:url(a.woff2)}@font-face{font-family:Own;src:url(b.woff2)}'
    "@keyframes fa-beat{0%{a:1}50%{a:2}}@keyframes own{0%{a:1}}@media print{.fa-spin{a:1}.own{a:2}}"
    ".bd .fa-x{a:3}.own,.fa-a{a:4}"
)


def test_the_theme_keeps_its_own_rules():
    assert lean.without_icons(STYLES) == (
        ":root{--x:1}@font-face{font-family:Own;src:url(b.woff2)}@keyframes own{0%{a:1}}"
        "@media print{.own{a:2}}.bd .fa-x{a:3}.own,.fa-a{a:4}"
    )


def test_the_folder_is_rid_of_what_no_page_needs(tmp_path, monkeypatch):
    monkeypatch.setattr(lean.formulas, "typeset_pages", lambda site, pages: pages)
    kept = ["_static/styles/pydata-sphinx-theme.css", "_static/vendor/d3.min.js", "book/index.html"]
    files = [name for name in lean.UNUSED if "." in name]
    for name in [*kept, *files, "_static/locales/de/a.po", "_static/a.js.map"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("", encoding="utf-8")
    lean.make_lean(tmp_path)
    left = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted(left) == sorted(kept)


def test_every_button_of_the_theme_that_a_page_may_have_has_an_icon():
    """Also those of a repository's address, which the site may not have yet; a browser looks at the pages."""
    theme = Path(find_spec("sphinx_book_theme").origin).parent / "header_buttons"
    used = set()
    for name in ("__init__.py", "launch.py"):
        used |= set(re.findall(r"fas (fa-[a-z-]+)", (theme / name).read_text(encoding="utf-8")))
    elsewhere = {"fa-code", "fa-play"}  # buttons that this book has switched off: its source, live code
    assert {"fa-rocket", "fa-download"} <= used
    assert {name for name in used - elsewhere | {"fa-github"} if f".{name} {{ --icon:" not in ICONS} == set()
