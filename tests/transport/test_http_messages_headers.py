"""The headers of each request: impersonation as client-go sends it."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

import pytest

from tests.support.scripted_http import InMemory, response, serving
from trioformer.client import ClientOptions
from trioformer.errors import ConfigError
from trioformer.kubeconfig import ClusterConfig, Impersonation
from trioformer.transport._internal import open_transport
from trioformer.transport.http._messages import impersonation_headers

SERVER = "http://memory"


def lines(**fields: Any) -> list[str]:
    given = {"user": "jane", **fields}
    return [f"{name.decode()}: {value.decode()}" for name, value in impersonation_headers(Impersonation(**given))]


def test_user_uid_groups_and_extra_attributes_have_a_header_each() -> None:
    """Values of one attribute have one each.

    client-go: TestImpersonationRoundTripper
    """
    assert lines(uid="7", groups=("dev", "ops"), extra={"scopes": ("view", "edit"), "reason": ("x",)}) == [
        "Impersonate-User: jane",
        "Impersonate-Uid: 7",
        "Impersonate-Group: dev",
        "Impersonate-Group: ops",
        "Impersonate-Extra-scopes: view",
        "Impersonate-Extra-scopes: edit",
        "Impersonate-Extra-reason: x",
    ]
    assert lines() == ["Impersonate-User: jane"]
    assert lines(uid="", groups=(), extra={"scopes": ()}) == ["Impersonate-User: jane"]


def test_keys_of_extra_attributes_are_percent_encoded() -> None:
    """What a header's name cannot have, and the percent sign, so that the server decodes the same key.

    client-go: TestHeaderEscapeRoundTrip
    """
    for key, name in [
        ("scopes", "scopes"),
        ("Scopes", "Scopes"),
        ("example.com/role", "example.com%2Frole"),
        ("100%", "100%25"),
        ("é", "%C3%A9"),
        ("almost%zzpercent%xxencoded", "almost%25zzpercent%25xxencoded"),
        ("abc123!#$+.-_*\\^`~|'", "abc123!#$+.-_*%5C^`~|'"),
        ("a\r\nb", "a%0D%0Ab"),
    ]:
        assert unquote(name) == key
        assert lines(extra={key: ("x",)})[1:] == [f"Impersonate-Extra-{name}: x"]


async def test_what_cannot_be_in_a_header_is_refused() -> None:
    for fields, text in [
        ({"user": ""}, "requires a user"),
        ({"user": "", "groups": ("dev",)}, "requires a user"),
        ({"user": "a\nb"}, "the user to impersonate must not contain control characters"),
        ({"user": " a"}, "begin or end with a space"),
        ({"user": "a\x00"}, "control characters"),
        ({"user": "\ud800"}, "surrogates not allowed"),
        ({"uid": "7\r"}, "the UID to impersonate"),
        ({"groups": ("dev", "o\x7f")}, "the group to impersonate"),
        ({"extra": {"k": ("a\r\nAuthorization: x",)}}, "the extra attribute 'k' to impersonate"),
        ({"extra": {"": ("a",)}}, "must have a key"),
    ]:
        impersonation = Impersonation(**{"user": "jane", **fields})
        with pytest.raises(ValueError, match=text):
            impersonation_headers(impersonation)
        with pytest.raises(ConfigError, match=text) as caught:
            async with open_transport(ClusterConfig(server=SERVER, impersonate=impersonation)):
                pass
        assert caught.value.key == "impersonate"


async def test_requests_lists_watches_and_probes_are_for_the_user_of_the_configuration() -> None:
    async with serving(keep_alive=True) as server:
        server.scripts_probes = True
        impersonation = Impersonation(user="jane", groups=("dev", "ops"))
        async with open_transport(ClusterConfig(server=server.url, impersonate=impersonation)) as transport:
            await transport.request("POST", "/x", content=b"{}")
            for for_watch in (False, True):
                async with transport.stream("/x", for_watch=for_watch) as stream:
                    await stream.receive_some()
    paths = {head.split()[1].partition(b"?")[0] for head in server.heads}
    assert paths == {b"/x", b"/livez"}
    for head in server.heads:
        found = [line for line in head.split(b"\r\n") if line.startswith(b"Impersonate")]
        assert found == [b"Impersonate-User: jane", b"Impersonate-Group: dev", b"Impersonate-Group: ops"]


async def test_another_user_shares_everything_but_the_headers() -> None:
    in_memory = InMemory([response(200, "{}") for _ in range(3)])
    async with open_transport(
        ClusterConfig(server=SERVER), http_transport=in_memory, options=ClientOptions(user_agent="me/1")
    ) as transport:
        jane = transport.impersonating(Impersonation(user="jane", uid="7", groups=("dev",)))
        joe = jane.impersonating(Impersonation(user="joe"))
        for each in (transport, jane, joe):
            await each.request("GET", "/x")
        assert jane._limiter is transport._limiter
        assert jane.health is transport.health
        assert jane._generations is transport._generations
    users = [request.headers.get("impersonate-user") for request in in_memory.requests]
    assert users == [None, "jane", "joe"]
    assert "impersonate-group" not in in_memory.requests[2].headers
    assert {request.headers["user-agent"] for request in in_memory.requests} == {"me/1"}
