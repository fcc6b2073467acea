"""Views have their room, and targets for fingers, before BertViz draws them, whose scripts say how high."""

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from website import views

BERTVIZ = Path(find_spec("bertviz").origin).parent
TOKENS = {"left_text": ["a"] * 9, "right_text": ["a"] * 7}
HEAD = {"attention": [TOKENS], "default_filter": "0", "root_div_id": "bertviz-1"}
MODEL = HEAD | {"display_mode": "light", "include_layers": [0, 1, 2], "total_heads": 12}
NEURON = HEAD | {
    "attention": {"all": TOKENS | {"queries": []}},
    "default_filter": "all",
    "display_mode": "light",
}


def script(name: str) -> str:
    return (BERTVIZ / f"{name}_view.js").read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "count"), [("head", 3), ("neuron", 1)])
def test_sizes_are_those_that_the_scripts_have(name, count):
    """If BertViz changes a line, this test says so; the site's tests look at the views themselves."""
    given = script(name)
    assert sum(given.count(line) for line in views.SIZES) == count
    made = views.larger(given)
    assert all((old in given) == (new in made) and old not in made for old, new in views.SIZES.items())
    signs = len(views.SIGN.findall(given))
    assert signs == (2 if name == "neuron" else 0)


@pytest.mark.parametrize(
    ("about", "wanted"),
    [(HEAD, 9 * 25 + 30), (MODEL, 3 * (9 * 7 + 10) + 38), (NEURON, 9 * 30 + 100)],
    ids=["head", "model", "neuron"],
)
def test_the_place_of_a_view_is_as_high_as_the_view(about, wanted):
    page = "<div id=\"bertviz-1\"><span>Layer</span>\n<div id='vis'></div></div><div id='vis'></div>"
    drawn = f"const params = {json.dumps(about)}; draw()"
    assert views.make_room(page, ["other()", drawn]) == page.replace(
        "<div id='vis'>", f"<div id='vis' style=\"min-height: {wanted}px\">", 1
    )
    assert views.make_room(page, []) == page


def test_the_parameters_of_a_neuron_view_are_found():
    page = "<div id=bertviz-1><div id='vis'></div></div>"
    assert "min-height: 370px" in views.make_room(page, [f"window.bertviz_params = {json.dumps(NEURON)}"])
