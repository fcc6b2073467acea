"""What an assistant is trained on: the loss of its answers, and of preferring one answer to another.

Shapes: B rows, T tokens, D = d_model, V = vocab_size, N answer tokens of all rows together.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from chapters_src.assistant.template import Pair
from chapters_src.training import IGNORED, pad
from chapters_src.transformer import LanguageModel


def answer_batch(pairs: Sequence[Pair], padding_id: int) -> dict[str, Tensor]:
    """Make a batch of B prompts with their answers, whose labels are the tokens of the answers.

    It has "ids", (B, T), prompt and answer but for the last token; and "labels", (B, T), the token that
    follows each place, `IGNORED` where that is not a token of the answer. `padding_id` fills shorter rows on
    the right, where no token attends to it.

    Raises:
        ValueError: there are no pairs, or a prompt or an answer is empty.
    """
    for row, pair in enumerate(pairs):
        if not pair.prompt or not pair.answer:
            raise ValueError(f"row {row}: a prompt of {len(pair.prompt)} and an answer of {len(pair.answer)}")
    ids, _ = pad([[*pair.prompt, *pair.answer[:-1]] for pair in pairs], padding_id=padding_id)
    labels = torch.full_like(ids, IGNORED)
    for row, pair in enumerate(pairs):
        first = len(pair.prompt) - 1  # The last token of the prompt predicts the first of the answer.
        labels[row, first : first + len(pair.answer)] = torch.tensor(pair.answer)
    return {"ids": ids, "labels": labels}


def answer_log_probabilities(model: LanguageModel, ids: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the log-probability of each answer token, and the logits of no other token.

    Gemma's head has 262,144 rows, so it costs as much as several layers. `ids` and `labels` are those of
    `answer_batch`, (B, T). Returned are the log-probabilities, natural logarithms, and the rows that they
    belong to, both (N,).
    """
    pays = labels != IGNORED  # (B, T)
    states = model.decoder(ids, None)[pays]  # (N, D)
    losses = F.cross_entropy(model.head(states).float(), labels[pays], reduction="none")
    return -losses, pays.nonzero()[:, 0]


class AnswerLoss(nn.Module):
    """A language model of ours whose output is the summed loss of a batch's answer tokens.

    As a module of its own it can be trained on several processes, which exchange gradients around the forward
    pass of the module that they are given.
    """

    def __init__(self, model: LanguageModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor, labels: Tensor) -> Tensor:
        """Return the sum of the losses, in nats, as a tensor of shape ()."""
        return -answer_log_probabilities(self.model, ids, labels)[0].sum()


def dpo_losses(
    chosen: Tensor, rejected: Tensor, reference_chosen: Tensor, reference_rejected: Tensor, beta: float
) -> Tensor:
    """Compute the loss of direct preference optimization: Rafailov et al. (2023), equation 7.

    https://arxiv.org/abs/2305.18290.

    Args:
        chosen: log-probability of the better answer of each pair under the model, (B,).
        rejected: of the worse one, (B,).
        reference_chosen: of the better one under the model before this training, (B,).
        reference_rejected: of the worse one, (B,).
        beta: how much a difference to the reference counts; above 0.

    Returns:
        (B,): log 2 for a model that is still the reference.

    Raises:
        ValueError: beta is not above 0.
    """
    if beta <= 0:
        raise ValueError(f"beta={beta} has to be above 0")
    margins = beta * ((chosen - reference_chosen) - (rejected - reference_rejected))
    return -F.logsigmoid(margins)


class PreferenceLoss(nn.Module):
    """A language model of ours whose output is the summed DPO loss of a batch (`dpo_losses`)."""

    def __init__(self, model: LanguageModel, beta: float) -> None:
        super().__init__()
        self.model, self.beta = model, beta

    def forward(self, ids: Tensor, labels: Tensor, reference: Tensor) -> Tensor:
        """Return the sum of the losses, as a tensor of shape ().

        `ids` and `labels`, (2 B, T), are of the B chosen answers with their prompts, then of the B rejected
        ones; `reference` is the log-probability of each of these answers under the reference, (2 B,).
        """
        sums = summed(*answer_log_probabilities(self.model, ids, labels), len(ids))
        chosen, rejected = sums.chunk(2)
        return dpo_losses(chosen, rejected, *reference.chunk(2), beta=self.beta).sum()


def summed(log_probabilities: Tensor, rows: Tensor, num_rows: int) -> Tensor:
    """Add up the log-probabilities of each row: (N,) and (N,) -> (num_rows,)."""
    return log_probabilities.new_zeros(num_rows).index_add(0, rows, log_probabilities)


@torch.no_grad()
def score_answers(
    model: LanguageModel, pairs: Sequence[Pair], padding_id: int, batch_size: int = 8
) -> tuple[Tensor, Tensor]:
    """Return the log-probability of each of N answers, and the number of its tokens, both (N,), on the CPU.

    `pairs` are prompts with their answers. Similar lengths are read together, `batch_size` at once.
    """
    device = next(model.parameters()).device
    order = sorted(range(len(pairs)), key=lambda i: sum(map(len, pairs[i])))
    found = torch.zeros(len(pairs))
    for start in range(0, len(order), batch_size):
        chosen = order[start : start + batch_size]
        batch: dict[str, Any] = answer_batch([pairs[i] for i in chosen], padding_id)
        batch = {name: value.to(device) for name, value in batch.items()}
        found[chosen] = summed(*answer_log_probabilities(model, **batch), len(chosen)).float().cpu()
    return found, torch.tensor([len(pair.answer) for pair in pairs])
