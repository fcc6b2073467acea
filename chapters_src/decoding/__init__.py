"""Decoding: methods to generate text, with our models and those of the Transformers library.

`stepwise` generates token by token (`greedy`, `sample`, `stream`), `beams` keeps several hypotheses
(`beam_search`, `beam_sample`), `speculation` lets a fast draft propose tokens (`speculative`), and `scoring`
computes the probability of given sequences. `filters` modify the logits before a token is chosen, `stopping`
ends a continuation, and `results` are what comes out. Chapter 13 builds small versions; chapters 12 and 14
generate with these.
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
