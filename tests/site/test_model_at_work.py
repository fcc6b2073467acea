"""The language model at work in the page: by mouse, key and finger, with the book's checkpoint and others."""

import json
import math
import re
from collections.abc import Callable

import pytest
import torch
from playwright.sync_api import Locator, Page, expect
from site_visits import AXE, PHONE, RUN_AXE, THEMES, TOO_WIDE, Tab, opened
from transformers import AutoModelForCausalLM, AutoTokenizer

from chapters_src import pretrained
from paths import PACKAGE

pytestmark = pytest.mark.site

PAGE = "book/model_at_work.html"
CHAPTERS = ("notebooks/12_language_model.html", "notebooks/13_decoding.html")
CHECKPOINT = PACKAGE / "weights" / "language-model"
TABS = ("Next", "Write", "Attention", "Layers", "Beams")
BEGINNING = "The number of"
LOADING = 60_000  # milliseconds; two cores may be busy with other tests


class View:
    """The view of one page, and what a reader does with it."""

    def __init__(self, tab: Tab):
        self.page: Page = tab.page
        self.root: Locator = tab.page.locator(".language-model").first
        self.chips = self.root.get_by_role("radio")
        self.text = self.root.get_by_role("textbox")
        self.status = self.root.get_by_role("status")
        self.bars = self.root.locator(".lm-next .lm-bars li")

    def load(self) -> "View":
        self.root.get_by_role("button", name="Load the model").click()
        expect(self.root.get_by_role("tab").first).to_be_visible(timeout=LOADING)
        return self

    def type(self, text: str) -> None:
        self.text.fill(text)
        expect(self.root.locator(".lm-chip[aria-checked='true']")).to_have_count(1)
        expect(self.chips.last).to_have_attribute("aria-checked", "true")

    def open(self, tab: str) -> Locator:
        self.root.get_by_role("tab", name=tab).click()
        return self.root.get_by_role("tabpanel")

    def button(self, name: str | re.Pattern) -> Locator:
        return self.root.get_by_role("button", name=name)

    def slider(self, name: str) -> Locator:
        return self.root.get_by_role("slider", name=name)

    def tokens(self) -> list[str]:
        return self.chips.locator("bdi").all_text_contents()

    def numbers(self) -> list[str]:
        return self.bars.locator(".lm-number").all_text_contents()

    def names(self) -> list[str]:
        return self.bars.locator("bdi").all_text_contents()

    def draws(self) -> list[str]:
        return self.root.locator(".lm-draws li").all_text_contents()

    def left(self) -> int:
        """How many tokens the filters have left."""
        return int(self.root.locator(".lm-next .lm-summary").inner_text().split()[0].replace(",", ""))

    def written(self) -> list[str]:
        return self.root.locator(".lm-written mark").all_text_contents()


desk = opened(PAGE, scope="module", see=lambda tab: View(tab).load(), viewport={"width": 1280, "height": 900})


@pytest.fixture
def view(desk) -> View:
    """The view as it is after loading, with the text of chapter 13."""
    for name, value in {"temperature": 1, "top-k": 51, "top-p": 1, "min-p": 0}.items():
        desk.open("Next")
        desk.slider(name).fill(str(value))
    desk.root.get_by_role("tabpanel").get_by_label("Seed").fill("1")
    desk.type("")
    desk.type(BEGINNING)
    return desk


@pytest.fixture
def in_new_tab(open_tab) -> Callable[..., Tab]:
    return lambda name=PAGE, **options: open_tab("file", name, **options)


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(CHECKPOINT)


def share(text: str) -> float:
    return 0.0 if text == "out" else float(text.removesuffix("%").removeprefix("<")) / 100


# --- Loading.


