"""What the start page is made of: the picture's data, the road, and the cells that it shows."""

import json
import re
from xml.etree import ElementTree

import nbformat
import pytest
import torch
import yaml
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from transformers import AutoTokenizer

from chapters_src import attention, pretrained, resources
from paths import NOTEBOOKS, ROOT
from website import claims, front, road


@pytest.fixture(scope="module")
def looks() -> list[dict]:
    return front.attention(front.SENTENCES)


def test_the_weights_are_those_of_our_encoder_too(looks):
    """The library computes what the page shows; the oracle is the book's encoder with these weights."""
    folder = resources.checkpoint("encoder")
    tokenizer, ours = AutoTokenizer.from_pretrained(folder), pretrained.load(folder).eval()
    assert len(looks) == len(front.SENTENCES) == 6
    for look, text in zip(looks, front.SENTENCES, strict=True):
        batch = tokenizer(text, return_tensors="pt")
        with torch.inference_mode(), attention.recorded(ours) as record:
            ours(batch["input_ids"], batch["attention_mask"])
        weights = list(record.values())[front.LAYER][0][0, front.HEAD]
        assert look["tokens"] == tokenizer.convert_ids_to_tokens(batch["input_ids"][0])
        torch.testing.assert_close(torch.tensor(look["weights"]) / 1000, weights, atol=6e-4, rtol=0)


def test_the_sentences_show_what_the_caption_says(looks):
    """The head follows the pronoun where only one name has its gender, and is lost where both have."""

    def meant(look: dict) -> str:
        row = look["weights"][look["from"]]
        return max((row[place], look["tokens"][place]) for place in (1, 3))[1]

    assert [look["tokens"][look["from"]] for look in looks] == ["she", "he", "she", "he", "he", "he"]
    assert [meant(look) for look in looks] == ["emma", "david", "julia", "paul", "peter", "peter"]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("front")
    front.write(folder, folder)
    return folder


def test_the_data_are_the_whole_tokenizer_and_small(written, looks):
    script = (written / "front_data.js").read_text(encoding="utf-8")
    data = json.loads(script.removeprefix("window.frontData = ").removesuffix(";\n"))
    merges = [tuple(pair.split(" ")) for pair in data["merges"].split("\n")]
    file = resources.checkpoint("language-model")
    library = AutoTokenizer.from_pretrained(file)
    pieces = library.convert_ids_to_tokens(range(data["first"], len(library)))
    assert pieces == ["".join(pair) for pair in merges]
    assert [look["meant"] for look in data["looks"]] == list(front.MEANT)
    assert all(look["meant"] in look["tokens"] for look in data["looks"])
    assert [look | {"meant": who} for look, who in zip(looks, front.MEANT, strict=True)] == data["looks"]
    names = ("front.js", "front.css", "language_model/tokenizer.js")
    assets = [ROOT / "book" / "_static" / name for name in names]
    sizes = [path.stat().st_size for path in (*assets, *written.iterdir())]
    assert sum(sizes) <= 100_000


def test_without_javascript_the_picture_is_true(written):
    picture = BeautifulSoup((written / "front_picture.md").read_text(encoding="utf-8"), "html.parser")
    tokenizer = front.language_model_tokenizer()
    shown = [int(chip.small.text) for chip in picture.select("#front-tokens li")]
    assert tokenizer.decode(shown) == front.TYPED == picture.select_one("#front-text")["value"]
    assert shown == tokenizer.encode(front.TYPED)
    assert picture.select_one("#front-count").text == f"{len(shown)} tokens for {len(front.TYPED)} characters"
    assert all(field.has_attr("hidden") for field in picture.select(".front-field"))


# --- The road.


def test_the_first_chapter_is_the_first_of_the_contents(written):
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    listed = [entry["file"] for part in contents["parts"] for entry in part["chapters"]]
    chapters = [name for name in listed if re.match(r"notebooks/\d\d_", name)]
    assert [f"notebooks/{c.page[13:-5]}" for c in road.chapters()] == chapters
    links = BeautifulSoup((written / "front_buttons.md").read_text("utf-8"), "html.parser").select("a")
    assert [link["href"] for link in links] == [
        f"../{chapters[0]}.html",
        "../notebooks/07_attention_from_scratch.html",
    ]


def chapter(number: str, **other) -> road.Chapter:
    return road.Chapter(
        **{
            "number": number, "title": f"T & {number}", "page": f"../notebooks/{number}_t.html", "part": "I",
            "needs": (), "reading": 70.4, "exercises": 30, "running": 1.0,
        } | other
    )  # fmt: skip


BOOK = [
    chapter("01"),
    chapter("03", needs=("01", "02")),
    chapter("07", part="II <3", needs=("03",), running=None),
]


SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def drawn() -> ElementTree.Element:
    return ElementTree.parse(road.DRAWING).getroot()


def stations(drawn: ElementTree.Element) -> dict[str, float]:
    """The number of each chapter in the drawing, and how far down it stands."""
    links = list(drawn.iter(f"{SVG}a"))
    heights = [float(re.fullmatch(r"translate\(0 ([\d.]+)\)", link.get("transform"))[1]) for link in links]
    return {next(link.iter(f"{SVG}tspan")).text: height for link, height in zip(links, heights, strict=True)}


def at(height: float, places: dict[str, float]) -> str:
    """The chapter that stands at a height."""
    [found] = [number for number, y in places.items() if abs(y - height) < 16]
    return found


