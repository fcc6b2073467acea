"""Decoding: ways to choose the next token, on the one state that models of this package write with.

`stepwise` writes token by token (`greedy`, `sample`, `stream`), `beams` keeps several hypotheses
(`beam_search`, `beam_sample`), `speculation` lets a cheap draft propose (`speculative`), `scoring` says how
probable given sequences are. `filters` changes the logits before a choice, `stopping` ends a continuation,
and `results` is what comes out. They take our language models and encoder-decoders, and those of the
Transformers library. Chapter 13 builds them small; chapters 12 and 14 write with them.
"""

from chapters_src.decoding.beams import beam_sample, beam_search
from chapters_src.decoding.filters import (
    Filter,
    min_p,
    no_repeat_ngram,
    repetition_penalty,
    temperature,
    top_k,
    top_p,
    typical_p,
)
from chapters_src.decoding.results import Continuation, Scored
from chapters_src.decoding.scoring import sequence_log_probability
from chapters_src.decoding.speculation import Draft, Speculation, speculative
from chapters_src.decoding.stepwise import Streamed, greedy, sample, stream
from chapters_src.decoding.stopping import Stop

__all__ = [
    "Continuation",
    "Draft",
    "Filter",
    "Scored",
    "Speculation",
    "Stop",
    "Streamed",
    "beam_sample",
    "beam_search",
    "greedy",
    "min_p",
    "no_repeat_ngram",
    "repetition_penalty",
    "sample",
    "sequence_log_probability",
    "speculative",
    "stream",
    "temperature",
    "top_k",
    "top_p",
    "typical_p",
]
