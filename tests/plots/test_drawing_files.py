"""One test for all drawings: their files, and how a phone shows them, light and dark. It can fail."""

import inspect
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from color_science import VISION, contrast, lab, linear, rgb
from drawing_checks import (
    SVG,
    in_file,
    in_picture,
    in_the_middle,
    made_by,
    palette,
    rows_of,
    texts_of,
    tree,
)
from playwright.sync_api import Browser, sync_playwright
from torch import nn

import inputs
from browsers import FLAGS, find_browser
from chapters_src import gemma_conversion, plots, resources
from chapters_src.attention import (
    CrossAttention,
    MultiHeadAttention,
    causal_mask,
    padding_mask,
    sliding_window_mask,
)
from chapters_src.data import wordnet
from chapters_src.plots.drawings import FOLDER, read
from chapters_src.transformer import Config, FeedForward, Memory, TransformerLayer
from paths import BUILD, PACKAGE, ROOT, notebooks

ROAD = ROOT / "book" / "road.svg"  # links, so it stands in the start page as it is
FILES = sorted(FOLDER.glob("*.svg"))
SEEN = BUILD / "drawings"
ATTENTION, WHOLE = "attention_of_one_query", "encoder_decoder_model"
TWO_LAYERS = "layer_then_and_now"


@pytest.fixture(scope="module")
def browser(absent) -> Iterator[Browser]:
    found = find_browser()
    if found is None:
        absent("no browser: neither Chromium nor Chrome nor Edge is on the PATH or in its usual place")
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=found, args=FLAGS)


