"""Decoding by this book against `generate()`, with the same weights and the same tokens.

And against limits: the matrix products of as many steps and nothing else; the weights read from memory as
often, and nothing else.
"""

import sys
from collections.abc import Callable, Sequence

import torch
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, PreTrainedModel

from benchmarks.measure import Result, taking_turns
from chapters_src import decoding
from chapters_src.decoding import Continuation
from chapters_src.pretrained import from_library

PROMPT, NEW_TOKENS = 16, 48
NO_IDS = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": 0}
LIBRARY = "the Transformers library's `generate()`"
SAMPLING = {"temperature": 0.8, "top_k": 50, "top_p": 0.9}
FILTERS = [getattr(decoding, name)(value) for name, value in SAMPLING.items()]


def results() -> list[Result]:
    """Compare a small and a middling model, alone and in batches.

    Returns:
        One result for each line of the table.
    """
    torch.manual_seed(0)
    small = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=4_096, hidden_size=256, num_hidden_layers=8, num_attention_heads=4,
            intermediate_size=688, max_position_embeddings=512, tie_word_embeddings=True, **NO_IDS,
        )
    )  # fmt: skip
    gpt2 = GPT2LMHeadModel(GPT2Config(**NO_IDS))
    found = []
    for kind, theirs, turns_alone, turns_in_batches in (("Llama", small, 16, 8), ("GPT-2", gpt2, 4, 3)):
        for batch_size, turns in ((1, turns_alone), (8, turns_in_batches)):
            comparison = Comparison(kind, theirs.eval(), batch_size, turns)
            found += comparison.greedy()
            if theirs is small:
                found += comparison.other_methods()
        found += Comparison(kind, theirs, 1, turns_alone).limits_alone()
    return found


class Comparison:
    """One model with one batch of prompts.

    Args:
        kind: of the model, as a line of the table calls it.
        theirs: the library's model. Ours gets its weights.
        batch_size: prompts.
        turns: how often each way is measured.
    """

    def __init__(self, kind: str, theirs: PreTrainedModel, batch_size: int, turns: int) -> None:
        self.theirs, self.turns, self.batch_size = theirs, turns, batch_size
        millions = sum(parameter.numel() for parameter in theirs.parameters()) / 1e6
        self.what = (
            f"{millions:.0f} M parameters of {kind}'s kind, batch of {batch_size}: {NEW_TOKENS} tokens"
        )
        self.ours = from_library(theirs.config, theirs.state_dict())
        self.ids = torch.randint(1, theirs.config.vocab_size, (batch_size, PROMPT))

    def greedy(self) -> list[Result]:
        """Compare the whole of both sides, and our loop on the library's model."""
        what = f"greedy search, {self.what}"
        ours = self._ours(decoding.greedy)
        in_our_loop = self._ours(decoding.greedy, self.theirs)
        generate = self._generate()
        same(ours(), generate())
        same(in_our_loop(), generate())
        return [
            self._in_turns(what, ours, LIBRARY, generate),
            self._in_turns(what, ours, "its matrix products alone (a limit)", self._products_alone()),
            self._in_turns(f"{what}, the library's model in our loop", in_our_loop, LIBRARY, generate),
        ]

    def other_methods(self) -> list[Result]:
        """Compare beam search and sampling."""
        beams, their_beams = self._ours(decoding.beam_search, num_beams=5), self._generate(num_beams=5)
        same([best for (best,) in beams()], their_beams())
        draw = self._ours(decoding.sample, filters=FILTERS, generator=torch.default_generator)
        their_draw = self._generate(do_sample=True, **SAMPLING)
        drawn = []
        for way in (draw, their_draw):
            torch.manual_seed(1)
            drawn.append(way())
        same(*drawn)
        settings = ", ".join(f"{name} {value}" for name, value in SAMPLING.items())
        return [
            self._in_turns(f"beam search, 5 beams, {self.what}", beams, LIBRARY, their_beams),
            self._in_turns(f"sampling ({settings}), {self.what}", draw, LIBRARY, their_draw),
        ]

    def limits_alone(self) -> list[Result]:
        """Compare one text with what reading the weights takes, and with reading all of the text again."""
        what = f"greedy search, {self.what}"
        ours = self._ours(decoding.greedy)
        same(ours(), self._without_cache())
        size = sum(module.weight.numel() for module in self._products())
        columns = 1024
        matrix, vector = torch.randn(size // columns, columns), torch.randn(columns)

        @torch.inference_mode()
        def read() -> None:
            for _ in range(NEW_TOKENS):
                matrix @ vector

        megabytes = 4 * size / 1e6
        limit = f"reading its {megabytes:.0f} MB of matrices once a token: one matrix as large (a limit)"
        return [
            self._in_turns(what, ours, limit, read),
            self._in_turns(what, ours, "the same model without a cache", self._without_cache),
        ]

    def _in_turns(self, what: str, ours: Callable, name: str, theirs: Callable) -> Result:
        print(f"{what} / {name}", file=sys.stderr, flush=True)
        return taking_turns(what, ours, name, theirs, self.turns)

    def _ours(self, method: Callable, model: nn.Module | None = None, **options: object) -> Callable:
        return lambda: method(model or self.ours, self.ids, max_new_tokens=NEW_TOKENS, **options)

    def _generate(self, **options: object) -> Callable[[], torch.Tensor]:
        given = {"attention_mask": torch.ones_like(self.ids), "do_sample": False, **options}
        return lambda: self.theirs.generate(self.ids, max_new_tokens=NEW_TOKENS, **given)[:, PROMPT:]

    def _products(self) -> list[nn.Linear]:
        return [module for module in self.ours.modules() if isinstance(module, nn.Linear)]

    def _products_alone(self) -> Callable[[], None]:
        products = self._products()
        inputs = [torch.randn(self.batch_size, 1, module.in_features) for module in products]

        @torch.inference_mode()
        def multiply() -> None:
            for _ in range(NEW_TOKENS):
                for module, states in zip(products, inputs, strict=True):
                    module(states)

        return multiply

    @torch.inference_mode()
    def _without_cache(self) -> torch.Tensor:
        ids = self.ids
        for _ in range(NEW_TOKENS):
            best = self.ours(ids, None)[:, -1:].argmax(dim=-1)
            ids = torch.cat([ids, best], dim=1)
        return ids[:, PROMPT:]


def same(ours: Sequence[Continuation], theirs: torch.Tensor | Sequence[Continuation]) -> None:
    """Make sure that a time is that of the right tokens."""
    tokens = theirs.tolist() if isinstance(theirs, torch.Tensor) else [list(one.ids) for one in theirs]
    assert [list(one.ids) for one in ours] == tokens