@pytest.mark.parametrize("of", (PAGE, *CHAPTERS))
def test_nothing_of_the_model_is_loaded_before_a_click_on_a_button_that_says_how_much(site, in_new_tab, of):
    tab = in_new_tab(of)
    asked = []
    tab.page.on("request", lambda request: asked.append(request.url))
    tab.page.reload()
    view = View(tab)
    view.root.scroll_into_view_if_needed()
    tab.page.wait_for_timeout(500)
    of_the_model = {url.rpartition("/")[2].partition("?")[0] for url in asked if "language_model/" in url}
    assert of_the_model == {"start.js", "view.css"}
    size = sum(path.stat().st_size for path in (site / "_static" / "language_model").glob("weights*.js"))
    expect(view.button("Load the model")).to_have_text(f"Load the model ({size / 1e6:.1f} MB)")
    view.load()
    expect(view.text).to_have_value(view.root.get_attribute("data-text"))
    assert any("weights" in url for url in asked)
    assert tab.foreign == tab.failed == tab.errors == []


def test_progress_is_told_while_the_model_loads(in_new_tab):
    tab = in_new_tab()
    tab.page.evaluate("""() => {
      window.seen = [];
      const progress = document.querySelector('.model-view progress');
      new MutationObserver(() => window.seen.push(progress.value)).observe(progress, {attributes: true});
    }""")
    view = View(tab).load()
    seen = tab.page.evaluate("window.seen")
    assert seen == sorted(seen) and len(set(seen)) >= 3 and max(seen) <= 1
    expect(view.status).to_contain_text("ready")
    expect(view.root.locator(".lm-about")).to_contain_text("WebAssembly, 8 bits")


def test_a_missing_file_is_named_and_a_second_click_tries_again(in_new_tab):
    tab = in_new_tab()
    tab.page.route("**/language_model/decoding.js", lambda route: route.abort())
    view = View(tab)
    view.button("Load the model").click()
    expect(view.root.get_by_role("alert")).to_contain_text("decoding.js is missing")
    tab.page.unroute("**/language_model/decoding.js")
    view.load()
    expect(view.root.get_by_role("alert")).to_be_empty()


def test_without_scripts_and_on_paper_a_sentence_stands_there(in_new_tab, desk):
    for name in (PAGE, *CHAPTERS):
        place = in_new_tab(name, java_script_enabled=False).page.locator(".language-model")
        expect(place).to_be_visible()
        expect(place).to_contain_text("JavaScript")
    note = desk.root.locator(":scope > p")
    expect(note).to_be_hidden()
    desk.page.emulate_media(media="print")
    expect(note).to_be_visible()
    expect(desk.root.locator(".model-view")).to_be_hidden()
    desk.page.emulate_media(media="screen")


# --- The text and its tokens.


@pytest.mark.parametrize(
    "text",
    [BEGINNING, "Grüße, 你好 👩‍🚀!\n\tif x[0] == 'a':", "e\u0301\u202e ⟨end⟩ <|endoftext|>", "a" * 3000, ""],
)
def test_a_typed_text_becomes_the_tokens_of_the_tokenizer(view, tokenizer, text):
    view.type(text)
    ids = tokenizer.encode(text, add_special_tokens=False)
    most = json.loads((CHECKPOINT / "config.json").read_text())["max_position_embeddings"]
    expect(view.chips).to_have_count(min(len(ids) + 1, most), timeout=LOADING)
    assert view.tokens()[0] == "⟨end⟩"
    if text == BEGINNING:
        assert view.tokens()[1:] == [t.replace(" ", "␣") for t in tokenizer.batch_decode([[i] for i in ids])]
    if len(ids) + 1 > most:
        expect(view.root.get_by_role("alert")).to_contain_text(f"reads {most} tokens")
    else:
        expect(view.root.get_by_role("alert")).to_be_empty()


def test_each_token_shows_the_bits_that_it_cost(view, tokenizer):
    text = "Returns the index of the first element."
    view.type(text)
    ids = tokenizer.encode(text)
    with torch.inference_mode():
        logits = pretrained.load(CHECKPOINT)(torch.tensor([[0, *ids[:-1]]]), None)[0]
    bits = (-logits.log_softmax(-1)[range(len(ids)), ids] / math.log(2)).tolist()
    labels = view.chips.evaluate_all("chips => chips.slice(1).map(chip => chip.ariaLabel)")
    found = [float(re.search(r", ([\d.]+) bits$", label)[1]) for label in labels]
    assert found == pytest.approx(bits, abs=0.35)  # the page has 8 bits for each weight
    told = view.root.locator(".lm-measure").inner_text()
    assert f"{len(ids)} tokens" in told
    per_byte = float(re.search(r"([\d.]+) a byte", told)[1])
    assert per_byte == pytest.approx(sum(bits) / len(text), abs=0.03)


