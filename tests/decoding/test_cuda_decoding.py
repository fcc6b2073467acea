"""Decoding on a graphics card: the tokens, and the draws, of the processor."""

import pytest
from beside_library import random_prompts, seeded, targets
from library_models import END, library_model

from chapters_src.decoding import (
    Stop,
    beam_sample,
    beam_search,
    greedy,
    no_repeat_ngram,
    repetition_penalty,
    sample,
    sequence_log_probability,
    speculative,
    stream,
    top_p,
)

pytestmark = [pytest.mark.cuda, pytest.mark.slow, pytest.mark.usefixtures("quiet_library")]


@pytest.mark.parametrize("kind", ["gpt2", "llama", "bart"])
def test_every_method_writes_on_a_card_what_it_writes_on_the_processor(kind):
    """In float64, so that rounding does not decide; generators on the processor draw for both."""
    model, prompts, found = library_model(kind, 0), random_prompts(0), []
    filters = [repetition_penalty(1.2), no_repeat_ngram(3), top_p(0.9)]
    same = {"max_new_tokens": 10, "stop": Stop(END), "filters": filters, **targets(kind)}
    for device in ("cpu", "cuda"):
        model.to(device)
        written = [
            greedy(model, prompts, **same),
            sample(model, prompts, generator=seeded(), **same),
            *beam_search(model, prompts, num_beams=3, **same),
            *beam_sample(model, prompts, num_beams=3, generator=seeded(), **same),
            *(
                [speculative(model, prompts[0], draft=model, **drawn, **same).continuation]
                for drawn in ({}, {"generator": seeded()})
            ),
            list(stream(model, prompts[0], generator=seeded(), **same)),
        ]
        given = [each.ids for each in written[0]]
        scored = sequence_log_probability(model, prompts, given, **targets(kind))
        found.append(
            [[getattr(each, "ids", getattr(each, "id", None)) for each in group] for group in written]
            + [[round(each.log_probability, 6) for each in scored]]
        )
    assert found[0] == found[1]
