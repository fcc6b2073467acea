"""Greedy decoding with our modules against `generate()`, with the same weights and the same tokens.

And against a limit: the matrix products of as many steps, and nothing else.
"""

import sys

import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, PreTrainedModel

from benchmarks.measure import Result, taking_turns
from chapters_src.pretrained import from_library
from chapters_src.transformer import LanguageModel, start_decoding

PROMPT, NEW_TOKENS = 16, 48
NO_IDS = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": 0}


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
    return [
        *decoding("Llama's kind", small, 1, 16),
        *decoding("Llama's kind", small, 8, 8),
        *decoding("GPT-2's kind", gpt2, 1, 4),
        *decoding("GPT-2's kind", gpt2, 8, 3),
    ]


def decoding(kind: str, theirs: PreTrainedModel, batch_size: int, turns: int) -> list[Result]:
    """Compare greedy decoding of one batch."""
    millions = sum(parameter.numel() for parameter in theirs.parameters()) / 1e6
    what = (
        f"greedy decoding, {millions:.0f} M parameters of {kind}, batch of {batch_size}: {NEW_TOKENS} tokens"
    )
    print(what, file=sys.stderr, flush=True)
    ours = from_library(theirs.config, theirs.eval().state_dict())
    ids = torch.randint(1, theirs.config.vocab_size, (batch_size, PROMPT))
    options = {"attention_mask": torch.ones_like(ids), "do_sample": False, "max_new_tokens": NEW_TOKENS}

    def generate() -> torch.Tensor:
        return theirs.generate(ids, **options)

    products = [module for module in ours.modules() if isinstance(module, torch.nn.Linear)]
    inputs = [torch.randn(batch_size, 1, module.in_features) for module in products]

    @torch.inference_mode()
    def products_alone() -> None:
        for _ in range(NEW_TOKENS):
            for module, states in zip(products, inputs, strict=True):
                module(states)

    assert torch.equal(greedy(ours, ids), generate())
    return [
        taking_turns(
            what, lambda: greedy(ours, ids), "the Transformers library's `generate()`", generate, turns
        ),
        taking_turns(
            what, lambda: greedy(ours, ids), "its matrix products alone (a limit)", products_alone, turns
        ),
    ]


@torch.inference_mode()
def greedy(model: LanguageModel, ids: torch.Tensor) -> torch.Tensor:
    """Continue a batch of prompts without padding by the most probable tokens."""
    state = start_decoding(model, ids, None, max_new_tokens=NEW_TOKENS)
    new = [state.next_logits.argmax(dim=-1)]
    while len(new) < NEW_TOKENS:
        new.append(state.step(new[-1]).argmax(dim=-1))
    return torch.cat([ids, torch.stack(new, dim=1)], dim=1)
