"""A scripted list and watch, for tests of the cache without a server."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

import attrs
import trio

from trioformer.cache import Added, Deleted, Notification, ResourceEventHandler, SharedInformer, Updated
from trioformer.client import ObjectList, WatchEvent
from trioformer.client._internal import UndecodableHandler
from trioformer.models._internal import make_object
from trioformer.models.core_v1 import Pod


def pod(
    name: str, version: int | str = "1", *, namespace: str = "default", uid: str | None = None, node: str = ""
) -> Pod:
    """Return a small pod as a server would send it."""
    uid = uid if uid is not None else f"uid-{name}"
    spec = f'{{"nodeName":"{node}"}}' if node else "{}"
    metadata = f'{{"name":"{name}","namespace":"{namespace}","uid":"{uid}","resourceVersion":"{version}"}}'
    return make_object(Pod, f'{{"apiVersion":"v1","kind":"Pod","metadata":{metadata},"spec":{spec}}}'.encode())


def listing(*pods: Pod, version: int | str = "1", pages: int = 1) -> ObjectList[Pod]:
    """Return the response to a list."""
    return ObjectList(items=pods, resource_version=str(version), pages=pages)


def reached(informer: SharedInformer[Pod]) -> str:
    """Return the resourceVersion that a cache of all namespaces has reached."""
    return informer._versions._newest[""]


Step: TypeAlias = "list[WatchEvent[Pod]] | float | BaseException | None"
"""Events to return, seconds to sleep, an error to raise, or None to sleep for ever."""


def added(obj: Pod) -> list[WatchEvent[Pod]]:
    return [WatchEvent("ADDED", obj)]


def modified(obj: Pod) -> list[WatchEvent[Pod]]:
    return [WatchEvent("MODIFIED", obj)]


def deleted(obj: Pod) -> list[WatchEvent[Pod]]:
    return [WatchEvent("DELETED", obj)]


def bookmark(version: int | str) -> list[WatchEvent[Pod]]:
    return [WatchEvent("BOOKMARK", pod("", version, namespace="", uid=""))]


@attrs.define(eq=False)
class ScriptedWatch:
    steps: deque[Step]

    async def receive_batch(self) -> list[WatchEvent[Pod]]:
        await trio.lowlevel.checkpoint()
        while self.steps:
            step = self.steps.popleft()
            if step is None:
                await trio.sleep_forever()
            elif isinstance(step, BaseException):
                raise step
            elif isinstance(step, (int, float)):
                await trio.sleep(step)
            else:
                return step
        raise trio.EndOfChannel


@attrs.define(eq=False)
class ScriptedListWatch:
    """Responds to lists and watches from two scripts, and records the requests.

    An exception in a script is raised.
    The last list is repeated, and a watch after the end of the script sends nothing.
    """

    lists: list[ObjectList[Pod] | Exception] = attrs.field(factory=list)
    watches: list[list[Step] | Exception] = attrs.field(factory=list)
    keep: Callable[[Pod], Pod | None] | None = None
    """What a list contains of an object."""
    name: str = "Pod"
    kind: type[Pod] = Pod
    supports_watch_list: bool = False
    delays: list[float] = attrs.field(factory=list)
    """Seconds before the responses to lists."""
    checks: list[Exception | None] = attrs.field(factory=list)
    checked: list[str] = attrs.field(factory=list)
    asked: list[tuple[str, ...]] = attrs.field(factory=list)
    times: list[float] = attrs.field(factory=list)
    requests: list[tuple[float, str]] = attrs.field(factory=list)
    """All requests, including checks: when, and what, such as ``watch 5``."""
    timeouts: list[int] = attrs.field(factory=list)
    open_watches: int = 0
    errors: list[Exception] = attrs.field(factory=list)

    async def list(
        self, *, resource_version: str, page_size: int | None, on_undecodable: UndecodableHandler
    ) -> ObjectList[Pod]:
        await trio.lowlevel.checkpoint()
        self._note("list", resource_version, str(page_size))
        if self.delays:
            await trio.sleep(self.delays.pop(0))
        response = self.lists[0] if len(self.lists) == 1 else self.lists.pop(0)
        if isinstance(response, Exception):
            raise response
        if self.keep is None:
            return response
        kept = [each for each in map(self.keep, response.items) if each is not None]
        return attrs.evolve(response, items=tuple(kept))

    async def wait_to_retry(self, until: float) -> None:
        await trio.sleep_until(until)

    async def check(self, *, resource_version: str) -> None:
        await trio.lowlevel.checkpoint()
        self.checked.append(resource_version)
        self._record(f"check {resource_version}")
        if self.checks and isinstance(response := self.checks.pop(0), Exception):
            raise response

    @asynccontextmanager
    async def watch(
        self,
        *,
        resource_version: str,
        timeout_seconds: int,
        send_initial_events: bool,
        on_undecodable: UndecodableHandler,
    ) -> AsyncIterator[ScriptedWatch]:
        await trio.lowlevel.checkpoint()
        self._note("watch-list" if send_initial_events else "watch", resource_version)
        self.timeouts.append(timeout_seconds)
        script = self.watches.pop(0) if self.watches else [None]
        if isinstance(script, Exception):
            raise script
        self.open_watches += 1
        try:
            yield ScriptedWatch(deque(script))
        finally:
            self.open_watches -= 1

    def _note(self, *what: str) -> None:
        self.asked.append(what)
        self.times.append(trio.current_time())
        self._record(" ".join(what[:2]))

    def _record(self, request: str) -> None:
        self.requests.append((trio.current_time(), request))


@attrs.define(eq=False)
class Recorder(ResourceEventHandler[Pod]):
    """Records notifications as short texts such as ``+a@1``, ``a@1→2``, ``-a@2``; initial ones end with ``*``."""

    seen: list[str] = attrs.field(factory=list)
    at: list[float] = attrs.field(factory=list)
    before: Callable[[], object] | None = None

    async def on_add(self, obj: Pod, *, is_initial: bool) -> None:
        await self._note(words(Added(obj, is_initial)))

    async def on_update(self, old: Pod, new: Pod) -> None:
        await self._note(words(Updated(old, new)))

    async def on_delete(self, obj: Pod, *, is_stale: bool) -> None:
        await self._note(words(Deleted(obj, is_stale)))

    async def _note(self, what: str) -> None:
        await trio.lowlevel.checkpoint()
        self.seen.append(what)
        self.at.append(trio.current_time())


def words(notification: Notification[Pod]) -> str:
    """Return a notification as a short text."""
    if isinstance(notification, Added):
        initial = "*" if notification.is_initial else ""
        return f"+{notification.object.name}@{notification.object.resource_version}{initial}"
    if isinstance(notification, Updated):
        return f"{notification.old.name}@{notification.old.resource_version}→{notification.new.resource_version}"
    return f"-{notification.object.name}@{notification.object.resource_version}{'?' if notification.is_stale else ''}"
