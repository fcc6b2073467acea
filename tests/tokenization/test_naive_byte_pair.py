"""The slow way of the benchmark learns what the fast way learns, or their times could not be compared."""

from collections import Counter

from benchmarks.naive_byte_pair import learn_merges_naively
from chapters_src.tokenization import BytePairTokenizer
from chapters_src.tokenization.byte_pair import BYTE_OF, learn_merges, spell


def test_the_naive_way_learns_the_same_merges(corpus):
    words = Counter(spell(word) for text in corpus[:20] for word in BytePairTokenizer.words(text))
    start = {character: number for number, character in enumerate(sorted(BYTE_OF))}
    merges = learn_merges_naively(words, start, 350)
    assert len(merges) == 350 - 256
    assert learn_merges(words, start, 350)[1] == merges


def test_the_naive_way_stops_when_no_pair_is_left():
    assert learn_merges_naively({"aaa": 1}, {"a": 0}, 9) == [("a", "a"), ("aa", "a")]
