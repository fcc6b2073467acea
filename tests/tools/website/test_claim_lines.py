"""Claims among what a cell printed become sentences; all else stays as it was."""

from website import claim_lines

OPENING = '<div class="output stream highlight-myst-ansi notranslate"><div class="highlight"><pre>'
CLOSING = "</pre></div>\n</div>"


def printed(text: str) -> str:
    return f"<p>before</p>{OPENING}<span></span>{text}{CLOSING}<p>✓ after</p>"


def test_what_is_no_claim_stays():
    page = printed("17\nthis ✓ is no claim, and ✗ neither\n✗ nor this\n")
    assert claim_lines.as_sentences(page) == page


def test_a_claim_becomes_a_paragraph_in_its_place():
    page = claim_lines.as_sentences(
        printed("one\n✓ a &lt; b\n✗ here it came out otherwise (time): c\n\ntwo\n")
    )
    one, claims, two = (
        page.index("one\n</pre>"),
        page.index('<div class="output claims">'),
        page.index("two\n</pre>"),
    )
    assert one < claims < two
    assert '<p class="claim"><span class="claim-mark">✓</span> <span>a &lt; b</span></p>' in page
    assert '<p class="claim otherwise"><span class="claim-mark">✗</span> <span>here it' in page
    assert page.startswith("<p>before</p>") and page.endswith("<p>✓ after</p>")
    assert page.count(OPENING) == page.count(CLOSING) == 2


def test_claims_alone_leave_no_empty_box():
    page = claim_lines.as_sentences(printed("✓ a\n✓ b\n"))
    assert OPENING not in page and page.count('class="claim"') == 2
