"""Servers and sources that send invalid objects, events and lists, and the contents of the cache afterwards.

There are three results, and each test says which it expects:

- An object is undecodable: it is reported and counted, its last state stays in the cache, and the watch continues.
- A whole response is invalid: that is an error like any other, reported to ``watch_error_handler``, and retried.
- The input is valid after all: null items are an empty list, a resourceVersion need not be a number.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeAlias

import attrs
import httpx
import pytest
import trio
import trio.testing

from tests.support.scripted_http import InMemory, response
from tests.support.scripted_list_watch import (
    Recorder,
    ScriptedListWatch,
    added,
    bookmark,
    deleted,
    listing,
    modified,
    pod,
    reached,
)
from trioformer.cache import Added, ApiListWatch, Deleted, InformerPhase, ReflectorOptions, SharedInformer
from trioformer.client import Undecodable, WatchEvent, open_client
from trioformer.errors import (
    ConnectionFailedError,
    DecodeError,
    ExpiredError,
    InternalServerError,
    LimitExceededError,
    ServiceUnavailableError,
    UnexpectedResponseError,
)
from trioformer.kubeconfig import ClusterConfig
from trioformer.models.core_v1 import Pod

CONFIG = ClusterConfig(server="http://server.invalid", source="test")
JSON: TypeAlias = "dict[str, object]"


def a_pod(name: str, version: str, **more: object) -> JSON:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": version}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, **more}


def a_list(*items: object, version: object = "10", **more: object) -> bytes:
    whole = {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": version}, "items": items, **more}
    return json.dumps(whole).encode()


def event(kind: str, obj: object) -> bytes:
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


END: JSON = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": {"resourceVersion": "10", "annotations": {"k8s.io/initial-events-end": "true"}},
}
TABLE: JSON = {
    "kind": "Table",
    "apiVersion": "meta.k8s.io/v1",
    "metadata": {"resourceVersion": "12"},
    "columnDefinitions": [{"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0}],
    "rows": [{"cells": ["a"], "object": {"kind": "PartialObjectMetadata", "metadata": {"name": "a"}}}],
}


@attrs.define(eq=False)
class BadServer(httpx.AsyncBaseTransport):
    """Responds with bodies from two scripts; the last list is repeated, and watches after the script send nothing."""

    lists: list[bytes] = attrs.field(factory=list)
    watches: list[list[bytes | Exception | float | None]] = attrs.field(factory=list)
    asked: list[tuple[str, str]] = attrs.field(factory=list)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        params = request.url.params
        is_watch = "watch" in params
        # Before the reflector resumes a watch over a new connection, it lists one object, at the version.
        verb = "watch" if is_watch else "check" if params.get("limit") == "1" else "list"
        self.asked.append((verb, params.get("resourceVersion", "")))
        if is_watch:
            reply = response(200, *(self.watches.pop(0) if self.watches else [None]))
        else:
            reply = response(200, self.lists[0] if len(self.lists) == 1 else self.lists.pop(0))
        return await InMemory([reply]).handle_async_request(request)


@attrs.define(eq=False)
class Seen:
    """What an informer of such a server has reported."""

    informer: SharedInformer[Pod]
    notifications: list[str]
    undecodable: list[Undecodable] = attrs.field(factory=list)
    errors: list[Exception] = attrs.field(factory=list)

    @property
    def cache(self) -> dict[str, str]:
        return {each.name: each.resource_version for each in self.informer.lister}

    @property
    def reasons(self) -> list[str]:
        """The errors of the undecodable objects, without the prefix that is the same each time."""
        return [str(each.error).removeprefix("list pods: ").removeprefix("watch pods: ") for each in self.undecodable]


@asynccontextmanager
async def following(
    source: BadServer | ScriptedListWatch, seconds: float = 60.0, *, watch_list: bool = False
) -> AsyncIterator[Seen]:
    """Run an informer of a server, and yield its results after some seconds, while it still runs."""
    undecodable: list[Undecodable] = []
    errors: list[Exception] = []
    options = ReflectorOptions(
        watch_list=watch_list, undecodable_handler=undecodable.append, watch_error_handler=errors.append
    )
    async with open_client(CONFIG, http_transport=source if isinstance(source, BadServer) else None) as client:
        recorder = Recorder()
        informer = SharedInformer(
            ApiListWatch(client.api(Pod)) if isinstance(source, BadServer) else source, options=options
        )
        informer.add_event_handler(recorder)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(informer.run)
            await trio.sleep(seconds)
            seen = Seen(informer, recorder.seen, undecodable, errors)
            assert informer.statistics().reflector.undecodable == len(undecodable)
            yield seen
            nursery.cancel_scope.cancel()


# --- objects in lists and events: ignored, reported, counted ---

BAD_OBJECTS = [
    ({"kind": "Pod"}, "", "missing required field `metadata`"),
    ({"metadata": None}, "", "Expected `object`, got `null` - at `$.metadata`"),
    ({"metadata": 7}, "", "Expected `object`, got `int` - at `$.metadata`"),
    ({"metadata": {"name": 7}}, "", "Expected `str | null`, got `int` - at `$.metadata.name`"),
    ({"metadata": {"namespace": "default"}}, "", "the server sent a Pod without a name"),
    (
        {"metadata": {"name": "bad", "namespace": "default", "uid": []}},
        "default/bad",
        "Expected `str | null`, got `array` - at `$.metadata.uid`",
    ),
    (
        {"metadata": {"name": "bad", "namespace": "default", "resourceVersion": 11}},
        "default/bad",
        "Expected `str | null`, got `int` - at `$.metadata.resourceVersion`",
    ),
    ({**a_pod("bad", "11"), "kind": "Service"}, "default/bad", "the server sent a Service, not a Pod"),
    (TABLE, "", "the server sent a Table, not a Pod"),
]


WITH_KEY = [each for each in BAD_OBJECTS if each[1]]
KEYLESS = [(bad, why) for bad, key, why in BAD_OBJECTS if not key]


@pytest.mark.parametrize(("bad", "key", "why"), WITH_KEY)
async def test_an_undecodable_object_of_a_list_is_ignored_and_reported(
    bad: object, key: str, why: str, autojump_clock: trio.testing.MockClock
) -> None:
    server = BadServer([a_list(a_pod("a", "1"), bad, a_pod("b", "2"))], [[event("ADDED", a_pod("c", "11")), None]])
    async with following(server) as seen:
        assert seen.cache == {"a": "1", "b": "2", "c": "11"}
        assert seen.informer.is_healthy
        (found,) = seen.undecodable
        assert (found.kind, found.key, found.event_type, json.loads(found.raw)) == ("Pod", key, "", bad)
        assert why in str(found.error)
        assert seen.errors == []


@pytest.mark.parametrize(
    ("bad", "why"), [*KEYLESS, *((each, "Expected `object`") for each in (None, 7, "text", [], True))]
)
@pytest.mark.parametrize("watch_list", [False, True])
async def test_an_object_without_a_key_fails_its_list_which_backs_off(
    bad: object, why: str, watch_list: bool, autojump_clock: trio.testing.MockClock
) -> None:
    """client-go fails to decode such a list."""
    if watch_list:
        server = BadServer([a_list(a_pod("b", "2"))], [[event("ADDED", a_pod("a", "1")) + event("ADDED", bad), None]])
    else:
        server = BadServer([a_list(a_pod("a", "1"), bad), a_list(a_pod("b", "2"))])
    async with following(server, 0.5, watch_list=watch_list) as seen:
        assert seen.informer.state.phase is InformerPhase.BACKING_OFF
        await trio.sleep(5)
        (error,) = seen.errors
        assert isinstance(error, DecodeError)
        assert watch_list or why in str(error)
        assert [each.key for each in seen.undecodable] == [""]
        assert seen.notifications == ["+b@2*"], "nothing of the list that failed"
        first = ("watch", "") if watch_list else ("list", "0")
        assert server.asked == [first, ("list", "0"), ("watch", "10")]


@pytest.mark.parametrize(("bad", "key", "why"), WITH_KEY)
@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED"])
async def test_an_undecodable_event_is_ignored_and_the_last_state_is_kept(
    kind: str, bad: object, key: str, why: str, autojump_clock: trio.testing.MockClock
) -> None:
    frames = [event(kind, bad), event("ADDED", a_pod("c", "12")), None]
    server = BadServer([a_list(a_pod("a", "1"), a_pod("bad", "2"))], [list(frames)])
    async with following(server) as seen:
        assert seen.notifications == ["+a@1*", "+bad@2*", "+c@12"]
        (found,) = seen.undecodable
        assert (found.key, found.event_type) == (key, kind)
        assert why in str(found.error)
        assert server.asked == [("list", "0"), ("watch", "10")], "the watch continues"


@pytest.mark.parametrize(("bad", "why"), KEYLESS)
@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED"])
async def test_an_undecodable_event_without_a_key_is_followed_by_a_list(
    kind: str, bad: object, why: str, autojump_clock: trio.testing.MockClock
) -> None:
    """Nothing else shows which object has changed, nor to what."""
    lists = [a_list(a_pod("a", "1"), a_pod("bad", "2")), a_list(a_pod("a", "1"), a_pod("bad", "12"), version="20")]
    server = BadServer(lists, [[event("ADDED", a_pod("c", "11")) + event(kind, bad), None]])
    async with following(server) as seen:
        assert seen.notifications == ["+a@1*", "+bad@2*", "+c@11", "-c@11?", "bad@2→12"]
        (found,) = seen.undecodable
        assert (found.key, found.event_type) == ("", kind)
        assert why in str(found.error)
        assert seen.errors == [found.error]
        assert server.asked == [("list", "0"), ("watch", "10"), ("list", "11"), ("watch", "20")]


@pytest.mark.parametrize(("bad", "key", "why"), BAD_OBJECTS)
async def test_an_undecodable_deletion_deletes_its_key_or_is_followed_by_a_list(
    bad: object, key: str, why: str, autojump_clock: trio.testing.MockClock
) -> None:
    lists = [a_list(a_pod("a", "1"), a_pod("bad", "2")), a_list(a_pod("a", "1"), version="20")]
    server = BadServer(lists, [[event("DELETED", bad), None]])
    async with following(server) as seen:
        assert seen.notifications == ["+a@1*", "+bad@2*", "-bad@2?"]
        assert seen.errors == ([] if key else [seen.undecodable[0].error])
        again = [] if key else [("list", "10"), ("watch", "20")]
        assert server.asked == [("list", "0"), ("watch", "10"), *again]


# --- frames ---


POD = json.dumps(a_pod("a", "11")).encode()
WITHOUT_KEY = [
    (b'{"type":"ADDED","object":%s,"spec":\n' % POD[:-1], "ADDED", "not an event"),  # the line is cut off
    (b'{"type":"ADDED","object":%s"x}\n' % POD[:-1], "ADDED", "not an event"),
    (b"nonsense\n", "", "a watch frame is not an event"),
    (b"[]\n", "", "a watch frame is not an event"),
    (b"null\n", "", "a watch frame is not an event"),
    (b"{}\n", "", "a watch event has no object"),
    (b'{"type":"ADDED"}\n', "ADDED", "a watch event has no object"),
    (b'{"type":"MODIFIED","object":null}\n', "MODIFIED", "a watch event has no object"),
    (b'{"type":"MODIFIED","object":[]}\n', "MODIFIED", "a watch event has no object"),
    (
        b'{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"\xff"}}}\n',
        "ADDED",
        "UTF-8",
    ),
]


@pytest.mark.parametrize(("frame", "kind", "why"), WITHOUT_KEY)
async def test_a_frame_without_a_key_is_reported_and_followed_by_a_list(
    frame: bytes, kind: str, why: str, autojump_clock: trio.testing.MockClock
) -> None:
    lists = [a_list(a_pod("a", "1")), a_list(a_pod("a", "12"), version="20")]
    server = BadServer(lists, [[frame, event("MODIFIED", a_pod("a", "12")), None]])
    async with following(server) as seen:
        assert seen.notifications == ["+a@1*", "a@1→12"]
        assert [found.event_type for found in seen.undecodable] == [kind]
        assert why in str(seen.undecodable[0].error)
        assert seen.errors == [seen.undecodable[0].error]
        assert server.asked == [("list", "0"), ("watch", "10"), ("list", "10"), ("watch", "20")]


@pytest.mark.parametrize(
    ("frame", "kind", "why"),
    [
        (event("REPLACED", a_pod("b", "11")), "REPLACED", "a watch event has an unknown type"),
        (event("", a_pod("b", "11")), "", "a watch event has an unknown type"),
    ],
)
async def test_an_event_of_an_unknown_type_is_ignored_and_the_watch_continues(
    frame: bytes, kind: str, why: str, autojump_clock: trio.testing.MockClock
) -> None:
    server = BadServer([a_list(a_pod("a", "1"))], [[frame, event("MODIFIED", a_pod("a", "12")), None]])
    async with following(server) as seen:
        assert seen.notifications == ["+a@1*", "a@1→12"]
        assert [found.event_type for found in seen.undecodable] == [kind]
        assert why in str(seen.undecodable[0].error)
        assert server.asked == [("list", "0"), ("watch", "10")]


async def test_half_a_frame_at_the_end_of_a_watch_is_a_broken_connection(
    autojump_clock: trio.testing.MockClock,
) -> None:
    half = event("MODIFIED", a_pod("a", "12"))[:40]
    server = BadServer(
        [a_list(a_pod("a", "1"))],
        [[event("MODIFIED", a_pod("a", "11")), half], [event("MODIFIED", a_pod("a", "12")), None]],
    )
    async with following(server) as seen:
        assert seen.notifications == ["+a@1*", "a@1→11", "a@11→12"]
        (error,) = seen.errors
        assert isinstance(error, ConnectionFailedError)
        assert str(error) == "watch pods: the watch ended in the middle of an event; watch again"
        assert [asked for asked in server.asked if asked[0] != "check"] == [
            ("list", "0"),
            ("watch", "10"),
            ("watch", "11"),
        ], "without a list"


async def test_a_frame_of_seventeen_mebibytes_is_followed_by_a_list(
    autojump_clock: trio.testing.MockClock,
) -> None:
    pieces = [b'{"type":"ADDED","object":{"metadata":{"name":"', *[b"x" * 1024 * 1024] * 17, b'"}}}\n', None]
    server = BadServer([a_list(a_pod("a", "1")), a_list(a_pod("a", "1"), version="20")], [pieces])
    async with following(server) as seen:
        assert seen.cache == {"a": "1"}
        assert seen.undecodable == []
        (error,) = seen.errors
        assert isinstance(error, LimitExceededError)
        assert server.asked == [("list", "0"), ("watch", "10"), ("list", "10"), ("watch", "20")]


@pytest.mark.parametrize(
    ("obj", "error", "why"),
    [
        ({"kind": "Status", "code": 410, "reason": "Expired", "message": "old"}, ExpiredError, "old"),
        ({}, InternalServerError, "HTTP 500"),
        ({"code": "410"}, InternalServerError, "HTTP 500"),
        ([], DecodeError, "a watch event has no object"),
        (None, DecodeError, "a watch event has no object"),
    ],
)
async def test_an_error_event_is_never_ignored_whatever_it_contains(
    obj: object, error: type[Exception], why: str, autojump_clock: trio.testing.MockClock
) -> None:
    server = BadServer([a_list(a_pod("a", "1")), a_list(version="20")], [[event("ERROR", obj), None]])
    async with following(server) as seen:
        assert [type(each) for each in seen.errors] == [error]
        assert why in str(seen.errors[0])
        assert (seen.cache, seen.undecodable) == ({}, []), "the cache is that of the second list"


# --- bookmarks ---


@pytest.mark.parametrize(
    "odd",
    [
        {"creationTimestamp": None},
        {"creationTimestamp": "-0001-11-30T00:00:00Z"},
        {"creationTimestamp": -62135596800},
        {"creationTimestamp": "yesterday", "deletionTimestamp": "9999-99-99"},
        {"annotations": None, "labels": None, "managedFields": "none"},
    ],
)
async def test_only_the_version_of_a_bookmark_is_used(odd: JSON, autojump_clock: trio.testing.MockClock) -> None:
    mark = {"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": "15", **odd}}
    server = BadServer([a_list(a_pod("a", "1"))], [[event("BOOKMARK", mark), 40.0], [None]])
    async with following(server) as seen:
        assert (seen.notifications, seen.undecodable, seen.errors) == (["+a@1*"], [], [])
        assert reached(seen.informer) == "15"
        assert server.asked[1:] == [("watch", "10"), ("watch", "15")]


@pytest.mark.parametrize("metadata", [{}, {"resourceVersion": ""}])
async def test_a_bookmark_without_a_version_is_ignored(metadata: JSON, autojump_clock: trio.testing.MockClock) -> None:
    mark = {"kind": "Pod", "apiVersion": "v1", "metadata": metadata}
    server = BadServer([a_list(a_pod("a", "1"))], [[event("BOOKMARK", mark), 40.0], [None]])
    async with following(server) as seen:
        assert (seen.undecodable, seen.errors) == ([], [])
        assert reached(seen.informer) == "10"
        assert server.asked[1:] == [("watch", "10"), ("watch", "10")]


async def test_an_undecodable_bookmark_is_ignored_and_reported(autojump_clock: trio.testing.MockClock) -> None:
    server = BadServer([a_list(a_pod("a", "1"))], [[event("BOOKMARK", {"metadata": {"resourceVersion": 15}}), 40.0]])
    async with following(server) as seen:
        assert [found.event_type for found in seen.undecodable] == ["BOOKMARK"]
        assert server.asked[1:] == [("watch", "10"), ("watch", "10")]


async def test_a_failure_with_the_code_of_a_success_is_its_error(autojump_clock: trio.testing.MockClock) -> None:
    failure = b'{"kind":"Status","status":"Failure","reason":"ServiceUnavailable","message":"no\\u001b[2J"}'
    server = BadServer([failure, a_list(a_pod("a", "1"))], [[failure + b"\n"]])
    async with following(server) as seen:
        assert [type(error) for error in seen.errors] == [ServiceUnavailableError] * 2
        assert [str(error) for error in seen.errors] == [
            rf"{verb} pods: no\x1b[2J (HTTP 503, ServiceUnavailable)" for verb in ("list", "watch")
        ]
        assert seen.undecodable == []


async def test_an_undecodable_end_bookmark_is_followed_by_a_list(autojump_clock: trio.testing.MockClock) -> None:
    end = {**END, "metadata": {**END["metadata"], "resourceVersion": 10}}  # type: ignore[dict-item]  # is a dict
    server = BadServer([a_list(a_pod("a", "1"))], [[event("ADDED", a_pod("a", "1")), event("BOOKMARK", end), None]])
    async with following(server, watch_list=True) as seen:
        assert seen.notifications == ["+a@1*"]
        assert server.asked == [("watch", ""), ("list", "0"), ("watch", "10")]


# --- whole responses ---

WRONG_LISTS = [
    (json.dumps(TABLE).encode(), "the server sent a Table"),
    (json.dumps({**TABLE, "items": []}).encode(), "expected a list of Pod, but the server sent a Table"),
    (json.dumps(a_pod("a", "1")).encode(), "expected a list, but the server sent"),
    (b'{"kind":"Status","status":"Success","code":200}', "the server sent a Status"),
    (
        b'{"kind":"ServiceList","apiVersion":"v1","metadata":{},"items":[]}',
        "expected a list of Pod, but the server sent a ServiceList",
    ),
    (b'{"kind":"PodList","apiVersion":"v1","items":{}}', "expected a list, but the server sent"),
    (b'{"kind":"PodList","apiVersion":"v1","items":7}', "expected a list, but the server sent"),
    (b"[]", "expected a list, but the server sent"),
    (b"null", "expected a list, but the server sent"),
    (b"", "expected a list, but the server sent"),
    (b"<html>Please log in</html>", "expected a list, but the server sent"),
    (a_list(a_pod("a", "1"))[:-20], "expected a list, but the server sent"),
    (a_list(a_pod("a", "1"))[:-1] + b"]", "expected a list, but the server sent"),
]


@pytest.mark.parametrize(("body", "why"), WRONG_LISTS)
async def test_a_response_that_is_not_a_list_is_an_error_and_is_retried(
    body: bytes, why: str, autojump_clock: trio.testing.MockClock
) -> None:
    server = BadServer([body, a_list(a_pod("a", "1"))])
    async with following(server) as seen:
        (error,) = seen.errors
        assert isinstance(error, UnexpectedResponseError)
        assert why in str(error)
        assert "\n" not in str(error)
        assert seen.cache == {"a": "1"}


@pytest.mark.parametrize("items", [b'"items":null', b'"items":[]'])
async def test_null_items_are_an_empty_list(items: bytes, autojump_clock: trio.testing.MockClock) -> None:
    body = b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"10"},' + items + b"}"
    async with following(BadServer([body], [[event("ADDED", a_pod("a", "11")), None]])) as seen:
        assert seen.notifications == ["+a@11"]
        assert (seen.undecodable, seen.errors) == ([], [])


# --- keys and versions ---


async def test_the_last_of_several_objects_with_one_key_is_stored(
    autojump_clock: trio.testing.MockClock,
) -> None:
    twice = [a_pod("a", "1"), a_pod("b", "2"), a_pod("a", "3")]
    async with following(BadServer([a_list(*twice)])) as seen:
        assert seen.notifications == ["+a@3*", "+b@2*"]
    frames = [*(event("ADDED", each) for each in twice), event("BOOKMARK", END), None]
    async with following(BadServer([], [frames]), watch_list=True) as seen:
        assert seen.notifications == ["+a@3*", "+b@2*"]


@pytest.mark.parametrize("version", ["v-ä", "-3", "1e9", "0x10", "9" * 400])
async def test_a_version_need_not_be_a_number(version: str, autojump_clock: trio.testing.MockClock) -> None:
    changed = event("MODIFIED", a_pod("a", f"{version}.2"))
    server = BadServer([a_list(a_pod("a", version), version=f"{version}.1")], [[changed, 40.0], [None]])
    async with following(server) as seen:
        assert seen.notifications == [f"+a@{version}*", f"a@{version}→{version}.2"]
        assert server.asked == [("list", "0"), ("watch", f"{version}.1"), ("watch", f"{version}.2")]
        with pytest.raises(ValueError, match="is not a number"):
            await seen.informer.wait_until_at_least("5")


@pytest.mark.parametrize("version", [10, {}, ["10"]])
async def test_a_list_whose_version_is_not_a_string_is_refused_as_by_client_go(
    version: object, autojump_clock: trio.testing.MockClock
) -> None:
    server = BadServer([a_list(a_pod("a", "1"), version=version), a_list(a_pod("a", "1"))], [[None]])
    async with following(server) as seen:
        (error,) = seen.errors
        assert isinstance(error, UnexpectedResponseError)
        assert "is not a string" in str(error)
        assert server.asked == [("list", "0"), ("list", "0"), ("watch", "10")]
        assert seen.cache == {"a": "1"}


@pytest.mark.parametrize("version", ["", None])
async def test_without_versions_each_other_content_is_an_update(
    version: object, autojump_clock: trio.testing.MockClock
) -> None:
    """Changes between the list and the watch may be missed."""
    states = [a_pod("a", "", spec={"priority": number}) for number in (1, 1, 2, 3)]
    server = BadServer(
        [a_list(states[0], version=version)], [[*(event("MODIFIED", state) for state in states[1:]), 40.0], [None]]
    )
    async with following(server) as seen:
        assert seen.notifications == ["+a@*", "a@→", "a@→"]
        assert server.asked == [("list", "0"), ("watch", ""), ("watch", "")]
        assert reached(seen.informer) == ""


async def test_an_event_with_a_lower_version_is_accepted(autojump_clock: trio.testing.MockClock) -> None:
    """The last event counts: a server that was restored from a backup begins at lower versions."""
    source = ScriptedListWatch([listing(pod("a", 9), version=9)], [[modified(pod("a", 5)) + bookmark(4), 40.0]])
    async with following(source) as seen:
        assert seen.notifications == ["+a@9*", "a@9→5"]
        assert source.asked[-1] == ("watch", "4")


# --- custom sources ---


@pytest.mark.parametrize(
    ("not_model", "what"),
    [
        (None, "None"),
        ({"metadata": {"name": "a", "resourceVersion": "4"}}, "a dict"),
        (1, "an int"),
        (Pod, "the class Pod"),
    ],
)
async def test_items_that_are_not_models_fail_their_list_or_watch(
    not_model: object, what: str, autojump_clock: trio.testing.MockClock
) -> None:
    events = [*added(pod("b", 5)), WatchEvent("MODIFIED", not_model)]
    source = ScriptedListWatch([listing(pod("a"), not_model, version=3), listing(pod("a"), version=3)], [[events]])  # type: ignore[arg-type, list-item]  # wrong on purpose
    async with following(source) as seen:
        assert seen.notifications == ["+a@1*", "+b@5", "-b@5?"]
        assert [what for what, *_ in source.asked] == ["list", "list", "watch", "list", "watch"]
        assert seen.reasons == [f"expected a Pod, received {what}"] * 2


async def test_a_deletion_in_a_watch_list_removes_an_object_that_was_undecodable(
    autojump_clock: trio.testing.MockClock,
) -> None:
    expired = event("ERROR", {"code": 410, "reason": "Expired"})
    first = [event("ADDED", a_pod("x", "2")), event("BOOKMARK", END), 40.0, expired]
    bad = event("ADDED", {"metadata": {"name": "x", "namespace": "default", "uid": 7}})
    second = [bad, event("ADDED", a_pod("a", "3")), event("DELETED", a_pod("x", "11")), event("BOOKMARK", END), None]
    async with following(BadServer([], [first, second]), 120, watch_list=True) as seen:
        assert seen.cache == {"a": "3"}


async def test_the_deletion_of_an_unknown_successor_deletes_the_known_object(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    source = ScriptedListWatch(
        [listing(pod("a", 1, uid="first"), version=3)], [[1.0, deleted(pod("a", 9, uid="second")), None]]
    )
    informer = SharedInformer(source)
    await nursery.start(informer.run)
    with informer.subscribe() as notifications:
        first = await anext(notifications)
        second = await anext(notifications)
    assert isinstance(first, Added)
    assert second == Deleted(first.object, is_stale=True)


@pytest.mark.parametrize("kind", ["REPLACED", "ERROR", "deleted"])
async def test_an_event_of_an_unknown_type_deletes_nothing(kind: str, autojump_clock: trio.testing.MockClock) -> None:
    events = [WatchEvent(kind, pod("a", 4)), *added(pod("b", 5))]  # type: ignore[arg-type]  # wrong on purpose
    async with following(ScriptedListWatch([listing(pod("a"), version=3)], [[events, None]])) as seen:
        assert seen.cache == {"a": "1", "b": "5"}
