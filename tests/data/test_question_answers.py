"""Questions and answers: the reader of their files, and the texts against their card."""

import re
from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from chapters_src import resources
from chapters_src.data import question_answers
from chapters_src.data.question_answers import KINDS, SPLITS, Question, kind
from chapters_src.evaluation import answer_scores
from chapters_src.tokenization.sentences import split_sentences

CARD = " ".join(Path(question_answers.__file__).with_suffix(".md").read_text(encoding="utf-8").split())
DOMAINS = {"bug", "release", "history", "schedule", "order", "travel", "nature", "life", "docs"}
BASELINES = (
    question_answers.first_capitals,
    question_answers.nearest_number,
    question_answers.likeliest_sentence,
    question_answers.by_kind,
)


def words_of(text):
    return set(text.split())


# Words with a capital in one split that stand in another one: days, months, titles, what any text may have.
NOT_INVENTED = words_of("""
    monday tuesday wednesday thursday thursdays friday saturday sunday january march april june august
    september october november may mr mrs ms sister linux windows pdf a e i two old data head home hall
    port mount forest garden row street settings bottom falls winter moth
""")
# Words outside of the encoder's 30,522, in two splits: rare forms, but no names.
RARE = words_of("""
    anew delete empties harbors thursdays creeps freezes mailing oat passwords soldering
""")
FUNCTION_WORDS = words_of("""
    a an and are at be been by can could did do does far few for from had has have how if in is it its
    long many may much must of old on one or that the their there this to was were what when where which
    who whom whose why with
""")


@pytest.fixture(scope="module")
def questions():
    return question_answers.questions()


@pytest.fixture(scope="module")
def unanswerable():
    return question_answers.unanswerable_questions()


@pytest.fixture(scope="module")
def everything(questions, unanswerable):
    return {split: questions[split] + unanswerable[split] for split in SPLITS}


def contexts(found):
    return {question.paragraph: question.context for question in found}


def words(text):
    return re.findall(r"\w+", text.lower())


def per_cent(share):
    return f"{100 * share:.0f}%"


# What the files hold --------------------------------------------------------------------------------------


def test_offsets_lead_to_whole_words(everything):
    for question in (question for split in SPLITS for question in everything[split]):
        context, start, end = question.context, question.start, question.end
        assert context[start:end] == question.answer
        around = context[start - 1 : start + 1] if start else "", context[end - 1 : end + 1]
        assert not question.answer or not any(re.fullmatch(r"\w\w", pair) for pair in around), question


def test_sizes_are_those_of_the_card(questions, unanswerable):
    sizes = {split: (len(contexts(questions[split])), len(questions[split])) for split in SPLITS}
    for split, (paragraphs, asked) in sizes.items():
        assert f"| {split} | {paragraphs} | {asked} | {len(unanswerable[split])} |" in CARD
    total = [sum(column) for column in zip(*sizes.values(), strict=True)]
    assert f"{total[0]} short paragraphs" in CARD and f"{total[1]} questions" in CARD
    assert total[0] >= 130 and total[1] >= 430 and sum(map(len, unanswerable.values())) == 40


def test_lengths(questions):
    lengths = [len(text.split()) for split in SPLITS for text in contexts(questions[split]).values()]
    assert min(lengths) >= 40 and max(lengths) <= 120
    assert f"{min(lengths)} to {max(lengths)} words, {np.median(lengths):.0f} in the middle" in CARD
    answers = [len(question.answer.split()) for split in SPLITS for question in questions[split]]
    assert min(answers) >= 1 and max(answers) <= 10
    assert f"{per_cent(np.mean(np.array(answers) <= 2))} of them have one or two words" in CARD


def test_every_split_has_every_domain_and_every_kind_of_question(questions, unanswerable):
    for split in SPLITS:
        assert {name.partition("-")[0] for name in contexts(questions[split])} == DOMAINS
        counts = Counter(kind(question.question) for question in questions[split])
        assert min(counts[each] for each in KINDS) >= 5, counts
        assert counts.most_common(1)[0][1] < 0.3 * len(questions[split])
        assert f"| {split} | {' | '.join(str(counts[each]) for each in KINDS)} |" in CARD
    assert all(kind(question.question) for split in SPLITS for question in unanswerable[split])


def test_no_question_comes_twice_and_none_is_a_template(everything):
    asked = [question.question for split in SPLITS for question in everything[split]]
    assert len(set(asked)) == len(asked)
    sets = [frozenset(words(question)) for question in asked]
    alike = [(a, b) for a, b in combinations(sets, 2) if len(a & b) > 0.75 * len(a | b)]
    assert len(alike) <= 0.01 * len(asked), alike
    openings = Counter(" ".join(words(question)[:3]) for question in asked)
    assert openings.most_common(1)[0][1] <= 0.03 * len(asked), openings.most_common(3)


