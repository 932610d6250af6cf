"""Follow objects with an informer, either as whole objects or as rows of the server's tables.

In kubectl, a watch ends if the connection fails.  An informer reconnects, lists again if necessary, and reports the
changes that occurred in the meantime.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, final

import attrs
import trio

from ...cache import Added, ApiListWatch, Deleted, ReflectorOptions, SharedInformer, Updated
from ...cache._internal import EventSource, ListWatch
from ...client import Client, ObjectList, WatchEvent
from ...client._internal import RawLines, UndecodableHandler
from ...errors import ConnectionFailedError, StatusError, UnexpectedResponseError
from ...models import KubernetesObject, Unstructured, to_dict, unstructured_kind
from .._resources import TABLES, Target

__all__ = ["RowListWatch", "follow", "follow_rows", "object_list_watch"]

_BUFFER: Final = 10_000
_PATIENCE: Final = 3_600.0
"""How long the output may be blocked, in seconds."""

OnEvent = Callable[[str, Mapping[str, Any]], None]
"""A function that is called with the type of an event, such as ``ADDED``, and the object or row."""


def object_list_watch(
    client: Client, target: Target, *, selector: str = "", field_selector: str = ""
) -> ListWatch[KubernetesObject]:
    """Return a list/watch for the objects of a target."""
    kind: type[KubernetesObject] = unstructured_kind(target.resource)
    fields = [each for each in (field_selector, f"metadata.name={target.name}" if target.name else "") if each]
    return ApiListWatch(
        client.api(kind, target.namespace), label_selector=selector or None, field_selector=",".join(fields) or None
    )


async def follow(
    client: Client, target: Target, on_event: OnEvent, *, selector: str = "", field_selector: str = ""
) -> None:
    """Report each object and each of its changes until cancelled.

    Raises:
        ExceptionGroup: If the first list fails with a permanent error.
    """
    source = object_list_watch(client, target, selector=selector, field_selector=field_selector)

    def report(event: str, obj: KubernetesObject) -> None:
        on_event(event, to_dict(obj))

    await _run(source, report)


async def follow_rows(
    client: Client, target: Target, on_event: OnEvent, *, selector: str = "", field_selector: str = ""
) -> None:
    """Report each row of the server's table, and each change of a row, until cancelled.

    Each row is reported as a table that contains only this row.

    Raises:
        ExceptionGroup: If the first list fails with a permanent error.
    """
    source = RowListWatch(client, target, selector, field_selector)

    def report(event: str, obj: KubernetesObject) -> None:
        on_event(event, source.table_of(obj))

    await _run(source, report)


async def _run(source: ListWatch[KubernetesObject], report: Callable[[str, KubernetesObject], None]) -> None:
    informer = SharedInformer(source, options=ReflectorOptions(grace_period=1.0))
    async with trio.open_nursery() as nursery:
        with informer.subscribe(buffer_size=_BUFFER, overflow="block", patience=_PATIENCE) as subscription:
            nursery.start_soon(informer.run)
            async for notification in subscription:
                match notification:
                    case Added(obj):
                        report("ADDED", obj)
                    case Updated(_, obj):
                        report("MODIFIED", obj)
                    case Deleted(obj):
                        report("DELETED", obj)


_ObjectsOf = Callable[[Mapping[str, Any]], Sequence[KubernetesObject]]


@final
@attrs.define(eq=False)
class RowListWatch(ListWatch[KubernetesObject]):
    """Lists and watches the rows of the server's tables.

    Each row is converted to an object with the metadata and the cells of the row.
    """

    _client: Client
    _target: Target
    _selector: str = ""
    _field_selector: str = ""
    columns: list[dict[str, Any]] = attrs.field(factory=list, init=False)
    """The columns of the last table that was received."""

    @property
    def name(self) -> str:
        """The name of the kind in messages."""
        return self._target.resource.kind

    @property
    def kind(self) -> type[KubernetesObject]:
        """The class of the objects."""
        return unstructured_kind(self._target.resource)

    def table_of(self, obj: KubernetesObject) -> dict[str, Any]:
        """Return a table that contains the row of an object."""
        plain = to_dict(obj)
        return {"columnDefinitions": self.columns, "rows": [{"cells": plain["cells"], "object": plain}]}

    async def list(
        self, *, resource_version: str, page_size: int | None, on_undecodable: UndecodableHandler
    ) -> ObjectList[KubernetesObject]:
        """List all rows."""
        objects: list[KubernetesObject] = []
        token, pages = "", 0
        while True:
            params = self._params(limit=str(page_size) if page_size else "")
            if token:
                params["continue"] = token
            elif resource_version and not page_size:
                params["resourceVersion"] = resource_version
            response = await self._client.request("GET", self._path, params=params, accept=TABLES)
            table = response.json()
            if not isinstance(table, dict) or table.get("kind") != "Table":
                raise UnexpectedResponseError(
                    f"unexpected response to GET {self._path}: not a table", code=response.code
                )
            objects += self._objects_of(table)
            pages += 1
            metadata = table.get("metadata") or {}
            token = str(metadata.get("continue") or "")
            if not token:
                version = str(metadata.get("resourceVersion") or "")
                return ObjectList(items=tuple(objects), resource_version=version, pages=pages)

    async def check(self, *, resource_version: str) -> None:
        """Request at most one row to check that the server has reached ``resource_version``."""
        params = self._params(limit="1", resourceVersion=resource_version)
        await self._client.request("GET", self._path, params=params, accept=TABLES)

    def watch(
        self,
        *,
        resource_version: str,
        timeout_seconds: int,
        send_initial_events: bool,
        on_undecodable: UndecodableHandler,
    ) -> AbstractAsyncContextManager[EventSource[KubernetesObject]]:
        """Watch the rows."""
        params = self._params(
            watch="true",
            allowWatchBookmarks="true",
            resourceVersion=resource_version,
            timeoutSeconds=str(timeout_seconds),
        )
        return self._watch(params)

    @asynccontextmanager
    async def _watch(self, params: dict[str, str]) -> AsyncGenerator[EventSource[KubernetesObject], None]:
        async with self._client.stream("GET", self._path, params=params, accept=TABLES, endless=True) as stream:
            yield _RowEvents(stream.lines(), self._path, self._objects_of)

    @property
    def _path(self) -> str:
        return attrs.evolve(self._target, name="").path()

    def _params(self, **more: str) -> dict[str, str]:
        fields = [self._field_selector, f"metadata.name={self._target.name}" if self._target.name else ""]
        params = {"labelSelector": self._selector, "fieldSelector": ",".join(filter(None, fields)), **more}
        return {name: value for name, value in params.items() if value}

    def _objects_of(self, table: Mapping[str, Any]) -> Sequence[KubernetesObject]:
        self.columns = table.get("columnDefinitions") or self.columns
        kind = unstructured_kind(self._target.resource)
        return [_row_object(kind, row) for row in table.get("rows") or []]


def _row_object(kind: type[Unstructured], row: Mapping[str, Any]) -> KubernetesObject:
    metadata = dict((row.get("object") or {}).get("metadata") or {})
    metadata.setdefault("name", "bookmark")  # a bookmark has only a version
    return kind.of({"metadata": metadata, "cells": row.get("cells") or []})


@final
@attrs.define(eq=False)
class _RowEvents:
    _lines: RawLines
    _path: str
    _objects_of: _ObjectsOf

    async def receive_batch(self) -> list[WatchEvent[KubernetesObject]]:
        """Wait for the next event, and return its rows."""
        try:
            line = await anext(self._lines)
        except StopAsyncIteration:
            raise trio.EndOfChannel from None
        try:
            event = json.loads(line)
            kind = event["type"]
            table = event["object"]
        except (ValueError, KeyError, TypeError) as exc:
            raise ConnectionFailedError(f"GET {self._path}: the watch ended in the middle of an event") from exc
        if kind == "ERROR":
            raise StatusError.from_status(table, where=f"watch {self._path}")
        return [WatchEvent(kind, obj) for obj in self._objects_of(table)]
