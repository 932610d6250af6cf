"""The server's ID of a request (``Audit-Id``) is in the errors of its response."""

from __future__ import annotations

import json
import re
import traceback

import httpx
import pytest
import trio.testing

from tests.client.bodies.test_responses_failures import CALLS, FORBIDDEN
from tests.support.clients import client_of
from tests.support.scripted_http import response
from trioformer.errors import StatusError, TrioformerError, UnexpectedResponseError
from trioformer.transport._internal import request_id_in

NOTE = "request ID (in the server's audit log): "
ID = "6ee6b3e9-2f2c-4a0b-9d5c-1f1f5a7ad1c3"


async def error_of(name: str, reply: httpx.Response) -> TrioformerError:
    async with client_of(reply) as (client, _):
        with pytest.raises(TrioformerError) as caught:
            await CALLS[name](client)
    return caught.value


async def test_an_unexpected_response_has_the_id() -> None:
    for name in ["get", "list", "create"]:
        error = await error_of(name, response(200, "<html>", audit_id=ID))
        assert isinstance(error, UnexpectedResponseError)
        assert error.request_id == ID
        assert error.__notes__ == [NOTE + ID]
        error = await error_of(name, response(200, "oops", audit_id=ID, content_encoding="br"))
        assert isinstance(error, UnexpectedResponseError)
        assert error.request_id == ID


async def test_what_is_no_id_is_ignored() -> None:
    for given in ["a b", "a" * 65, "\x1b[31m"]:
        assert request_id_in({"audit-id": given}) == ""
        headers = [(b"audit-id", given.encode())]
        error = await error_of("get", httpx.Response(403, content=json.dumps(FORBIDDEN).encode(), headers=headers))
        assert isinstance(error, StatusError)
        assert error.request_id == ""
        assert not any(note.startswith(NOTE) for note in error.__notes__)


async def test_the_text_of_an_error_that_repeats_stays_the_same() -> None:
    first, second = [await error_of("get", response(403, json.dumps(FORBIDDEN), audit_id=each)) for each in "ab"]
    assert str(first) == str(second)
    assert f"{NOTE}b" in "".join(traceback.format_exception(second))


async def test_the_error_of_repeated_attempts_has_them_as_a_note(autojump_clock: trio.testing.MockClock) -> None:
    for name in ["list"]:
        reply = {"body": json.dumps({**FORBIDDEN, "code": 503, "reason": "ServiceUnavailable"}), "retry_after": "1"}
        async with client_of(*(response(503, **reply) for _ in range(11))) as (client, _):
            with pytest.raises(StatusError) as caught:
                await CALLS[name](client)
        note, server = caught.value.__notes__
        assert server.startswith("server: ")
        assert re.fullmatch(r"after 11 attempts in 10\.\d s", note)
        assert "attempts" not in str(caught.value)
