"""Training any PyTorch model: one readable loop on Accelerate, on one device or on all of a launcher.

`batches` makes batches of sequences (targets, packing, similar lengths; `pad` is from `padding`). The loop is
in `loop`, its options in `settings`, its record in `history`. `launch` turns what a launcher sets into an
`Accelerator`, `order` decides which batches a step sees, `conditions` what must not change when a run is
resumed, and `checkpoints` writes and reads it. Chapters 05, 09, 10, 12, 14 and 15 train with it.
"""

from chapters_src.padding import pad
from chapters_src.training.batches import IGNORED, PackedDocuments, TokenBudgetSampler, shift_tokens_right
from chapters_src.training.checkpoints import CheckpointError
from chapters_src.training.history import History
from chapters_src.training.launch import batches_per_step, full_state_dict
from chapters_src.training.loop import count_labels, train
from chapters_src.training.settings import Settings, best_precision, learning_rate_at
