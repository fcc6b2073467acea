"""One vector for each sequence, made of the vectors of its tokens.

Shapes: B sequences, T tokens, D numbers per token.
"""

import torch
from torch import Tensor


def mean_pool(hidden_states: Tensor, attention_mask: Tensor | None) -> Tensor:
    """Average the vectors of the tokens of each sequence; padding does not count.

    Reimers & Gurevych, Sentence-BERT (2019), section 3, https://aclanthology.org/D19-1410/. The sums are
    taken in float32: in half precision a long sequence would lose digits.

    Args:
        hidden_states: (B, T, D).
        attention_mask: 1 for a token, 0 for padding, (B, T); None: there is no padding.

    Returns:
        (B, D), of the type of `hidden_states`. A sequence without tokens has no mean: NaN.

    Raises:
        ValueError: the shapes do not fit, or the mask is of floating point.
    """
    check_states(hidden_states, attention_mask)
    if attention_mask is None:
        return hidden_states.mean(dim=1, dtype=sum_type(hidden_states)).to(hidden_states.dtype)
    is_token = attention_mask.bool()[..., None]  # (B, T, 1)
    total = hidden_states.masked_fill(~is_token, 0.0).sum(dim=1, dtype=sum_type(hidden_states))
    return (total / is_token.sum(dim=1)).to(hidden_states.dtype)


def sum_type(states: Tensor) -> torch.dtype:
    """Name the type in which a sum keeps its digits: at least float32."""
    return torch.promote_types(states.dtype, torch.float32)


def check_states(hidden_states: Tensor, attention_mask: Tensor | None) -> None:
    """Check that states and mask belong together.

    Raises:
        ValueError: the shapes do not fit, or the mask is of floating point.
    """
    fits = attention_mask is None or (
        hidden_states.shape[:2] == attention_mask.shape and not attention_mask.is_floating_point()
    )
    if hidden_states.ndim != 3 or not fits:
        mask = None if attention_mask is None else (tuple(attention_mask.shape), attention_mask.dtype)
        raise ValueError(
            f"hidden_states {tuple(hidden_states.shape)} and attention_mask {mask} do not fit: (batch, "
            "tokens, d_model), and (batch, tokens) in whole numbers or booleans, are needed"
        )
