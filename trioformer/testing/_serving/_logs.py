"""Requests for the logs of pods.

Source: kubernetes ``pkg/registry/core/pod/strategy.go`` (LogLocation), ``pkg/apis/core/validation``
(ValidatePodLogOptions) and ``pkg/kubelet/kuberuntime/logs``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Final, final

import attrs
import trio

from .._storage._field_errors import forbidden, invalid_value
from .._storage._status import bad_request, invalid
from .._storage._storage import JSONObject
from ._listing import parse_number
from ._pod_scripts import ContainerLog, LogEntry, PodScripts, containers_of, status_of
from ._requests import RequestRecord
from ._responses import Response
from ._watching import OpenWatch

TEXT: Final = "text/plain"
_FALSE: Final = ("false", "0")
_LONGEST_SINCE: Final = 10**9
"""Seconds, which are more than 30 years."""


@final
@attrs.frozen(kw_only=True)
class LogOptions:
    """The query parameters of a request for a log."""

    container: str
    follow: bool
    previous: bool
    timestamps: bool
    since: datetime | None
    tail_lines: int | None
    limit_bytes: int | None

    @classmethod
    def parse(cls, record: RequestRecord, now: datetime) -> LogOptions:
        """Parse the query parameters."""
        query, causes = record.query, list[JSONObject]()
        numbers: dict[str, int | None] = {}
        for key, least in (("tailLines", 0), ("limitBytes", 1), ("sinceSeconds", 1)):
            numbers[key] = number = parse_number(query[key]) if query.get(key) else None
            if number is not None and number < least:
                than = f"greater than or equal to {least}" if least == 0 else "greater than 0"
                causes.append(invalid_value(key, number, f"must be {than}"))
        since = _time(query["sinceTime"]) if query.get("sinceTime") else None
        if (seconds := numbers["sinceSeconds"]) is not None:
            if since is not None:
                causes.append(forbidden("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
            since = now - timedelta(seconds=min(abs(seconds), _LONGEST_SINCE))
        if causes:
            raise invalid("", "PodLogOptions", record.name or "", causes)
        return cls(
            container=query.get("container", ""),
            follow=_flag(record, "follow"),
            previous=_flag(record, "previous"),
            timestamps=_flag(record, "timestamps"),
            since=since,
            tail_lines=numbers["tailLines"],
            limit_bytes=numbers["limitBytes"],
        )


def _flag(record: RequestRecord, key: str) -> bool:
    return key in record.query and record.query[key] not in _FALSE


def _time(text: str) -> datetime:
    """Parse a time and truncate it to whole seconds, as the API server sends it to the kubelet."""
    try:
        found = datetime.fromisoformat(text)
        if found.tzinfo is not None:
            return found.astimezone(UTC).replace(microsecond=0)
    except (OverflowError, ValueError):
        pass
    raise bad_request(f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse "{text}" as "2006"')


def request_log(scripts: PodScripts, record: RequestRecord) -> Response | LogStream:
    """Handle a request for the log of a container."""
    options = LogOptions.parse(record, scripts.clock())
    pod = scripts.pod(record.namespace or "", record.name or "")
    container = chosen_container(pod, options.container)
    status = status_of(pod, container)
    if not status and not pod["spec"].get("nodeName"):
        return Response(code=204, chunks=[])
    where = f'container "{container}" in pod "{record.name}"'
    state, has_ended = status.get("state") or {}, (status.get("lastState") or {}).get("terminated")
    if options.previous:
        if not has_ended:
            raise bad_request(f"previous terminated {where} not found")
        log = scripts.log_of(pod, container, restarts_ago=1)
        return Response(chunks=_chunks(log.entries, options), content_type=TEXT)
    if not (state.get("running") or state.get("terminated") or has_ended):
        reason = (state.get("waiting") or {}).get("reason", "ContainerCreating")
        raise bad_request(f"{where} is waiting to start: {reason}")
    log = scripts.log_of(pod, container)
    if options.follow:
        return LogStream(scripts, pod, container, log, options)
    return Response(chunks=_chunks(log.entries, options), content_type=TEXT)


def chosen_container(pod: JSONObject, container: str) -> str:
    """Return the container that a request names, or the only container of a pod.

    Raises:
        APIStatusError: The pod does not have the container, or has several containers and the request names none (400).
    """
    containers, name = containers_of(pod), pod["metadata"]["name"]
    if not container and len(containers["containers"]) == 1:
        (container,) = containers["containers"]
    if not container:
        choices = " ".join(containers["containers"])
        problem = f"a container name must be specified for pod {name}, choose one of: [{choices}]"
        if containers["initContainers"]:
            problem += f" or one of the init containers: [{' '.join(containers['initContainers'])}]"
        raise bad_request(problem)
    if not any(container in names for names in containers.values()):
        raise bad_request(f"container {container} is not valid for pod {name}")
    return container


def _chunks(entries: list[LogEntry], options: LogOptions) -> list[bytes]:
    """Return the requested part of a log, limited by ``tailLines``, then by time, then by ``limitBytes``."""
    tail = options.tail_lines
    chosen = entries if tail is None else entries[max(len(entries) - tail, 0) :]
    data = b"".join(_rendered(each, options) for each in chosen)
    return [data[: options.limit_bytes]]


def _rendered(entry: LogEntry, options: LogOptions) -> bytes:
    if options.since is not None and entry.time < options.since:
        return b""
    return entry.stamp + entry.data if options.timestamps else entry.data


@final
@attrs.define(eq=False)
class LogStream:
    """A request that follows the log of one instance of a container, until this instance has terminated."""

    _scripts: PodScripts
    _pod: JSONObject
    _container: str
    _log: ContainerLog
    _options: LogOptions

    @property
    def resource(self) -> str:
        """The key that identifies the request in the set of open requests."""
        return f"{self._pod['metadata']['namespace']}/{self._pod['metadata']['name']}"

    async def run(self, opened: OpenWatch, send: Callable[[bytes], Awaitable[None]]) -> bool:
        """Send the log until its container has terminated.

        Returns:
            True to complete the response, or False to break the connection.
        """
        log, options = self._log, self._options
        left = options.limit_bytes
        position = log.dropped
        if options.tail_lines is not None:
            position += max(len(log.entries) - options.tail_lines, 0)
        while True:
            if opened.end is not None:
                if opened.end == "stall":
                    await trio.sleep_forever()
                return opened.end == "clean"
            has_ended = self._scripts.running(self._pod, self._container, log) is None
            entries = log.entries[max(position - log.dropped, 0) :]
            position = log.dropped + len(log.entries)
            data = b"".join(_rendered(each, options) for each in entries)
            if left is not None:
                data, left = data[:left], left - len(data)
            if data:
                await send(data)
            elif has_ended:
                return True
            else:
                await self._scripts.wait()
            if left is not None and left <= 0:
                return True
