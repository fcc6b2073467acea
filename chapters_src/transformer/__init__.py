"""The transformer: layers, encoder, decoder, encoder-decoder, and the heads on top of them.

`configuration` defines what can be chosen, `embedding` and `layers` contain the parts, `models` assembles
them, `heads` and `pooling` turn hidden states into predictions, `decoding_state` generates text token by
token, and `vision` applies the layers to images. Chapter 08 builds the transformer; chapters 09, 10, 12, 13
and 14 train it and decode with it.
"""

from chapters_src.transformer.configuration import Config
from chapters_src.transformer.decoding_state import DecodingState, start_decoding
from chapters_src.transformer.embedding import Embedding, sinusoidal_positions
from chapters_src.transformer.heads import (
    ClassificationHead,
    LanguageModelHead,
    SpanHead,
    TokenClassificationHead,
)
from chapters_src.transformer.layers import FeedForward, TransformerLayer, TransformerStack
from chapters_src.transformer.models import Decoder, Encoder, EncoderDecoder, LanguageModel, Memory
from chapters_src.transformer.pooling import mean_pool
from chapters_src.transformer.vision import PatchEmbedding, VisionTransformer, patches

__all__ = [
    "ClassificationHead",
    "Config",
    "Decoder",
    "DecodingState",
    "Embedding",
    "Encoder",
    "EncoderDecoder",
    "FeedForward",
    "LanguageModel",
    "LanguageModelHead",
    "Memory",
    "PatchEmbedding",
    "SpanHead",
    "TokenClassificationHead",
    "TransformerLayer",
    "TransformerStack",
    "VisionTransformer",
    "mean_pool",
    "patches",
    "sinusoidal_positions",
    "start_decoding",
]
