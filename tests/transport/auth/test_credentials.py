"""Credentials: tokens, token files, users and passwords."""

# ruff: noqa: ASYNC240  # small local files
from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
import trio

from tests.support.rotated_files import rotate
from tests.support.scripted_http import (
    InMemory,
    response,
)
from trioformer._file_changes import LOOK_PERIOD
from trioformer._files import read_file
from trioformer._secret import Secret
from trioformer.errors import ConfigError
from trioformer.kubeconfig import ClusterConfig
from trioformer.transport._internal import Transport, open_transport
from trioformer.transport.auth import _credentials


async def sent_authorization(config: ClusterConfig) -> str | None:
    http_transport = InMemory([response(200)])
    async with open_transport(config, http_transport=http_transport) as transport:
        await transport.request("GET", "/x")
        assert "s3cret" not in repr(transport._credentials)
    found: str | None = http_transport.requests[0].headers.get("authorization")
    return found


async def test_user_and_password_are_sent() -> None:
    config = ClusterConfig(server="https://x", username="jo", password="s3cret")
    assert await sent_authorization(config) == "Basic am86czNjcmV0"
    assert await sent_authorization(ClusterConfig(server="https://x", username="jo")) == "Basic am86"


@pytest.mark.parametrize(
    ("fields", "key"),
    [({"token": text}, "token") for text in ("", "s3cret\n", "s3cr t", "s3crét")] + [({"username": "a:b"}, "username")],
)
async def test_invalid_credentials_raise_config_errors_that_do_not_show_them(fields: dict[str, str], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        await sent_authorization(ClusterConfig(server="https://x", **fields))  # type: ignore[arg-type]  # mypy checks against every parameter
    assert caught.value.key == key
    assert "s3cr" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.parametrize("fields", [{"token": "s3cret"}, {"token_file": "/x"}, {"username": "jo", "password": "x"}])
async def test_credentials_are_not_sent_without_tls(fields: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="only over https://"):
        async with open_transport(ClusterConfig(server="http://x", **fields)):  # type: ignore[arg-type]  # mypy checks against every parameter
            pass


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text("one\n")
    return file


@asynccontextmanager
async def transport_with(
    file: Path, *replies: httpx.Response, token: str | None = None
) -> AsyncIterator[tuple[Transport, InMemory]]:
    http_transport = InMemory(list(replies) or [response(200) for _ in range(20)])
    config = ClusterConfig(server="https://x", token_file=str(file), token=token)
    async with open_transport(config, http_transport=http_transport) as transport:
        yield transport, http_transport


def tokens(http_transport: InMemory) -> list[str]:
    return [request.headers["authorization"].removeprefix("Bearer ") for request in http_transport.requests]


async def test_a_rotated_token_is_sent_with_the_next_request(token_file: Path, autojump_clock) -> None:
    async with transport_with(token_file) as (transport, http_transport):
        await transport.request("GET", "/x")
        rotate(token_file, "  two  ")
        await transport.request("GET", "/x")  # within the second
        await trio.sleep(LOOK_PERIOD)
        await transport.request("GET", "/x")
        rotate(token_file, "two")
        await trio.sleep(LOOK_PERIOD)
        async with transport.stream("/x", for_watch=True):
            pass
        assert tokens(http_transport) == ["one", "one", "two", "two"]


@pytest.mark.parametrize("content", [b" \n", b"s3cret with space", b"s3cr\xc3\xa9t", None])
async def test_a_token_file_without_a_valid_token_keeps_the_old_one_in_use(
    content: bytes | None, token_file: Path, autojump_clock, caplog: pytest.LogCaptureFixture
) -> None:
    """client-go: TestCachingTokenSource."""
    async with transport_with(token_file) as (transport, http_transport):
        if content is None:
            token_file.unlink()
        else:
            rotate(token_file, content)
        for _ in range(10):
            await trio.sleep(60)
            await transport.request("GET", "/x")
        assert tokens(http_transport) == ["one"] * 10
        assert caplog.text.count("keeping the previous token") == 1, "and not again for the same problem"
        assert "s3cr" not in caplog.text
        rotate(token_file, "two")
        await trio.sleep(LOOK_PERIOD)
        await transport.request("GET", "/x")
        assert tokens(http_transport)[10:] == ["two"]


async def test_a_token_is_used_until_its_file_can_be_read(token_file: Path, autojump_clock) -> None:
    token_file.unlink()
    async with transport_with(token_file, token="first") as (transport, http_transport):
        await transport.request("GET", "/x")
        rotate(token_file, "second")
        await trio.sleep(LOOK_PERIOD)
        await transport.request("GET", "/x")
        assert tokens(http_transport) == ["first", "second"]


@pytest.mark.parametrize("content", [b"", b"s3cret token", None])
async def test_a_token_file_without_any_token_is_a_config_error(content: bytes | None, token_file: Path) -> None:
    if content is None:
        token_file.unlink()
    else:
        token_file.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        async with transport_with(token_file):
            pass
    assert caught.value.file == str(token_file)
    assert "s3cret" not in str(caught.value)


async def test_after_a_401_the_token_file_is_read_again_immediately(token_file: Path, autojump_clock) -> None:
    """client-go: TestTokenSourceTransportRoundTrip."""
    async with transport_with(token_file, response(401), response(200), response(401)) as (transport, http_transport):
        rotate(token_file, "two", age=0)
        assert (await transport.request("GET", "/x")).code == 200
        assert (await transport.request("GET", "/x")).code == 401, "there is no other token"
        assert tokens(http_transport) == ["one", "two", "two"]


async def test_late_401s_do_not_read_an_unchanged_token_file_again(
    token_file: Path, autojump_clock, monkeypatch
) -> None:
    reads = list[str]()
    monkeypatch.setattr(_credentials, "read_file", lambda file: (reads.append(file), read_file(file))[1])
    async with transport_with(token_file, *[response(401) for _ in range(22)]) as (transport, http_transport):
        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(transport.request, "GET", "/x")
        assert len(http_transport.requests) == 20
        assert reads == [str(token_file)]
        rotate(token_file, "two", age=0)
        assert (await transport.request("GET", "/x")).code == 401
        assert len(reads) == 2


async def test_a_401_to_a_request_older_than_the_token_keeps_the_token(token_file: Path, autojump_clock) -> None:
    slow = InMemory([response(200), 30.0, response(401), response(200)])
    config = ClusterConfig(server="https://x", token_file=str(token_file))
    async with open_transport(config, http_transport=slow) as transport, trio.open_nursery() as nursery:
        await trio.sleep(40)
        await transport.request("GET", "/x")
        nursery.start_soon(transport.request, "GET", "/slow")  # sent at 40 with the first token, rejected at 70
        await trio.sleep(25)
        rotate(token_file, "two")
        assert (await transport._credentials.get()).authorization == Secret("Bearer two")  # read at 65
        await trio.sleep(10)
        rotate(token_file, "three", age=0)
        assert (await transport._credentials.get()).authorization == Secret("Bearer two")
        assert tokens(slow) == ["one", "one", "two"]


async def test_a_token_file_that_cannot_be_read_is_a_config_error(tmp_path: Path) -> None:
    for path in (str(tmp_path), "a\0b"):
        with pytest.raises(ConfigError, match="the token file cannot be read"):
            async with open_transport(ClusterConfig(server="https://x", token_file=path)):
                pass
