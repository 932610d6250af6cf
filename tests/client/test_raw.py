"""Requests to any path, streamed bodies, and the health of the server."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
import trio
from trio.testing import MockClock

from tests.support.clients import client_of
from tests.support.scripted_http import Body, response
from trioformer.client import Client
from trioformer.client._raw import Health, HealthCheck
from trioformer.errors import (
    InternalServerError,
    LimitExceededError,
    NotFoundError,
    ServiceUnavailableError,
    UnauthorizedError,
    UnexpectedResponseError,
)
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import ConfigMap
from trioformer.testing import APIServer
from trioformer.transport import Limits

CONFIG_MAP = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}'
NOT_FOUND = '{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","message":"gone","code":404}'


def streamed(*steps: Any, code: int = 200) -> httpx.Response:
    return httpx.Response(code, stream=Body(steps))


# --- requests ---


async def test_a_request_has_method_path_query_and_body() -> None:
    async with client_of(response(201, '{"a": [1]}', **{"X-One": "1"})) as (client, http):
        params = {"labelSelector": "a=b,c", "follow": True, "limit": 3, "none": None, "command": ["a", "b"]}
        answer = await client.request("POST", "/apis/x.test/v1/things", params=params, body={"metadata": {}, "n": 0})
    (request,) = http.requests
    assert (request.method, str(request.url)) == (
        "POST",
        "https://api.test/apis/x.test/v1/things?labelSelector=a%3Db%2Cc&follow=true&limit=3&command=a&command=b",
    )
    assert (request.headers["content-type"], request.content) == ("application/json", b'{"metadata":{},"n":0}')
    assert request.headers["accept"] == "application/json, */*"
    assert (answer.code, answer.headers["x-one"], answer.json(), answer.text) == (201, "1", {"a": [1]}, '{"a": [1]}')


async def test_a_body_is_bytes_text_or_what_is_sent_as_json() -> None:
    for body, content_type, sent in [
        (b"\x00\xff", "application/octet-stream", b"\x00\xff"),
        ("a: b", "application/yaml", b"a: b"),
        (ConfigMap(metadata=ObjectMeta(name="a")), None, CONFIG_MAP),
        ([{"op": "remove"}], None, b'[{"op":"remove"}]'),
    ]:
        async with client_of(response(200, "{}")) as (client, http):
            await client.request("PUT", "/x", body=body, content_type=content_type, accept="text/plain")
        (request,) = http.requests
        assert request.content == sent
        assert request.headers["content-type"] == (content_type or "application/json")
        assert request.headers["accept"] == "text/plain"


async def test_a_mistake_is_not_sent() -> None:
    for method, path, body, error, text in [
        ("get", "/version", None, ValueError, "a method must consist of upper-case letters, such as GET"),
        ("GET", "http://other/version", None, ValueError, "a path must begin with a slash"),
        ("GET", "/version?a=b", None, ValueError, "pass the query as params"),
        ("GET", "/a\r\nX: y", None, ValueError, "a path must be quoted"),
        ("GET", "/a%zz", None, ValueError, "a path must be quoted"),
        ("DELETE", "/api/v1/namespaces/prod/configmaps/.", None, ValueError, "segments '.' or '..'"),
        ("DELETE", "/api/v1/namespaces/prod/configmaps/%2E./x", None, ValueError, "segments '.' or '..'"),
        ("DELETE", "/api/v1/namespaces/prod%2f..%2fx", None, ValueError, "segments '.' or '..'"),
    ]:
        async with client_of() as (client, http):
            with pytest.raises(error, match=text):
                await client.request(method, path, body=body)
            with pytest.raises(error, match=text):
                async with client.stream(method, path, body=body):
                    raise AssertionError
        assert http.requests == []


async def test_options_that_cannot_be_sent_are_a_mistake() -> None:
    for options, error, text in [
        ({"params": {"a": 1.5}}, TypeError, "not iterable"),
        ({"params": {"a": "\udc80"}}, ValueError, "surrogates not allowed"),
        ({"accept": "a\r\nX: y"}, ValueError, "a header must not contain a line break"),
        ({"accept": "a\udc80"}, ValueError, "surrogates not allowed"),
        ({"content_type": "a\r\nX: y", "body": b"x"}, ValueError, "a header must not contain a line break"),
    ]:
        async with client_of() as (client, http):
            with pytest.raises(error, match=text):
                await client.request("POST", "/x", **options)
            with pytest.raises(error, match=text):
                async with client.stream("POST", "/x", **options):
                    raise AssertionError
        assert http.requests == []


async def test_an_error_names_the_request_without_its_query() -> None:
    async with client_of(response(404, NOT_FOUND), response(404, NOT_FOUND)) as (client, _):
        with pytest.raises(NotFoundError, match=r"^GET /x: gone") as raised:
            await client.request("GET", "/x", params={"token": "hidden"})
        with pytest.raises(NotFoundError, match=r"^GET /x: gone") as streamed_error:
            async with client.stream("GET", "/x", params={"token": "hidden"}):
                raise AssertionError
    assert "hidden" not in str(raised.value) + str(streamed_error.value)


async def test_a_failure_with_the_code_of_a_success_and_a_redirect_are_errors() -> None:
    redirect = httpx.Response(302, headers={"location": "https://other.test/login"})
    async with client_of(response(200, NOT_FOUND), redirect) as (client, _):
        with pytest.raises(NotFoundError):
            await client.request("GET", "/x")
        with pytest.raises(UnexpectedResponseError, match="a redirect, which is not followed"):
            await client.request("GET", "/x")


async def test_a_body_that_is_not_json_raises_only_when_it_is_decoded() -> None:
    async with client_of(response(200, "# HELP x\n"), response(200, "[" * 100_000)) as (client, _):
        metrics = await client.request("GET", "/metrics")
        assert metrics.text == "# HELP x\n"
        with pytest.raises(UnexpectedResponseError, match=r"to GET /metrics: not JSON"):
            metrics.json()
        with pytest.raises(UnexpectedResponseError, match="not JSON"):
            (await client.request("GET", "/deep")).json()
    assert "body=<9 bytes>" in repr(metrics)
    assert "HELP" not in repr(metrics)


async def test_a_complete_response_has_a_limit_and_a_stream_has_none() -> None:
    limits = Limits(object_bytes=10)
    replies = [streamed(b"x" * 11), streamed(b"x" * 20), streamed(*[b"x" * 10] * 9)]
    async with client_of(*replies, limits=limits) as (client, _):
        with pytest.raises(LimitExceededError, match="object_bytes"):
            await client.request("GET", "/x")
        async with client.stream("GET", "/x") as body:
            assert len(b"".join([chunk async for chunk in body])) == 20
        async with client.stream("GET", "/x", endless=True) as body:
            assert sum([len(chunk) async for chunk in body]) == 90


# --- streams ---


async def test_lines_are_cut_wherever_chunks_end() -> None:
    steps = [b"one\ntw", b"o\r\nth", b"ree", b"\n\n", b"\xff", b"last"]
    async with client_of(streamed(*steps), streamed(b"a\n"), streamed()) as (client, _):
        async with client.stream("GET", "/log") as body:
            assert [line async for line in body.lines()] == ["one", "two", "three", "", "\ufffdlast"]
        async with client.stream("GET", "/log") as body:
            assert [line async for line in body.lines()] == ["a"]
        async with client.stream("GET", "/log") as body:
            assert [line async for line in body.lines()] == []


async def test_a_line_that_is_too_long_is_an_error() -> None:
    for steps in [[b"x" * 11], [b"ok\n" + b"x" * 6, b"x" * 5], [b"x" * 11 + b"\n"], [b"ok\nok\n" + b"x" * 11 + b"\n"]]:
        async with (
            client_of(streamed(*steps), limits=Limits(object_bytes=10)) as (client, _),
            client.stream("GET", "/log", endless=True) as body,
        ):
            with pytest.raises(LimitExceededError, match=r"^GET /log: a line is too long.*object_bytes"):
                async for _ in body.lines():
                    pass


async def test_an_endless_stream_may_be_silent(autojump_clock: MockClock) -> None:
    async with (
        client_of(streamed(b"a", 3600.0, b"b")) as (client, _),
        client.stream("GET", "/log", endless=True) as body,
    ):
        assert [chunk async for chunk in body] == [b"a", b"b"]


async def test_receiving_can_be_cancelled_and_then_nothing_more_is_received(autojump_clock: MockClock) -> None:
    async with client_of(streamed(b"a", None)) as (client, _), client.stream("GET", "/log", endless=True) as body:
        assert await body.receive_some() == b"a"
        with trio.move_on_after(1) as scope:
            await body.receive_some()
        assert scope.cancelled_caught
        with pytest.raises(trio.ClosedResourceError):
            await body.receive_some()


# --- health ---

VERBOSE = "[+]ping ok\n[+]etcd excluded: ok\n[+]poststarthook/rbac/bootstrap-roles ok\nreadyz check passed\n"
FAILED = "[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed\n"


async def test_health_has_the_checks_of_the_server() -> None:
    async with client_of(response(200, VERBOSE), response(500, FAILED)) as (client, http):
        healthy = await client.health(exclude=["etcd", "log"])
        failing = await client.health("readyz")
    assert str(http.requests[0].url) == "https://api.test/readyz?verbose=&exclude=etcd&exclude=log"
    assert healthy == Health(
        endpoint="readyz",
        is_ok=True,
        checks=(
            HealthCheck(name="ping", is_ok=True, is_excluded=False, text="ok"),
            HealthCheck(name="etcd", is_ok=True, is_excluded=True, text="excluded: ok"),
            HealthCheck(name="poststarthook/rbac/bootstrap-roles", is_ok=True, is_excluded=False, text="ok"),
        ),
    )
    assert (failing.is_ok, failing.failed) == (False, ("etcd",))
    assert failing.checks[1].text == "failed: reason withheld"


async def test_what_no_health_endpoint_sends_is_an_error() -> None:
    for reply, error in [
        (lambda: response(503, "<html><title>maintenance</title>"), ServiceUnavailableError),
        (lambda: response(500, "internal server error"), InternalServerError),
        (lambda: response(404, "404 page not found"), NotFoundError),
        (lambda: response(401, "Unauthorized"), UnauthorizedError),
        (lambda: response(200, "<html><title>welcome</title>"), UnexpectedResponseError),
        (lambda: response(200, NOT_FOUND), NotFoundError),
    ]:
        async with client_of(reply()) as (client, _):
            with pytest.raises(error):
                await client.health("readyz")


async def test_what_is_no_health_endpoint_is_a_mistake() -> None:
    for endpoint in ["", "/readyz", "ready", "readyz/", "metrics"]:
        async with client_of() as (client, _):
            with pytest.raises(
                ValueError, match="must be one of healthz, livez, readyz, or a check such as readyz/etcd"
            ):
                await client.health(endpoint)
            with pytest.raises(TypeError, match=r"write exclude=\['etcd'\]"):
                await client.health(exclude="etcd")


async def test_the_embedded_server_reports_its_health(api_server: APIServer, client: Client) -> None:
    health = await client.health(exclude=["etcd"])
    assert [check.name for check in health.checks if check.is_excluded] == ["etcd"]
    unknown = await client.request("GET", "/readyz", params={"verbose": "", "exclude": "nope"})
    assert 'no matches for "nope"' in unknown.text
