"""The command ``logs``, which prints the logs of containers (kubectl ``pkg/cmd/logs``).

When the connection breaks while a log is followed, the output resumes without missing or repeated lines, whereas
kubectl exits silently.
"""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, final

import attrs
import trio

from ...errors import BadRequestError, NotFoundError, TrioformerError
from ...pods import follow_logs
from .._arguments import Parser, duration
from .._failures import CommandError, UsageError, describe_failure, failures_in
from .._resources import Target, items_of, request_pages
from .._session import Session
from ._pods import PODS, choose_container, pods_of, read_named

if TYPE_CHECKING:
    from ...client import Client

__all__ = ["add_flags", "run"]

_OF_SELECTED: Final = 10
"""The default number of lines for each container if ``-l`` is given."""


def add_flags(parser: Parser) -> None:
    """Add the flags of ``logs``."""
    parser.add_switch("-f", "--follow", help="Follow the log until interrupted")
    parser.add_switch("-p", "--previous", help="Print the log of the previous instance of the container")
    parser.add_argument("-c", "--container", default="", help="Print the log of this container")
    parser.add_argument("-l", "--selector", default="", help="Select pods by their labels")
    parser.add_switch("--all-containers", help="Print the logs of all containers")
    parser.add_switch("--timestamps", help="Print the timestamp of each line")
    parser.add_switch("--prefix", help="Start each line with its pod and container")
    parser.add_argument("--since", type=duration, default=0.0, help="Print only newer lines: 5s, 2m or 3h")
    parser.add_argument("--tail", type=int, default=-1, help="Lines from the end; by default all, with -l 10")
    parser.add_argument(
        "--pod-running-timeout", type=duration, default=20.0, help="How long to wait for a pod, such as 30s"
    )


@final
@attrs.frozen
class _Options:
    """The options that apply to all logs of a command."""

    params: Mapping[str, str]
    """The query parameters without the container."""
    since: timedelta | None
    tail: int | None
    has_prefix: bool
    has_timestamps: bool


@final
@attrs.frozen
class _Source:
    """The log of one container."""

    pod: Target
    container: str

    @property
    def prefix(self) -> bytes:
        return f"[pod/{self.pod.name}/{self.container}] ".encode()


async def run(session: Session, flags: argparse.Namespace) -> int | None:
    """Run ``logs``."""
    names = flags.arguments + (flags.after_dashes or [])
    if len(names) != 1 - bool(flags.selector):
        raise UsageError("a pod, TYPE/NAME or -l is required")
    if flags.all_containers and flags.container:
        raise UsageError("--all-containers and --container cannot be combined")
    name = names[0] if names else ""
    options = _options(flags)
    async with session.open_client() as client:
        sources = await _sources(session, flags, client, name, flags.container, flags.pod_running_timeout)
        if not flags.follow:
            for source in sources:
                await _print_all(session, client, source, options)
            return None
        # The log of a previous instance is complete, so one response contains it.
        follow = _print_all if flags.previous else _follow
        if flags.follow and follow is _print_all:
            options = attrs.evolve(options, params={**options.params, "follow": "true"})
        async with trio.open_nursery() as nursery:
            for source in sources:
                nursery.start_soon(follow, session, client, source, options)
    return None


def _options(flags: argparse.Namespace) -> _Options:
    seconds, tail = flags.since, flags.tail
    lines: int | None = tail if tail >= 0 else None
    if flags.selector and tail == -1:
        lines = _OF_SELECTED
    params = {
        "tailLines": "" if lines is None else str(lines),
        "sinceSeconds": str(max(round(seconds), 1)) if seconds else "",
        "previous": "true" if flags.previous else "",
        "timestamps": "true" if flags.timestamps else "",
    }
    return _Options(
        params={key: value for key, value in params.items() if value},
        since=timedelta(seconds=seconds) if seconds else None,
        tail=lines,
        has_prefix=flags.prefix,
        has_timestamps=flags.timestamps,
    )


# --- the containers ---


