"""Pretrained weights of the Transformers library, poured into our own modules.

Six kinds of model: BERT's and DistilBERT's become our `Encoder`, GPT-2's and Llama's our `LanguageModel`,
BART's and Marian's our `EncoderDecoder`. `names` is the table that says where the library keeps each part of
ours, `shapes` makes the model of ours that a configuration of the library describes, `pouring` copies the
weights and sees that none is left over and that nothing of ours keeps its random start, and `folders` reads
files. Chapter 08 pours and compares; chapters 13 and 14 use it.
"""

from chapters_src.pretrained.folders import from_folder
from chapters_src.pretrained.names import LEFT_OUT, NAMES
from chapters_src.pretrained.pouring import from_library

__all__ = ["LEFT_OUT", "NAMES", "from_folder", "from_library"]