def test_splits_share_no_run_of_eight_words(everything):
    def runs(split):
        texts = {text for question in everything[split] for text in (question.context, question.question)}
        return {tuple(w[i : i + 8]) for w in map(words, texts) for i in range(len(w) - 7)}

    for first, second in combinations(SPLITS, 2):
        assert not runs(first) & runs(second)


def test_splits_share_no_invented_name(everything):
    """Neither a word that has a capital within a sentence of one of them, nor one that is rare."""
    encoder = Path(resources.checkpoint("encoder"))
    common = set((encoder / "vocab.txt").read_text(encoding="utf-8").split("\n"))
    texts = {split: " ".join(f"{q.context} {q.question}" for q in everything[split]) for split in SPLITS}
    names = {s: {n.lower() for n in re.findall(r"(?<=[\w,;:] )[A-Z]\w*", text)} for s, text in texts.items()}
    used = {split: set(words(text)) for split, text in texts.items()}
    for first, second in combinations(SPLITS, 2):
        assert (names[first] & used[second] | names[second] & used[first]) <= NOT_INVENTED
        both = {word for word in used[first] & used[second] if not word.isdigit()}
        assert both - common <= RARE


# How hard they are ----------------------------------------------------------------------------------------


def content(text):
    """Words that mean something, cut to five letters so that forms of one word agree."""
    return {word[:5] for word in words(text) if word not in FUNCTION_WORDS}


def sentence_of(question):
    end = 0
    for sentence in split_sentences(question.context):
        start = question.context.index(sentence, end)
        end = start + len(sentence)
        if question.start < end:
            return sentence
    raise AssertionError(question)


def test_questions_are_in_other_words_than_the_sentence_that_answers_them(questions):
    for split in SPLITS:
        shares = np.array(
            [
                len(content(q.question) & content(sentence_of(q))) / max(len(content(q.question)), 1)
                for q in questions[split]
            ]
        )
        assert (shares == 0).mean() > 0.4 and (shares >= 2 / 3).mean() < 0.2
        row = (f"{shares.mean():.2f}", per_cent((shares == 0).mean()), per_cent((shares >= 2 / 3).mean()))
        assert f"| {split} | {' | '.join(row)} |" in CARD


def test_most_paragraphs_have_another_thing_of_the_kind_that_is_asked_for(questions):
    for split in SPLITS:
        for kinds, pattern in (
            ({"how many", "how much"}, question_answers._NUMBER),
            ({"who"}, re.compile(r"(?<=[\w,;:“\"(] )[A-Z][\w'-]+(?: [A-Z][\w'-]+)*")),
        ):
            others = [
                {found[0] for found in pattern.finditer(q.context) if found[0] not in q.answer}
                for q in questions[split]
                if kind(q.question) in kinds
            ]
            assert np.mean([len(found) > 0 for found in others]) >= 0.9


def test_baselines_score_what_the_card_says(questions):
    asked = questions["test"]
    counting = np.array([kind(question.question) == "how many" for question in asked])
    for baseline in BASELINES:
        predictions = [baseline(question.context, question.question) for question in asked]
        scores = answer_scores(predictions, [question.answer for question in asked])
        row = [*scores.mean(), *scores[counting].mean()]
        numbers = " | ".join(f"{100 * number:.1f}" for number in row)
        assert f"| `{baseline.__name__}` | {numbers} |" in CARD, (baseline.__name__, numbers)
        assert scores["f1"].mean() < 0.2


def test_the_likeliest_sentence_rarely_holds_the_answer(questions):
    """An upper bound for whatever looks for words of the question only."""
    hits = [
        question.answer in question_answers.likeliest_sentence(question.context, question.question)
        for question in questions["test"]
    ]
    assert f"in {per_cent(np.mean(hits))} of the test questions" in CARD


def test_the_card_says_who_wrote_them():
    assert "The paragraphs and questions are synthetic." in CARD and "A language model wrote them" in CARD


# The reader -----------------------------------------------------------------------------------------------

GOOD = (
    "# bug-one\nThe cat, aged 12, saw\nthe 12 mice of Ann.\n? Who owns mice?\n= Ann\n\n? How many?\n=2 12\n"
)


