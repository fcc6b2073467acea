"""The transformer in parts: layers, encoder, decoder, encoder-decoder and the heads on top.

`configuration` says what can be chosen, `embedding` and `layers` hold the parts, `bodies` stacks them and
`heads` makes predictions of what a body gives. Chapter 08 takes it apart; chapters 09, 10, 12, 13 and 14
train it and decode with it.
"""

from chapters_src.transformer.bodies import Cache, Decoder, Encoder, EncoderDecoder, LanguageModel, Memory
from chapters_src.transformer.configuration import Config
from chapters_src.transformer.embedding import Embedding, sinusoidal_positions
from chapters_src.transformer.heads import (
    ClassificationHead,
    LanguageModelHead,
    SpanHead,
    TokenClassificationHead,
)
from chapters_src.transformer.layers import DecoderLayer, EncoderLayer, FeedForward

__all__ = [
    "Cache",
    "ClassificationHead",
    "Config",
    "Decoder",
    "DecoderLayer",
    "Embedding",
    "Encoder",
    "EncoderDecoder",
    "EncoderLayer",
    "FeedForward",
    "LanguageModel",
    "LanguageModelHead",
    "Memory",
    "SpanHead",
    "TokenClassificationHead",
    "sinusoidal_positions",
]