# --- The next token.


def test_sliders_change_the_bars_and_only_what_they_say(view):
    before, names = view.numbers(), view.names()
    assert sum(map(share, before)) < 1 and view.left() > 5000
    view.slider("temperature").fill("0.5")
    assert share(view.numbers()[0]) > share(before[0]) and view.names() == names
    view.slider("temperature").fill("0")
    assert view.numbers() == ["100%"] + ["out"] * 9 and set(view.draws()) == {names[0]}
    view.slider("temperature").fill("1")
    assert view.numbers() == before
    view.slider("top-k").fill("3")
    assert view.left() == 3 and set(view.draws()) <= set(names[:3])
    assert sum(map(share, view.numbers())) == pytest.approx(1, abs=0.02)
    assert view.slider("top-k").get_attribute("aria-valuetext") == "3"
    view.slider("top-k").fill("51")
    view.slider("min-p").fill("0.1")
    most = share(before[0])
    assert [n == "out" for n in view.numbers()] == [share(n) < 0.1 * most for n in before]


def test_chapter_13_says_of_the_sliders_what_they_do(view):
    view.slider("top-k").fill("5")
    view.slider("top-p").fill("0.7")
    assert [number == "out" for number in view.numbers()[:5]] == [False] * 3 + [True] * 2
    view.slider("top-k").fill("51")
    assert view.left() > 5, "top-p alone keeps the five"
    view.slider("temperature").fill("2")
    view.slider("top-p").fill("0.1")
    assert 30 <= view.left() <= 50


def test_a_bar_is_taken_and_a_step_goes_back_to_another_branch(view):
    first, second = view.names()[:2]
    view.bars.first.get_by_role("button").click()
    expect(view.text).to_have_value(BEGINNING + first.replace("␣", " "))
    expect(view.status).to_contain_text(f"Took {first}")
    view.button("Back").click()
    expect(view.text).to_have_value(BEGINNING)
    view.bars.nth(1).get_by_role("button").click()
    expect(view.text).to_have_value(BEGINNING + second.replace("␣", " "))
    view.button(re.compile("return to this branch")).click()
    expect(view.text).to_have_value(BEGINNING + first.replace("␣", " "))
    expect(view.button(re.compile("return to this branch"))).to_have_count(1)


def test_an_earlier_token_can_be_looked_from_and_branched_at(view):
    view.chips.nth(2).click()
    expect(view.chips.nth(2)).to_have_attribute("aria-checked", "true")
    assert view.names()[0] == "␣of" and view.text.input_value() == BEGINNING
    other = view.names()[1]
    view.bars.nth(1).get_by_role("button").click()
    expect(view.text).to_have_value("The number" + other.replace("␣", " "))
    view.button(re.compile("return to this branch")).click()
    expect(view.text).to_have_value(BEGINNING)


def test_a_seed_draws_the_same_again(view):
    seed = view.root.get_by_role("tabpanel").get_by_label("Seed")
    draws = view.draws()
    seed.fill("2")
    assert view.draws()[:19] == draws[1:], "one after the other"
    seed.fill("1")
    assert view.draws() == draws and len(set(draws)) > 3
    view.button("Draw one").click()
    expect(view.text).to_have_value(BEGINNING + draws[0].replace("␣", " "))


# --- Greedy beside sampling.


def write(view: View) -> list[str]:
    view.open("Write")
    view.button("Write 30 tokens").click()
    expect(view.button("Stop")).to_be_disabled()
    assert all(view.written())
    return view.written()


