"""The four small machines, by mouse, keyboard and finger: their numbers are numpy's, or the package's."""

import json
import math
import random
import re
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from playwright.sync_api import Locator, Page, expect
from printed_book import Package, printing_with
from scipy.special import softmax
from site_visits import PHONE, Fingers
from transformers import AutoTokenizer

from chapters_src import attention, pretrained, resources
from chapters_src.data import docstrings
from chapters_src.tokenization import BytePairTokenizer
from chapters_src.tokenization.byte_pair import WORD, apply_merges, spell
from paper import epub
from paper.contents import Part
from paths import ROOT

pytestmark = pytest.mark.site

FOLDER = ROOT / "book" / "_static" / "machines"
MOST_BYTES = 10_000
PAGES = {
    "01 attention": ("notebooks/01_hello_transformers.html", "attention"),
    "07 attention": ("notebooks/07_attention_from_scratch.html", "attention"),
    "03 merges": ("notebooks/03_tokenization.html", "merges"),
    "07 softmax": ("notebooks/07_attention_from_scratch.html", "softmax"),
    "13 softmax": ("notebooks/13_decoding.html", "softmax"),
    "08 rotary": ("notebooks/08_transformer_anatomy.html", "rotary"),
}
WORDS = [
    "trainer", "strain", "zebra", "training", "unbelievable", "Merete", "Tromsø", "Nordvik Seafood", "naïve",
    "3.14159", "I'll", "don't", "aaaaaaaaaaaaaaaaa", "inininin", "猫", "👩‍👩‍👧‍👦", "שָׁלוֹם", "e\u0301",
    "x_1 == [y]", "documentation", "ſtrange ﬁ", "  two  words", "0x1F", "`<b>`", "-----", "=======",
]  # fmt: skip


class Machine:
    """A machine on its page, in the middle of the window."""

    def __init__(self, page: Page, kind: str):
        self.page = page
        self.root: Locator = page.locator(f'.machine[data-machine="{kind}"]')
        self.root.scroll_into_view_if_needed()
        self.start = json.loads(self.root.get_attribute("data-start"))
        self.said = self.root.locator(".machine-said")

    def numbers(self, query: str) -> list[float]:
        return [float(text.replace("−", "-")) for text in self.root.locator(query).all_inner_texts()]

    def button(self, name: str) -> Locator:
        return self.root.get_by_role("button", name=name, exact=True)

    def slider(self, name: str) -> Locator:
        return self.root.get_by_label(name, exact=True)

    def scrolled(self) -> float:
        return self.page.evaluate("scrollY")


@pytest.fixture
def use(open_tab) -> Iterator:
    """Open the page of a machine: `use("01 attention")`."""
    tabs = []

    def use(name: str, **options) -> Machine:
        page, kind = PAGES[name]
        tabs.append(open_tab("file", page, **options))
        return Machine(tabs[-1].page, kind)

    yield use
    for tab in tabs:
        tab.close()


def printed(page: Page, text: str) -> list[float]:
    """The numbers that a chapter prints after a text."""
    outputs = "\n".join(page.locator(".cell_output").all_inner_texts())
    return [float(number) for number in re.findall(r"[\d.]+", outputs.split(text)[1].split("]")[0])]


# --- All of them.


def test_scripts_are_small():
    sizes = {path.name: path.stat().st_size for path in FOLDER.glob("*.js") if path.name != "merges_data.js"}
    assert len(sizes) == 5
    assert {name: size for name, size in sizes.items() if size > MOST_BYTES} == {}
    common = sizes.pop("machine.js")
    assert max(sizes.values()) + common <= 1.1 * MOST_BYTES


def test_only_pages_with_a_machine_load_its_script(site):
    for path in sorted(site.glob("*/*.html")):
        page = path.read_text(encoding="utf-8")
        there = set(re.findall(r'data-machine="(\w+)"', page))
        loaded = set(re.findall(r"machines/(\w+)\.js", page))
        assert loaded == (there | {"machine"} if there else set()), path.name