def write(folder, monkeypatch, train=GOOD, unanswerable="# bug-one\n! Why?\n"):
    for name, text in (
        ("train", train),
        ("validation", GOOD.replace("one", "two")),
        ("test", GOOD.replace("one", "three")),
        ("unanswerable", unanswerable),
    ):
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    monkeypatch.setattr(question_answers, "_FOLDER", folder)


def test_a_small_file(tmp_path, monkeypatch):
    write(tmp_path, monkeypatch)
    context = "The cat, aged 12, saw the 12 mice of Ann."
    assert question_answers.questions()["train"] == [
        Question("bug-one", context, "Who owns mice?", "Ann", 37, 40),
        Question("bug-one", context, "How many?", "12", 26, 28),
    ]
    assert question_answers.unanswerable_questions() == {
        "train": [Question("bug-one", context, "Why?", "", 0, 0)],
        "validation": [],
        "test": [],
    }


@pytest.mark.parametrize(
    ("old", "new", "line", "problem"),
    [
        ("= Ann", "= Anne", 5, "'Anne' is not in 'bug-one'; copy it"),
        ("= Ann", "= An", 5, "'An' is not in"),
        ("= Ann", "Ann", 5, "'Ann' is not an answer to 'Who owns mice\\?'; write"),
        ("=2 12", "= 12", 8, "'12' is in 'bug-one' 2 times; say which"),
        ("=2 12", "=3 12", 8, "no occurrence 3 of '12' in 'bug-one'; the last is 2"),
        ("=2 12", "=0 12", 8, "no occurrence 0 of"),
        ("=2 12\n", "", 7, "the last question, 'How many\\?', has no answer"),
        ("How many?", "How many", 7, "does not end in a question mark"),
        ("? How many?\n=2 12", "How many there are.", 7, "follows a question"),
        ("# bug-one", "# bug one", 1, "is not a name; write"),
        ("# bug-one\n", "", 1, "the first line names no paragraph"),
        ("# bug-one\n", "# bug-none\nNothing.\n# bug-one\n", 1, "'bug-none' has no question"),
        ("? How", "# bug-one\n? How", 7, "two paragraphs are called 'bug-one'"),
        ("aged 12", "aged  12", 2, "an extra space"),
        ("aged", "ag\ufffd", 2, "is not UTF-8"),
        (GOOD, "\n", 1, "the file is empty"),
    ],
)
def test_a_bad_line_is_named_with_the_way_out(tmp_path, monkeypatch, old, new, line, problem):
    write(tmp_path, monkeypatch, train=GOOD.replace(old, new, 1))
    where = re.escape(f"{tmp_path / 'train.txt'}, line {line}: ")
    with pytest.raises(resources.ResourceError, match=f"{where}.*{problem}.*install the package again"):
        question_answers.questions()


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("# bug-nine\n! Why?\n", 1, "no paragraph is called 'bug-nine'"),
        ("# bug-one\n\n? Why?\n", 3, "is not a question"),
        ("# bug-one\n! Why\n", 2, "is not a question"),
        ("! Why?\n", 1, "is not a question"),
    ],
)
def test_a_bad_unanswerable_line_is_named(tmp_path, monkeypatch, text, line, problem):
    write(tmp_path, monkeypatch, unanswerable=text)
    with pytest.raises(resources.ResourceError, match=rf"unanswerable\.txt, line {line}: .*{problem}"):
        question_answers.unanswerable_questions()


def test_kinds_and_baselines_on_a_text_made_by_hand():
    context = "Yesterday, Ann Lee met Bob in Rome. They ate twenty-one figs and 3 nuts. Bob paid."
    assert kind("By how much did it grow, and when?") == "how much" and kind("Whom did she meet?") == "who"
    with pytest.raises(ValueError, match=r"'Name it\.' has none of"):
        kind("Name it.")
    assert question_answers.first_capitals(context, "Who paid?") == "Ann Lee"
    assert question_answers.first_capitals("Ann ate.", "Who ate?") == "Ann"
    assert question_answers.first_capitals("and so on.", "Why?") == ""
    figs = "How many figs were in what they ate?"
    assert question_answers.likeliest_sentence(context, figs).startswith("They ate")
    assert question_answers.nearest_number(context, figs) == "twenty-one"
    assert question_answers.nearest_number(context, "How many times did Bob pay?") == "twenty-one"
    assert question_answers.nearest_number("None.", "How many?") == ""
    assert question_answers.by_kind(context, figs) == "twenty-one"
    assert question_answers.by_kind(context, "Who paid?") == "Bob"
    assert question_answers.by_kind(context, "Why was it Bob who paid?") == "Bob paid."