def test_greedy_search_and_sampling_write_side_by_side(view):
    greedy, sampled = write(view)
    assert greedy != sampled
    assert write(view) == [greedy, sampled], "the same seed"
    seed = view.root.get_by_role("tabpanel").get_by_label("Seed")
    seed.fill("5")
    expect(view.root.locator(".lm-written mark").nth(1)).not_to_have_text(sampled)
    assert view.written()[0] == greedy
    view.slider("temperature").fill("0")
    expect(view.root.locator(".lm-written mark").nth(1)).to_have_text(greedy)
    view.button("Take it: the greedy text").click()
    expect(view.text).to_have_value(BEGINNING + greedy.replace("⏎", "\n"))


def test_greedy_search_takes_the_best_each_time(view):
    greedy, _ = write(view)
    view.open("Next")
    for _ in range(4):
        length = view.chips.count()
        view.button("Take best").click()
        expect(view.chips).to_have_count(length + 1)
    assert greedy.startswith(view.text.input_value().removeprefix(BEGINNING))


def test_a_text_grows_before_your_eyes_unless_you_want_less_motion(view):
    view.open("Write")
    view.page.emulate_media(reduced_motion="no-preference")
    view.button("Write 30 tokens").click()
    assert view.page.evaluate(LENGTHS) > 3
    expect(view.button("Stop")).to_be_disabled()
    view.page.emulate_media(reduced_motion="reduce")
    view.button("Write 30 tokens").click()
    assert view.page.evaluate(LENGTHS) <= 2


# How many lengths a text has while it is written.
LENGTHS = """async () => {
  const seen = new Set(), text = document.querySelector(".lm-written");
  for (let i = 0; i < 60; i++) {
    seen.add(text.textContent.length);
    await new Promise(requestAnimationFrame);
  }
  return seen.size;
}"""


# --- Attention, layers, beams.


def test_attention_of_every_head_is_on_the_chips(view):
    view.type("Returns the index of the first element.")
    view.open("Attention")
    looks = set()
    for layer, head in [(1, 1), (2, 3), (6, 8), (3, 0)]:
        view.slider("layer").fill(str(layer))
        view.slider("head").fill(str(head))
        weights = view.chips.evaluate_all(
            "chips => chips.map(chip => +chip.style.getPropertyValue('--share'))"
        )
        assert sum(weights) == pytest.approx(1, abs=1e-3)
        looks.add(tuple(weights))
        label = view.chips.nth(weights.index(max(weights))).get_attribute("aria-label")
        assert re.search(r"\d+(\.\d)?% of the attention$", label)
    assert len(looks) == 4
    view.slider("layer").fill("3")
    view.slider("head").fill("8")
    for place in (3, 5):
        view.chips.nth(place).click()
        expect(view.chips.nth(place - 1)).to_have_attribute("aria-label", re.compile(r"(9\d|100)% of"))
    view.chips.nth(3).click()
    weights = view.chips.evaluate_all("chips => chips.map(chip => +chip.style.getPropertyValue('--share'))")
    assert sum(weights[:4]) == pytest.approx(1, abs=1e-3) and not any(weights[4:])
    view.root.locator(".lm-map span").nth(11).click()
    assert [view.slider(name).input_value() for name in ("layer", "head")] == ["2", "4"]


def test_each_layer_predicts_what_the_library_says(view, tokenizer):
    best = view.names()[0]
    rows = view.open("Layers").get_by_role("row")
    expect(rows).to_have_count(1 + 1 + 6)
    found = [row.locator("bdi").first.inner_text() for row in rows.all()[1:]]
    library = AutoModelForCausalLM.from_pretrained(CHECKPOINT, dtype=torch.float32)
    with torch.inference_mode():
        ids = torch.tensor([[0, *tokenizer.encode(BEGINNING)]])
        hidden = library(ids, output_hidden_states=True).hidden_states[:-1]
        logits = [library.lm_head(library.model.norm(vectors[0, -1])) for vectors in hidden]
    wanted = [tokenizer.decode([each.argmax()]).replace(" ", "␣") for each in logits]
    assert sum(one == other for one, other in zip(found, wanted, strict=False)) >= 5, (found, wanted)
    assert found[-1] == best
    ranks = view.root.locator(".lm-layers td:last-child").all_text_contents()
    assert ranks[-1] == "1" and int(ranks[0].replace(",", "")) > 100