@pytest.mark.parametrize("which", PAGES)
def test_it_fits_a_phone_and_on_paper_words_stand_in(use, which):
    machine = use(which, **PHONE)
    body = machine.root.locator(".machine-body")
    expect(body).to_be_visible()
    expect(machine.root.locator(":scope > p")).to_be_hidden()
    box = body.bounding_box()
    assert box["height"] <= PHONE["viewport"]["height"], "sliders and their effect do not fit one screen"
    assert box["x"] >= 0 and box["x"] + box["width"] <= 390
    low = [c for c in body.locator("button, select, input").all() if c.bounding_box()["height"] < 24]
    assert [c.evaluate("element => element.outerHTML") for c in low] == []
    assert machine.page.evaluate(OVERLAPS, body.element_handle()) == []
    machine.page.emulate_media(media="print")
    expect(body).to_be_hidden()
    expect(machine.root.locator(":scope > p")).to_be_visible()
    assert machine.root.inner_text().startswith("On the book's site")


# Labels in a drawing that lie on each other.
OVERLAPS = """body => {
  const labels = [...body.querySelectorAll('svg text')].map(t => [t.textContent, t.getBoundingClientRect()]);
  const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  return labels.flatMap(([one, a], i) =>
    labels.slice(i + 1).filter(([, b]) => meet(a, b)).map(([two]) => [one, two]));
}"""


def test_words_stand_in_without_scripts(open_tab):
    tab = open_tab("file", PAGES["07 softmax"][0], java_script_enabled=False)
    words = tab.page.locator(".machine > p")
    assert words.count() == 2 and all(place.is_visible() for place in words.all())


def test_an_epub_has_the_words_alone(browser, site, tmp_path):
    page = PAGES["08 rotary"][0].removesuffix(".html")
    with printing_with(browser):
        epub.make_epub(tmp_path / "book.epub", [Part("", (page,))], say=lambda _: None)
    text = Package(tmp_path / "book.epub").text(f"{page.replace('/', '-')}.xhtml")
    assert "eight dials stand here" in text
    assert "mean of the cosines" not in text


# --- Attention.


def assert_attends(machine: Machine, query: list[float], root: bool = True):
    """The numbers shown are those of softmax(q k / sqrt d) v."""
    keys = np.array(machine.start["keys"])
    values = np.array(machine.start.get("values", keys))
    scores = keys @ np.array(query) / (math.sqrt(2) if root else 1)
    weights = softmax(scores)
    assert machine.numbers("tbody:nth-of-type(1) td:nth-of-type(1)") == pytest.approx(scores, abs=0.0051)
    assert machine.numbers("tbody:nth-of-type(1) td:nth-of-type(2)") == pytest.approx(weights, abs=0.0051)
    assert machine.numbers(".output td:nth-of-type(2)") == pytest.approx(weights @ values, abs=0.0051)
    handle = machine.root.locator(".handle")
    told = re.findall(r"-?\d+\.\d", handle.get_attribute("aria-valuetext"))
    assert [float(number) for number in told] == pytest.approx(query)


def test_attention_begins_with_what_chapter_01_prints(use):
    machine = use("01 attention")
    assert machine.numbers("tbody:nth-of-type(1) td:nth-of-type(2)") == printed(
        machine.page, "weights of it: ["
    )
    assert machine.numbers(".output td:nth-of-type(2)") == printed(machine.page, "new vector of it: [")


def test_attention_shows_the_table_of_chapter_07(use):
    machine = use("07 attention")
    rows = machine.page.locator(".cell_output tr", has=machine.page.locator("th", has_text="flies"))
    tables = [[float(n) for n in row.locator("td").all_inner_texts()] for row in rows.all()]
    for word in machine.start["words"]:
        machine.button(word).click()
        assert_attends(machine, machine.start["queries"][word])
    machine.button("flies").click()
    assert machine.numbers("tbody:nth-of-type(1) td:nth-of-type(2)") in tables
    gathered = machine.page.locator(".cell_output tr", has=machine.page.locator("th", has_text="gathered"))
    shown = [float(n) for n in gathered.locator("td").all_inner_texts()]
    assert machine.numbers(".output td:nth-of-type(2)") == shown


