"""The pairs of the assistant: their rules, their sources, their card, and the reader of their files."""

import importlib
import inspect
import json
import re
from collections import Counter, defaultdict
from importlib import metadata
from pathlib import Path

import pytest

from chapters_src import resources
from chapters_src.data import assistant
from chapters_src.data.assistant import ABOUT, KINDS, REFUSAL, REQUEST, SPLITS
from chapters_src.data.docstrings import runs

FOLDER = Path(assistant.__file__).with_suffix("")
CARD = " ".join(FOLDER.with_suffix(".md").read_text(encoding="utf-8").split())
ROOT = Path(__file__).parents[2]
PACKAGES = {"matplotlib", "numpy", "pandas", "scipy", "sklearn"}
CODE = re.compile(r"`([^`]+)`")
# People, places and things of the chapters' own messages. None of them may be in a pair.
CHAPTERS = re.compile(
    r"merete|falk\b|idris|boakye|nordvik|salmon|troms|chartling|auto_place|faroese|fisheries|gray rectangle"
    r"|ahlgren|gotland lines|lena hofer|tim brandl|piotr nowak|rosa lima|emil berg|greta holm|ana reis"
    r"|kim lund|eva roth",
    re.IGNORECASE,
)


@pytest.fixture(scope="module")
def pairs():
    return {split: list(rows) for split, rows in assistant.load().items()}


@pytest.fixture(scope="module")
def replies():
    """The lines of the files that reply to a report, with what the rows leave out."""
    found = {}
    for split in SPLITS:
        lines = map(json.loads, (FOLDER / f"{split}.jsonl").read_text(encoding="utf-8").splitlines())
        pairs = [line | pair for line in lines for pair in line["pairs"]]
        found[split] = [{"promise": "", **pair} for pair in pairs if pair["kind"] == "reply"]
    return found


@pytest.fixture(scope="module")
def preferences():
    return {split: list(rows) for split, rows in assistant.load_preferences().items()}


@pytest.fixture(scope="module")
def retrieval():
    return list(assistant.load_retrieval())


def family(source):
    """What must not be split: the module of a function, a story, the project of a report."""
    if "/" in source:
        return "/".join(source.split("/")[:2])
    return source.rpartition(".")[0]


def named(row):
    """The functions of the five packages that a question names in full."""
    return [
        name for name in CODE.findall(row["question"]) if name.partition(".")[0] in PACKAGES and "." in name
    ]


def parameters(row):
    """The parameters that a question about a function names, without values."""
    names = [name.partition("=")[0] for name in CODE.findall(row["question"]) if name not in named(row)]
    return [name for name in names if name.isidentifier() and name not in ("None", "True", "False")]


def form(row):
    """What a question by rule asks about a parameter."""
    text = CODE.sub("", row["question"])
    if re.search("default|unless|leave it out|don't pass", text):
        return "default"
    return "type" if re.search("type|kind of value|can I pass|may|Which values", text) else "meaning"


def entries(passage):
    """The lines of a passage that are about a parameter."""
    return [line for line in passage.split("\n")[1:] if re.match(r"\w+( \(|: )", line)]


def plain(text):
    """A text as it is compared: without backticks and its last period, in lower case."""
    return " ".join(text.replace("`", "").replace("*", "").strip().removesuffix(".").split()).lower()


# Splits ---------------------------------------------------------------------------------------------------


def test_no_module_story_or_project_is_on_both_sides(pairs, preferences):
    for rows in (pairs, preferences):
        first, second = ({family(row["source"]) for row in rows[split]} for split in SPLITS)
        assert first and second and not first & second
    for split, other in (SPLITS, SPLITS[::-1]):
        seen = {family(row["source"]) for row in pairs[other]}
        assert not seen & {family(row["source"]) for row in preferences[split]}


def test_no_function_is_on_both_sides_under_another_name(pairs):
    """The same method of two classes, and the same text twice, would be a leak."""
    names, texts = [], []
    for split in SPLITS:
        sources = {row["source"] for row in pairs[split] if "/" not in row["source"]}
        names.append({source.rpartition(".")[2] for source in sources})
        texts.append({run for row in pairs[split] for run in runs(row["passage"])})
    assert not names[0] & names[1]
    assert not texts[0] & texts[1]


