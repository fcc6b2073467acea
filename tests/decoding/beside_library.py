"""The same prompts for our functions and for `generate()`, and its answers in our form."""

import random

import torch
from library_models import END, PADDING, START, TRANSLATORS, VOCAB_SIZE
from torch.nn.utils.rnn import pad_sequence

from chapters_src.pretrained import from_library

NEW_TOKENS = 12


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def converted(theirs):
    """Our model with the weights of theirs."""
    return from_library(theirs.config, theirs.state_dict()).to(next(theirs.parameters()).dtype)


def converted_if(wanted, theirs):
    return converted(theirs) if wanted else theirs


def random_prompts(seed, lengths=(9, 1, 6, 4)):
    draw = random.Random(seed)
    return [[draw.randrange(4, VOCAB_SIZE) for _ in range(length)] for length in lengths]


def is_translator(kind):
    return kind in TRANSLATORS


def targets(kind):
    """What our functions need besides, for an encoder-decoder."""
    return {"target_ids": [START]} if is_translator(kind) else {}


def padded(kind, prompts, padding_id=PADDING):
    """Prompts padded on the left, sources on the right: ids and attention mask."""
    side = "right" if is_translator(kind) else "left"
    ids = pad_sequence([torch.tensor(row) for row in prompts], True, padding_id, side)
    ones = [torch.ones(len(row), dtype=torch.long) for row in prompts]
    return ids, pad_sequence(ones, True, 0, side)


def new_ids(row, end_ids=(END,)):
    """One row of `generate()` without what follows its end."""
    end = next((place for place, token in enumerate(row) if token in end_ids), len(row) - 1)
    return tuple(row[: end + 1])


def generate(model, kind, prompts, **options):
    """What `generate()` writes, new tokens only: one list for each row, padding still there."""
    ids, attention_mask = padded(kind, prompts, options.get("pad_token_id", PADDING))
    options = {"do_sample": False, "max_new_tokens": NEW_TOKENS} | options
    rows = model.generate(ids, attention_mask=attention_mask, **options)
    return rows[:, 1 if is_translator(kind) else ids.size(1) :].tolist()
