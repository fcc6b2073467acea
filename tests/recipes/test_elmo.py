"""The small ELMo's recipe: a smoke run from the data to the record, what each direction sees, its parts."""

import json

import numpy as np
import pytest
import torch

from chapters_src import records
from recipes import elmo
from recipes.elmo import (
    SMOKE,
    SPELLINGS,
    ELMo,
    Occurrence,
    Vocabulary,
    batch_of,
    inflected,
    loss_of,
    nearest_centroid,
    nearest_other,
    sentence,
    spelled,
)

WORDS = ["the", "second", "axis", "of", "an", "array"]


@pytest.fixture
def model():
    torch.manual_seed(0)
    return ELMo(SMOKE, 7).eval()


@torch.no_grad()
def states_of(model, *sentences):
    batch = batch_of(sentences)
    return model.layers(batch["spellings"], batch["places"], batch["lengths"])


# A run ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_smoke_run_goes_from_the_data_to_the_record_and_trains_once(tmp_path, monkeypatch, capsys):
    path = tmp_path / "records" / "elmo.json"
    options = ["--output", str(tmp_path / "elmo"), "--smoke", "--seeds", "0", "1", "--record", str(path)]
    elmo.main(options)
    monkeypatch.setattr(records, "FOLDER", path.parent)
    found = records.record("elmo")
    figures = found["figures"]
    assert (
        found["script"] == "recipes/elmo.py"
        and json.dumps(figures)
        and "senses_summary" in capsys.readouterr().out
    )
    assert [run["seed"] for run in figures["training"]["runs"]] == [0, 1]
    model_rows = figures["language_model"]["rows"]
    assert [(row["start"], row["direction"]) for row in model_rows] == [
        (start, direction) for start in (0, 1) for direction in ("forward", "backward")
    ]
    assert all(2 ** row["bits"] == pytest.approx(row["perplexity"]) for row in model_rows)
    assert {row["task"] for row in figures["senses"]} >= {"pseudo-words, near", "flies"}
    assert all(0 <= right <= row["of"] for row in figures["senses"] for right in row["right"])
    assert {row["start"] for row in figures["senses"]} == {None, 0, 1}
    assert set(figures["unknown"]["removed"]).isdisjoint(elmo.prepared(SMOKE).counts)
    monkeypatch.setattr(elmo, "loss_of", None)  # All was trained.
    elmo.main(options)
    assert records.record("elmo")["figures"]["senses"] == figures["senses"]


def test_a_smoke_run_may_not_replace_the_record(tmp_path, capsys):
    with pytest.raises(SystemExit):
        elmo.main(["--output", str(tmp_path / "elmo"), "--smoke"])
    assert "--smoke needs --record" in capsys.readouterr().err and not (tmp_path / "elmo").exists()


# The model ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("changed", range(6))
def test_no_direction_sees_the_word_it_predicts_nor_what_lies_behind_it(model, changed):
    """Word i stands at i + 1, so its forward prediction is made at i, and the backward one at i + 2."""
    others = [*WORDS[:changed], "qq", *WORDS[changed + 1 :]]
    for first, second in zip(states_of(model, WORDS)[1], states_of(model, others)[1], strict=True):
        differs = (first != second).any(dim=-1)[:, 0]  # (direction, place)
        here = changed + 1
        assert differs[0].tolist() == [place >= here for place in range(8)]
        assert differs[1].tolist() == [place <= here for place in range(8)]


def test_labels_are_the_next_word_and_the_one_before():
    vocabulary = Vocabulary({"axis": 9, "the": 20, "rare": 1}, 5)
    assert vocabulary.words == ["the", "axis"] and (vocabulary.unknown, vocabulary.edge, vocabulary.size) == (
        2,
        3,
        4,
    )
    labels = batch_of([["the", "rare", "axis"], ["axis"]], vocabulary)["labels"]
    no = elmo.IGNORED
    assert labels.tolist() == [
        [[0, 2, 1, 3, no], [no, 3, 0, 2, 1]],
        [[1, 3, no, no, no], [no, 3, 1, no, no]],
    ]


def test_padding_does_not_matter(model):
    short, long = WORDS[:2], WORDS
    alone, together = states_of(model, short), states_of(model, long, short)
    for one, both in ((alone[0][0], together[0][1]), (alone[1][:, :, 0], together[1][:, :, 1])):
        torch.testing.assert_close(one, both[..., : len(short) + 2, :], rtol=0, atol=1e-5)
    vocabulary = Vocabulary(dict.fromkeys(WORDS, 9), 5)
    model.softmax = torch.nn.Linear(SMOKE.d_model, vocabulary.size)
    with torch.no_grad():
        sums = [loss_of(model, batch_of(some, vocabulary)) for some in ([long], [short], [long, short])]
    torch.testing.assert_close(sums[0] + sums[1], sums[2])


def test_the_vector_of_a_word_is_made_of_its_characters_in_order(model):
    with torch.no_grad():
        one, same, turned = model.spelling(torch.tensor([spelled(word) for word in ("abc", "abc", "cba")]))
    assert torch.equal(one, same) and not torch.allclose(one, turned)
    assert len(spelled("a" * 50)) == len(spelled("a")) == elmo.LONGEST_WORD + 2


# Senses and forms -----------------------------------------------------------------------------------------


def test_a_pseudo_word_looks_the_same_whichever_word_it_was(model):
    found = [Occurrence(sentence(f"Sum along the {word}, (or two)."), 3, 0) for word in ("axis", "column")]
    assert [o.sentence.words[3] for o in found] == ["axis", "column"]
    one, other = (o.spelled(SPELLINGS[0]) for o in found)
    assert one == other and one.sentence.text == "sum along the zorvex, (or two)."
    assert [one.sentence.text[a:b] for a, b in one.sentence.spans] == one.sentence.words
    vectors = elmo.of_elmo(model, [one, found[0]])
    np.testing.assert_array_equal(*vectors["ELMo, LSTM 2 beside the word"])
    assert not np.allclose(*vectors["ELMo, LSTM 2"])


def test_sentences_that_give_the_word_away_are_left_out():
    texts = ["One axis is enough.", "One axis of two axises.", "An axis, a column.", "A column.", "Axiswise."]
    found = elmo.occurrences_of([sentence(text) for text in texts], "axis", 1, "column")
    assert [(o.sentence.text, o.place, o.sense) for o in found] == [("one axis is enough.", 1, 1)]


def test_centroids_and_neighbors():
    apart = np.repeat(np.eye(2), 10, axis=0) + 0.01
    senses = np.repeat([0, 1], 10)
    assert nearest_centroid(apart, senses, 2, 0) == (16, 16)
    assert nearest_centroid(apart + np.array([9, 0]), senses, 2, 0, centered=True) == (16, 16)
    assert nearest_centroid(np.ones((20, 2)), senses, 2, 0) == (8, 16), "equal vectors say nothing"
    assert nearest_other(apart, senses) == (20, 20)
    assert nearest_other(np.ones((20, 2)), senses) == (pytest.approx(20 * 9 / 19), 20)


def test_forms_are_chosen_by_their_base():
    counts = {"plot": 30, "plots": 5, "plotting": 9, "plotted": 9, "count": 40, "counts": 9, "counting": 7}
    counts |= {"rare": 3, "rares": 9, "axis": 99, "axiss": 9, "few": 50, "fews": 50, "join": 30, "joins": 4}
    assert inflected(counts, 8) == {"plots": "plot", "counts": "count", "counting": "count"}
