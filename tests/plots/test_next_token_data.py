"""The data of the next-token view: what a reader will see is what the model says."""

import json
import re

import numpy as np
import pytest

from chapters_src.plots.next_token_view import next_token_view

VOCAB_SIZE, PROMPT = 6_000, [7, 8]


def logits_after(ids):
    """Logits with a long tail, other ones after each beginning."""
    generator = np.random.default_rng(ids)
    return 6 * generator.exponential(size=VOCAB_SIZE) ** 0.7


def text_of(ids):
    return "".join(f" <{id}>" for id in ids)


@pytest.fixture(scope="module")
def view():
    return next_token_view(logits_after, text_of, PROMPT, "A caption & more.", hidden=1)


def heated(logits, temperature):
    weights = np.exp((logits - logits.max()) / temperature)
    return weights / weights.sum()


@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.0])
def test_the_groups_keep_the_probabilities_of_the_best_tokens(view, temperature):
    node, counts = view.data["nodes"][0], np.array(view.data["counts"])
    assert counts.sum() == VOCAB_SIZE and (counts > 0).all()
    weights = np.exp(np.array(node["logits"]) / temperature)
    found = weights[:40] / (weights @ counts)
    exact = np.sort(heated(logits_after(PROMPT), temperature))[::-1][:40]
    assert found == pytest.approx(exact, rel=0.03)


def test_the_tree_grows_where_the_probability_is(view):
    """The beginnings in it are the most probable, each with its own distribution."""
    texts, nodes = view.data["texts"], view.data["nodes"]
    found, left_out = {(): 1.0}, []

    def walk(number, ids, probability):
        node, exact = nodes[number], heated(logits_after([*PROMPT, *ids]), 1)
        order = np.argsort(-exact)
        assert [texts[place] for place in node["tokens"][:40]] == [text_of([id]) for id in order[:40]]
        for place, below in node["next"].items():
            token = int(order[place])
            found[(*ids, token)] = probability * exact[token]
            walk(below, (*ids, token), probability * exact[token])
        left_out.extend(probability * exact[id] for id in order[:3] if (*ids, int(id)) not in found)

    walk(0, (), 1.0)
    assert len(found) == len(nodes) == 45
    assert min(found.values()) > 0.95 * max(left_out)  # logits are rounded to two places


def test_it_is_small_and_complete(view):
    page = view._repr_html_()
    assert len(json.dumps(view.data, ensure_ascii=False, separators=(",", ":")).encode()) < 60_000
    stored = re.search(r'<script type="application/json">(.*?)</script>', page)[1]
    assert json.loads(stored) == json.loads(json.dumps(view.data))
    assert "A caption &amp; more." in page and not re.search(r"https?://", page)


def test_without_the_script_it_shows_the_distribution(view):
    before_scripts = view._repr_html_().partition("<script")[0]
    text, share = view.distribution()[0]
    best = logits_after(PROMPT).argmax()
    assert text == text_of([best])
    assert share == pytest.approx(heated(logits_after(PROMPT), 1)[best], rel=0.01)
    assert f"␣&lt;{best}&gt;" in before_scripts and f"{share:.1%}" in before_scripts
    assert "A caption & more." in repr(view)


def test_no_token_can_end_the_script():
    view = next_token_view(logits_after, lambda ids: "</script><b>", PROMPT, "x", num_nodes=1)
    page = view._repr_html_()
    assert page.count("</script>") == 2 and "<b>" not in page


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="vocabulary of 50 is too small: 80"):
        next_token_view(lambda ids: np.zeros(50), text_of, PROMPT, "x")
    with pytest.raises(ValueError, match="num_nodes=0"):
        next_token_view(logits_after, text_of, PROMPT, "x", num_nodes=0)