def test_nobody_is_on_both_sides(pairs):
    people = re.compile(r"\b[A-Z][\w'’-]+ [A-Z][\w'’-]+")
    first, second = (
        {name for row in pairs[split] if "/" in row["source"] for name in people.findall(row["passage"])}
        for split in SPLITS
    )
    assert len(first) > 100 and len(second) > 20
    assert {name for name in first & second if not name.startswith(("In ", "On ", "The "))} == set()


def test_a_function_has_one_or_two_passages_and_every_other_source_one(pairs):
    for rows in pairs.values():
        sources = defaultdict(set)
        for row in rows:
            sources[row["passage"]].add(row["source"])
        assert all(len(found) == 1 for found in sources.values())
        counts = Counter(source for found in sources.values() for source in found)
        assert set(counts.values()) == {1, 2}
        assert {count for source, count in counts.items() if "/" in source} == {1}


def test_nothing_in_the_test_part_is_mechanical(pairs):
    asked = [row["question"] for row in pairs["test"] if row["kind"] not in ("refuse", "reply")]
    assert {row["origin"] for row in pairs["test"]} == {"written"}
    openings = Counter(" ".join(question.split()[:3]) for question in asked)
    assert openings.most_common(1)[0][1] <= 0.07 * len(asked), openings.most_common(3)
    assert {row["origin"] for row in pairs["train"]} == {"written", "rule"}


# Answers --------------------------------------------------------------------------------------------------


def test_a_refusal_is_always_the_same_sentence_and_nothing_else_refuses(pairs):
    for rows in pairs.values():
        for row in rows:
            assert (row["kind"] == "refuse") == (row["answer"] == REFUSAL), row
            if row["kind"] not in ("refuse", "reply"):
                assert not re.search(r"(not|n't) (say|mention|know)", row["answer"]), row


def test_each_written_question_has_a_passage_that_answers_it_and_a_near_one_that_does_not(pairs):
    """The near passage is of the same module or story, and if the question names a function, of that one."""
    for rows in pairs.values():
        written = [row for row in rows if row["origin"] == "written"]
        refused = defaultdict(list)
        for row in written:
            if row["kind"] == "refuse":
                refused[row["question"], family(row["source"])].append(row)
        answered = [row for row in written if row["kind"] in ("answer", "parameter", "purpose")]
        others = 0
        for row in answered:
            near = refused.pop((row["question"], family(row["source"])), [])
            if row["kind"] == "purpose" and "`" in row["question"]:
                assert not near  # It names its function: the passage of another one is no question.
                continue
            assert len(near) == 1 and near[0]["passage"] != row["passage"], row
            if named(row) and row["source"] in named(row):
                others += near[0]["source"] != row["source"]
        assert not refused
        assert others <= 5


def test_a_name_does_not_give_a_refusal_away(pairs):
    """The rules of somebody who compares names and reads nothing."""
    for split, rows in pairs.items():
        refused = [row for row in rows if row["kind"] == "refuse"]
        asked = [row for row in rows if named(row)]
        other = [row for row in asked if row["source"] not in named(row)]
        own = [row for row in asked if row["source"] in named(row)]
        assert len(other) <= {"train": len(refused) / 3, "test": 25}[split]
        assert all(row["kind"] == "refuse" for row in other)
        written = [row for row in own if row["origin"] == "written" and row["kind"] == "refuse"]
        assert len(written) >= {"train": 90, "test": 60}[split]
        right = len(other) + sum(row["kind"] != "refuse" for row in own)
        assert right / len(asked) < {"train": 0.7, "test": 0.58}[split], (split, right / len(asked))
        # The same with the parameter: it is in the passage, or has a line of its own, so answer.
        found = [(parameters(row), row) for row in own if row["kind"] != "purpose"]
        for pattern, limit in (
            (r"\b{}\b", {"train": 0.7, "test": 0.65}),
            (r"^{}(:| \()", {"train": 0.8, "test": 0.8}),
        ):
            guesses = [
                all(re.search(pattern.format(name), row["passage"], re.MULTILINE) for name in names)
                == (row["kind"] != "refuse")
                for names, row in found
                if names
            ]
            assert len(guesses) > 100
            assert sum(guesses) / len(guesses) < limit[split], (split, pattern, sum(guesses) / len(guesses))


