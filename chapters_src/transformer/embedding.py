"""The embedding: from token ids and positions to vectors.

Shapes: B sequences, T tokens, D = d_model.
"""

import math

import torch
from torch import Tensor, nn

from chapters_src.transformer.configuration import Config
from chapters_src.transformer.layers import make_norm


def sinusoidal_positions(max_length: int, d_model: int, *, concatenated: bool = False) -> Tensor:
    """Return a table of sines and cosines, one row per position: (max_length, d_model).

    Vaswani et al. (2017), section 3.5, https://arxiv.org/abs/1706.03762. Even columns are sines, odd columns
    cosines, from fast to slow; if `concatenated`, as in Marian, all sines precede all cosines.

    Raises:
        ValueError: d_model is odd.
    """
    if d_model % 2:
        raise ValueError(f"d_model={d_model}: sines and cosines come in pairs, so d_model has to be even")
    positions = torch.arange(max_length, dtype=torch.float64)[:, None]
    frequencies = 10_000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angles = positions * frequencies  # (max_length, D/2)
    if concatenated:
        return torch.cat([angles.sin(), angles.cos()], dim=-1).float()
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1).float()


class Embedding(nn.Module):
    """The sum of a token's vector, its position's and its type's.

    Vaswani et al. (2017), sections 3.4 and 3.5; token types are from BERT: Devlin et al. (2019), section 3.
    Rotary positions have no table; attention applies them.

    All tables are initialized from N(0, 0.02²), except that token vectors that are multiplied by the square
    root of d_model have its inverse as their standard deviation, to be as large as their positions.

    Raises:
        ValueError: the configuration has no vocabulary or no context.
    """

    sinusoids: Tensor | None

    def __init__(self, config: Config) -> None:
        super().__init__()
        if config.vocab_size is None or config.max_length is None:
            raise ValueError(
                f"vocab_size={config.vocab_size}, max_length={config.max_length}: an embedding needs both; "
                "to process vectors without a vocabulary, use TransformerStack"
            )
        self.max_length = config.max_length
        self.scale = math.sqrt(config.d_model) if config.scales_embedding else 1.0
        self.tokens = nn.Embedding(config.vocab_size, config.d_model)
        self.positions = self.types = None
        if config.positions == "learned":
            self.positions = nn.Embedding(config.max_length, config.d_model)
        self.register_buffer("sinusoids", _sinusoids(config, self.max_length), persistent=False)
        if config.num_token_types:
            self.types = nn.Embedding(config.num_token_types, config.d_model)
        self.norm = make_norm(config) if config.embedding_norm else nn.Identity()
        self.dropout = nn.Dropout(config.dropout)
        for table in filter(None, (self.tokens, self.positions, self.types)):
            nn.init.normal_(table.weight, std=0.02)
        if config.scales_embedding:
            nn.init.normal_(self.tokens.weight, std=config.d_model**-0.5)

    def forward(self, ids: Tensor, positions: Tensor, token_types: Tensor | None = None) -> Tensor:
        """Embed a batch of ids, (B, T): (B, T, D).

        `positions` are those of the tokens in their sequences, (B, T) or (1, T); `token_types`, for a model
        that has them, are (B, T), and 0 by default. Values are not checked: an id outside the vocabulary or a
        position beyond the context causes an IndexError on the CPU, and an assertion failure on the GPU. Ids
        are checked where batches and decoding states are created.

        Raises:
            ValueError: the shapes or types do not match.
        """
        self._check(ids, positions, token_types)
        embedded = self.tokens(ids)  # (B, T, D)
        if self.scale != 1.0:
            embedded = embedded * self.scale
        if self.positions is not None:
            embedded = embedded + self.positions(positions)
        if self.sinusoids is not None:
            embedded = embedded + self.sinusoids[positions]
        if self.types is not None:
            embedded = embedded + self.types(torch.zeros_like(ids) if token_types is None else token_types)
        return self.dropout(self.norm(embedded))

    def _check(self, ids: Tensor, positions: Tensor, token_types: Tensor | None) -> None:
        for name, numbers in (("ids", ids), ("positions", positions)):
            if numbers.ndim != 2 or numbers.is_floating_point() or numbers.size(1) != ids.size(1):
                raise ValueError(
                    f"{name} {tuple(numbers.shape)}, {numbers.dtype}: expected integers, (batch, "
                    f"tokens), and one position for each of the ids {tuple(ids.shape)}"
                )
        if positions.size(0) not in (1, ids.size(0)):
            raise ValueError(
                f"positions {tuple(positions.shape)} for ids {tuple(ids.shape)}: expected one per token"
            )
        if token_types is not None and (self.types is None or token_types.shape != ids.shape):
            count = 0 if self.types is None else self.types.num_embeddings
            raise ValueError(
                f"token_types {tuple(token_types.shape)} for ids {tuple(ids.shape)} and "
                f"num_token_types={count}: expected one per token, and none for a model without types"
            )


def _sinusoids(config: Config, max_length: int) -> Tensor | None:
    if not config.positions.startswith("sinusoidal"):
        return None
    concatenated = config.positions == "sinusoidal_concatenated"
    return sinusoidal_positions(max_length, config.d_model, concatenated=concatenated)
