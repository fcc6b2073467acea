"""Decoding: methods to generate text, with our models and those of the Transformers library.

`state` lets a model read tokens and keeps what the next step needs (`start_decoding`). On it are built
`stepwise`, which generates token by token (`greedy`, `sample`, `stream`), `beams`, which keeps several
hypotheses (`beam_search`, `beam_sample`), `speculation`, where a fast draft proposes tokens (`speculative`),
and `scoring`, the probability of given sequences. `filters` modify the logits before a token is chosen,
`stopping` ends a continuation, and `results` are what comes out. Chapter 13 builds small versions; chapters
12 and 14 generate with these.
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
from chapters_src.decoding.state import DecodingState, start_decoding
from chapters_src.decoding.stepwise import Streamed, greedy, sample, stream
from chapters_src.decoding.stopping import Stop
