"""Heads: from hidden states to predictions.

Shapes: B sequences, T tokens, D = d_model, C classes, V = vocab_size.
"""

import math

import torch
from torch import Tensor, nn

from chapters_src.transformer.pooling import mean_pool


class ClassificationHead(nn.Module):
    """Classify sequences by the mean of their hidden states.

    Args:
        d_model: D.
        num_classes: C.
        dropout: probability of dropping a number of the mean in training.
    """

    def __init__(self, d_model: int, num_classes: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.projection = nn.Linear(d_model, num_classes)

    def forward(self, hidden_states: Tensor, attention_mask: Tensor | None) -> Tensor:
        """Compute the logits of the classes.

        Args:
            hidden_states: (B, T, D).
            attention_mask: 1 for a token, 0 for padding, (B, T); None: there is no padding.

        Returns:
            (B, C); NaN for a sequence without tokens.

        Raises:
            ValueError: the shapes do not match, or the mask has a floating-point type.
        """
        return self.projection(self.dropout(mean_pool(hidden_states, attention_mask)))


class TokenClassificationHead(nn.Module):
    """Classify tokens, as in named-entity recognition.

    Args:
        d_model: D.
        num_classes: C.
        dropout: probability of dropping a number of a hidden state in training.
    """

    def __init__(self, d_model: int, num_classes: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.projection = nn.Linear(d_model, num_classes)

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Compute the logits of the classes: (B, T, D) -> (B, T, C)."""
        return self.projection(self.dropout(hidden_states))


class SpanHead(nn.Module):
    """Predict the start and the end of an answer, each as a distribution over the tokens.

    Devlin et al., BERT (2019), section 4.2, https://aclanthology.org/N19-1423/.

    Args:
        d_model: D.
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.projection = nn.Linear(d_model, 2)

    def forward(self, hidden_states: Tensor, may_answer: Tensor) -> tuple[Tensor, Tensor]:
        """Compute the logits of each token as the first and as the last token of the answer.

        Args:
            hidden_states: (B, T, D).
            may_answer: boolean, True for tokens that may be part of the answer, which excludes padding and
                the question, (B, T).

        Returns:
            Two tensors (B, T), start and end: minus infinity for tokens that may not be part of the answer.

        Raises:
            ValueError: `may_answer` is not boolean or has another shape.
        """
        if may_answer.dtype != torch.bool or may_answer.shape != hidden_states.shape[:2]:
            raise ValueError(
                f"may_answer is {may_answer.dtype} {tuple(may_answer.shape)}: expected a boolean tensor "
                f"{tuple(hidden_states.shape[:2])}"
            )
        logits = self.projection(hidden_states).masked_fill(~may_answer[..., None], -math.inf)  # (B, T, 2)
        start, end = logits.unbind(dim=-1)
        return start, end


class LanguageModelHead(nn.Module):
    """Predict the next token: one logit for every entry of the vocabulary.

    It can share the embedding's matrix (`tie`): Press & Wolf (2017), https://aclanthology.org/E17-2025/.

    Args:
        d_model: D.
        vocab_size: V.
        bias: whether to add a bias to each logit.
    """

    def __init__(self, d_model: int, vocab_size: int, *, bias: bool) -> None:
        super().__init__()
        self.projection = nn.Linear(d_model, vocab_size, bias=bias)
        nn.init.normal_(self.projection.weight, std=0.02)

    def tie(self, embedding: nn.Embedding) -> None:
        """Share the matrix of an embedding.

        Args:
            embedding: of V entries with D numbers each.

        Raises:
            ValueError: the embedding has another shape.
        """
        if embedding.weight.shape != self.projection.weight.shape:
            raise ValueError(
                f"embedding {tuple(embedding.weight.shape)}, head {tuple(self.projection.weight.shape)}: "
                "tying needs the same shape"
            )
        self.projection.weight = embedding.weight

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Compute the logits: (B, T, D) -> (B, T, V)."""
        return self.projection(hidden_states)