def totals(view: View) -> list[float]:
    return [
        float(n.replace("−", "-"))
        for n in re.findall(r"−[\d.]+\d", view.root.locator(".lm-beams .lm-summary").inner_text())
    ]


def test_beams_grow_step_by_step_and_one_beam_is_greedy(view):
    greedy, _ = write(view)
    view.open("Beams")
    node = view.root.locator(".lm-node")
    view.slider("beams").fill("1")
    expect(node).to_have_count(8)
    path = view.root.locator(".lm-node.lm-best").last.get_attribute("aria-label").partition(": ")[2]
    assert greedy.replace("⏎", "\n").startswith(path)
    view.slider("beams").fill("4")
    expect(node).to_have_count(32)
    best, alone = totals(view)
    assert best >= alone
    view.slider("steps").fill("3")
    expect(node).to_have_count(12)
    expect(view.root.locator(".lm-tree path")).to_have_count(8)
    view.button("Let it grow").click()
    expect(node).to_have_count(32)
    taken = view.root.locator(".lm-node[data-step='2'][data-place='1']")
    path = taken.get_attribute("aria-label").partition(": ")[2]
    taken.click()
    expect(view.text).to_have_value(BEGINNING + path)


# --- A checkpoint of the reader's own.


def test_a_folder_of_the_recipe_is_read_without_the_books_model(in_new_tab):
    tab = in_new_tab()
    asked = []
    tab.page.on("request", lambda request: asked.append(request.url))
    view = View(tab)
    view.root.get_by_text("Use a checkpoint of your own").click()
    view.root.get_by_label("Its folder").set_input_files(CHECKPOINT)
    expect(view.chips.first).to_be_visible(timeout=LOADING)
    view.type(BEGINNING)
    assert view.tokens() == ["⟨end⟩", "The", "␣number", "␣of"]
    expect(view.root.locator(".lm-about")).to_contain_text("6 layers, 8 heads · JavaScript, 32 bits")
    assert not any("weights" in url for url in asked)
    assert tab.foreign == tab.failed == tab.errors == []


def test_files_that_are_no_checkpoint_are_refused_and_the_model_stays(view):
    """What can be wrong with one is told in `test_model_in_the_page.py`."""
    view.root.get_by_text("Use a checkpoint of your own").click()
    files = [CHECKPOINT / "config.json", CHECKPOINT / "tokenizer.json"]
    view.root.get_by_label("or its three files").set_input_files(files)
    expect(view.root.get_by_role("alert")).to_contain_text("model.safetensors")
    view.bars.first.get_by_role("button").click()
    expect(view.chips).to_have_count(5)
    view.root.get_by_text("Use a checkpoint of your own").click()


# --- Keyboard, screen reader, phone, dark.


def test_all_of_it_works_by_keyboard(in_new_tab):
    tab = in_new_tab(viewport={"width": 1280, "height": 900})
    view, keys = View(tab), tab.page.keyboard
    view.button("Load the model").focus()
    keys.press("Enter")
    expect(view.chips.first).to_be_visible(timeout=LOADING)
    assert tab.page.evaluate("document.activeElement.className") == "model-view"
    keys.press("Tab")
    expect(view.text).to_be_focused()
    keys.press("Control+A")
    keys.type(BEGINNING)
    expect(view.chips).to_have_count(4)
    keys.press("Tab")
    expect(view.chips.last).to_be_focused()
    keys.press("ArrowLeft")
    expect(view.chips.nth(2)).to_be_focused()
    expect(view.chips.nth(2)).to_have_attribute("aria-checked", "true")
    keys.press("End")
    keys.press("Tab")
    expect(view.root.get_by_role("tab", name="Next")).to_be_focused()
    numbers = view.numbers()
    keys.press("Tab")
    expect(view.slider("temperature")).to_be_focused()
    keys.press("ArrowRight")
    assert view.numbers() != numbers
    for _ in range(4):
        keys.press("Tab")
    expect(view.bars.first.get_by_role("button")).to_be_focused()
    keys.press("Enter")
    expect(view.chips).to_have_count(5)
    view.root.get_by_role("tab", name="Next").focus()
    for name in (*TABS[1:], TABS[0]):
        keys.press("ArrowRight")
        expect(view.root.get_by_role("tab", name=name)).to_be_focused()
        expect(view.root.get_by_role("tab", name=name)).to_have_attribute("aria-selected", "true")
    assert tab.foreign == tab.failed == tab.errors == []


