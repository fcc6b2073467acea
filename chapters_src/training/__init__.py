"""Training any PyTorch model: one readable loop, on one device or on several processes through Accelerate.

The loop is in `loop`, what it can be told in `settings`, what it leaves behind in `history`. `state` and
`checkpoints` are why an interrupted run ends with the same bits as one that was not. Chapters 05, 09, 10, 12,
14 and 15 train with it.
"""

from chapters_src.training.checkpoints import CheckpointError
from chapters_src.training.history import History
from chapters_src.training.loop import train
from chapters_src.training.settings import Settings, best_precision, learning_rate_at

__all__ = ["CheckpointError", "History", "Settings", "best_precision", "learning_rate_at", "train"]
