"""What is missing on a computer: a skip that says so there, a failure in CI."""

import pytest


@pytest.mark.parametrize("value", ["true", "1", "True", "yes", "woodpecker"])
def test_in_ci_what_is_missing_is_a_failure(value, absent, monkeypatch):
    monkeypatch.setenv("CI", value)
    with pytest.raises(pytest.fail.Exception, match=f"no kettle.*CI={value}"):
        absent("no kettle")


@pytest.mark.parametrize("value", [None, "", " ", "0", "false", "False", "no"])
def test_elsewhere_it_is_a_skip_that_says_so(value, absent, monkeypatch):
    if value is None:
        monkeypatch.delenv("CI", raising=False)
    else:
        monkeypatch.setenv("CI", value)
    with pytest.warns(UserWarning, match="NOT CHECKED: no kettle"), pytest.raises(pytest.skip.Exception):
        absent("no kettle")
