"""Heads: from hidden states to predictions.

Shapes: B sequences, T tokens, D = d_model, C classes, V = vocab_size.
"""

from torch import Tensor, nn

from chapters_src.transformer.pooling import mean_pool


class ClassificationHead(nn.Module):
    """Classify sequences by the mean of their hidden states. `dropout` drops numbers of it in training."""

    def __init__(self, d_model: int, num_classes: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.projection = nn.Linear(d_model, num_classes)

    def forward(self, hidden_states: Tensor, attention_mask: Tensor | None) -> Tensor:
        """Compute the logits of the classes: (B, T, D) -> (B, C); NaN for a sequence without tokens.

        `attention_mask` is 1 for a token, 0 for padding, (B, T); None: there is no padding.

        Raises:
            ValueError: the shapes do not match, or the mask has a floating-point type.
        """
        return self.projection(self.dropout(mean_pool(hidden_states, attention_mask)))


class LanguageModelHead(nn.Module):
    """Predict the next token: one logit for every entry of the vocabulary, perhaps with a bias for each.

    It can share the embedding's matrix (`tie`): Press & Wolf (2017), https://aclanthology.org/E17-2025/.
    """

    def __init__(self, d_model: int, vocab_size: int, *, bias: bool) -> None:
        super().__init__()
        self.projection = nn.Linear(d_model, vocab_size, bias=bias)
        nn.init.normal_(self.projection.weight, std=0.02)

    def tie(self, embedding: nn.Embedding) -> None:
        """Share the matrix of an embedding, (V, D).

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
