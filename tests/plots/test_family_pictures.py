"""Tree and table of the models come from one file: a row that is added to it appears in both."""

import re

import matplotlib.pyplot as plt
import pytest
from bs4 import BeautifulSoup

from chapters_src.data import models
from chapters_src.plots.family_tree import family_tree, in_order
from chapters_src.plots.model_table import model_table

NEW = {
    "name": "Tern <1>",
    "year": "2026",
    "family": "hybrid",
    "parent": "Gemma 3",
    "size": "9B",
    "paper": "https://example.org/tern",
    "objective": "language model",
    "positions": "rotary",
    "norm": "RMSNorm, before",
    "library": "never",
    "data": "1 trillion tokens",
    "data_source": "https://example.org/data",
    "idea": "It flies farther than any other.",
}


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture
def longer(tmp_path, monkeypatch):
    """The models, from a copy of the file with one more row."""
    text = models._FILE.read_text(encoding="utf-8")
    columns = text.split("\n", 1)[0].split(",")
    assert set(NEW) <= set(columns)
    row = ",".join(f'"{NEW.get(name, "")}"' for name in columns)
    file = tmp_path / "models.csv"
    file.write_text(f"{text.rstrip()}\n{row}\n", encoding="utf-8")
    monkeypatch.setattr(models, "_FILE", file)
    return models.load()


def page_of(table):
    return BeautifulSoup(table._repr_html_(), "html.parser")


def cells(page, part: str, model: str) -> dict[str, str]:
    [table] = [t for t in page.select("table") if t.caption.text == part]
    [row] = [row for row in table.select("tbody tr") if row.th.text == model]
    return {cell["data-label"]: cell.text for cell in row.select("td")}


def test_a_new_row_is_on_the_tree_and_in_the_table(longer):
    axes = family_tree(longer).axes[0]
    written = {text.get_text(): text.get_position() for text in axes.texts}
    assert set(written) == set(longer.index)
    assert written["Tern <1>"][1] == written["Gemma 3"][1] + 1, "below its parent"
    assert "hybrid" in [text.get_text() for text in axes.figure.legends[0].get_texts()]
    page = page_of(model_table(longer, {}, "All."))
    ideas = cells(page, "Ideas", "Tern <1> 9B")
    assert ideas == {"year": "2026", "after": "Gemma 3", "what is new": NEW["idea"]}
    assert cells(page, "Sizes", "Tern <1> 9B")["published, millions"] == "–"
    facts = cells(page, "Data and ranking", "Tern <1> 9B")
    assert facts == {"trained on": "1 trillion tokens", "ranked on": "–"}
    assert page.select("a[href='https://example.org/data']")


def test_each_model_stands_below_its_parent_and_right_of_it():
    table = models.load()
    places = dict(in_order(table))
    order = list(places)
    assert sorted(order) == sorted(table.index)
    for name, parent in table["parent"].items():
        assert places[name] >= table.loc[name, "year"]
        if parent:
            assert order.index(parent) < order.index(name) and places[parent] < places[name]


def test_a_lost_parent_is_named():
    table = models.load().drop(index="Llama")
    with pytest.raises(ValueError, match="Qwen2"):
        family_tree(table)
    with pytest.raises(ValueError, match="nothing to draw"):
        family_tree(table.iloc[:0])


def test_numbers_have_separators_and_facts_have_links():
    table = models.load()
    page = page_of(model_table(table, {"Mixtral": 46_702_792_704}, "All."))
    sizes = cells(page, "Sizes", "Mixtral 8x7B")
    assert sizes["parameters, millions"] == "46,702.8"
    assert sizes["at work, millions"] == "12,879.9"
    assert sizes["published, millions"] == "46,700" and sizes["context"] == "32,768"
    for row in page.select("table")[3].select("tbody tr"):
        for cell in row.select("td"):
            assert (cell.text == "–") != bool(cell.select("a[href^='https://']")), row.th.text
    assert len(page.select("figcaption")) == 1 and page.figcaption.text == "All."
    assert not re.search(r"https?://", page.script.text), "the script asks no other host"
    assert repr(model_table(table, {}, "All.")).startswith("All.\nTransformer, ELMo")
