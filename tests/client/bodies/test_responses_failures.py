"""The Status of a failure is an error, also if it comes with the HTTP code of a success."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.support.clients import client_of
from tests.support.levels import TOO_MANY_LEVELS
from tests.support.scripted_http import response
from trioformer import errors
from trioformer.client import Client
from trioformer.errors import StatusError
from trioformer.models import ObjectMeta, metadata_kind
from trioformer.models.core_v1 import Binding, ConfigMap, Pod

STATUS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "nobody may"}
SUCCESS = {**STATUS, "status": "Success", "message": "", "items": []}
FORBIDDEN = {**STATUS, "reason": "Forbidden", "code": 403}
CONFIG_MAP = ConfigMap(metadata=ObjectMeta(name="a"))


async def watch(client: Client) -> None:
    async with client.api(ConfigMap, "x").watch() as events:
        async for _ in events:
            pass


async def watch_and_skip(client: Client) -> None:
    async with client.api(ConfigMap, "x").watch(on_undecodable=lambda _: None) as events:
        async for _ in events:
            pass


Call = Callable[[Client], Awaitable[Any]]
CALLS: dict[str, Call] = {
    "get": lambda client: client.api(ConfigMap, "x").get("a"),
    "get metadata": lambda client: client.api(metadata_kind(ConfigMap), "x").get("a"),
    "get scale": lambda client: client.api(ConfigMap, "x").get("a", subresource="scale"),
    "get other": lambda client: client.api(ConfigMap, "x").get("a", subresource="other"),
    "list": lambda client: client.api(ConfigMap, "x").list(),
    "list and skip": lambda client: client.api(ConfigMap, "x").list(on_undecodable=lambda _: None),
    "list page": lambda client: client.api(ConfigMap, "x").list_page(),
    "check version": lambda client: client.api(ConfigMap, "x").check_resource_version("7"),
    "watch": watch,
    "watch and skip": watch_and_skip,
    "create": lambda client: client.api(ConfigMap, "x").create(CONFIG_MAP),
    "create subresource": lambda client: client.api(Pod, "x").create_subresource("a", "binding", Binding()),
    "replace": lambda client: client.api(ConfigMap, "x").replace(CONFIG_MAP),
    "replace status": lambda client: client.api(ConfigMap, "x").replace_status(CONFIG_MAP),
    "patch": lambda client: client.api(ConfigMap, "x").patch("a", {}),
    "delete": lambda client: client.api(ConfigMap, "x").delete("a"),
    "discover": lambda client: client.discover("e.io/v1", "Widget"),
    "version": lambda client: client.version(),
}


async def test_a_failure_with_the_code_of_a_success_is_an_error_with_the_id_of_the_request() -> None:
    for name in CALLS:
        for code in (200, 206, 403):
            async with client_of(response(code, json.dumps(FORBIDDEN) + "\n", audit_id="i-1")) as (client, _):
                with pytest.raises(errors.ForbiddenError, match=r"nobody may \(HTTP 403, Forbidden\)") as caught:
                    await CALLS[name](client)
            assert caught.value.request_id == "i-1"
            request_id, server = caught.value.__notes__
            assert request_id.endswith(": i-1")
            assert server == "server: https://api.test; credential: none, so the user is anonymous"


async def test_reason_and_code_of_the_status_decide_the_class() -> None:
    for status, kind, code in [
        ({"reason": "NotFound"}, errors.NotFoundError, 404),
        ({"reason": "Conflict", "code": 200}, errors.ConflictError, 409),
        ({"code": 429}, errors.TooManyRequestsError, 429),
        ({}, errors.InternalServerError, 500),
        ({"status": 7}, errors.InternalServerError, 500),
        ({"status": "success"}, errors.InternalServerError, 500),
    ]:
        for name in ("get", "list", "delete", "watch"):
            body = response(200, json.dumps({**STATUS, **status}) + "\n", retry_after="7")
            async with client_of(body) as (client, _):
                with pytest.raises(StatusError) as caught:
                    await CALLS[name](client)
            assert (type(caught.value), caught.value.code) == (kind, code)
            assert not caught.value.is_unexpected_server_error
            assert caught.value.details.retry_after_seconds == (7 if name != "watch" else 0)


async def test_a_status_of_success_is_one_where_nothing_is_returned() -> None:
    async with client_of(*(response(200, json.dumps(SUCCESS)) for _ in range(5))) as (client, _):
        assert await CALLS["delete"](client) is None
        assert await CALLS["create"](client) is CONFIG_MAP
        await CALLS["check version"](client)
        with pytest.raises(errors.UnexpectedResponseError, match="a Status, not a ConfigMap"):
            await CALLS["get"](client)
        with pytest.raises(errors.UnexpectedResponseError, match="the server sent a Status"):
            await CALLS["list"](client)


async def test_a_watch_delivers_the_events_before_a_failure() -> None:
    event = json.dumps({"type": "ADDED", "object": {"metadata": {"name": "a"}}})
    async with (
        client_of(response(200, f"{event}\n{json.dumps(FORBIDDEN)}\n")) as (client, _),
        client.api(ConfigMap, "x").watch(on_undecodable=lambda _: None) as events,
    ):
        assert (await events.__anext__()).object.name == "a"
        with pytest.raises(errors.ForbiddenError, match="watch configmaps in namespace x: nobody may"):
            await events.__anext__()


async def test_a_status_of_megabytes_is_its_error() -> None:
    for name in ["get", "list", "watch"]:
        novel = {f"key-{i}": [{"a": i}] for i in range(20_000)}
        big = {**FORBIDDEN, "message": "x" * 300_000, "details": novel}
        async with client_of(
            *(response(200, json.dumps(each) + "\n") for each in (big, {**big, "status": "Success"}))
        ) as (client, _):
            with pytest.raises(errors.ForbiddenError, match=r"\(HTTP 403, Forbidden\)"):
                await CALLS[name](client)
            if name == "delete":
                assert await CALLS[name](client) is None


SPEC = b'"data":' + b'{"k":' * TOO_MANY_LEVELS + b"1" + b"}" * TOO_MANY_LEVELS
DEEP = b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"x"},' + SPEC + b"}"


async def test_an_object_with_too_many_levels_is_named_and_not_the_address() -> None:
    for call in ["get", "get scale", "create"]:
        async with client_of(response(200, DEEP), response(200, DEEP)) as (client, _):
            with pytest.raises(errors.DecodeError) as caught:
                await CALLS[call](client)
        text = str(caught.value)
        assert text.startswith(call.split()[0]), text
        assert "it has too many levels of arrays and objects; up to 128 are supported" in text
        assert "address" not in text


async def test_an_object_of_a_wrong_type_is_named_and_not_the_address() -> None:
    for metadata, problem in [
        ('{"name":7}', "Expected `str | null`, got `int` - at `$.metadata.name`"),
        ("[]", "Expected `object`, got `array` - at `$.metadata`"),
        ("null", "Expected `object`, got `null` - at `$.metadata`"),
    ]:
        body = f'{{"kind":"ConfigMap","apiVersion":"v1","metadata":{metadata}}}'
        for call in ("get", "create", "replace", "get metadata", "get scale"):
            async with client_of(response(200, body), response(200, body)) as (client, _):
                with pytest.raises(errors.DecodeError) as caught:
                    await CALLS[call](client)
                assert str(caught.value).startswith(call.split()[0])
                was_written = "; the server reports success" in str(caught.value)
                assert was_written == (call in ("create", "replace"))
                assert f"cannot decode an object's metadata: {problem}" in str(caught.value)
                assert "address" not in str(caught.value)
