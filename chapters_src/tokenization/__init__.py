"""Tokenizers from scratch: characters, words, byte-pair encoding, WordPiece and Unigram (chapter 03).

All five have the same interface: `train` on texts, then `tokenize`, `encode`, `decode`, `save` and `load`.
`sentences` splits a text into sentences (chapter 14).
"""

from chapters_src.tokenization.byte_pair import BytePairTokenizer
from chapters_src.tokenization.characters import CharacterTokenizer
from chapters_src.tokenization.unigram import UnigramTokenizer
from chapters_src.tokenization.wordpiece import WordPieceTokenizer
from chapters_src.tokenization.words import WordTokenizer
