"""Room for BertViz's views, and larger targets in them, before they are drawn.

A view is drawn when it comes near the window (`book/_static/lazy_views.js`). Its place is kept free from the
start, so that nothing moves, and a page that is loaded anew shows what it showed before. BertViz's own sizes
are for a mouse; a finger needs rows and boxes of 24 pixels.
"""

import json
import re

ROW, BOX = 25, 25  # of the head view, in pixels
NEURON_ROW = 30  # a phone draws this view at four fifths
HEAD_TOP, NEURON_REST = 30, 100  # what BertViz adds to the rows
# The head view's lines get as much room as there is; its tokens keep theirs.
LINES = (
    "const MATRIX_WIDTH = Math.max(115, Math.min(480, "
    'document.getElementById(params["root_div_id"]).clientWidth - 2 * BOXWIDTH - 24));'
)
SIZES = {
    "const BOXHEIGHT = 22.5;": f"const BOXHEIGHT = {ROW};",
    "const CHECKBOX_SIZE = 20;": f"const CHECKBOX_SIZE = {BOX};",
    "const MATRIX_WIDTH = 115;": LINES,
    "const BOXHEIGHT = 26;": f"const BOXHEIGHT = {NEURON_ROW};",
}
# The plus and minus signs of the neuron view: what reacts is as large as a row.
SIGN = re.compile(
    r'\.attr\("x", leftPos \+ 5\)(\s*\.attr\("y", function \(d, i\) \{'
    r"\s*return i \* BOXHEIGHT \+ HEADING_HEIGHT) \+ 4;"
    r"(\s*\}\)\s*\.style\('opacity', 0\)"
    r'\s*\.attr\("dy", 17\)\s*)\.attr\("height", 16\)(\s*)\.attr\("width", 16\)'
)
LARGER = rf'.attr("x", leftPos)\1 - 1;\2.attr("height", BOXHEIGHT)\3.attr("width", {NEURON_ROW})'
PARAMETERS = re.compile(r"(?:const params|window\.bertviz_params) = (?=\{)")
PLACE = re.compile(r"(id=['\"]?(bertviz-\w+)['\"]?.*?<div id='vis')(?=>)", re.DOTALL)


def larger(script: str) -> str:
    """Give the script of a view the sizes above."""
    for old, new in SIZES.items():
        script = script.replace(old, new)
    return SIGN.sub(LARGER, script)


def height(parameters: dict) -> float:
    """Return how high a view will be drawn, in pixels, from what its script is given."""
    choices, chosen = parameters["attention"], parameters["default_filter"]
    attention = choices[chosen] if isinstance(choices, dict) else choices[int(chosen)]
    rows = max(len(attention["left_text"]), len(attention["right_text"]))
    if "queries" in attention:
        return rows * NEURON_ROW + NEURON_REST
    if "display_mode" in parameters:
        layers, heads = len(parameters["include_layers"]), parameters["total_heads"]
        small = rows * 7 * 12 / heads + 10
        return max(layers * small + 38, rows * 18 + 55)
    return rows * ROW + HEAD_TOP


def make_room(page: str, scripts: list[str]) -> str:
    """Keep the place of each view free.

    Args:
        page: HTML with the places of views.
        scripts: what draws them.
    """
    known = [about for script in scripts if "attention" in (about := _parameters(script))]
    rooms = {about["root_div_id"]: height(about) for about in known}

    def with_room(match: re.Match) -> str:
        room = rooms.get(match[2])
        return match[0] if room is None else f'{match[1]} style="min-height: {room:.0f}px"'

    return PLACE.sub(with_room, page)


def _parameters(script: str) -> dict:
    """Return what a script is given; empty if that stands in another one."""
    found = PARAMETERS.search(script)
    return json.JSONDecoder().raw_decode(script, found.end())[0] if found else {}
