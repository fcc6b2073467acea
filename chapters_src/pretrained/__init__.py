"""Checkpoints: the Transformers library's weights in our modules, ours saved, loaded and exported.

Six kinds of the library's models are known: BERT and DistilBERT become our `Encoder`, GPT-2 and Llama our
`LanguageModel`, BART and Marian our `EncoderDecoder`. `names` is the table of where the library keeps what
our modules keep, `configurations` turns one side's configuration into the other's, `conversion` copies the
weights and makes sure that none is left over and that nothing keeps its random start, and `folders` reads
and writes files. `on_encoder` puts a new decoder on a pretrained encoder, and keeps only what was trained.
Chapter 08 converts and compares; chapters 12, 13 and 14 use it.
"""

from chapters_src.pretrained.conversion import from_library, to_library
from chapters_src.pretrained.folders import export, load, save
from chapters_src.pretrained.names import LEFT_OUT, NAMES
from chapters_src.pretrained.on_encoder import load_on_encoder, on_encoder, save_on_encoder

__all__ = [
    "LEFT_OUT",
    "NAMES",
    "export",
    "from_library",
    "load",
    "load_on_encoder",
    "on_encoder",
    "save",
    "save_on_encoder",
    "to_library",
]
