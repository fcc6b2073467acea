"""The secrets of a reader, such as the token of the Hub: here, as for most readers, there are none."""

from google.colab.errors import Error


class SecretNotFoundError(Error):
    """There is no secret of that name."""


class NotebookAccessError(Error):
    """The reader has not allowed the notebook to see the secret."""


class TimeoutException(Error):  # its name in Colab
    """The reader did not answer."""


def get(key: str) -> str:
    """Say that there is no such secret."""
    raise SecretNotFoundError(f"there is no secret {key}")
