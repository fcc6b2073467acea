"""word2vec: skip-gram and continuous bag of words (CBOW) with negative sampling.

Every word has two vectors: a row of `inputs`, the result, and a row of `outputs`, for when it is predicted.
Skip-gram uses the input vector v of a word to predict each word around it. CBOW uses the mean v of the input
vectors around a word to predict the word itself. A prediction is a comparison with noise: the dot product
with the output vector u of the true word should be high, and with those of k random words low,

    loss = -log s(u . v) - sum over k noise words n of log s(-u_n . v),    s(x) = 1 / (1 + exp(-x)),

equation 4 of Mikolov et al. (2013b), https://arxiv.org/abs/1310.4546; the two models are from Mikolov et al.
(2013a), https://arxiv.org/abs/1301.3781. The gradient is written by hand, and there is no loop over words.
Three things differ from the original program, for speed on arrays:

- A batch shares one set of noise words, each weighted by k over the size of the set: the same expectation.
- The original draws the size of each window; here every distance counts with its average weight.
- Many words are updated at once, so the optimizer is Adagrad (Duchi et al. 2011,
  https://jmlr.org/papers/v12/duchi11a.html), whose steps shrink for vectors that have already learned much.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from chapters_src.word_vectors.corpus import Corpus
from chapters_src.word_vectors.counting import window_weights
from chapters_src.word_vectors.vectors import WordVectors

METHODS = ("skip-gram", "cbow")


class Gradients(NamedTuple):
    """The loss of a batch, summed, and its gradients."""

    loss: Tensor  # ()
    queries: Tensor  # (B, D)
    targets: Tensor  # (B, T, D)
    noise: Tensor  # (K, D)


def keep_probability(counts: np.ndarray, threshold: float) -> np.ndarray:
    """Return the probability of keeping each word, (V,): min(1, sqrt(threshold / frequency)).

    Mikolov et al. (2013b), equation 5. The formula of the original program gives slightly larger values. A
    threshold of 0 keeps everything.
    """
    return np.minimum(1, np.sqrt(threshold * counts.sum() / counts)) if threshold else np.ones(len(counts))


def noise(counts: np.ndarray, power: float = 0.75) -> np.ndarray:
    """Return the distribution of noise words, (V,): counts to a power, normalized.

    A power of 1 draws words as often as they occur, 0 uniformly.
    """
    return counts**power / (counts**power).sum()


def negative_sampling(
    queries: Tensor, targets: Tensor, weights: Tensor, noise_vectors: Tensor, num_negatives: float
) -> Gradients:
    """Compute the loss of a batch of predictions, and its gradient by hand.

    With s' = s (1 - s), the derivative of -log s(x) is s(x) - 1, and that of -log s(-x) is s(x).

    Args:
        queries: vectors v that predict, (B, D).
        targets: output vectors of the true words, T for each query, (B, T, D).
        weights: the weight of each target, 0 for none, (B, T).
        noise_vectors: output vectors of K noise words, shared by all, (K, D).
        num_negatives: k, the average number of noise words per prediction.

    Returns:
        The loss, summed over the batch, and its gradients.
    """
    true_scores = (targets * queries[:, None]).sum(dim=-1)  # (B, T, D) -> (B, T)
    noise_scores = queries @ noise_vectors.T  # (B, K)
    share = weights.sum(dim=1, keepdim=True) * (num_negatives / len(noise_vectors))  # (B, 1)
    log_sigmoid = torch.nn.functional.logsigmoid
    loss = -(weights * log_sigmoid(true_scores)).sum() - (share * log_sigmoid(-noise_scores)).sum()
    of_true = weights * (torch.sigmoid(true_scores) - 1)  # derivative by the true scores, (B, T)
    of_noise = share * torch.sigmoid(noise_scores)  # derivative by the noise scores, (B, K)
    return Gradients(
        loss,
        queries=(of_true[:, None] @ targets)[:, 0] + of_noise @ noise_vectors,
        targets=of_true[..., None] * queries[:, None],
        noise=of_noise.T @ queries,
    )


def train(
    corpus: Corpus,
    method: str = "skip-gram",
    *,
    dim: int = 100,
    window: int = 5,
    num_negatives: int = 5,
    num_noise: int = 64,
    subsample: float = 1e-3,
    epochs: int = 5,
    batch_size: int = 1024,
    learning_rate: float = 0.1,
    seed: int = 0,
) -> tuple[WordVectors, list[float]]:
    """Train word2vec.

    Args:
        corpus: the texts.
        method: "skip-gram" or "cbow".
        dim: D.
        window: the largest distance between a word and the words it predicts.
        num_negatives: k, noise words per prediction.
        num_noise: K, noise words shared by a batch.
        subsample: the threshold of `keep_probability`.
        epochs: passes over the corpus, each drops different words.
        batch_size: center words per step.
        learning_rate: learning rate of Adagrad.
        seed: seed for initialization, dropped words, order and noise.

    Returns:
        The input vectors, and for each epoch the loss per prediction in nats: one true word with its k noise
        words. The same seed gives the same vectors on the same kind of processor.

    Raises:
        ValueError: the method is unknown, or a size is below 1.
    """
    sizes = {"dim": dim, "num_negatives": num_negatives, "num_noise": num_noise, "epochs": epochs}
    for name, value in {**sizes, "batch_size": batch_size}.items():
        if value < 1:
            raise ValueError(f"{name}={value} must be at least 1")
    if method not in METHODS:
        raise ValueError(f"method={method!r}: choose from {', '.join(METHODS)}")
    generator = np.random.default_rng(seed)
    drawn = generator.uniform(-0.5 / dim, 0.5 / dim, (len(corpus.words), dim))
    inputs = _Table(torch.tensor(drawn, dtype=torch.float32), learning_rate)
    outputs = _Table(torch.zeros_like(inputs.rows), learning_rate)
    distribution = noise(corpus.counts)
    losses = []
    for _ in range(epochs):
        loss = guesses = 0.0
        for centers, contexts, weights in _batches(corpus, window, subsample, batch_size, generator):
            noise_ids = torch.from_numpy(generator.choice(len(distribution), num_noise, p=distribution))
            step = _skip_gram_step if method == "skip-gram" else _cbow_step
            loss += step(inputs, outputs, centers, contexts, weights, noise_ids, num_negatives)
            guesses += weights.sum().item() if method == "skip-gram" else len(centers)
        losses.append(loss / max(guesses, 1))
    return WordVectors(corpus.words, inputs.rows.numpy()), losses


def _skip_gram_step(inputs, outputs, centers, contexts, weights, noise_ids, num_negatives) -> float:
    found = negative_sampling(inputs[centers], outputs[contexts], weights, outputs[noise_ids], num_negatives)
    inputs.step([(centers, found.queries)])
    outputs.step([(contexts.flatten(), found.targets.flatten(0, 1)), (noise_ids, found.noise)])
    return found.loss.item()


def _cbow_step(inputs, outputs, centers, contexts, weights, noise_ids, num_negatives) -> float:
    shares = weights / weights.sum(dim=1, keepdim=True)  # (B, T), each row adds up to 1
    means = (shares[:, None] @ inputs[contexts])[:, 0]  # (B, 1, T) x (B, T, D) -> (B, D)
    found = negative_sampling(
        means,
        outputs[centers][:, None],
        torch.ones(len(centers), 1),
        outputs[noise_ids],
        num_negatives,
    )
    of_contexts = shares[..., None] * found.queries[:, None]  # (B, T, D)
    inputs.step([(contexts.flatten(), of_contexts.flatten(0, 1))])
    outputs.step([(centers, found.targets[:, 0]), (noise_ids, found.noise)])
    return found.loss.item()


class _Table:
    """A matrix of vectors with an Adagrad optimizer."""

    def __init__(self, rows: Tensor, learning_rate: float) -> None:
        self.rows = rows  # (V, D)
        self._gradient = torch.zeros_like(rows)
        of_rows = torch.nn.Parameter(rows)  # The same memory, for the optimizer.
        of_rows.grad = self._gradient
        # The sum of squared gradients starts at 1e-6, instead of adding eps to its root.
        self._adagrad = torch.optim.Adagrad(
            [of_rows], learning_rate, initial_accumulator_value=1e-6, eps=0, fused=True
        )

    def __getitem__(self, ids: Tensor) -> Tensor:
        """Return rows, (..., D) for ids of shape (...)."""
        return torch.nn.functional.embedding(ids, self.rows)  # Faster than `rows[ids]`.

    def step(self, parts: list[tuple[Tensor, Tensor]]) -> None:
        """Take a step; `parts` are row indices, (M,), and their gradients, (M, D)."""
        self._gradient.zero_()
        for ids, gradients in parts:
            self._gradient.index_add_(0, ids, gradients)
        self._adagrad.step()


def _batches(
    corpus: Corpus, window: int, subsample: float, batch_size: int, generator: np.random.Generator
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yield words (B,), their context words, (B, 2 window), and context weights, 0 where there is no word."""
    kept = generator.random(len(corpus.ids)) < keep_probability(corpus.counts, subsample)[corpus.ids]
    ids = np.pad(corpus.ids[kept], window)
    texts = np.pad(corpus.texts[kept], window, constant_values=-1)
    by_distance = window_weights(window, "linear")
    offsets = np.concatenate([np.arange(-window, 0), np.arange(1, window + 1)])
    weights = np.concatenate([by_distance[::-1], by_distance])
    order = generator.permutation(len(ids) - 2 * window) + window
    for start in range(0, len(order), batch_size):
        middles = order[start : start + batch_size]
        around = middles[:, None] + offsets
        counted = np.where(texts[around] == texts[middles][:, None], weights, 0)
        alone = counted.sum(axis=1) == 0  # A text of one word predicts nothing.
        chosen = (ids[middles], ids[around], counted.astype(np.float32))
        words, context, context_weights = (torch.from_numpy(each[~alone]) for each in chosen)
        yield words, context, context_weights
