"""The assistant of chapter 16: its template, what it is trained on, what it writes, and how that is judged.

`template` turns a conversation into ids, `losses` has the loss of answers and of preferences, `writing`
lets a model answer, and `judging` applies rules to answers. The chapter and its recipe
(`recipes/assistant.py`) share these. Low-rank updates of a model are in the room of checkpoints,
`pretrained`.
"""

from chapters_src.assistant.judging import (
    REFUSAL,
    Blind,
    Finding,
    addressee,
    blinded,
    findings,
    holds,
    is_refusal,
    outcome,
    promises,
    wins_of_first,
)
from chapters_src.assistant.losses import (
    AnswerLoss,
    PreferenceLoss,
    answer_batch,
    answer_log_probabilities,
    dpo_losses,
    score_answers,
)
from chapters_src.assistant.template import (
    END,
    START,
    TEMPLATE,
    Pair,
    encode_pair,
    encode_turns,
    marks,
    safe,
    turns,
)
from chapters_src.assistant.writing import Written, answer, write