async def _sources(
    session: Session, flags: argparse.Namespace, client: Client, name: str, container: str, patience: float
) -> list[_Source]:
    if flags.selector:
        pods = await _selected(session, flags, client)
    else:
        pods = await _pods_named(session, flags, client, name, patience)
    sources: list[_Source] = []
    for pod in pods:
        metadata = pod.get("metadata") or {}
        target = Target(PODS, str(metadata.get("namespace")), str(metadata.get("name")))
        sources += [_Source(target, each) for each in _containers(session, flags, pod, container)]
    return sources


async def _selected(session: Session, flags: argparse.Namespace, client: Client) -> list[dict[str, Any]]:
    where = Target(PODS, session.namespace)
    pages = await request_pages(client, where, {"labelSelector": flags.selector}, accept="application/json")
    pods = [each for page in pages for each in items_of(page, where)]
    if not pods:
        session.note(f"No resources found in {session.namespace} namespace.")
    return pods


async def _pods_named(
    session: Session, flags: argparse.Namespace, client: Client, name: str, patience: float
) -> list[dict[str, Any]]:
    try:
        target, obj = await read_named(client, session, [name])
    except NotFoundError as exc:
        problem = f'error from server (NotFound): {exc.status_message} in namespace "{session.namespace}"'
        raise CommandError(problem) from exc
    pods = await pods_of(client, target, obj, patience=patience, verb="get the logs from")
    if len(pods) > 1:
        session.note(f"Found {len(pods)} pods, using pod/{pods[0]['metadata']['name']}")
        return pods[:1]
    return pods


def _containers(session: Session, flags: argparse.Namespace, pod: Mapping[str, Any], container: str) -> list[str]:
    if flags.all_containers:
        spec = pod.get("spec") or {}
        fields = ("initContainers", "containers", "ephemeralContainers")
        return [str(each.get("name")) for field in fields for each in spec.get(field) or []]
    return [str(choose_container(pod, container, session.note).get("name"))]


# --- the lines ---


async def _print_all(session: Session, client: Client, source: _Source, options: _Options) -> None:
    params = {**options.params, "container": source.container}
    try:
        async with client.stream("GET", source.pod.path("log"), params=params, endless=True) as stream:
            async for data in _prefixed(stream, source.prefix) if options.has_prefix else stream:
                session.write(data)
    except TrioformerError as exc:
        _ignore(exc)


async def _prefixed(stream: AsyncIterator[bytes], prefix: bytes) -> AsyncIterator[bytes]:
    """Yield the data of a stream as whole lines, each with a prefix."""
    rest = b""
    async for data in stream:
        *lines, rest = (rest + data).split(b"\n")
        yield b"".join(prefix + line + b"\n" for line in lines)
    if rest:
        yield prefix + rest


async def _follow(session: Session, client: Client, source: _Source, options: _Options) -> None:
    from ...models.core_v1 import Pod  # noqa: PLC0415  # only following needs it

    pods = client.api(Pod, source.pod.namespace)
    prefix = source.prefix if options.has_prefix else b""
    begins = True
    try:
        async with follow_logs(
            pods,
            source.pod.name,
            container=source.container,
            since=options.since,
            tail_lines=options.tail,
            on_retry=partial(_explain, session),
        ) as lines:
            while batch := await lines.receive_batch():
                written = bytearray()
                for line in batch:
                    if begins:
                        written += prefix
                        written += f"{line.timestamp} ".encode() if options.has_timestamps else b""
                    written += line.data
                    begins = not line.is_cut
                    written += b"\n" if begins else b""
                session.write(bytes(written))
    except TrioformerError as exc:
        _ignore(exc)


def _ignore(error: TrioformerError) -> None:
    if not (isinstance(error, BadRequestError) and "is not assigned to a node yet" in error.status_message):
        raise error  # otherwise the container does not have a log yet


def _explain(session: Session, error: Exception) -> None:
    """Print the reason for a retry to standard error."""
    for each in failures_in(error):
        if isinstance(each, TrioformerError):
            session.note(f"Warning: {describe_failure(each, session.server)}")