@pytest.mark.parametrize("which", ["01 attention", "07 attention"])
def test_a_dragged_query_attends_as_the_formula_says(use, which):
    machine = use(which)
    plane, handle = machine.root.locator(".machine-plane"), machine.root.locator(".ring")
    left, right, bottom, top = machine.start["range"]
    draw = random.Random(7)
    for root in (True, False):
        machine.root.get_by_label("divide by √2").set_checked(root)
        for _ in range(4):
            query = [round(draw.uniform(left, right), 1), round(draw.uniform(bottom, top), 1)]
            box, at = plane.bounding_box(), handle.bounding_box()
            machine.page.mouse.move(at["x"] + at["width"] / 2, at["y"] + at["height"] / 2)
            machine.page.mouse.down()
            x = box["x"] + (query[0] - left) / (right - left) * box["width"]
            y = box["y"] + (top - query[1]) / (top - bottom) * box["height"]
            machine.page.mouse.move(x, y, steps=3)
            machine.page.mouse.up()
            assert_attends(machine, query, root)


def test_arrow_keys_move_the_query(use):
    machine = use("01 attention")
    handle = machine.root.get_by_role("slider", name="query")
    handle.focus()
    for key in ("ArrowUp", "Shift+ArrowUp", "ArrowLeft", "ArrowRight", "ArrowRight", "ArrowDown"):
        machine.page.keyboard.press(key)
    assert_attends(machine, [1.1, 1.0])
    expect(machine.said).to_contain_text("Query (1.1, 1.0)")
    for _ in range(5):
        machine.page.keyboard.press("Shift+ArrowDown")
    assert_attends(machine, [1.1, -1.0])  # the edge of the plane
    machine.page.keyboard.press("Home")
    assert_attends(machine, [1.0, 0.0])
    ring = machine.root.locator(".reach")
    assert ring.evaluate("element => getComputedStyle(element).stroke") != "none", "the focus is seen"


def test_a_finger_drags_the_query_and_the_page_stays(use):
    machine = use("01 attention", **PHONE)
    box = machine.root.locator(".machine-plane").bounding_box()
    machine.root.locator(".machine-plane").tap(position={"x": box["width"] / 2, "y": box["height"] / 2})
    assert_attends(machine, [1.0, 1.0])
    reach = machine.root.locator(".reach").bounding_box()
    assert reach["width"] >= 40
    x, y, before = reach["x"] + reach["width"] / 2, reach["y"] + reach["height"] / 2, machine.scrolled()
    Fingers(machine.page).move(((x, y), (x, y + box["height"] / 4)))
    assert_attends(machine, [1.0, 0.0])  # a quarter of the plane further down
    assert machine.scrolled() == before


def test_chapter_questions_on_attention_have_these_answers(use):
    machine = use("01 attention")
    machine.root.locator(".machine-plane").click()  # its middle is (1, 1)
    legend, comes, it = machine.numbers("tbody:nth-of-type(1) td:nth-of-type(2)")
    assert legend == comes > it
    without = use("07 attention")
    start = without.numbers("tbody:nth-of-type(1) td:nth-of-type(2)")
    without.root.get_by_label("divide by √2").uncheck()
    assert without.numbers("tbody:nth-of-type(1) td:nth-of-type(2)") != start
    handle = without.root.get_by_role("slider", name="query")
    handle.focus()
    for key in ["ArrowLeft"] * 9 + ["ArrowDown"] * 4:  # (3.2, 1.2) divided by the root is about (2.3, 0.8)
        without.page.keyboard.press(key)
    assert without.numbers("tbody:nth-of-type(1) td:nth-of-type(2)") == pytest.approx(start, abs=0.02)


# --- Merges.


def merges() -> list[tuple[str, str]]:
    text = (FOLDER / "merges_data.js").read_text(encoding="utf-8")
    pairs = json.loads(text.split("window.machineMerges = ")[1].rstrip().rstrip(";"))
    return [tuple(pair.split(" ")) for pair in pairs.split("\n")]


@pytest.mark.slow
def test_the_merges_are_those_that_chapter_03_learns():
    """As its first cell trains `bpe`, with the seed of the published book."""
    texts = [paragraph.text for paragraph in docstrings.paragraphs(packages=("numpy", "pandas", "sklearn"))]
    random.Random(0).shuffle(texts)
    learned = BytePairTokenizer.train(texts[500:], 4_000, ("<|endoftext|>",)).merges
    as_text = json.dumps("\n".join(map(" ".join, learned)), ensure_ascii=False)
    assert learned == merges(), f"the chapter learns others now; merges_data.js: {as_text[:200]}..."


def pieces(machine: Machine) -> list[str]:
    return machine.root.locator(".machine-chip bdi").all_inner_texts()


def ids(machine: Machine) -> list[str]:
    return machine.root.locator(".machine-chip small").all_inner_texts()


