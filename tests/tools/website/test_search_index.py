"""What the search knows of a page: its sections, their prose, and the names in their code."""

import json

from website import search_index

PAGE = '''<html><body><nav><section id="nav"><h1>Not this</h1></section></nav><article>
<section class="tex2jax_ignore" id="decoding">
<h1>13 Decoding<a class="headerlink" href="#decoding">#</a></h1>
<p>Words &amp; <em>pro</em>babilities.<br>Next line.</p>
<section id="beam-search"><h2>Beam <code>search</code><a class="headerlink" href="#x">#</a></h2>
<p>Keeps <span class="math"><mjx-container><mjx-math><mjx-c></mjx-c></mjx-math><mjx-assistive-mml><math>
<mi>B</mi></math></mjx-assistive-mml></mjx-container></span> hypotheses.</p>
<div class="cell"><div class="cell_input"><div class="highlight-ipython3"><div class="highlight"><pre>
<span class="k">def</span> <span class="nf">beam_search</span>(num_beams): return BytePair(num_beams)
</pre></div></div></div>
<div class="cell_output"><div class="output stream highlight"><div class="highlight"><pre>printed 17 times
</pre></div></div><div class="output claims"><p class="claim"><span class="claim-mark">✓</span>
<span>four beams beat one</span></p></div>
<figure><img alt="hidden"><figcaption><p>Fig. 1 A tree.</p></figcaption></figure>
<script>let attn = 1</script></div></div>
<section id="deeper"><h3>Deeper</h3><p>Own text.</p><p>→ Chapter 08: There. Also in 09.</p></section>
<p>After all.</p>
<section id="five-questions"><h3>Five questions</h3><p>An option that is wrong.</p></section>
<details class="fold"><summary>Plot: a curve</summary><p>Folded.</p></details></section>
<div class="highlight"><pre><span class="linenos">1</span><span class="sd">"""A</span>
<span class="linenos">2</span><span class="sd">docstring."""</span>
<span class="n">answer</span></pre></div>
</section></article></body></html>'''


def test_the_sections_of_a_page():
    first, beam, deeper = search_index.sections_of(PAGE)
    assert (first.anchor, first.title) == ("", "13 Decoding")
    assert first.text == "Words & probabilities. Next line. A docstring."
    assert first.code == "answer"
    assert (beam.anchor, beam.title) == ("beam-search", "Beam search")
    assert beam.text == "Keeps B hypotheses. four beams beat one. Fig. 1 A tree. After all. Folded."
    assert beam.code == "beam_search num_beams BytePair Byte Pair"
    assert (deeper.anchor, deeper.text) == ("deeper", "Own text.")


def test_the_index_is_a_script_that_tells_chapters_from_listings(tmp_path):
    for name in ("notebooks/13.html", "source/decoding.html", "search.html", "_static/x.html"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(PAGE, encoding="utf-8")
    search_index.write_index(tmp_path)
    script = (tmp_path / search_index.INDEX).read_text(encoding="utf-8")
    index = json.loads(script.removeprefix("window.bookIndex = ").removesuffix(";\n"))
    assert [(page, later) for page, _, later in index["pages"]] == [
        ("notebooks/13.html", 0),
        ("source/decoding.html", 1),
    ]
    assert [(page, anchor) for page, anchor, *_ in index["sections"]] == [
        (page, anchor) for page in (0, 1) for anchor in ("", "beam-search", "deeper")
    ]
    assert ["RoPE", "rotary"] in index["synonyms"]


def test_a_table_of_synonyms():
    table = """# Names

BPE = byte-pair encoding
FFN = MLP = feed-forward
# German words -> English ones
Wortschatz = Vokabular -> vocabulary
"""
    assert search_index.synonyms(table) == [["BPE", "byte-pair encoding"], ["FFN", "MLP", "feed-forward"]]
    assert search_index.german(table) == [["Wortschatz", "vocabulary"], ["Vokabular", "vocabulary"]]