def shown(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path == ROAD else read(path)._repr_html_()


@pytest.mark.parametrize("path", [*FILES, ROAD], ids=lambda path: path.stem)
def test_a_drawing_is_in_order(path, browser):
    text = path.read_text(encoding="utf-8")
    found = in_file(text, caption=path != ROAD)
    SEEN.mkdir(parents=True, exist_ok=True)
    for theme in ("light", "dark"):
        picture = SEEN / f"{path.stem}-{theme}.png"
        found += in_picture(browser, shown(path), theme == "dark", picture)
    assert found == []


GOOD = f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 360 80" width="460"
  font-family="Helvetica, Arial, 'Liberation Sans', sans-serif" fill="none">
  <title>A good one</title><desc>{"All that there is. " * 12}</desc><metadata>{"A caption. " * 9}</metadata>
  <rect x="10" y="10" width="100" height="30" rx="6" fill="var(--drawing-blue-soft, #e1e9fa)"/>
  <g fill="var(--drawing-ink, #222832)" font-size="11"><text x="20" y="29">first</text>
  <text x="150" y="29">q<tspan font-size="9.5" dy="3">k</tspan></text></g>
</svg>"""
INK = "var(--drawing-ink, #222832)"
WRONG = {  # what is written in place of what, and what is said of it
    "a word too small": ('font-size="11"', 'font-size="9"', "'first' has 8.9 pixels"),
    "a subscript too small": ('font-size="9.5"', 'font-size="8"', "'k' has 8.0 pixels"),
    "shrunk by a transform": ("<g ", '<g transform="scale(.7)" ', "pixels on a phone"),
    "too wide": ('viewBox="0 0 360 80"', 'viewBox="0 0 600 133"', "pixels on a phone"),
    "texts that overlap": ('x="150"', 'x="30"', "'first' and 'qk' overlap"),
    "text that sticks out": ('x="150"', 'x="355"', "'qk' is not all inside"),
    "text below the edge": ('x="150" y="29"', 'x="150" y="79"', "'qk' is not all inside"),
    "a line through a word": ("</g>", f'</g><path d="M10 25H300" stroke="{INK}"/>', "'first' does not show"),
    "text on a strong color": ("blue-soft, #e1e9fa", "blue, #3b68c8", "has the contrast, light"),
    "ink on ink": ("blue-soft, #e1e9fa", "ink, #222832", "has the contrast, dark"),
    "text without color": (f'<g fill="{INK}"', "<g", "does not show"),
    "a color by value": (INK, "#222832", "fill is '#222832'"),
    "the color of the page": (INK, "currentColor", "fill is 'currentColor'"),
    "an unknown variable": ("--drawing-ink", "--drawing-black", "--drawing-black"),
    "another light value": ("#222832", "#000000", "#000000"),
    "no title": ("<title>A good one</title>", "", "<title> has 0 characters"),
    "a poor description": ("All that there is. ", "", "<desc> has 0 characters"),
    "no caption": ("A caption. ", "", "<metadata> has 0 characters"),
    "a viewBox from elsewhere": ("0 0 360 80", "-5 0 360 80", "it begins with 0 0"),
    "no width": ('width="460"', "", "width is None"),
    "another font": ("Helvetica", "Comic Sans", "font-family of <svg>"),
    "a font of its own": ("<g ", '<g font-family="Inter" ', "<g> has font-family"),
    "a style sheet": ("</svg>", "<style>text { fill: red }</style></svg>", "<style> has no place"),
    "a style": ("<text ", f'<text style="fill:{INK}" ', "<text> has style"),
    "a script": ("</svg>", "<script>alert(1)</script></svg>", "<script> has no place"),
    "a handler": ("<text ", '<text onclick="alert(1)" ', "<text> has onclick"),
    "a picture": ("</svg>", '<image href="a.png"/></svg>', "<image> has no place"),
    "a filter elsewhere": ("<rect ", '<rect class="url(a.svg#b)" ', "needs no other file"),
    "a link out": ("<g ", '<a href="https://example.org">.</a><g ', "only links to pages"),
    "an id": ("<text ", '<text id="first" ', "the id 'first'"),
    "see-through": ("<g ", '<g opacity="0.3" ', "<g> has opacity"),
}


def test_the_good_one_is_good(browser, tmp_path):
    path = tmp_path / "good.svg"
    path.write_text(GOOD, encoding="utf-8")
    assert in_file(GOOD) == []
    for dark in (False, True):
        assert in_picture(browser, shown(path), dark) == []


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_found(case, browser, tmp_path):
    old, new, said = WRONG[case]
    assert old in GOOD
    path = tmp_path / "wrong.svg"
    path.write_text(GOOD.replace(old, new), encoding="utf-8")
    found = in_file(path.read_text(encoding="utf-8"))
    if not found:
        found = in_picture(browser, shown(path), False) + in_picture(browser, shown(path), True)
    assert any(said in complaint for complaint in found), found


def test_without_its_words_for_screen_readers_a_picture_is_refused(browser, tmp_path):
    path = tmp_path / "good.svg"
    path.write_text(GOOD, encoding="utf-8")
    for attribute in ('role="img"', 'aria-label="A good one"'):
        assert attribute in shown(path)
        assert any(
            "is missing" in each for each in in_picture(browser, shown(path).replace(attribute, ""), False)
        )


# --- Colors.


def test_the_colors_are_those_of_the_charts():
    accents = ("blue", "orange", "green", "pink")
    assert [palette(dark=False)[name].upper() for name in accents] == list(plots.PALETTE[:4])
    assert palette(dark=False).keys() == palette(dark=True).keys()


@pytest.mark.parametrize("dark", [False, True])
def test_lines_and_letters_show(dark):
    colors = {name: rgb(value) for name, value in palette(dark).items()}
    grounds = [name for name in colors if name in ("paper", "card") or name.endswith("-soft")]
    for ground in grounds:
        assert min(contrast(colors[text], colors[ground]) for text in ("ink", "muted")) >= 4.5, ground
    for name in ("blue", "orange", "green", "pink"):
        assert contrast(colors[name], colors["paper"]) >= 3, name
    for vision, name in ((VISION[kind], kind) for kind in VISION):
        seen = [lab(vision @ linear(colors[each])) for each in ("blue", "orange", "green", "pink")]
        assert min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)) > 15, name


# --- The loader.


def test_a_drawing_is_a_figure_with_its_caption():
    drawing = plots.load_drawing(ATTENTION)
    page = drawing._repr_html_()
    assert page.startswith('<figure class="diagram"'), "what diagrams.js enlarges"
    assert page.count(drawing.caption) == 1 and "<metadata" not in page and "<!--" not in page
    figure = ElementTree.fromstring(page)
    svg = figure.find(f"{SVG}svg")
    assert svg.get("aria-label") == drawing.title == svg.findtext(f"{SVG}title")
    assert f"max-width:{svg.get('width')}px" in svg.get("style"), "enlarged, the stage is as wide"
    assert repr(drawing) == f"{drawing.title}\n{drawing.description}" and "  " not in drawing.description


@pytest.mark.parametrize("name", ["attention", "../plots/style", "", "attention_of_one_query.svg"])
def test_an_unknown_name_is_refused_with_those_that_there_are(name):
    with pytest.raises(ValueError, match=f"{ATTENTION}, .*{WHOLE}") as refused:
        plots.load_drawing(name)
    assert repr(name) in str(refused.value)


def test_a_notebook_depends_on_the_drawings_that_it_shows_and_on_no_others():
    words = {word for p in PACKAGE.rglob("*.py") for word in re.findall(r"\w+", p.read_text("utf-8"))}
    assert not {path.stem for path in FILES} & words, "a module with the name would make others depend on it"
    shown = set()
    for notebook in notebooks():
        showing = {*re.findall(r'load_drawing\("(\w+)"\)', "\n".join(inputs.program(notebook)))}
        assert showing == {path.stem for path in {*inputs.closure(notebook)} & {*FILES}}, notebook.name
        shown |= showing
    assert shown == {path.stem for path in FILES}


# --- The attention of one query: its numbers are those of chapter 07.


def test_the_numbers_of_attention_are_those_of_the_chapter():
    given = made_by("07_attention_from_scratch", "words = |W_q = ")
    query, key, value = (given[name] for name in ("query", "key", "value"))
    products = key @ query[1]
    scores = products / math.sqrt(key.shape[1])
    weights = scores.softmax(dim=-1)
    gathered = weights @ value
    digits = lambda numbers, places: [f"{number:.{places}f}" for number in numbers.flatten().tolist()]  # noqa: E731
    wanted = [
        *digits(given["x"][1], 1), *digits(query[1], 1), *digits(key, 1), *digits(products, 2),
        *digits(scores, 2), *digits(weights, 2), *digits(value, 1), *digits(gathered, 2),
        *digits(given["x"][1] + gathered, 2),
    ]  # fmt: skip
    root, texts = tree(ATTENTION), texts_of(ATTENTION)
    assert [text for text in texts if re.fullmatch(r"-?\d+\.\d+", text)] == wanted
    assert set(digits(weights, 2)) <= set(re.findall(r"weight (\d\.\d+)", root.findtext(f"{SVG}desc")))
    assert [text for text in texts if text in given["words"]][-4:] == given["words"]
    bars = [float(bar.get("height")) for bar in root.iter(f"{SVG}rect") if bar.get("width") == "28"]
    assert bars == pytest.approx((110 * weights).tolist(), abs=0.06)
    bands = [float(p.get("stroke-width")) for g in root.iter(f"{SVG}g") if g.get("stroke-opacity") for p in g]
    assert bands == pytest.approx((18 * weights).tolist(), abs=0.06)


# --- The encoder-decoder: its layers are the modules of the package.

CONFIG = dict(vocab_size=9, d_model=8, num_layers=1, num_heads=2, feed_forward_width=16, max_length=9)


def order_of_the_layer(cross_attention, norm_first):
    """In which order the real layer calls its norms and sublayers."""
    called = []
    layer = TransformerLayer(Config(**CONFIG, norm_first=norm_first, cross_attention=cross_attention))
    names = {nn.LayerNorm: "norm", MultiHeadAttention: "attention", CrossAttention: "attention"}
    names[FeedForward] = "feed_forward"
    for module in layer.modules():
        if type(module) in names:
            name = names[type(module)]
            module.register_forward_hook(lambda *_, name=name: called.append(name))
    states = torch.zeros(1, 3, 8)
    layer(states, None, memory=Memory(states, None) if cross_attention else None)
    return called


def words(name: str, left: float = 0, right: float = 420) -> list[str]:
    """The texts of a drawing from top to bottom, of those whose anchor lies between two lines."""
    found = tree(name).iter(f"{SVG}text")
    texts = sorted(found, key=lambda text: (float(text.get("y")), float(text.get("x"))))
    return ["".join(text.itertext()) for text in texts if left <= float(text.get("x")) < right]


@pytest.mark.parametrize(
    ("name", "cross_attention"), [("layer_of_an_encoder", False), ("layer_of_a_decoder", True)]
)
def test_the_parts_of_a_layer_follow_each_other_as_in_the_module(name, cross_attention):
    kinds = {
        "LayerNorm": "norm",
        "join the heads, linear (B, T, d_model)": "attention",  # the last step of each sublayer
        "linear (B, T, d_model)": "feed_forward",
    }
    drawn = [kinds[text] for text in words(name) if text in kinds]
    assert drawn == order_of_the_layer(cross_attention, norm_first=True)
    shapes = [text for text in words(name) if text.startswith("(B, H")]
    own = ["(B, H, T, head_dim)"] * 3
    assert shapes == own + ([own[0], *["(B, H, S, head_dim)"] * 2] if cross_attention else [])


# --- PyTorch's transformer, and pictures as tokens.


def test_the_masks_of_pytorch_stand_where_its_arguments_act():
    arguments = inspect.signature(nn.Transformer.forward).parameters
    masks = [name for name in arguments if name.endswith("_mask")]
    texts = words("pytorchs_three_masks")
    assert sorted(text for text in texts if text.endswith("_mask")) == sorted(masks) and len(masks) == 6
    for column, prefixes in ((words("pytorchs_three_masks", 0, 200), ("src",)), (
        words("pytorchs_three_masks", 200), ("tgt", "memory")
    )):  # fmt: skip
        sublayers = [i for i, text in enumerate(column) if text.endswith("-attention")]
        for i, prefix in zip(sublayers, prefixes, strict=True):
            assert all(text.startswith(f"{prefix}_") for text in column[i + 1 : i + 3])


def test_pytorchs_norms_and_sublayers_are_drawn_in_the_order_in_which_they_run():
    model, ran = nn.Transformer(8, 2, 1, 1, 16, batch_first=True), []
    kinds = {nn.LayerNorm: "norm", nn.MultiheadAttention: "attention", nn.Linear: "feed_forward"}
    for name, module in model.named_modules():
        if type(module) in kinds and not name.endswith("linear1"):  # The second layer ends a sublayer.
            kind = kinds[type(module)]
            module.register_forward_hook(lambda *_, kind=kind: ran.append(kind))
    model(torch.zeros(1, 3, 8), torch.zeros(1, 3, 8))
    both = [*words("pytorchs_three_masks", 0, 200), *words("pytorchs_three_masks", 200)]
    assert [KINDS[text] for text in both if text in KINDS] == ran


def test_a_picture_of_eight_by_eight_is_as_many_tokens_as_drawn():
    patches, texts = (8 // 2) ** 2, words("patches_as_tokens")
    assert f"patch {patches}" in texts and f"patch {patches + 1}" not in texts
    assert any(f"one learned vector for each of {patches + 1} places" in text for text in texts)


# --- The encoder-decoder, whole.

KINDS = {"LayerNorm": "norm", "Feed-forward": "feed_forward"}
KINDS |= dict.fromkeys(("Self-attention", "Cross-attention"), "attention")


@pytest.mark.parametrize(("cross_attention", "left", "right"), [(False, 0, 200), (True, 200, 400)])
def test_the_layers_are_in_the_order_of_the_modules(cross_attention, left, right):
    names = words(WHOLE, left, right)
    last = names.index("Head: linear" if cross_attention else "memory M")
    drawn = [name for name in names[names.index("Embedding + positions") : last] if name in KINDS]
    assert [KINDS[name] for name in drawn] == order_of_the_layer(cross_attention, norm_first=False)
    assert ("Cross-attention" in drawn) == cross_attention
    circles = [c for c in tree(WHOLE).iter(f"{SVG}circle") if left <= float(c.get("cx")) < right]
    assert len(circles) == sum(KINDS[name] != "norm" for name in drawn), "each sublayer is added"


def test_the_decoder_reads_the_target_shifted_right_and_predicts_it():
    rows = rows_of(
        WHOLE, lambda text: float(text.get("x")) > 200 and re.fullmatch("[a-z]{1,5}", text.text or "")
    )
    target, read_by_it, predicted = [row for row in rows if len(row) > 1]
    assert read_by_it == ["start", *target[:-1]] and predicted == target


def test_the_grids_are_the_masks():
    squares = [rect for rect in tree(WHOLE).iter(f"{SVG}rect") if rect.get("width") == "34"]
    may = ["blue" in rect.get("fill") for rect in squares]
    assert may[:16] == causal_mask(4).flatten().tolist() and may[16:] == [True] * 12


# --- A layer of 2017 and one of today: the modules, the masks and the numbers of Gemma 3 270M.


@pytest.mark.parametrize(("left", "right", "today"), [(0, 190, False), (190, 400, True)])
def test_the_norms_stand_where_the_modules_have_them(left, right, today):
    names = words(TWO_LAYERS, left, right)
    kinds = KINDS | {"RMSNorm": "norm", "Gated feed-forward": "feed_forward"}
    around = ["norm"] if today else []
    wanted = [*around, "attention", "norm", *around, "feed_forward", "norm"]
    assert [kinds[name] for name in names if name in kinds] == wanted
    assert ("RMSNorm" in names) == ("Gated feed-forward" in names) == today
    if not today:  # the order with two norms is the one by which Gemma's weights give the library's logits
        assert wanted == order_of_the_layer(False, norm_first=False)


def test_the_small_grids_are_a_causal_mask_and_a_window():
    causal = causal_mask(6)
    wanted = [causal, causal & sliding_window_mask(6, 6, 3), causal]
    grids = [path for path in tree(TWO_LAYERS).iter(f"{SVG}path") if path.get("d").count("h7v7h-7z") > 1]
    assert [path.get("d").count("h7v7") for path in grids[1::2]] == [mask.sum().item() for mask in wanted]
    for off, on, mask in zip(grids[::2], grids[1::2], wanted, strict=True):
        cells = [
            {tuple(map(int, place)) for place in re.findall(r"M(\d+) (\d+)h", path.get("d"))}
            for path in (off, on)
        ]
        x, y = (min(place[axis] for place in cells[0] | cells[1]) for axis in (0, 1))
        assert cells[1] == {(x + 7 * j, y + 7 * i) for i, j in mask.nonzero().tolist()}


def test_its_numbers_are_those_of_gemma():
    said = " ".join("".join(tree(TWO_LAYERS).itertext()).split())
    texts = texts_of(TWO_LAYERS)
    [first, *_] = resources.embedded.gemma_parts(resources.CHECKPOINTS["gemma"].package)
    header, _ = gemma_conversion.read_header(first.read_bytes())
    c = gemma_conversion._config(header, [])
    kinds = c["layer_types"]
    assert f"× {len(kinds)} layers" in texts and f"it has {c['sliding_window']}" in said
    bases = [c["rope_parameters"][kind]["rope_theta"] for kind in (kinds[0], kinds[-1])]
    assert [text for text in texts if text.startswith("base")] == [f"base {base:,.0f}" for base in bases]
    assert kinds == 3 * [*5 * ["sliding_attention"], "full_attention"]
    boxes = [rect for rect in tree(TWO_LAYERS).iter(f"{SVG}rect") if rect.get("height") == "14"]
    widths = [rect.get("width") for rect in boxes if float(rect.get("x")) > 190 and rect.get("rx") == "3"]
    assert widths == c["num_attention_heads"] * ["14"] + 2 * c["num_key_value_heads"] * ["65"]  # Q; K and V


def test_the_three_places_of_a_norm():
    columns = [words("where_norms_stand", left, left + 120) for left in (0, 120, 240)]
    orders = [[text for text in column if text in ("norm", "sublayer")] for column in columns]
    assert orders == [["sublayer", "norm"], ["norm", "sublayer"], ["norm", "sublayer", "norm"]]
    encoder = order_of_the_layer(False, norm_first=False)
    assert encoder[:2] == ["attention", "norm"] and order_of_the_layer(False, norm_first=True)[0] == "norm"
    assert [column[0] for column in columns] == ["post-norm", "pre-norm", "both"]


def test_a_feed_forward_network_widens_four_times_and_gates_two_rows():
    rects = tree("widen_bend_narrow").iter(f"{SVG}rect")
    rows = Counter((float(rect.get("x")) > 186, float(rect.get("y"))) for rect in rects)
    assert [number for (right, _), number in sorted(rows.items()) if not right] == [3, 12, 12, 3]
    assert [number for (right, _), number in sorted(rows.items()) if right] == [3, 16, 16, 8, 3]


# --- Chapter 01: the sums of two scores, and attention over three words.


def test_the_sums_of_two_scores_are_sums_and_the_best_is_framed():
    root = tree("answer_by_two_scores")
    placed = [
        (float(text.get("x")), float(text.get("y")), int(text.text.replace("−", "-")))
        for text in root.iter(f"{SVG}text")
        if re.fullmatch(r"−?\d", text.text or "")
    ]
    ends = {x: value for x, y, value in placed if y < 60}
    starts = {y: value for x, y, value in placed if x < 90}
    sums = {(x, y): value for x, y, value in placed if y > 60 and x > 90}
    assert len(ends) == len(starts) == 7 and len(sums) == 1 + 5 + 4 + 3
    assert all(value == starts[y] + ends[x] for (x, y), value in sums.items())
    (best,) = (rect for rect in root.iter(f"{SVG}rect") if rect.get("stroke-width") == "2.4")
    x, y = max(sums, key=sums.get)
    assert 0 < x - float(best.get("x")) < 37 and 0 < y - float(best.get("y")) < 37


def test_the_three_words_attend_as_chapter_01_computes_it():
    x = torch.tensor([[2.0, 0.0], [0.0, 2.0], [1.0, 0.0]])
    weights = (x @ x.T / math.sqrt(2)).softmax(dim=1)
    wanted = {"({:.2f}, {:.2f})".format(*row) for row in (weights @ x).tolist()}
    wanted |= {"({:.0f}, {:.0f})".format(*row) for row in x.tolist()}
    wanted |= {f"{weight:.2f}" for weight in weights[2].tolist()}
    assert {text for text in texts_of("three_words_attend") if re.search(r"\d", text)} == wanted


# --- Word vectors: the counts and the guess are those of chapter 02.

CHAPTER_02 = "02_meaning_and_word_vectors"


def test_the_counts_in_the_windows_are_those_of_the_chapter():
    given, texts = made_by(CHAPTER_02, r"texts = \["), texts_of("company_in_a_window")
    words = [word for text in given["texts"] for word in text]
    assert texts[1 : len(words) + 1] == words
    columns = texts[len(words) + 2 : len(words) + 8]
    assert set(columns) == {near for word, near in given["counts"] if word in given["rows"]}
    drawn = {name: texts[texts.index(name, len(words) + 2) + 1 :][:6] for name in given["rows"]}
    wanted = {name: [str(given["counts"][name, column]) for column in columns] for name in given["rows"]}
    assert drawn == wanted


def test_the_numbers_of_the_guess_are_those_of_the_chapter():
    given, texts = made_by(CHAPTER_02, r"v = torch\.tensor"), texts_of("one_guess_with_noise")
    pair = lambda numbers, places: f"({', '.join(f'{number:.{places}f}' for number in numbers)})"  # noqa: E731
    assert f"v = {pair(given['v'].tolist(), 1)}" in texts
    for column, name in enumerate(("axes", "tensor", "kernel")):
        product, error = given["products"][column], given["error"][column]
        start = max(i for i, text in enumerate(texts) if text == name)
        assert texts[start + 2 : start + 7] == [
            pair(given["u"][column].tolist(), 1), f"{product:.2f}", f"{torch.sigmoid(product):.2f}",
            f"{column == 0:d}", f"{error:+.2f}",
        ]  # fmt: skip
    assert any(text.endswith(pair(given["v"].grad.tolist(), 2)) for text in texts)


def test_the_tree_of_the_two_legends_is_wordnets():
    book, texts = wordnet.read(), texts_of("hypernyms_of_legend")
    story, caption = (book.chains(name)[0] for name in book.senses["legend"])
    shared = [a for a, b in zip(story, caption, strict=False) if a == b]
    wanted = [*shared, *story[len(shared) :], *caption[len(shared) :]]
    names = [book.synsets[name].words for name in wanted]
    ends = {"legend.n.01", "caption.n.03"}
    assert texts[: len(wanted)] == [
        ", ".join(words) if name in ends else words[0] for name, words in zip(wanted, names, strict=True)
    ]
    assert " ".join(texts[len(wanted) :][:2]) == book.synsets["legend.n.01"].definition
    assert " ".join(texts[len(wanted) :][2:4]) == book.synsets["caption.n.03"].definition


# --- Chapter 07: four masks, and heads that add up.


def test_the_four_grids_are_the_masks():
    root = tree("four_masks")
    places = {
        kind: sorted(
            (float(rect.get("y")), float(rect.get("x")))
            for group in root.iter(f"{SVG}g")
            if kind in (group.get("fill") or "")
            for rect in group.iter(f"{SVG}rect")
        )
        for kind in ("blue-soft", "card")
    }
    padding = padding_mask(torch.tensor([[1, 1, 1, 1, 0]]))[0, 0]
    causal = causal_mask(5)
    wanted = [padding.expand(5, 5), causal, padding & causal, padding.expand(2, 5)]
    cells = sorted(places["blue-soft"] + places["card"])
    for number, mask in enumerate(wanted):
        left, below = number % 2, number // 2
        own = [(y, x) for y, x in cells if (x > 180) == left and (y > 165) == below]
        assert [place in places["blue-soft"] for place in own] == mask.flatten().tolist()
    ticks = "".join(path.get("d") for path in root.iter(f"{SVG}path")).count("M")
    assert ticks == len(places["blue-soft"]), "color is not the only cue"


def test_four_heads_share_the_width_and_write_all_of_it():
    shapes = re.findall(r"\(T, \d+\)|\(4, 16\)", " ".join(texts_of("heads_add_up")))
    assert shapes.count("(T, 4)") == 2 * 4, "value and output of each head"
    assert shapes.count("(4, 16)") == 4 and shapes.count("(T, 16)") == 1 + 4 + 1
    assert texts_of("heads_add_up").count("+") == 3


def test_the_three_states_are_asked_as_chapter_06_computes_it():
    asking, states = torch.tensor([-1.5, 0.5]), torch.tensor([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0]])
    scores = states @ asking
    weights = scores.softmax(dim=0)
    texts = texts_of("three_states_asked")
    vectors = [f"({x:g}, {y:g})" for x, y in (asking.tolist(), *states.tolist())]
    assert [text for text in texts if text.startswith("(")] == vectors
    assert [text for text in texts if text.startswith("score")] == [f"score {e:g}" for e in scores.tolist()]
    found = [text for text in texts if text.startswith("weight")]
    assert found == [f"weight {alpha:.2f}" for alpha in weights.tolist()]
    assert "context\u00a0({:.2f}, {:.2f})".format(*(weights @ states).tolist()) in texts


# --- Chapter 05: what is trained, and the correction of a matrix.


def test_the_trained_weights_are_counted():
    from transformers import AutoConfig, AutoModel

    config = AutoConfig.from_pretrained(resources.checkpoint("encoder"))
    with torch.device("meta"):
        body = AutoModel.from_config(config)
    width, num_layers = config.hidden_size, config.num_hidden_layers
    head = (width + 1) * 6
    corrections = num_layers * 2 * 2 * 8 * width
    said = texts_of("three_ways_to_train")
    for number in (f"{head:,}", f"{(sum(p.numel() for p in body.parameters()) + head) / 1e6:.1f} million"):
        assert number in said
    assert f"{corrections + head:,}" in said
    assert said.count("layer 1") == 3 and f"layer {num_layers}" in said
    assert {f"A: 8 × {width}", f"B: {width} × 8", f"{width} × {width}"} <= set(
        texts_of("low_rank_correction")
    )


def test_the_steps_of_training_have_five_numbers_in_their_order():
    said = texts_of("one_training_step")
    assert [text for text in said if text.isdigit()] == list("12345")


# --- The drawings of chapter 11: six tasks, and a router.


def test_six_tasks_are_made_from_one_line():
    rows = rows_of("one_line_six_tasks", in_the_middle)
    gpt, bert, electra, t5, bart, pegasus = zip(rows[::2], rows[1::2], strict=True)
    line = bart[1]
    assert " ".join(line) == "every legend in my figures sits on top of the data"
    assert (gpt[0], gpt[1]) == (line[:-1], line[1:])
    hidden = [i for i, word in enumerate(bert[0]) if word == "[MASK]"]
    assert [line[i] for i in hidden] == bert[1]
    assert [word != own for word, own in zip(electra[0], line, strict=True)] == [
        w == "yes" for w in electra[1]
    ]
    spans = re.split(r"<[XYZ]> ?", " ".join(t5[1]))[1:-1]
    filled = re.sub(r"<([XY])>", lambda mark: spans["XY".index(mark[1])].strip(), " ".join(t5[0]))
    assert filled == " ".join(line)
    assert " ".join(pegasus[0]).replace("[MASK1]", " ".join(pegasus[1])) == (
        "It comes back. I love your library. I hate your legend."
    )


def test_the_router_takes_the_two_best_and_weighs_them():
    texts, told = texts_of("router_picks_two"), tree("router_picks_two").findtext(f"{SVG}desc")
    scores = [float(text) for text in texts if re.fullmatch(r"-?\d\.\d", text)]
    best = sorted(sorted(range(8), key=lambda i: -scores[i])[:2])
    assert len(scores) == 8 and f"expert {best[0] + 1} and expert {best[1] + 1}" in told
    weights = np.exp([scores[i] for i in best])
    assert [text for text in texts if text.startswith("×")] == [f"× {w:.2f}" for w in weights / weights.sum()]


# --- The tape of chapter 12: what is asked for is what stands one place further.


def test_the_tape_is_cut_into_blocks_whose_labels_are_one_place_further():
    said = rows_of("one_tape_many_lessons", lambda text: in_the_middle(text) and " " not in text.text)
    tape, reads, asked = said
    assert reads == tape[:-1] and asked == tape[1:] and len(tape) == 9
    assert tape[0] == "end" and tape.count("end") == 2


def test_the_table_of_common_words_is_filled_as_chapter_14_fills_it():
    root = tree("common_words_in_order")
    texts = list(root.iter(f"{SVG}text"))
    rows = [text.text for text in texts if text.get("text-anchor") == "end"]
    middle = [text.text for text in texts if text.get("text-anchor") == "middle"]
    columns, cells = middle[:8], middle[8:]
    assert " ".join(rows) == "writes a simple uncompressed wav file"
    assert " ".join(columns) == "write a numpy array as a wav file"
    lengths = np.zeros((len(rows) + 1, len(columns) + 1), dtype=int)
    for i, j in itertools.product(range(len(rows)), range(len(columns))):
        longer = lengths[i, j] + 1 if rows[i] == columns[j] else 0
        lengths[i + 1, j + 1] = max(longer, lengths[i, j + 1], lengths[i + 1, j])
    shown = [str(length) for length in lengths[1:, 1:].flat]
    assert cells.count("?") == 1 and shown[cells.index("?")] == "2"
    assert [a for a, b in zip(cells, shown, strict=True) if b != a] == ["?"]


# --- Chapter 15: the collectives add up, and the pipeline waits as long as the formula says.


def numbers_in_rows(name: str) -> list[list[int]]:
    rows = rows_of(name, lambda text: in_the_middle(text) and (text.text or "").isdigit())
    return [[int(text) for text in row] for row in rows]


def test_the_numbers_of_the_collectives_add_up():
    rows = numbers_in_rows("three_collectives")
    all_reduce, reduce_scatter, all_gather = rows[:4], rows[4:8], rows[8:]
    own = [row[:4] for row in all_reduce]
    sums = [sum(column) for column in zip(*own, strict=True)]
    assert [row[4:] for row in all_reduce] == [sums] * 4
    assert reduce_scatter == [[*row, total] for row, total in zip(own, sums, strict=True)]
    assert all_gather == [[total, *sums] for total in sums]


def test_the_bubble_of_the_pipeline_is_that_of_the_formula():
    cells = [rect.get("fill") for rect in tree("pipeline_of_four").iter(f"{SVG}rect")]
    processes = batches = 4
    assert cells.count("none") / len(cells) == (processes - 1) / (batches + processes - 1)
    rows = numbers_in_rows("pipeline_of_four")
    assert rows == [[1, 2, 3, 4, 1, 2, 3, 4]] * processes, "each batch forward and backward, everywhere"