def test_axe_finds_nothing_in_any_tab(view):
    view.page.add_script_tag(path=AXE)
    view.button("Take best").click()
    expect(view.chips).to_have_count(5)
    view.button("Back").click()
    expect(view.button(re.compile("return to this branch"))).to_be_visible()
    write(view)
    view.page.add_style_tag(content="* { transition: none !important; animation: none !important }")
    for theme, rules in THEMES.items():
        view.page.evaluate("theme => document.documentElement.dataset.theme = theme", theme)
        for tab in TABS:
            view.open(tab)
            assert view.page.evaluate(RUN_AXE, rules) == [], (theme, tab)
    view.page.evaluate("document.documentElement.dataset.theme = 'light'")


on_phone = opened(PAGE, scope="module", see=lambda tab: View(tab).load(), **PHONE)


# Of each tab a slider, and what it changes.
EFFECTS = {
    "Next": ("temperature", ".lm-bars li, .lm-draws li"),
    "Write": ("temperature", ".lm-written"),
    "Attention": ("layer", ".lm-chip, .lm-bars li, .lm-map span"),
    "Beams": ("beams", ".lm-node"),
}


@pytest.mark.parametrize("tab", EFFECTS)
def test_on_a_phone_a_slider_and_its_effect_are_on_one_screen(on_phone, tab):
    on_phone.type("Returns the index of the first element. The number of")
    on_phone.open(tab)
    if tab == "Write":
        write(on_phone)
    slider, effect = EFFECTS[tab]
    on_phone.root.locator(".lm-measure").evaluate(
        "line => line.scrollIntoView({block: 'start', behavior: 'instant'})"
    )
    if tab == "Attention":
        on_phone.root.locator(".lm-chips").evaluate(
            "chips => chips.scrollIntoView({block: 'start', behavior: 'instant'})"
        )
    inside = on_phone.root.locator(f":is({effect})").evaluate_all(BOXES)
    inside += on_phone.slider(slider).evaluate_all(BOXES)
    assert len(inside) > 2
    assert min(top for top, _ in inside) >= 0 and max(bottom for _, bottom in inside) <= 800


SMALL = """targets => targets.filter(target => target.getBoundingClientRect().height < 23.5)
  .map(target => target.outerHTML)"""
BOXES = """elements => elements.filter(element => element.checkVisibility())
  .map(element => element.getBoundingClientRect()).map(({top, bottom}) => [top, bottom])"""


def test_on_a_phone_nothing_scrolls_sideways_and_fingers_find_their_targets(on_phone):
    for tab in TABS:
        on_phone.open(tab)
        assert on_phone.page.evaluate(TOO_WIDE) == [], tab
        targets = on_phone.root.locator("button:visible, input:visible, .lm-map span:visible")
        assert targets.evaluate_all(SMALL) == [], tab
    on_phone.open("Next")
    numbers = on_phone.numbers()
    box = on_phone.slider("temperature").bounding_box()
    on_phone.slider("temperature").tap(position={"x": box["width"] * 0.1, "y": box["height"] / 2})
    assert on_phone.numbers() != numbers
    count = on_phone.chips.count()
    on_phone.bars.first.get_by_role("button").tap()
    expect(on_phone.chips).to_have_count(count + 1)