def test_chosen_merges_give_the_pieces_and_ids_of_the_package(use):
    machine = use("03 merges")
    alphabet = BytePairTokenizer.train(["a"], 257, ("<|endoftext|>",)).vocabulary
    vocabulary = {piece: id for piece, id in alphabet.items() if id <= 256}
    for pair in merges():
        vocabulary["".join(pair)] = len(vocabulary)
    tokenizer = BytePairTokenizer(vocabulary, merges(), ["<|endoftext|>"])
    machine.root.get_by_label("Merges").select_option("1")
    expect(machine.said).not_to_contain_text("Loading")
    for word in WORDS:
        machine.root.get_by_label("Your word").fill(word)
        assert pieces(machine) == [sign for part in WORD.findall(word) for sign in spell(part)], word
        machine.button("Merge all").click()
        assert pieces(machine) == tokenizer.tokenize(word), word
        assert [int(id) for id in ids(machine)] == tokenizer.encode(word), word


def test_the_six_merges_give_what_chapter_03_prints(use):
    machine = use("03 merges")
    ranks = {tuple(pair.split(" ")): rank for rank, pair in enumerate(machine.start["merges"])}
    outputs = "\n".join(machine.page.locator(".cell_output").all_inner_texts())
    toy = json.loads(re.search(r"\{'a': 0.*?\}", outputs)[0].replace("'", '"'))
    assert list(toy) == [*machine.start["alphabet"], *map("".join, ranks)]
    for word in ("trainer", "strain", "zebra", "trainings", "braininging", "rainingrain"):
        machine.root.get_by_label("Your word").fill(word)
        machine.button("Merge all").click()
        assert pieces(machine) == apply_merges(list(word), ranks), word
        assert ids(machine) == [str(toy.get(piece, "no id")) for piece in pieces(machine)]
        if f"{word} ->" in outputs:
            assert f"{word} -> {' '.join(pieces(machine))}" in outputs
    assert "trainer -> train e r" in outputs


def test_merges_go_one_at_a_time_and_back(use):
    machine = use("03 merges")
    assert pieces(machine) == list("trainer")
    seen = []
    while "No pair is left" not in machine.said.inner_text():
        seen.append(pieces(machine))
        machine.button("Merge one pair").click()
        assert len(pieces(machine)) == len(seen[-1]) - 1
    assert pieces(machine) == ["train", "e", "r"] and len(seen) == 4
    while seen:
        machine.button("Back").click()
        assert pieces(machine) == seen.pop()


def test_a_guess_is_answered(use):
    machine = use("03 merges")
    machine.root.get_by_label("Your word").fill("raininging")
    joints = machine.root.locator("button.machine-joint")
    assert set(joints.all_inner_texts()) == {"8"}
    joints.nth(1).focus()
    machine.page.keyboard.press("Enter")
    expect(machine.said).to_contain_text("the leftmost comes first")
    assert pieces(machine) == list("raininging")
    joints.nth(0).click()
    expect(machine.said).to_contain_text("Right. i + n = in, id 8.")
    machine.root.locator("button.machine-joint", has_text="9").click()
    expect(machine.said).to_contain_text("Not yet: 9 is not the lowest id.")


# --- Softmax.


def shown_weights(machine: Machine) -> list[float]:
    return machine.numbers("tbody td:last-child")


def test_softmax_begins_with_what_chapter_07_prints(use):
    machine = use("07 softmax")
    assert shown_weights(machine) == printed(machine.page, "    3: [")
    outputs = "\n".join(machine.page.locator(".cell_output").all_inner_texts())
    answer = re.search(r"    3: \[.*?\] -> ([\d.]+)", outputs)[1]
    expect(machine.said).to_contain_text(f"Answer: {answer}.")


def test_logits_are_those_of_the_books_model(use):
    """The eight best tokens after the prompt of chapter 13, with the best at 0."""
    start = use("13 softmax").start
    folder = resources.checkpoint("language-model")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = [tokenizer.eos_token_id, *tokenizer.encode("The number of", add_special_tokens=False)]
    with torch.inference_mode():
        best = pretrained.load(folder)(torch.tensor([ids]), None)[0, -1].topk(8)
    assert start["names"] == [tokenizer.decode([id]).strip() for id in best.indices.tolist()]
    assert start["scores"] == pytest.approx((best.values - best.values[0]).tolist(), abs=0.0051)