def ends(path: str) -> tuple[float, float]:
    """How far down a path begins, and how far down the tip of its arrow is."""
    line = path.partition("m")[0]  # the two strokes of the head follow, relative to the tip
    down = [numbers.split()[-1] for command, numbers in re.findall(r"([MLVQC])([\d. ]+)", line)]
    return float(down[0]), float(down[-1])


def test_the_road_leads_to_every_chapter_in_order(drawn):
    book = road.chapters()
    links = list(drawn.iter(f"{SVG}a"))
    assert [link.get("href") for link in links] == [c.page for c in book]
    titles = [" ".join("".join(link.itertext()).split()) for link in links]
    assert titles == [f"{c.number} {c.title}" for c in book], "book/road.svg has other chapters than the book"
    assert list(stations(drawn).values()) == sorted(stations(drawn).values())


def test_the_parts_of_the_road_hold_their_chapters(drawn):
    [cards, names] = list(drawn.iter(f"{SVG}g"))[:2]
    places, parts = stations(drawn), {}
    for chapter in road.chapters():
        parts.setdefault(chapter.part, []).append(chapter.number)
    assert [name.text for name in names] == list(parts)
    for card, name, numbers in zip(cards, names, parts.values(), strict=True):
        top, height = float(card.get("y")), float(card.get("height"))
        assert top < float(name.get("y")) < places[numbers[0]]
        assert [n for n, y in places.items() if top < y - 12 and y + 12 < top + height] == numbers


def test_the_arrows_of_the_road_are_what_the_chapters_need(drawn):
    places = stations(drawn)
    [arrows] = [group for group in drawn.iter(f"{SVG}g") if group.get("class") == "road-needs"]
    found = [tuple(at(y, places) for y in ends(arrow.get("d"))) for arrow in arrows]
    needed = [(c.number, c.needs) for c in road.chapters() if c.needs]
    assert sorted(found) == sorted((other, number) for number, others in needed for other in others)
    told = " ".join(drawn.findtext(f"{SVG}desc").split())
    said = [f"{number} builds on {' and '.join(others)}." for number, others in needed]
    assert re.findall(r"\d\d builds on .+?\.", told) == said
    ways = dict(re.findall(r"The way (\w+): ([\d, ]+)\.", told))
    assert {name: numbers.replace(",", "") for name, numbers in ways.items()} == {
        name: " ".join(n for n in listed.split() if n in places) for name, (_, listed) in road.WAYS.items()
    }


def test_the_lines_of_the_road_are_the_ways(drawn):
    places = stations(drawn)
    ways = [group for group in drawn.iter(f"{SVG}g") if group.get("class") == "road-way"]
    assert [way.findtext(f"{SVG}text") for way in ways] == list(road.WAYS)
    for way, (_, listed) in zip(ways, road.WAYS.values(), strict=True):
        stops = [float(stop.get("cy")) for stop in way.iter(f"{SVG}circle")]
        assert [at(y, places) for y in stops] == [n for n in listed.split() if n in places]
        assert ends(way.find(f"{SVG}path").get("d"))[1] == stops[-1], "a line ends at its last stop"


def test_the_road_stands_beside_the_list_of_the_ways():
    shown = road.road(BOOK)
    assert road.DRAWING.read_text(encoding="utf-8") in shown
    assert shown.index("</svg>") < shown.index(road.ways(BOOK)) < shown.rindex("</div>")


def test_a_way_has_the_chapters_that_exist_and_their_times():
    use, understand, build, everything = road.ways(BOOK).strip().split("\n")
    assert "2 chapters: 2 h 15 min of reading, 60 min of exercises, 2 min of running." in use
    assert " 3 chapters:" in understand and " 2 chapters:" in build
    assert everything.endswith(
        "3 chapters: 3 h 30 min of reading, 90 min of exercises, not all of it executed yet."
    )


# --- What is shown.


def test_the_proof_is_counted(written):
    line = BeautifulSoup((written / "front_proof.md").read_text(encoding="utf-8"), "html.parser").p
    claimed, compared, executed = (int(number.text.replace(",", "")) for number in line.select("b"))
    tested = claims.all_claims()
    assert (claimed, executed) == (sum(map(len, tested.values())), len(tested))
    assert compared == sum(map(front._asserts, NOTEBOOKS.glob("*.ipynb")))


@pytest.mark.parametrize("kind", front.SHOWN)
def test_a_cell_is_shown_as_it_stands_in_its_chapter(kind):
    number, wanted = front.SHOWN[kind]
    (path,) = NOTEBOOKS.glob(f"{number}_*.ipynb")
    (source,) = [cell.source for cell in nbformat.read(path, 4).cells if cell.id == wanted]
    assert f"```python\n{source}\n```" in front._cell(kind)
    assert ("claim(" if kind == "claim" else "assert ") in source


def test_a_cell_that_is_gone_is_an_error(monkeypatch):
    monkeypatch.setitem(front.SHOWN, "claim", ("07", "nowhere"))
    with pytest.raises(front.FrontFailed, match="no cell with the id 'nowhere'"):
        front._cell("claim")


def test_checks_of_correctness_are_counted(tmp_path):
    code = "%matplotlib inline\nassert a == b, c\ntesting.assert_close(a, b)\nprint('assert')\nclaim(a, 'b')"
    path = tmp_path / "n.ipynb"
    nbformat.write(new_notebook(cells=[new_markdown_cell("assert x"), new_code_cell(code)]), path)
    assert front._asserts(path) == 2
