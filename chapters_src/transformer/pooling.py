"""Pooling: one vector per sequence, from the vectors of its tokens.

Shapes: B sequences, T tokens, D numbers per token.
"""

import torch
from torch import Tensor


def mean_pool(hidden_states: Tensor, attention_mask: Tensor | None) -> Tensor:
    """Average the vectors of each sequence's tokens, ignoring padding: (B, T, D) -> (B, D).

    Reimers & Gurevych, Sentence-BERT (2019), section 3, https://aclanthology.org/D19-1410/. Sums are computed
    in float32, because half precision would lose digits in long sequences. A sequence without tokens gives
    NaN.

    `attention_mask` is 1 for a token, 0 for padding, (B, T); None: there is no padding.

    Raises:
        ValueError: the shapes do not match, or the mask has a floating-point type.
    """
    check_states(hidden_states, attention_mask)
    if attention_mask is None:
        return hidden_states.mean(dim=1, dtype=sum_type(hidden_states)).to(hidden_states.dtype)
    is_token = attention_mask.bool()[..., None]  # (B, T, 1)
    total = hidden_states.masked_fill(~is_token, 0.0).sum(dim=1, dtype=sum_type(hidden_states))
    return (total / is_token.sum(dim=1)).to(hidden_states.dtype)


def sum_type(states: Tensor) -> torch.dtype:
    """Return the data type for sums: at least float32."""
    return torch.promote_types(states.dtype, torch.float32)


def check_states(hidden_states: Tensor, attention_mask: Tensor | None) -> None:
    """Check that hidden states and mask match.

    Raises:
        ValueError: the shapes do not match, or the mask has a floating-point type.
    """
    fits = attention_mask is None or (
        hidden_states.shape[:2] == attention_mask.shape and not attention_mask.is_floating_point()
    )
    if hidden_states.ndim != 3 or not fits:
        mask = None if attention_mask is None else (tuple(attention_mask.shape), attention_mask.dtype)
        raise ValueError(
            f"hidden_states {tuple(hidden_states.shape)} and attention_mask {mask} do not match: expected "
            "(batch, tokens, d_model), and integers or booleans (batch, tokens)"
        )
