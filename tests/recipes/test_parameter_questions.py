"""Questions made by rule: what is found in docstrings, and their splits."""

import pytest

from chapters_src import resources
from chapters_src.data import docstrings
from recipes import parameter_questions

NUMPY_STYLE = r'''Fit a toy.

Parameters
----------
n_jobs : int, default=None
    Number of jobs, see :term:`n_jobs`, to run [1]_.

    A second paragraph that is left out.
*shape : tuple of int, optional
    The shape of ``x``. Default is (), as everywhere.
mode : {'fast', 'exact'}, default: 'fast'
    What to prefer:

    - 'fast' is fast.
bad : float
    Uses :math:`\alpha` in its text.
torn : int, default=3
    The default is 4 in truth, contrary to the head.
kind : {"a", "b"}
    Which one it is.

Returns
-------
out : ndarray
    What cannot be asked for.
'''  # fmt: skip
GOOGLE_STYLE = """Train a toy.

Args:
    rate (`float`, *optional*, defaults to 5e-05):
        How fast [`~toy.Trainer`] learns.
    steps (Callable[[int], str], optional): Number of steps
        to go on for. Default: ``None``
    plain: Without a type nothing is asked.

Returns:
    state (int): What cannot be asked for.
"""


def ask(docstring, spans=parameter_questions._spans):
    """All that could be asked about each parameter, by name."""
    return {
        one.name: [one.text[start:end] for _, start, end in spans(one)]
        for one in parameter_questions._parameters(docstring)
    }


def test_what_is_found_in_the_styles_of_numpy_and_of_google():
    assert ask(NUMPY_STYLE) == {
        "n_jobs": ["None", "int"],
        "shape": ["()", "tuple of int"],
        "torn": ["int"],  # two defaults that disagree
        "kind": ['{"a", "b"}'],
    }
    assert ask(GOOGLE_STYLE) == {"rate": ["5e-05", "float"], "steps": ["None", "Callable[[int], str]"]}


def test_questions_of_one_docstring():
    found = parameter_questions.of_docstring("toy.fit", GOOGLE_STYLE)
    assert len(found) == 2 and len({question.context for question in found}) == 1
    assert found[0].context == (
        "rate (float, optional, defaults to 5e-05): How fast toy.Trainer learns.\n"
        "steps (Callable[[int], str], optional): Number of steps to go on for. Default: None"
    )
    for question, name, answers in zip(
        found, ("rate", "steps"), ({"5e-05", "float"}, {"None", "Callable[[int], str]"}), strict=True
    ):
        assert question.answer in answers and name in question.question.rstrip("?").split()
        assert question.context[question.start : question.end] == question.answer
        asks_for_default = any(part in question.question for part in ("default", "unless", "nothing"))
        assert asks_for_default == (question.answer in {"5e-05", "None"})
    assert parameter_questions.of_docstring("toy.fit", GOOGLE_STYLE) == found


def test_long_lists_are_cut_and_what_was_seen_does_not_come_again():
    entry = "x{} : int\n    " + "word " * 30 + "\n"
    docstring = "Parameters\n----------\n" + "".join(entry.format(i) for i in range(5))
    seen = set()
    found = parameter_questions.of_docstring("toy", docstring, seen)
    assert [len(question.context.split("\n")) for question in found] == [3, 3, 3, 2, 2]
    assert parameter_questions.of_docstring("toy", docstring, seen) == []


@pytest.fixture(scope="module")
def parameters():
    """Of a package that is quick to parse."""
    return parameter_questions.questions(("sklearn",))


def test_thousands_of_questions_with_right_offsets(parameters):
    assert len(parameters["train"]) > 3000 and min(map(len, parameters.values())) > 10
    for split, found in parameters.items():
        for question in found:
            assert question.context[question.start : question.end] == question.answer != ""
            assert question.question.endswith("?") and len(question.answer.split()) <= 10
            assert docstrings.split_of(question.paragraph) == split
    several = [question for question in parameters["train"] if "\n" in question.context]
    assert len(several) > 0.6 * len(parameters["train"])


def test_defaults_are_those_that_python_knows():
    """The oracle is the signature of the class itself."""
    from inspect import signature

    from sklearn.ensemble import RandomForestClassifier

    known = signature(RandomForestClassifier).parameters
    found = ask(RandomForestClassifier.__doc__)
    checked = 0
    for name, (first, *rest) in found.items():
        if rest:  # Two spans: the default and the type.
            assert first.strip("'\"") == str(known[name].default), name
            checked += 1
    assert checked > 10


def test_splits_of_the_parameters_share_no_run_of_thirteen_words(parameters):
    before = set()
    for split in docstrings.SPLITS:
        texts = {question.context for question in parameters[split]}
        runs = {run for text in texts for run in docstrings.runs(text)}
        assert before.isdisjoint(runs)
        before |= runs


def test_one_string_is_no_list_of_packages():
    with pytest.raises(TypeError, match=r"packages is the string 'numpy'"):
        parameter_questions.questions("numpy")


def test_a_package_that_is_not_installed_is_named():
    with pytest.raises(resources.ResourceError, match="'no_such_package'"):
        parameter_questions.questions(("no_such_package",))