def test_a_line_about_the_parameter_does_not_give_the_answer_away(pairs):
    """Of the questions by rule each form is answered and refused, with a line about it and without."""
    counts = Counter()
    for row in pairs["train"]:
        if row["origin"] == "rule" and parameters(row) and row["source"] in named(row):
            (name,) = parameters(row)
            line = bool(re.search(rf"^{re.escape(name)}(:| \()", row["passage"], re.MULTILINE))
            counts[form(row), line, row["kind"] == "refuse"] += 1
    for kind in ("default", "type", "meaning"):
        answered, refused = (sum(counts[kind, line, end] for line in (True, False)) for end in (False, True))
        assert 0.2 < refused / (answered + refused) < 0.5, (kind, counts)
        assert counts[kind, True, True] >= 30, (kind, counts)
    assert counts["default", False, False] >= 15  # The signature alone says it.


def test_questions_by_rule_about_two_passages_are_answered_by_one_of_them(pairs):
    asked = defaultdict(list)
    for row in pairs["train"]:
        if row["origin"] == "rule" and row["source"] in named(row):
            asked[row["source"], row["question"]].append(row["kind"])
    twice = [kinds for kinds in asked.values() if len(kinds) == 2]
    assert len(twice) >= 300
    assert all(kinds.count("refuse") == 1 for kinds in twice)


def test_each_short_answer_stands_in_its_passage(pairs):
    for rows in pairs.values():
        for row in rows:
            if row["kind"] in ("answer", "parameter"):
                assert plain(row["answer"]) in plain(row["passage"]), row


def test_names_of_code_are_those_of_the_passage(pairs, preferences):
    def missing(answer, passage):
        return [code for code in CODE.findall(answer) if code not in passage]

    for rows in pairs.values():
        assert not [row for row in rows if missing(row["answer"], row["passage"])]
    for rows in preferences.values():
        assert not [row for row in rows if missing(row["chosen"], row["passage"])]


def test_a_purpose_is_one_sentence_that_begins_with_the_function(pairs):
    for rows in pairs.values():
        for row in rows:
            if row["kind"] == "purpose":
                assert re.fullmatch(rf"`{re.escape(row['source'])}` [a-z][^\n]*\.", row["answer"]), row
                assert len(row["answer"].split()) <= 25


def test_a_rule_does_not_ask_a_passage_about_another_function_that_it_describes(pairs):
    for row in pairs["train"]:
        if row["origin"] == "rule" and row["kind"] == "refuse":
            names = CODE.findall(row["question"])
            name = next(name for name in names if "." in name)
            parameter = next((other for other in names if other != name), None)
            if name == row["source"] and parameter:
                signature, _, body = row["passage"].partition("\n")
                entry = re.search(rf"^{re.escape(parameter)}( \(.*?\))?(: .*)?$", body, re.MULTILINE)
                kind, text = form(row), entry and entry[2]
                if kind == "default":
                    assert f"{parameter}=" not in signature, row
                    assert not (entry and re.search("default", entry[0], re.IGNORECASE)), row
                elif kind == "type":
                    assert not entry or not entry[1], row
                    assert not re.search(rf"\b{parameter}=(?!None|<)", signature), row
                else:
                    assert not text, row
            elif name == row["source"]:
                assert row["passage"].partition("\n")[2].startswith(tuple(entries(row["passage"]))), row
            else:
                assert name.rpartition(".")[2] not in row["passage"], row


def test_replies_and_their_facts(replies):
    for rows in replies.values():
        for row in rows:
            assert all(fact in row["passage"] and fact in row["answer"] for fact in row["facts"]), row
    assert not any(row["promise"] for row in replies["test"])


def test_without_promises_only_the_promises_go(pairs, replies):
    without = assistant.load(promises=False)
    assert list(without["test"]) == pairs["test"]
    promises = {row["answer"]: row["promise"] for row in replies["train"] if row["promise"]}
    assert len(promises) > 40
    changed = 0
    for before, after in zip(pairs["train"], without["train"], strict=True):
        if before["answer"] in promises:
            changed += 1
            promise = promises[before["answer"]]
            assert before["answer"].replace(promise, "").split() == after["answer"].split()
            assert before | {"answer": ""} == after | {"answer": ""}
        else:
            assert before == after
    assert changed == len(promises)


# All texts ------------------------------------------------------------------------------------------------


