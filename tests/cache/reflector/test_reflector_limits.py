"""Limits that a server exceeds: one object is in quarantine by its key, and after a list the reflector backs off."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
import trio
import trio.testing

from tests.support.scripted_http import InMemory, response
from trioformer.cache import ApiListWatch, InformerPhase, ReflectorOptions, SharedInformer
from trioformer.client import open_client
from trioformer.errors import LimitExceededError, QuarantinedError
from trioformer.kubeconfig import ClusterConfig
from trioformer.models.core_v1 import Pod
from trioformer.transport import Limits

LIMITS = Limits(item_bytes=1_000, frame_bytes=1_000, list_bytes=100_000, list_pages=3)


def item(name: str, size: int = 0, version: int = 5) -> dict[str, object]:
    metadata = {"name": name, "namespace": "default", "resourceVersion": str(version)}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "status": {"message": "x" * size}}


def page(*items: object, token: str = "") -> httpx.Response:
    metadata = {"resourceVersion": "7", "continue": token}
    return response(200, json.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": items}))


def event(kind: str, *args: object) -> bytes:
    made = json.dumps({"type": kind, "object": item(*args)}, separators=(",", ":"))  # type: ignore[arg-type]  # passed on
    return made.encode() + b"\n"


@asynccontextmanager
async def informing(*replies: httpx.Response | Exception | float) -> AsyncIterator[SharedInformer[Pod]]:
    options = ReflectorOptions(watch_list=False, watch_error_handler=lambda error: None)
    async with (
        open_client(
            ClusterConfig(server="https://api.test"),
            http_transport=InMemory([*replies, *(response(200, None) for _ in range(50))]),
            limits=LIMITS,
        ) as client,
        trio.open_nursery() as nursery,
    ):
        informer = SharedInformer(ApiListWatch(client.api(Pod)), options=options)
        nursery.start_soon(informer.run)
        await trio.sleep(1)
        yield informer
        nursery.cancel_scope.cancel()


async def test_a_large_object_of_a_list_is_in_quarantine_and_the_others_are_not(autojump_clock) -> None:
    async with informing(page(item("a"), item("fat", 5_000), item("b"))) as informer:
        assert informer.state.phase is InformerPhase.WATCHING
        assert sorted(pod.name for pod in informer.lister.list()) == ["a", "b"]
        with pytest.raises(
            QuarantinedError, match=r"more than Limits\.item_bytes \(1000\); if the server is right, raise"
        ):
            informer.lister.get("default/fat")
        assert "default/fat (undecodable)" in str(informer.state)


async def test_a_large_event_puts_its_object_in_quarantine_until_it_is_small_again(autojump_clock) -> None:
    events = [event("MODIFIED", "a", 5_000, 8), event("ADDED", "b", 0, 9), 10.0, event("MODIFIED", "a", 0, 10), None]
    async with informing(page(item("a")), response(200, *events)) as informer:
        assert informer.state.phase is InformerPhase.WATCHING
        assert informer.lister.get("default/b") is not None
        with pytest.raises(QuarantinedError, match=r"more than Limits\.frame_bytes \(1000\)"):
            informer.lister.get("default/a")
        stale = informer.lister.get("default/a", allow_stale=True)
        assert stale is not None
        assert stale.resource_version == "5"
        await trio.sleep(20)
        assert informer.state.quarantined == 0
        found = informer.lister.get("default/a")
        assert found is not None
        assert found.resource_version == "10"


@pytest.mark.parametrize(
    ("limit", "seconds", "replies"),
    [
        ("list_bytes", 0.0, lambda: [page(*[item(f"web-{i}", 500) for i in range(300)])]),
        ("list_pages", 0.0, lambda: [page(item(f"web-{i}"), token=f"t{i}") for i in range(3)]),
        ("body_progress", 119.5, lambda: [response(200, *[b" ", 50.0] * 1_000)]),
    ],
)
async def test_a_list_over_a_limit_backs_off_with_the_error_in_the_state(
    limit: str, seconds: float, replies, autojump_clock
) -> None:
    """It is never permanent: an aggregated API server must not be able to end a program."""
    failing = [reply for _ in range(3) for reply in replies()]
    async with informing(*failing, page(item("a"))) as informer:
        await trio.sleep(seconds)
        assert informer.state.phase is InformerPhase.BACKING_OFF
        error = informer.state.error
        assert isinstance(error, LimitExceededError)
        assert error.limit == limit
        assert f"Limits.{limit}" in str(informer.state)
        await trio.sleep(1_000)
        assert informer.state.phase is InformerPhase.WATCHING
        assert informer.state.error is None
        assert [pod.name for pod in informer.lister.list()] == ["a"]
