"""Passages of installed functions: whole, short, and about what their names say."""

from chapters_src.assistant.functions import MOST_WORDS, documented


def test_passages_begin_with_the_name_and_say_what_it_is_for():
    found = documented()
    assert len(found) > 500
    assert found["numpy.squeeze"].splitlines() == [
        "numpy.squeeze(a, axis=None)",
        "Remove axes of length one from `a`.",
    ]
    assert "Drop specified labels" in found["pandas.DataFrame.drop"]
    assert found["numpy.add"].splitlines()[1].startswith("Add arguments element-wise")
    assert found["matplotlib.pyplot.semilogx"].startswith("matplotlib.pyplot.semilogx(*args, **kwargs)\n")
    for name, passage in found.items():
        head, body = passage.split("\n")
        assert head.startswith(name) and body and len(body.split()) <= MOST_WORDS
        assert " at 0x" not in passage and not body.endswith("::")


def test_classes_and_private_names_are_left_out():
    found = documented()
    assert "numpy.ndarray" not in found and "pandas.DataFrame.values" not in found
    assert not any(part.startswith("_") for name in found for part in name.split("."))
