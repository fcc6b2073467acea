"""Word vectors: counted, factorized, trained, saved, and put into a network (chapter 02).

`corpus` counts words, `counting` counts co-occurrences and turns them into vectors, `training` is word2vec
(skip-gram and CBOW with negative sampling), `vectors` finds neighbors and analogies, and `files` reads and
writes the text formats of word2vec and GloVe.

Shapes: N words of running text, V words in the vocabulary, D numbers per vector.
"""

from chapters_src.word_vectors.corpus import Corpus, coverage, read_corpus
from chapters_src.word_vectors.counting import cooccurrence, ppmi, svd_vectors
from chapters_src.word_vectors.files import VectorFileError, each_vector, read_vectors, write_vectors
from chapters_src.word_vectors.training import keep_probability, negative_sampling, noise, train
from chapters_src.word_vectors.vectors import WordVectors, embedding_matrix
