"""Errors in kubectl's words."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from trioformer.cli._failures import CommandError, describe_failure, failures_in
from trioformer.errors import (
    ConfigError,
    ConnectionFailedError,
    StatusError,
    TrioformerError,
)


def status(code: int, reason: str, message: str) -> StatusError:
    members = {"status": "Failure", "reason": reason, "message": message}
    return StatusError.from_status(members, code=code, where="get pods/web")


def failures() -> Iterator[tuple[TrioformerError | CommandError, str]]:
    yield CommandError("as it is", is_bare=True), "as it is"
    yield CommandError("with a word before"), "error: with a word before"
    yield TrioformerError("too much"), "error: too much"
    yield ConnectionFailedError("broken"), "Unable to connect to the server: broken"
    yield (
        ConnectionFailedError("refused", refused=True),
        "The connection to the server a.example:6443 was refused - did you specify the right host or port?",
    )
    yield status(401, "Unauthorized", "no"), "error: You must be logged in to the server (no)"
    yield status(403, "Forbidden", "not you"), "Error from server (Forbidden): not you"


@pytest.mark.parametrize(("error", "text"), [pytest.param(*each, id=str(i)) for i, each in enumerate(failures())])
def test_an_error_is_one_line(error: TrioformerError | CommandError, text: str) -> None:
    assert describe_failure(error, "https://a.example:6443") == text


def test_the_errors_in_nested_groups_are_found() -> None:
    one, two = ConfigError("one"), CommandError("two")
    assert list(failures_in(ExceptionGroup("", [one, ExceptionGroup("", [two])]))) == [one, two]