def test_temperature_does_what_scipy_does(use):
    machine = use("13 softmax")
    scores = np.array(machine.start["scores"])
    changed = np.where(np.array(machine.start["names"]) == "groups", 2, scores)
    times = {0.1: "times", 0.5: "16.1 times", 1.0: "4.01 times", 2.0: "2 times", 5.0: "times"}
    for temperature, said in times.items():
        assert shown_weights(machine) == pytest.approx(softmax(scores), abs=0.00051)
        machine.slider("temperature").fill(str(temperature))
        assert shown_weights(machine) == pytest.approx(softmax(scores / temperature), abs=0.00051)
        expect(machine.said).to_contain_text(said)
        machine.slider("logit of groups").fill("2")
        assert shown_weights(machine) == pytest.approx(softmax(changed / temperature), abs=0.00051)
        machine.button("Start again").click()
        expect(machine.said).to_contain_text(times[1.0])


def test_raising_all_scores_changes_no_weight(use):
    machine = use("07 softmax")
    weights, scores = shown_weights(machine), machine.numbers("tbody td:nth-of-type(2)")
    for _ in range(3):
        machine.button("All scores + 1").click()
    assert shown_weights(machine) == weights
    assert machine.numbers("tbody td:nth-of-type(2)") == [score + 3 for score in scores]
    machine.slider("score of first").focus()
    machine.page.keyboard.press("ArrowRight")
    assert shown_weights(machine) == pytest.approx(softmax([3.1, 6, 3]), abs=0.0051)
    assert machine.slider("score of first").get_attribute("aria-valuetext") == "3.1"


# --- Rotary positions.


def by_package(query: int, key: int) -> tuple[float, list[float]]:
    """The product of two equal words as chapter 08's figure has it, and the share of each pair."""
    angles = attention.rotary_angles(torch.tensor([[query, key]]), 16)
    turned = attention.apply_rotary(torch.ones(1, 1, 2, 16), angles)[0, 0]
    shares = (turned[0] * turned[1]).view(2, 8).sum(0) / 2
    return shares.mean().item(), shares.tolist()


def test_the_product_is_that_of_the_package_and_knows_only_the_distance(use):
    machine = use("08 rotary")
    for query, key in [(3, 0), (0, 0), (0, 7), (47, 11), (160, 60), (12, 160), (103, 100)]:
        machine.slider("position of the query").fill(str(query))
        machine.slider("position of the key").fill(str(key))
        product, shares = by_package(query, key)
        told = f"distance {query - key}. The mean of the cosines, q · k / 16: {product:.2f}."
        assert machine.said.inner_text().replace("−", "-").endswith(told)
        assert machine.numbers(".machine-dial b") == pytest.approx(shares, abs=0.0051)
    assert by_package(103, 100)[0] == pytest.approx(by_package(3, 0)[0], abs=1e-4)


def test_both_move_and_hands_turn_but_the_product_stays(use):
    machine = use("08 rotary")
    turned = "hands => hands.map(hand => hand.getAttribute('transform'))"
    hands = machine.root.locator(".machine-dial .query")
    before, shares = hands.evaluate_all(turned), machine.numbers(".machine-dial b")
    said = machine.said.inner_text().split("distance")[1]
    machine.button("Move both by 100").press("Enter")
    expect(machine.said).to_contain_text("Query at 103, key at 100")
    assert machine.said.inner_text().split("distance")[1] == said
    assert machine.numbers(".machine-dial b") == shares
    assert all(one != other for one, other in zip(before, hands.evaluate_all(turned), strict=True))
    machine.button("Move both by 100").click()  # as far as there are positions
    expect(machine.said).to_contain_text("Query at 160, key at 157")
    machine.slider("position of the key").focus()
    machine.page.keyboard.press("ArrowRight")
    expect(machine.said).to_contain_text("Query at 160, key at 158: distance 2")


def test_readers_who_want_motion_see_the_walk(use):
    machine = use("08 rotary", reduced_motion="no-preference")
    shares = machine.numbers(".machine-dial b")
    machine.button("Move both by 100").click()
    machine.page.wait_for_timeout(400)
    assert "Query at 3, key at 0" in machine.said.inner_text(), "nothing is said on the way"
    assert machine.numbers(".machine-dial b") == shares
    expect(machine.said).to_contain_text("Query at 103, key at 100")
