"""Sentences against a list made by hand: where "|" stands, and nowhere else, a sentence ends."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chapters_src.tokenization.sentences import split_sentences

CASES = """
One sentence without a stop
One sentence.
It rains.| It pours.
Does it rain?| Yes!| It does.
The U.S. economy grew.| So did others.
He lives in the U.S.| She does not.
It is used in the U.S. and in the U.K. as well.
The U.S. Army bought it from the U.S. Navy.
He was born in the U.S.| The year is unknown.
Use a list, e.g. Python's own.| Tuples work, too.
Large numbers, i.e. Those above 100, are cut.
See Fig. 3 for details.| It is on page 7.
See Figs. 3 and 4, Eq. 5 and Sec. 2.1 of the paper.
Changed in v1.2.| Earlier versions raise an error.
Changed in version 1.2.| Earlier versions raise an error.
The value is 3.14 in all cases.| It never changes.
The loss fell to 0.5.| Then it rose.
The values lie between 0. and 1. on each axis.
The default is 1.| Zero means none.
Dr. Smith met Prof. Jones.| They talked.
Mr. and Mrs. Brown live on St. James Street.
J. R. R. Tolkien wrote it.| C. S. Lewis read it.
The method of D. E. Knuth is older.
Choose plan B.| It is cheaper.
Vitamin C.| The others are missing.
This is what I do.| So do I.| He does not.
"It works."| She smiled.
"Does it work?" he asked.
He said, "It works."| Then he left.
“It works.”| She smiled.
‘Really?’| Nobody knew.
She asked "Why?" and left.
(This is an aside.)| The text goes on.
The text has an aside (it is short).| It goes on.
The text (see Fig. 2) goes on.| It ends here.
Tools (hammers, nails, etc.) Are not included here.
Tools such as hammers, nails, etc.| They are not included.
Hammers, nails, etc. are not included.
Vaswani et al. (2017) built it.| Others followed.
It was built by Vaswani et al.| The code is public.
It was built by Vaswani et al. in 2017.
Wait... what is this?
Wait...| What is this?
Wait…| What is this?
The numbers 1, 2, ... N are drawn.
Take x_1, ..., x_n as they are.| Add them up.
Use np.sum.| It is faster.
Call sklearn.svm.SVC.| Its kernel can be chosen.
Call fit().| Then call predict().
Sums are fast.| np.sum adds up all axes.
Jobs run in parallel.| n_jobs says how many.
Nothing is returned.| fit() changes the model in place.
The name ends in .py. and nothing else.
It costs $3.50.| That is little.
Open http://example.org/a.html now.| It is short.
Python 3.11 is needed.| Python 3.10 is too old.
Give it 5.| 3 of them are used.
It starts at 9 a.m. on Monday.
It starts at 9 a.m.| The end is open.
She has a Ph.D. in physics.
She has a Ph.D.| He has none.
See No. 5 in the list.
No.| That is wrong.
See pp. 5-9 and p. 12, vol. 3, ch. 4.
On Jan. 5 it snowed.| On Feb. 7 it melted.
Apple Inc. and Google vs. Microsoft Corp. in court.
It was sold to Apple Inc.| Nobody complained.
What?!| No!!| Never.
Really?| Really.
1. Tokenize the text.
1. Tokenize the text.| 2. Train the model.
a. First this.
Version 2.0.1 fixes it.| Upgrade.
It ends with a colon: This goes on.
Cut at length n.| Otherwise pad.
Cut at w.r.t. The order of axes.
The ratio a vs. B is reported.
The array is [1. 2. 3.] by default.
Values lie in [0, 1).| The end is left out.
The equation is eq.| The parameters are known.
The ratio depends on comm N.| We count it.
It is used by the backend.| pyplot keeps track of it.
It is smooth.| density is the number of lines.
See Ref. [3] or Eq. (4) or Sec. IV for more.
It was 5 p.m.| The shop was closed.
Missing values are np.nan.| Assign zeros instead.
Take two arguments A and B.| Returns their product.
The LOGLEVEL env. variable is read.
Viewing vs. Copying is a question of speed.
Let D be a graph and L its line graph.| Now add an edge to L.| Finally remove D.
Sum of squares.| Mean of squares.| Neither is robust.
Tom's cat.| Ana's dog.
It costs approx. 5 dollars.
Use it as is.| (It is not checked.)| See below.
Use it as is.| [It is not checked.]
Éva came.| Ágnes left.
It was naïve.| Über alles stand der Preis.
"""
CASES = CASES.strip().split("\n")
# What the rules get wrong, so that nobody takes them for perfect; a better rule moves a line up.
KNOWN_ERRORS = """
He moved to Washington D.C.| Ana stayed.
The result (a float.) Is returned.
It takes x.| y is optional.
The axes are called a. Then b. Then c.
Yahoo! Finance was the source.
She works for No. Ten.| He is at No.| 5 people know.
"""
KNOWN_ERRORS = KNOWN_ERRORS.strip().split("\n")


@pytest.mark.parametrize("case", CASES)
def test_cases(case):
    expected = case.split("| ")
    assert split_sentences(" ".join(expected)) == expected


@pytest.mark.parametrize("case", KNOWN_ERRORS)
def test_known_errors(case):
    expected = case.split("| ")
    assert split_sentences(" ".join(expected)) != expected


def test_blank_lines_end_sentences_and_other_white_space_is_one_space():
    text = "A title\n\nOne sentence\n  on two lines. Another\tone.\n \nThe last"
    assert split_sentences(text) == ["A title", "One sentence on two lines.", "Another one.", "The last"]
    assert split_sentences("") == split_sentences(" \n\n ") == []


@given(
    st.lists(
        st.sampled_from(
            ["A", "b", "U.S.", "e.g.", "3.5", "1.", '"', "(", ")", ".", "...", "?", "\n", " ", "É"]
        )
    )
)
def test_nothing_is_lost(parts):
    text = "".join(parts)
    sentences = split_sentences(text)
    assert " ".join(sentences) == " ".join(text.split())
    assert all(sentence == sentence.strip() != "" for sentence in sentences)


def test_long_texts_take_linear_time():
    once = "The U.S. economy grew (by 3.5 percent, e.g. in steel). Others did not. "
    start = time.process_time()
    assert len(split_sentences(once * 5000)) == 10_000
    assert time.process_time() - start < 2