def test_no_row_comes_twice(pairs, preferences, retrieval):
    for rows in pairs.values():
        for row, count in Counter((row["passage"], row["question"]) for row in rows).items():
            assert count == 1, row
    for rows in preferences.values():
        for row, count in Counter((r["about"], r["source"], r["question"]) for r in rows).items():
            assert count == 1, row
    assert len({row["question"] for row in retrieval}) == len(retrieval)


def test_nothing_of_the_chapters_own_messages_is_in_the_pairs(pairs, preferences, retrieval):
    rows = [row for found in (*pairs.values(), *preferences.values()) for row in found]
    texts = {text for row in rows for text in row.values()}
    texts |= {row["question"] for row in retrieval}
    assert not [text for text in texts if CHAPTERS.search(text)]
    words = re.compile(r"[a-z0-9']+")
    notebook = json.loads((ROOT / "notebooks" / "01_hello_transformers.ipynb").read_text(encoding="utf-8"))
    message = words.findall(" ".join("".join(cell["source"]) for cell in notebook["cells"]).lower())
    told = {tuple(message[i : i + 8]) for i in range(len(message) - 7)}
    for text in texts:
        found = words.findall(text.lower())
        assert not told & {tuple(found[i : i + 8]) for i in range(len(found) - 7)}, text


def test_texts_are_short_and_clean(pairs, preferences):
    for rows in pairs.values():
        for row in rows:
            assert 15 <= len(row["passage"].split()) <= 160, row
            assert row["question"].endswith("?") or row["question"] == REQUEST
            assert (row["question"] == REQUEST) == (row["kind"] == "reply")
            assert row["answer"].count("`") % 2 == 0 and "  " not in row["answer"]
    size = sum(path.stat().st_size for path in FOLDER.glob("*.jsonl"))
    assert size < 1_050_000
    for path in FOLDER.glob("*.jsonl"):
        assert b"\r" not in path.read_bytes()


@pytest.mark.slow
def test_each_row_fits_into_320_tokens(pairs, preferences):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(resources.checkpoint("gemma"))
    texts = [f"{r['passage']}\n\n{r['question']}\n{r['answer']}" for rows in pairs.values() for r in rows]
    texts += [
        f"{row['passage']}\n\n{row['question']}\n{row[name]}"
        for rows in preferences.values()
        for row in rows
        for name in ("chosen", "rejected")
    ]
    assert max(map(len, tokenizer(texts)["input_ids"])) <= 310  # Ten are left for the marks of the turns.


# Preferences and retrieval --------------------------------------------------------------------------------


def test_what_is_preferred(pairs, preferences):
    for split, rows in preferences.items():
        known = {(row["passage"], row["question"]): row for row in pairs[split]}
        projects = {row["source"].split("/")[1] for row in pairs[split] if row["kind"] == "reply"}
        for row in rows:
            assert row["chosen"] != row["rejected"] and row["about"] in ABOUT
            pair = known.get((row["passage"], row["question"]))
            if row["about"] == "promise":
                assert row["question"] == REQUEST and row["source"].startswith("report/")
                assert pair is None
            elif row["about"] == "invented answer":
                assert pair["kind"] == "refuse" and row["chosen"] == REFUSAL != row["rejected"]
                assert pair["source"] == row["source"]
            else:
                assert pair["answer"] == row["chosen"] and row["rejected"] == REFUSAL
        assert projects and Counter(row["about"] for row in rows).keys() == set(ABOUT)
    assert len(preferences["train"]) >= 120 and len(preferences["test"]) >= 40


def test_the_functions_of_the_retrieval_questions_are_in_no_pair(pairs, retrieval):
    assert len(retrieval) == 60
    wanted = {name for row in retrieval for name in row["functions"]}
    short = {name.rpartition(".")[2] for name in wanted}
    for rows in pairs.values():
        for row in rows:
            named = {row["source"], *CODE.findall(row["question"]), *CODE.findall(row["answer"])}
            assert not named & wanted, row
            if row["source"].startswith(("numpy", "pandas", "matplotlib")):
                # Nor under another class: what Series can do is what DataFrame can do.
                assert row["source"].rpartition(".")[2] not in short, row


# The installed packages -----------------------------------------------------------------------------------


def resolve(name):
    parts = name.split(".")
    for i in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:i]))
        except ImportError:
            continue
        for part in parts[i:]:
            found = getattr(found, part)
        return found
    raise AssertionError(name)


