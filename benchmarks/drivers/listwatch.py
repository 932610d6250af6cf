"""For rivals without an informer: list, keep the objects in a dict, watch, replace them in the dict."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import measure
from lags import Lags
from measure import Meter

Store: TypeAlias = dict[str, Any]


class Fields(NamedTuple):
    """How a rival's pod is read."""

    key: Callable[[Any], str]
    is_read: Callable[[Any], object]
    annotations: Callable[[Any], dict[str, str]]


def snake_key(pod: Any) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"


def snake_read(pod: Any) -> bool:
    return bool(pod.metadata.labels["pod-template-hash"] and pod.spec.node_name and pod.status.phase)


def camel_read(pod: Any) -> bool:
    return bool(pod.metadata.labels["pod-template-hash"] and pod.spec.nodeName and pod.status.phase)


def annotations(pod: Any) -> dict[str, str]:
    found: dict[str, str] = pod.metadata.annotations
    return found


SNAKE = Fields(snake_key, snake_read, annotations)
CAMEL = Fields(snake_key, camel_read, annotations)


class Follower:
    """Measures a rival's list and watch, and keeps what they bring."""

    def __init__(self, options: Namespace, fields: Fields) -> None:
        self._options = options
        self._fields = fields
        self._meter = Meter()
        self._left = options.events
        self._seen: list[tuple[Any, int]] | None = [] if options.workload == "latency" else None
        self.lags = Lags() if options.tick else None
        self._list: dict[str, object] = {}
        self.store: Store = {}

    def listed(self) -> None:
        """The list is in the store."""
        result = {"objects": len(self.store), **self._meter.read()}
        if self._options.workload == "sync":
            measure.finish({**result})
        if self.lags is not None:
            self._list = measure.of_list({**result, **self.lags.report()})
        measure.ready()
        self._meter = Meter()

    def take(self, pod: Any) -> None:
        """Take an event's object; ends the process after the last."""
        fields = self._fields
        self.store[fields.key(pod)] = pod
        if self._options.read:
            fields.is_read(pod)
        if self._seen is not None:
            self._seen.append((pod, time.time_ns()))
        self._left -= 1
        if not self._left:
            result: dict[str, object] = {"events": self._options.events, **self._meter.read(), **self._list}
            if self.lags is not None:
                result |= self.lags.report()
            if self._seen is not None:
                pairs = [(int(fields.annotations(pod)[measure.SENT]), at) for pod, at in self._seen]
                result |= measure.latencies(pairs)
            measure.finish(result)


async def follow(
    options: Namespace,
    fields: Fields,
    list_all: Callable[[Store], Awaitable[str]],
    watch: Callable[[str], AsyncIterator[Any]],
) -> None:
    """Drive an asynchronous rival: ``list_all`` fills the store and returns the version to watch from."""
    follower = Follower(options, fields)
    if follower.lags is not None:
        follower.lags.start()
    version = await list_all(follower.store)
    follower.listed()
    async for pod in watch(version):
        follower.take(pod)


def follow_sync(
    options: Namespace, fields: Fields, list_all: Callable[[Store], str], watch: Callable[[str], Iterator[Any]]
) -> None:
    """Drive a synchronous rival."""
    follower = Follower(options, fields)
    version = list_all(follower.store)
    follower.listed()
    for pod in watch(version):
        follower.take(pod)
