"""Formulas are typeset when the site is made, by MathJax in Node."""

import pytest

from paths import NPM
from website import formulas

pytestmark = pytest.mark.skipif(not (NPM / "installed").exists(), reason="npm's packages are not fetched yet")
HEAD = "<html><head></head><body>"
INLINE = '<p>So <span class="math notranslate nohighlight">\\(a &lt; b^2\\)</span>.</p>'
DISPLAY = '<div class="math notranslate nohighlight">\n\\[ \\frac{1}{n} \\]</div>'
AMS = '<div class="amsmath math notranslate">\\begin{align} x &amp;= 1 \\end{align}</div>'


@pytest.fixture
def site(tmp_path):
    (tmp_path / "_static").mkdir()
    return tmp_path


def test_formulas_are_drawn_and_told(site):
    page, plain = site / "notebooks" / "a.html", site / "b.html"
    text = f"{HEAD}{INLINE}{DISPLAY}{AMS}{INLINE}"
    made = formulas.typeset_pages(site, {page: text, plain: HEAD + "<p>\\(not a formula\\)</p>"})
    assert made[plain] == HEAD + "<p>\\(not a formula\\)</p>", "a page without formulas stays as it is"
    assert made[page].count("<mjx-container") == made[page].count("<mjx-assistive-mml") == 4
    assert "<mo>&lt;</mo>" in made[page] and "<mfrac><mn>1</mn>" in made[page] and "<mtable" in made[page]
    assert 'data-tex="a &lt; b^2"' in made[page]
    assert made[page].count('display="true"') > 0 and "\\(" not in made[page] and "\\[" not in made[page]
    assert '<link rel="stylesheet" type="text/css" href="../_static/formulas.css" />' in made[page]
    styles = (site / "_static" / "formulas.css").read_text(encoding="utf-8")
    assert 'url("vendor/mathjax/output/chtml/fonts/woff-v2/MathJax_Main-Regular.woff")' in styles


def test_a_formula_that_is_wrong_fails_and_is_named(site):
    page = site / "notebooks" / "a.html"
    wrong = HEAD + INLINE.replace("b^2", r"\frac{1}{")
    with pytest.raises(formulas.FormulaFailed, match=r"notebooks.a\.html.*\\frac"):
        formulas.typeset_pages(site, {page: wrong})
