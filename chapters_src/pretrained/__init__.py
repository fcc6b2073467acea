"""Checkpoints: the library's weights in our models, and our models saved, loaded and exported.

Eight model types of the Transformers library are supported: BERT and DistilBERT become our `Encoder`, GPT-2,
Llama, Qwen 3 (dense) and Gemma 3 (text) our `LanguageModel`, BART and Marian our `EncoderDecoder`. `names`
maps our parameter names to the library's, `configurations` converts configurations, `conversion` copies the
weights and checks that none is missing or left over, and `folders` reads and writes files. `on_encoder` adds
a new decoder to a pretrained encoder, and saves only what was trained; `low_rank` adds updates to a language
model. Chapter 08 converts and compares; chapters 12, 13, 14 and 16 use it.
"""

from chapters_src.pretrained.conversion import from_library, to_library
from chapters_src.pretrained.folders import export, load, save
from chapters_src.pretrained.low_rank import (
    LowRankLinear,
    add_low_rank,
    load_low_rank,
    merge_low_rank,
    save_low_rank,
    without_low_rank,
)
from chapters_src.pretrained.names import LEFT_OUT, NAMES
from chapters_src.pretrained.on_encoder import load_on_encoder, on_encoder, save_on_encoder
