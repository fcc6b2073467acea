"""Evaluation: scores, calibration, and bootstrap intervals.

Scores come from scikit-learn and sacrebleu, and intervals from SciPy, where available. This package adds what
they lack: the loss of each example, calibration over all classes, ROUGE, scores of answers, and scores fast
enough for thousands of bootstrap samples. Chapters 01, 04, 05, 09, 10, 12 and 14 use it.

Arrays may be NumPy arrays, lists or PyTorch tensors on any device. N is the number of examples.
"""

from chapters_src.evaluation.answers import answer_scores, answer_tokens, exact_match, token_f1
from chapters_src.evaluation.bleu import bleu, bleu_of_statistics, bleu_statistics, chrf
from chapters_src.evaluation.calibration import (
    cross_entropies,
    expected_calibration_error,
    fit_temperature,
    reliability,
)
from chapters_src.evaluation.classification import accuracy, classification_scores, macro_f1, recall_at_k
from chapters_src.evaluation.documents import bits_per_byte, document_log_probabilities
from chapters_src.evaluation.intervals import Interval, bootstrap_interval, paired_bootstrap
from chapters_src.evaluation.rouge import RougeScore, rouge, rouge_l, rouge_l_sum, rouge_n, rouge_tokens