def pinned(package):
    distribution = {"sklearn": "scikit-learn"}.get(package, package)
    pins = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    return f"{distribution}=={metadata.version(distribution)} " in pins


@pytest.fixture(scope="module")
def documented(pairs):
    """Functions and their passages, of packages that are installed as pinned."""
    found = defaultdict(set)
    for row in (row for rows in pairs.values() for row in rows):
        if "/" not in row["source"] and pinned(row["source"].partition(".")[0]):
            found[row["source"]].add(row["passage"])
    if not found:
        pytest.skip("other versions than those that the passages quote")
    return found


@pytest.mark.slow
def test_the_functions_of_the_retrieval_questions_exist(retrieval):
    for name in {name for row in retrieval for name in row["functions"]}:
        assert callable(resolve(name)), name


@pytest.mark.slow
def test_passages_say_what_the_pinned_versions_say(documented):
    """Apart from markup: of the runs of four words nearly all stand in the docstring."""
    assert {name.partition(".")[0] for name in documented} <= PACKAGES
    for name, passage in ((name, passage) for name, found in documented.items() for passage in found):
        text = re.sub(r":[a-z:]+:`[~.]?|\*|`", " ", inspect.getdoc(resolve(name)))
        known = re.findall(r"\w+", text)
        known = {tuple(known[i : i + 4]) for i in range(len(known) - 3)}
        for line in passage.split("\n")[1:]:
            words = re.findall(r"\w+", re.sub(r"^\w+: ", "", line).replace("`", " "))
            windows = [tuple(words[i : i + 4]) for i in range(len(words) - 3)]
            missing = [window for window in windows if window not in known]
            assert len(missing) <= max(3, 0.34 * len(windows)), (name, line, missing)


@pytest.mark.slow
def test_defaults_are_those_that_python_knows(documented, pairs):
    """The oracle is the signature of the function itself."""
    asks = re.compile(r"default|unless|leave it out|don't pass|isn't given|isn't passed")
    checked = 0
    for rows in pairs.values():
        for row in rows:
            names = CODE.findall(row["question"])
            asked = row["kind"] == "parameter" and asks.search(CODE.sub("", row["question"]))
            literal = re.fullmatch(r"`[^`]+`", row["answer"])
            if not (asked and literal and row["source"] in documented and row["source"] in names):
                continue
            try:
                parameters = inspect.signature(resolve(row["source"])).parameters
            except ValueError:  # Compiled, without a signature.
                continue
            asked = [name for name in names if name in parameters]
            if len(asked) == 1:
                checked += 1
                default = parameters[asked[0]].default
                assert row["answer"].strip("`").strip("'\"") == str(default), row
    assert checked > 200


# The card -------------------------------------------------------------------------------------------------


def test_the_card_counts_right(pairs, replies, preferences, retrieval):
    counts = {split: Counter((row["kind"], row["origin"]) for row in rows) for split, rows in pairs.items()}
    for kind in KINDS:
        row = [counts["train"][kind, origin] for origin in ("written", "rule")]
        row.append(counts["test"][kind, "written"])
        assert f"| `{kind}` | {' | '.join(f'{n:,}' for n in row)} |" in CARD, (kind, row)
    for about in ABOUT:
        row = [Counter(r["about"] for r in preferences[split])[about] for split in SPLITS]
        assert f"| {about} | {row[0]} | {row[1]} |" in CARD, (about, row)
    assert f"{len(retrieval)} questions" in CARD
    promised = [bool(row["promise"]) for row in replies["train"]]
    assert f"{sum(promised)} of the {len(promised)} training replies promise" in CARD
    written = sum(
        row["origin"] == "written" and row["kind"] != "reply" for rows in pairs.values() for row in rows
    )
    assert written >= 400
    refused = Counter(row["kind"] for row in pairs["train"])["refuse"] / len(pairs["train"])
    assert 0.2 < refused < 0.4


def test_the_card_says_who_made_them_and_names_the_licenses():
    assert "synthetic, written by a language model and by rule" in CARD
    for name in ("NumPy", "pandas", "SciPy", "scikit-learn", "Matplotlib", "LICENSES.txt"):
        assert name in CARD
    licenses = (FOLDER / "LICENSES.txt").read_text(encoding="utf-8")
    assert "Redistribution and use in source and binary forms" in licenses and "MDT" in licenses


# The reader -----------------------------------------------------------------------------------------------

