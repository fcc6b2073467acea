"""The errors that libraries catch."""


class Error(Exception):
    """What all errors of Colab are."""
