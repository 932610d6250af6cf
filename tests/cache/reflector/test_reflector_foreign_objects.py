"""Objects that no honest server sends: of a name that cannot be one, or of another namespace than was asked for."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from tests.cache.reflector.test_reflector_bad_input import BadServer, a_list, event
from tests.support.scripted_list_watch import ScriptedListWatch, added, listing, pod
from trioformer._text import describe_error
from trioformer.cache import ApiListWatch, ReflectorOptions, SharedInformer
from trioformer.client import open_client
from trioformer.controller import Request
from trioformer.errors import QuarantinedError
from trioformer.kubeconfig import ClusterConfig
from trioformer.models import from_json, key_of
from trioformer.models.core_v1 import Pod

OPTIONS = ReflectorOptions(watch_list=False, watch_error_handler=lambda _: None)


def a_pod(name: str, namespace: str | None = "default", version: str = "1") -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "resourceVersion": version}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": {k: v for k, v in metadata.items() if v is not None}}


@asynccontextmanager
async def following(
    servers: dict[str, BadServer], *, is_merged: bool = False, seconds: float = 60.0
) -> AsyncIterator[SharedInformer[Pod]]:
    """Run an informer without a handler for undecodable objects; ``is_merged`` reads each namespace by itself."""
    async with AsyncExitStack() as stack, trio.open_nursery() as nursery:
        sources: dict[str, ApiListWatch[Pod]] = {}
        for namespace, server in servers.items():
            opened = open_client(ClusterConfig(server="https://api.test"), http_transport=server)
            client = await stack.enter_async_context(opened)
            sources[namespace] = ApiListWatch(client.api(Pod, namespace or None))
        informer = SharedInformer(sources if is_merged else sources.popitem()[1], options=OPTIONS)
        nursery.start_soon(informer.run)
        await trio.sleep(seconds)
        yield informer
        nursery.cancel_scope.cancel()


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]


@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED", "DELETED"])
async def test_an_object_of_another_namespace_does_not_reach_that_namespace(
    kind: str, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """The server of one namespace must not write into the part of the cache that another one fills."""
    foreign = a_pod("b", "y", version="7")
    x = BadServer([a_list(a_pod("a", "x"), foreign)], [[event(kind, foreign), event("ADDED", a_pod("c", "x")), None]])
    y = BadServer([a_list(a_pod("b", "y"))])
    async with following({"x": x, "y": y}, is_merged=True) as informer:
        assert {key_of(each): each.resource_version for each in informer.lister} == {"x/a": "1", "y/b": "1", "x/c": "1"}
        assert informer.lister.quarantined() == {}
        assert {name: each.undecodable for name, each in informer.statistics().reflectors.items()} == {"x": 2, "y": 0}
    (warning,) = warnings_of(caplog)
    assert "ignored: expected a Pod of namespace x, received one of namespace y" in warning


@pytest.mark.parametrize("uid", ["u", 7], ids=["decodable", "undecodable"])
async def test_an_object_without_a_namespace_is_of_the_requested_one(
    uid: object, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Some aggregated servers omit the namespace; a key without one belongs to no part of a merged cache."""
    bad = a_pod("b", None, version="7")
    bad["metadata"]["uid"] = uid
    deletion = event("DELETED", bad)
    x = BadServer([a_list(a_pod("a", "x"), bad)], [[40.0, event("MODIFIED", bad), 40.0, deletion, None]])
    async with following({"x": x, "y": BadServer([a_list(a_pod("b", "y"))])}, is_merged=True) as informer:
        assert {key_of(each) for each in informer.lister} == {"x/a", "y/b"}
        assert list(informer.lister.quarantined()) == ["x/b"]
        await trio.sleep(60)
        assert {name: each.undecodable for name, each in informer.statistics().reflectors.items()} == {"x": 3, "y": 0}
        assert informer.lister.quarantined() == {}
    assert "x/b is in quarantine" in warnings_of(caplog)[0]
    async with following({"x": BadServer([a_list(a_pod("a", "x"), a_pod("b", None))])}) as informer:
        assert {key_of(each) for each in informer.lister} == {"x/a", "b"}


async def test_what_is_ignored_is_a_warning_once_in_a_while(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "trioformer.cache")
    bookmark = event("BOOKMARK", {"metadata": {"resourceVersion": 15}})
    server = BadServer([a_list(a_pod("a"))], [[bookmark * 100, 40.0, bookmark * 100, None]])
    async with following({"": server}) as informer:
        assert informer.statistics().reflector.undecodable == 200
        assert informer.lister.quarantined() == {}
    (warning,) = warnings_of(caplog)
    assert "ignored: watch pods: " in warning
    assert sum("ignored: watch pods: " in each.getMessage() for each in caplog.records) == 200


async def test_a_source_that_is_no_api_is_checked_as_well(autojump_clock: trio.testing.MockClock) -> None:
    slashed = from_json(Pod, b'{"metadata":{"name":"default/a","resourceVersion":"5"}}')
    source = ScriptedListWatch([listing(pod("a", 1), version=1)], [[added(slashed), None]])
    async with trio.open_nursery() as nursery:
        informer = SharedInformer(source, options=OPTIONS)
        nursery.start_soon(informer.run)
        await trio.sleep(10)
        assert [key_of(each) for each in informer.lister] == ["default/a"]
        assert informer.lister["default/a"].resource_version == "1"
        assert [what for what, *_ in source.asked] == ["list", "watch", "list", "watch"]
        nursery.cancel_scope.cancel()


async def test_a_name_with_control_characters_is_harmless_in_every_text(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Tenants may name a Role so: kube-apiserver refuses only slashes, percent signs and dots."""
    name = "\x1b]0;owned\x07\n\u202e" + "x" * 5_000
    good = a_pod(name)
    bad = {**a_pod(f"{name}-bad"), "kind": "Service\x1b[2J"}
    undecodable = {**a_pod(f"{name}-odd"), "metadata": {**a_pod(f"{name}-odd")["metadata"], "uid": 7}}
    async with following({"": BadServer([a_list(good, bad, undecodable)])}) as informer:
        (found,) = informer.lister
        assert found.name == name, "a name is what the server says"
        quarantined = informer.lister.quarantined()
        assert [key.removeprefix(f"default/{name}") for key in quarantined] == ["-bad", "-odd"]
        with pytest.raises(QuarantinedError) as caught:
            informer.lister.get(f"{name}-bad", namespace="default")
        request = Request.of(found)
        texts = [repr(found), str(caught.value), str(informer.state), repr(request), *map(str, quarantined.values())]
        texts += [describe_error(ValueError(name))]
    texts += [record.getMessage() for record in caplog.records]
    assert len(texts) > 8
    for text in texts:
        assert text.isprintable(), text
        assert len(text) <= 4_500