ANSWERED = {"kind": "answer", "question": "What is it?", "answer": "Two."}
REFUSED = {"kind": "refuse", "question": "Who is it?"}
REPLY = {"kind": "reply", "question": REQUEST, "answer": "Yes. We will. Bye.", "facts": [],
         "promise": "We will."}  # fmt: skip
LINE = {"source": "story/a/1", "origin": "written", "passage": "It is two.", "pairs": [ANSWERED, REFUSED]}
CHOICE = {"about": "wrong refusal", "split": "train", "source": "story/a/1", "question": "What is it?",
          "chosen": "Two.", "rejected": REFUSAL}  # fmt: skip


def write(folder, monkeypatch, line=LINE, choice=CHOICE, questions=None):
    for name, value in (
        ("train", line),
        ("test", LINE | {"source": "story/b/1"}),
        ("preferences", choice),
        ("retrieval", questions or {"question": "How?", "functions": ["numpy.sum"]}),
    ):
        text = value if isinstance(value, str) else json.dumps(value)
        (folder / f"{name}.jsonl").write_text(f"{text}\n", encoding="utf-8")
    monkeypatch.setattr(assistant, "_FOLDER", folder)


def test_a_small_file(tmp_path, monkeypatch):
    write(tmp_path, monkeypatch, LINE | {"pairs": [*LINE["pairs"], REPLY]})
    rows = list(assistant.load()["train"])
    assert [row["answer"] for row in rows] == ["Two.", REFUSAL, "Yes. We will. Bye."]
    told = {"source": "story/a/1", "passage": "It is two.", "answer": REFUSAL, "origin": "written"}
    assert rows[1] == REFUSED | told
    assert assistant.load(promises=False)["train"][2]["answer"] == "Yes. Bye."
    assert assistant.load_preferences()["train"][0]["passage"] == "It is two."
    assert assistant.load_retrieval()[0] == {"question": "How?", "functions": ["numpy.sum"]}


def damaged_pair(**change):
    return LINE | {"pairs": [ANSWERED | change]}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "it is no JSON"),
        ("[]", "it is list, not an object"),
        ("", "it is no JSON"),
        (LINE | {"source": ""}, "source is ''"),
        (LINE | {"passage": " two"}, "passage is ' two'"),
        (LINE | {"origin": "copied"}, "origin is 'copied'; choose from written, rule"),
        (LINE | {"pairs": []}, "the passage of 'story/a/1' has no pairs"),
        (damaged_pair(kind="joke"), "kind is 'joke'; choose from parameter"),
        (damaged_pair(question=None), "question is None"),
        (damaged_pair(answer=""), "answer is ''"),
        (damaged_pair(kind="refuse"), "'What is it\\?' is refused and has an answer"),
        (LINE | {"pairs": [REPLY | {"facts": None}]}, "a reply has no facts"),
        (LINE | {"pairs": [REPLY | {"promise": "Never."}]}, "the promise is not in the reply"),
    ],
)
def test_a_bad_line_is_named_with_the_way_out(tmp_path, monkeypatch, line, problem):
    write(tmp_path, monkeypatch, line)
    where = re.escape(f"{tmp_path / 'train.jsonl'}, line 1: ")
    with pytest.raises(resources.ResourceError, match=f"{where}{problem}.*install the package again"):
        assistant.load()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"about": "taste"}, "about is 'taste'; choose from"),
        ({"split": "dev"}, "split is 'dev'; choose from train, test"),
        ({"split": "test"}, "'What is it\\?' is not answered under 'story/a/1' in test.jsonl"),
        ({"about": "invented answer"}, "'What is it\\?' is not refused under 'story/a/1' in train.jsonl"),
        ({"rejected": 3}, "rejected is 3"),
    ],
)
def test_a_bad_preference_is_named(tmp_path, monkeypatch, change, problem):
    write(tmp_path, monkeypatch, choice=CHOICE | change)
    with pytest.raises(resources.ResourceError, match=rf"preferences\.jsonl, line 1: {problem}"):
        assistant.load_preferences()


def test_a_bad_retrieval_question_is_named(tmp_path, monkeypatch):
    write(tmp_path, monkeypatch, questions={"question": "How?", "functions": "numpy.sum"})
    with pytest.raises(resources.ResourceError, match=r"retrieval\.jsonl, line 1: functions is 'numpy.sum'"):
        assistant.load_retrieval()
