"""The extract against known facts, and what makes such extracts on a database that NLTK reads."""

import pytest

from chapters_src import resources
from chapters_src.data import wordnet


@pytest.fixture(scope="module")
def extract():
    return wordnet.read()


def test_the_senses_of_good(extract):
    """Four nouns, 21 adjectives, two adverbs: as WordNet 3.0 counts them."""
    parts = [sense.part_of_speech for sense in extract.of("good")]
    assert parts == ["noun"] * 4 + ["adjective"] * 21 + ["adverb"] * 2
    assert extract.of("good")[0].definition == "benefit"


def test_the_chain_above_panda(extract):
    assert extract.senses["panda"] == ("giant_panda.n.01", "lesser_panda.n.01")
    (chain,) = extract.chains("giant_panda.n.01")
    above = "entity physical_entity object whole living_thing organism animal chordate vertebrate mammal"
    above += " placental carnivore procyonid giant_panda"
    assert [name.split(".")[0] for name in chain] == above.split()


def test_every_noun_leads_to_the_top(extract):
    for name, synset in extract.synsets.items():
        assert name == synset.name and synset.words and synset.definition
        for chain in extract.chains(name):
            assert chain[-1] == name
            assert synset.part_of_speech != "noun" or chain[0] == "entity.n.01"


def test_each_word_has_its_senses_and_nothing_is_there_for_no_reason(extract):
    assert tuple(extract.senses) == wordnet.WORDS
    for word in wordnet.WORDS:
        assert all(word in map(str.lower, sense.words) for sense in extract.of(word))
    needed = {
        name
        for names in extract.senses.values()
        for sense in names
        for c in extract.chains(sense)
        for name in c
    }
    assert needed == set(extract.synsets)


def test_some_of_the_words(extract):
    pandas = wordnet.read(["panda"])
    assert pandas.chains("giant_panda.n.01") == extract.chains("giant_panda.n.01")
    assert set(pandas.synsets) < set(extract.synsets)
    with pytest.raises(KeyError, match="'fly' is not one of the loaded words: panda"):
        pandas.of("fly")
    with pytest.raises(KeyError, match=r"'fly\.n\.01' is not one of the 15"):
        pandas.chains("fly.n.01")
    with pytest.raises(TypeError, match=r"\('panda',\)"):
        wordnet.read("panda")


DATABASE = {  # Lines of data.noun and data.verb, without their offsets; a pointer names the line above it.
    "noun": [
        ("03", ["entity"], [], "that which is"),
        ("05", ["animal", "beast"], ["entity"], 'a living thing; "a wild beast"'),
        ("05", ["fly"], ["animal"], "an insect"),
        ("06", ["tent-fly", "fly"], ["entity"], "the flap of a tent"),
        ("05", ["sea_cow"], ["animal"], "lives in water"),
    ],
    "verb": [("38", ["fly", "wing"], [], "travel through the air")],
}


@pytest.fixture
def nltk_wordnet(tmp_path, monkeypatch):
    """A small database in WordNet's own format, where NLTK looks for it."""
    nltk = pytest.importorskip("nltk")
    from nltk.corpus.reader import WordNetCorpusReader

    folder = tmp_path / "corpora" / "wordnet"
    folder.mkdir(parents=True)
    for part in ("adj", "adv", "noun", "verb"):
        letter, lines = part[0] if part != "adv" else "r", DATABASE.get(part, [])
        data = "  1 WordNet 3.0 Copyright\n"
        offsets = {}
        for file, words, above, gloss in lines:
            offsets[words[0]] = len(data)
            pointers = "".join(f"@ {offsets[name]:08} {letter} 0000 " for name in above)
            names = " ".join(f"{word} 0" for word in words)
            frames = "01 + 02 00 " if part == "verb" else ""
            data += f"{len(data):08} {file} {letter} {len(words):02x} {names} {len(above):03} {pointers}"
            data += f"{frames}| {gloss}\n"
        senses = {}
        for _, words, *_ in lines:
            for word in words:
                senses.setdefault(word, []).append(f"{offsets[words[0]]:08}")
        index = "".join(
            f"{w} {letter} {len(o)} 0 {len(o)} 0 {' '.join(o)}\n" for w, o in sorted(senses.items())
        )
        (folder / f"data.{part}").write_text(data)
        (folder / f"index.{part}").write_text(index)
        (folder / f"{part}.exc").write_text("flies fly\n" if part == "noun" else "")
    for name in ("index.sense", "cntlist.rev"):
        (folder / name).write_text("")
    (folder / "lexnames").write_text("".join(f"{i:02}\tname{i}\t1\n" for i in range(45)))
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
    with pytest.warns(UserWarning, match="multilingual"):
        reader = WordNetCorpusReader(nltk.data.find("corpora/wordnet"), None)
    monkeypatch.setattr("nltk.corpus.wordnet", reader)


def test_other_words_are_looked_up_with_nltk(nltk_wordnet):
    found = wordnet.read(["fly", "sea_cow"])
    assert found.senses == {"fly": ("fly.n.01", "tent-fly.n.01", "fly.v.01"), "sea_cow": ("sea_cow.n.01",)}
    assert found.synsets["animal.n.01"] == wordnet.Synset(
        "animal.n.01", ("animal", "beast"), ("entity.n.01",), "a living thing"
    )
    assert found.synsets["sea_cow.n.01"].words == ("sea cow",)
    assert set(found.synsets) == {name for names in found.senses.values() for name in names} | {
        "animal.n.01",
        "entity.n.01",
    }


def test_what_is_written_is_read_again(nltk_wordnet, tmp_path, monkeypatch):
    found = wordnet.read(["fly", "sea_cow"])
    wordnet.write(found, tmp_path)
    monkeypatch.setattr(wordnet, "FOLDER", tmp_path)
    monkeypatch.setattr(wordnet, "WORDS", ("fly", "sea_cow"))
    monkeypatch.setattr("nltk.corpus.wordnet", None)
    assert wordnet.read(["fly", "sea_cow"]) == found


def test_without_nltks_copy_the_message_says_how_to_get_it(monkeypatch):
    nltk = pytest.importorskip("nltk")
    monkeypatch.setattr(nltk.data, "path", [])
    with pytest.raises(
        resources.ResourceError, match=r"no senses of walrus\. It has: array, .*downloader wordnet"
    ):
        wordnet.read(["panda", "walrus"])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text.replace("\t", " ", 1), "line 1: 1 fields instead of word, synset"),
        (lambda text: text.replace("panda\tg", "panda g"), r"line \d+: 1 fields"),
        (lambda text: None, "is missing"),
    ],
)
def test_a_damaged_file_is_named_with_its_line(damage, message, tmp_path, monkeypatch):
    text = (wordnet.FOLDER / "senses.tsv").read_text(encoding="utf-8")
    if (damaged := damage(text)) is not None:
        (tmp_path / "senses.tsv").write_text(damaged, encoding="utf-8")
    monkeypatch.setattr(wordnet, "FOLDER", tmp_path)
    with pytest.raises(resources.ResourceError, match=rf"senses\.tsv.*{message}.*this book's repository"):
        wordnet.read()
