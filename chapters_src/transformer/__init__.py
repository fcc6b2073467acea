"""The transformer: layers, encoder, decoder, encoder-decoder, and the heads on top of them.

`configuration` defines what can be chosen, `embedding` and `layers` contain the parts, `models` assembles
them, `heads` and `pooling` turn hidden states into predictions, and `vision` applies the layers to images.
Chapter 08 builds the transformer; chapters 09, 10, 12 and 14 train it, and `decoding` generates text with it.
"""

from chapters_src.transformer.configuration import Config
from chapters_src.transformer.embedding import Embedding, sinusoidal_positions
from chapters_src.transformer.heads import ClassificationHead, LanguageModelHead
from chapters_src.transformer.layers import FeedForward, Memory, TransformerLayer, TransformerStack
from chapters_src.transformer.models import Decoder, Encoder, EncoderDecoder, LanguageModel
from chapters_src.transformer.pooling import mean_pool
from chapters_src.transformer.vision import PatchEmbedding, VisionTransformer, patches
