"""Every page: no other host, no errors, readable on a phone, by a screen reader, and in both themes."""

import pytest
from site_visits import kind, look_at, page_names, visits

pytestmark = pytest.mark.site


def test_no_request_to_another_host(name, scheme, visit):
    assert visit(scheme, name).foreign == []


def test_nothing_that_a_page_loads_is_missing(name, scheme, visit):
    assert visit(scheme, name).failed == []


def test_no_error_on_the_console(name, scheme, visit):
    assert visit(scheme, name).errors == []


def test_a_phone_does_not_scroll_sideways(name, width, visit):
    assert visit("file", name).too_wide[width] == []


def test_every_image_has_an_alternative_text(name, visit):
    assert visit("file", name).images_without_alt == []


def test_all_maths_is_typeset(name, visit):
    assert visit("file", name).unset_maths == []


def test_all_attention_views_are_drawn(name, visit):
    assert visit("file", name).undrawn_views == []


def test_axe_finds_nothing_serious(name, theme, visit):
    found = visit("file", name).violations[theme]
    told = [f"{v['rule']}: {v['where']}\n  {v['html']}\n  {v['why']}" for v in found]
    assert not found, f"{len(found)} in all\n" + "\n".join(told[:10])


def test_no_kind_of_page_is_left_out(site):
    """And of the book itself no page: only listings of source code are sampled."""
    few, all_of_them = (visits(everything) for everything in (False, True))
    kinds = {kind(name) for name in page_names()}
    assert {"notebooks", "book", "source", ""} <= kinds
    for scheme in ("file", "http"):
        assert {kind(name) for of, name in few if of == scheme} == kinds
        assert [name for of, name in all_of_them if of == scheme] == page_names()
    assert {name for name in page_names() if kind(name) != "source"} <= {n for of, n in few if of == "file"}
    assert len(few) < len(all_of_them) / 2


def test_a_visit_sees_what_is_wrong(open_tab):
    """The tests above stand on what a visit notes; here every fault is planted."""
    tab = open_tab("file", "book/glossary.html")
    tab.page.evaluate(FAULTS)
    tab.page.wait_for_timeout(200)
    found = look_at(tab)
    assert tab.foreign == ["https://example.org/x.js"]
    assert sorted(failed.split(": ")[0].split("/")[-1] for failed in tab.failed) == ["missing.js", "x.js"]
    assert any("planted" in error for error in tab.errors)
    assert found.undrawn_views == ["bertviz-0"]
    assert len(found.images_without_alt) == 1
    assert "an equation" in found.unset_maths
    assert all(any("wide words" in element for element in wide) for wide in found.too_wide.values())
    assert {violation["rule"] for violation in found.violations["light"]} >= {"color-contrast", "image-alt"}
    assert "color-contrast" in {violation["rule"] for violation in found.violations["dark"]}


FAULTS = """() => {
  for (const source of ["https://example.org/x.js", "missing.js"]) {
    document.head.append(Object.assign(document.createElement("script"), {src: source}));
  }
  console.error("planted");
  document.querySelector("main p").insertAdjacentHTML("beforebegin", `
    <div id="bertviz-0"></div> <img src="../_static/logo.svg"> <span class="math">an equation</span>
    <p style="color: #ddd; background: #fff">pale words</p>
    <p style="width: 1000px">wide words</p>`);
}"""
