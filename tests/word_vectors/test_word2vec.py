"""The gradient against autograd, the loss against its formula, and words that must end up near each other."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from chapters_src import word_vectors as wv
from chapters_src.word_vectors import training


def random_batch(targets_per_query=6):
    generator = torch.Generator().manual_seed(0)
    queries = torch.randn(5, 8, generator=generator, dtype=torch.float64)
    targets = torch.randn(5, targets_per_query, 8, generator=generator, dtype=torch.float64)
    noise = torch.randn(7, 8, generator=generator, dtype=torch.float64)
    weights = torch.rand(5, targets_per_query, generator=generator, dtype=torch.float64)
    weights[0, 1:] = 0
    return queries, targets, weights, noise


@pytest.mark.parametrize("targets_per_query", [1, 6])
def test_the_gradient_is_that_of_autograd(targets_per_query):
    queries, targets, weights, noise = random_batch(targets_per_query)
    found = wv.negative_sampling(queries, targets, weights, noise, 5)
    leaves = [each.clone().requires_grad_() for each in (queries, targets, noise)]
    wv.negative_sampling(leaves[0], leaves[1], weights, leaves[2], 5).loss.backward()
    for gradient, leaf in zip((found.queries, found.targets, found.noise), leaves, strict=True):
        assert_close(gradient, leaf.grad)


def test_the_loss_is_that_of_equation_4():
    queries, targets, weights, noise = random_batch()
    expected = 0.0
    for query, row, its_weights in zip(queries, targets, weights, strict=True):
        for target, weight in zip(row, its_weights, strict=True):
            of_noise = sum(torch.log(torch.sigmoid(-vector @ query)) for vector in noise)
            expected -= weight * (torch.log(torch.sigmoid(target @ query)) + 5 / 7 * of_noise)
    assert_close(wv.negative_sampling(queries, targets, weights, noise, 5).loss, expected)


@pytest.mark.parametrize("method", training.METHODS)
def test_a_step_goes_along_the_gradient_of_the_whole_model(method):
    """With words that stand in the batch several times, and with places where there is no word."""
    start = torch.randn(2, 6, 4, generator=torch.Generator().manual_seed(1))
    centers, contexts = torch.tensor([0, 1, 0]), torch.tensor([[1, 2], [0, 0], [3, 4]])
    weights, noise_ids = torch.tensor([[1, 0.5], [1, 0], [0.5, 0.5]]), torch.tensor([5, 1, 1])

    inputs, outputs = (each.clone().requires_grad_() for each in start)
    if method == "skip-gram":
        queries, targets, shares = inputs[centers], outputs[contexts], weights
    else:
        shares = weights / weights.sum(dim=1, keepdim=True)
        queries = (shares[..., None] * inputs[contexts]).sum(dim=1)
        targets, shares = outputs[centers][:, None], torch.ones(3, 1)
    wv.negative_sampling(queries, targets, shares, outputs[noise_ids], 5).loss.backward()

    class Table(training._Table):
        def step(self, parts):
            super().step(parts)
            self.seen = self._gradient.clone()

    tables = [Table(each.clone(), 0.1) for each in start]
    step = training._skip_gram_step if method == "skip-gram" else training._cbow_step
    step(*tables, centers, contexts, weights, noise_ids, 5)
    for table, leaf, before in zip(tables, (inputs, outputs), start, strict=True):
        assert_close(table.seen, leaf.grad)
        assert_close(table.rows, before - 0.1 * leaf.grad / (leaf.grad**2 + 1e-6).sqrt())


def test_windows_stay_inside_their_text():
    corpus = wv.read_corpus([["a", "b", "c"], ["d", "e"], ["f"]], 1)
    (centers, contexts, weights) = next(training._batches(corpus, 2, 0, 100, np.random.default_rng(0)))
    pairs = {}
    for center, row, its_weights in zip(centers, contexts, weights, strict=True):
        for context, weight in zip(row, its_weights, strict=True):
            if weight:
                pairs[corpus.words[center], corpus.words[context]] = weight.item()
    forward = {("a", "b"): 1, ("a", "c"): 0.5, ("b", "c"): 1, ("d", "e"): 1}
    assert pairs == forward | {(c, w): weight for (w, c), weight in forward.items()}


def test_frequent_words_are_dropped_as_often_as_the_formula_says():
    counts = np.array([90_000, 9_900, 100])
    keep = wv.keep_probability(counts, 0.01)
    np.testing.assert_allclose(keep, [(0.01 / 0.9) ** 0.5, (0.01 / 0.099) ** 0.5, 1])
    assert (wv.keep_probability(counts, 0) == 1).all()
    texts = [["often"] * 90 + ["seldom"] * 10] * 200
    corpus = wv.read_corpus(texts, 1)
    seen = [c for c, *_ in training._batches(corpus, 1, 0.01, 50, np.random.default_rng(0))]
    share = (torch.cat(seen) == 0).sum().item() / 18_000
    assert share == pytest.approx(wv.keep_probability(corpus.counts, 0.01)[0], rel=0.1)


def test_noise_words_follow_the_counts_to_the_power_three_quarters():
    np.testing.assert_allclose(wv.noise(np.array([16, 1])), [8 / 9, 1 / 9])
    np.testing.assert_allclose(wv.noise(np.array([16, 1]), power=0), [0.5, 0.5])


@pytest.fixture(scope="module")
def two_topics():
    """Texts of two topics; "kettle" and "stove" never stand in one text, but in the same company."""
    generator = np.random.default_rng(0)
    topics = [["boil", "cook", "heat", "pan"], ["sail", "row", "wave", "harbor"]]
    texts = []
    for _ in range(1500):
        words, named = ((topics[0], ["kettle", "stove"]), (topics[1], ["boat", "raft"]))[
            generator.integers(2)
        ]
        text = list(generator.choice(words, 5))
        text.insert(generator.integers(6), named[generator.integers(2)])
        texts.append(text)
    return wv.read_corpus(texts, 1)


@pytest.mark.parametrize("method", training.METHODS)
def test_words_that_keep_the_same_company_end_up_near(method, two_topics):
    vectors, losses = wv.train(
        two_topics, method, dim=16, window=3, subsample=0, epochs=3, batch_size=64, num_noise=12
    )
    assert losses == sorted(losses, reverse=True)
    for one, same, other in (("kettle", "stove", "boat"), ("raft", "boat", "stove")):
        assert vectors.similarity(one, same) > vectors.similarity(one, other) + 0.5


def test_the_same_seed_gives_the_same_vectors(two_topics):
    runs = [wv.train(two_topics, dim=4, epochs=1, seed=seed)[0].matrix for seed in (3, 3, 4)]
    assert (runs[0] == runs[1]).all() and not np.allclose(runs[0], runs[2])


def test_what_cannot_be_trained(two_topics):
    with pytest.raises(ValueError, match="method='glove': choose from skip-gram, cbow"):
        wv.train(two_topics, "glove")
    with pytest.raises(ValueError, match="epochs=0 must be at least 1"):
        wv.train(two_topics, epochs=0)
