"""The errors of the tool, with the same messages as kubectl (``pkg/cmd/util/helpers.go``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, final
from urllib.parse import urlsplit

from ..errors import ConnectionFailedError, StatusError, TrioformerError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["CommandError", "UsageError", "describe_failure", "failures_in"]


@final
class CommandError(Exception):
    """A command failed.

    The tool prints the message after ``error: ``.

    Attributes:
        code: The exit code of the tool.
        is_bare: Whether to print the message without ``error: ``.
    """

    def __init__(self, message: str, *, code: int = 1, is_bare: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.is_bare = is_bare


@final
class UsageError(Exception):
    """The arguments of a command are not valid.

    The tool prints the message after ``error: ``, and refers to the help of the command.
    """


def failures_in(error: BaseException) -> Iterator[BaseException]:
    """Yield the exceptions in nested exception groups, or the error itself if the error is not a group."""
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from failures_in(each)
    else:
        yield error


def describe_failure(error: TrioformerError | CommandError, server: str) -> str:
    """Return the line to print for an error.

    Args:
        error: The error to describe.
        server: The URL of the server, or an empty string if it is unknown.
    """
    if isinstance(error, CommandError):
        return str(error) if error.is_bare else f"error: {error}"
    if isinstance(error, StatusError):
        return _rejected(error)
    if isinstance(error, ConnectionFailedError):
        host = urlsplit(server).netloc
        if error.refused and host:
            return f"The connection to the server {host} was refused - did you specify the right host or port?"
        return f"Unable to connect to the server: {error}"
    return f"error: {error}"


def _rejected(error: StatusError) -> str:
    if error.reason == "Unauthorized":
        return f"error: You must be logged in to the server ({error.status_message})"
    reason = f" ({error.reason})" if error.reason else ""
    return f"Error from server{reason}: {error.status_message}"
