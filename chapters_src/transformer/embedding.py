"""From ids to vectors that also know their positions.

Shapes: B sequences, T tokens, D = d_model.
"""

import math

import torch
from torch import Tensor, nn

from chapters_src.transformer.configuration import Config
from chapters_src.transformer.layers import make_norm


def sinusoidal_positions(max_length: int, d_model: int) -> Tensor:
    """Give each position a pattern of sines and cosines, from fast to slow: section 3.5.

    Vaswani et al. (2017), https://arxiv.org/abs/1706.03762. Sines stand at even places, cosines at odd ones.

    Args:
        max_length: how many positions.
        d_model: numbers per position, even.

    Returns:
        (max_length, d_model), values from -1 to 1.

    Raises:
        ValueError: d_model is odd.
    """
    if d_model % 2:
        raise ValueError(f"d_model={d_model}: sines and cosines come in pairs, so it has to be even")
    positions = torch.arange(max_length, dtype=torch.float64)[:, None]
    frequencies = 10_000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angles = positions * frequencies  # (max_length, D/2)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1).float()


class Embedding(nn.Module):
    """Look up the vector of each token, and add those of its position and its type.

    Vaswani et al. (2017), sections 3.4 and 3.5; the types are BERT's: Devlin et al. (2019), section 3.

    Args:
        config: says which tables there are. Rotary positions are no table; they are inside attention.
    """

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.max_length = config.max_length
        self.scale = math.sqrt(config.d_model) if config.scale_embedding else 1.0
        self.tokens = nn.Embedding(config.vocab_size, config.d_model)
        self.positions = self.types = None
        if config.positions == "learned":
            self.positions = nn.Embedding(config.max_length, config.d_model)
        elif config.positions == "sinusoidal":
            table = sinusoidal_positions(config.max_length, config.d_model)
            self.positions = nn.Embedding.from_pretrained(table, freeze=True)
        if config.num_token_types:
            self.types = nn.Embedding(config.num_token_types, config.d_model)
        self.norm = make_norm(config) if config.embedding_norm else nn.Identity()
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, ids: Tensor, positions: Tensor, token_types: Tensor | None = None) -> Tensor:
        """Embed a batch.

        Args:
            ids: (B, T).
            positions: of the tokens in their sequences, (B, T) or (1, T).
            token_types: (B, T); all 0 if they are not given. Only a model with types takes them.

        Returns:
            (B, T, D).

        Raises:
            ValueError: shapes do not fit, an id is not in the vocabulary, a position not in the context, or a
                type is not known.
        """
        self._check(ids, positions, token_types)
        embedded = self.tokens(ids) * self.scale  # (B, T, D)
        if self.positions is not None:
            embedded = embedded + self.positions(positions)
        if self.types is not None:
            embedded = embedded + self.types(torch.zeros_like(ids) if token_types is None else token_types)
        return self.dropout(self.norm(embedded))

    def _check(self, ids: Tensor, positions: Tensor, token_types: Tensor | None) -> None:
        if positions.shape not in (ids.shape, (1, ids.size(1))):
            raise ValueError(
                f"positions {tuple(positions.shape)} for ids {tuple(ids.shape)}: one for each token is needed"
            )
        _check_range("id", ids, self.tokens.num_embeddings, "were they made by this model's tokenizer?")
        _check_range("position", positions, self.max_length, "cut the text, or make max_length larger")
        if token_types is None:
            return
        if self.types is None or token_types.shape != ids.shape:
            count = 0 if self.types is None else self.types.num_embeddings
            raise ValueError(
                f"token_types {tuple(token_types.shape)} for ids {tuple(ids.shape)} and "
                f"num_token_types={count}: one for each token is needed, and none for a model without types"
            )
        _check_range("token type", token_types, self.types.num_embeddings, "number the texts from 0")


def _check_range(name: str, values: Tensor, count: int, way_out: str) -> None:
    """Say which value a table of so many rows does not have; the lookup itself does not say it."""
    lowest, highest = torch.stack(values.aminmax()).tolist()
    if lowest < 0 or highest >= count:
        wrong = lowest if lowest < 0 else highest
        raise ValueError(f"{name} {wrong} is not in 0 ... {count - 1}: {way_out}")
