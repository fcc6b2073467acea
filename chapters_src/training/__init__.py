"""Training any PyTorch model: one readable loop on Accelerate, for one device or what a launcher gives it.

`batches` makes batches of sequences (padding, targets, packing, similar lengths). The loop is in `loop`, what
it can be told in `settings`, what it leaves behind in `history`. `launch` makes what a launcher sets into an
`Accelerator`, `order` says which batches a step sees, and `checkpoints` keeps folders whole. Chapters 05, 09,
10, 12, 14 and 15 train with it.
"""

from chapters_src.training.batches import (
    IGNORED,
    PackedDocuments,
    TokenBudgetSampler,
    pad,
    shift_tokens_left,
    shift_tokens_right,
)
from chapters_src.training.checkpoints import CheckpointError
from chapters_src.training.history import History
from chapters_src.training.loop import count_labels, train
from chapters_src.training.settings import Settings, best_precision, learning_rate_at

__all__ = [
    "IGNORED",
    "CheckpointError",
    "History",
    "PackedDocuments",
    "Settings",
    "TokenBudgetSampler",
    "best_precision",
    "count_labels",
    "learning_rate_at",
    "pad",
    "shift_tokens_left",
    "shift_tokens_right",
    "train",
]
