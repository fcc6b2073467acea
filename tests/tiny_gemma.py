"""A narrow Gemma with random weights, in the library's form, and its tokenizer."""

import functools
import tempfile
from pathlib import Path

from loopback_hub import make_gemma
from transformers import AutoTokenizer

from chapters_src.pretrained import load


@functools.cache
def folder():
    """Its folder, made once in each process."""
    place = Path(tempfile.mkdtemp()) / "gemma"
    place.mkdir()
    return make_gemma(place)


def model():
    """A new copy in our modules."""
    return load(folder()).eval()


@functools.cache
def tokenizer():
    return AutoTokenizer.from_pretrained(folder())
