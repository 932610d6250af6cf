"""``logs``: the logs of the containers of pods (kubectl ``pkg/cmd/logs``).

What is followed goes on after a broken connection, without losing or repeating a line; kubectl's ends in silence.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, final

import attrs
import trio

from ...errors import BadRequestError, NotFoundError, TrioformerError
from ...pods import follow_logs
from .._arguments import Parser
from .._failures import CommandError, UsageError, describe_failure, failures_in
from .._resources import Target, items_of, request_pages
from .._session import Session
from .._values import duration_value, int_value
from ._pods import PODS, choose_container, container_of, pods_of, rank_for_logs, read_named

if TYPE_CHECKING:
    from ...client import Api, Client
    from ...models.core_v1 import Pod

__all__ = ["add_flags", "run"]

_USAGE: Final = (
    "expected 'logs [-f] [-p] (POD | TYPE/NAME) [-c CONTAINER]'.\n"
    "POD or TYPE/NAME is a required argument for the logs command"
)
_OF_SELECTED: Final = 10
"""Lines of each container when pods are selected by their labels."""
_STATUS_DELAY: Final = 1.0
"""Seconds after which a log is requested again that the node refuses, although the container runs by its status."""


def add_flags(parser: Parser) -> None:
    """Add the flags of ``logs``."""
    parser.add_switch("-f", "--follow", help="Specify if the logs should be streamed.")
    parser.add_switch("-p", "--previous", help="Print the log of the previous instance of the container, if it exists.")
    parser.add_argument("-c", "--container", default="", help="Print the logs of this container")
    parser.add_argument("-l", "--selector", default="", help="Selector (label query) to filter on.")
    parser.add_switch("--all-containers", help="Get all containers' logs in the pod(s).")
    parser.add_switch("--all-pods", help="Get logs from all pod(s). Sets prefix to true.")
    parser.add_switch("--timestamps", help="Include timestamps on each line in the log output")
    parser.add_switch("--prefix", help="Prefix each log line with the log source (pod name and container name)")
    parser.add_switch("--ignore-errors", help="Print errors in the place of the log, and go on with the others.")
    parser.add_argument("--since", default="0", help="Only return logs newer than a duration like 5s, 2m, or 3h.")
    parser.add_argument("--since-time", default="", help="Only return logs after a specific date (RFC3339).")
    parser.add_argument("--tail", default="-1", help="Lines of recent log file to display; 10 with a selector.")
    parser.add_argument("--limit-bytes", default="0", help="Maximum bytes of logs to return.")
    parser.add_argument("--max-log-requests", default="5", help="How many logs may be followed at a time.")
    parser.add_argument("--pod-running-timeout", default="20s", help="How long to wait for a pod that runs.")
    parser.add_switch(
        "--insecure-skip-tls-verify-backend", help="Skip verifying the identity of the kubelet that logs come from."
    )


@final
@attrs.frozen
class _Options:
    """What of each log is wanted."""

    params: Mapping[str, str]
    """The query, without the container."""
    since: timedelta | str | None
    tail: int | None
    patience: float
    """Seconds to wait for a container that has not started."""
    has_prefix: bool
    has_timestamps: bool
    ignores_errors: bool


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
    name, container = _arguments(flags)
    options = _options(flags, container)
    most = int_value(flags.max_log_requests, "--max-log-requests")
    async with session.open_client() as client:
        sources = await _sources(session, flags, client, name, container, options.patience)
        if not flags.follow:
            for source in sources:
                await _print_all(session, client, source, options)
            return None
        if len(sources) > 1 and len(sources) > most:
            raise CommandError(
                f"you are attempting to follow {len(sources)} log streams, but maximum allowed concurrency is {most}, "
                "use --max-log-requests to increase the limit"
            )
        # With a limit or of an instance that has ended, there is one response, with which the log ends.
        follow = _print_all if flags.previous or "limitBytes" in options.params else _follow
        if flags.follow and follow is _print_all:
            options = attrs.evolve(options, params={**options.params, "follow": "true"})
        async with trio.open_nursery() as nursery:
            for source in sources:
                nursery.start_soon(follow, session, client, source, options)
    return None


def _arguments(flags: argparse.Namespace) -> tuple[str, str]:
    names = flags.arguments + (flags.after_dashes or [])
    if len(names) > 2 or (not names and not flags.selector):
        raise UsageError(_USAGE)
    if len(names) == 1 and flags.selector:
        raise UsageError("only a selector (-l) or a POD name is allowed")
    name = names[0] if names else ""
    container = names[1] if len(names) == 2 else flags.container
    if flags.all_containers and container:
        raise CommandError(f"--all-containers=true should not be specified with container name {container}")
    if len(names) == 2 and flags.container:
        raise CommandError("only one of -c or an inline [CONTAINER] arg is allowed")
    return name, container


def _options(flags: argparse.Namespace, container: str) -> _Options:
    seconds = duration_value(flags.since, "--since")
    limit = int_value(flags.limit_bytes, "--limit-bytes")
    tail = int_value(flags.tail, "--tail")
    since: timedelta | str | None = timedelta(seconds=seconds) if seconds else None
    if flags.since_time:
        time = _time(flags.since_time)
        if since is not None:
            raise CommandError("at most one of `sinceTime` or `sinceSeconds` may be specified")
        since = time
    for value, least, text in (
        (limit, 0, "--limit-bytes must be greater than 0"),
        (seconds, 0, "--since must be greater than 0"),
        (tail, -1, "--tail must be greater than or equal to -1"),
    ):
        if value < least:
            raise CommandError(text)
    lines: int | None = tail if tail >= 0 else None
    if flags.selector and tail == -1:
        lines = _OF_SELECTED
    params = {
        "limitBytes": str(limit) if limit else "",
        "tailLines": "" if lines is None else str(lines),
        "sinceTime": since if isinstance(since, str) else "",
        "sinceSeconds": str(max(round(seconds), 1)) if seconds else "",
        "previous": "true" if flags.previous else "",
        "timestamps": "true" if flags.timestamps else "",
        "insecureSkipTLSVerifyBackend": "true" if flags.insecure_skip_tls_verify_backend else "",
    }
    return _Options(
        params={key: value for key, value in params.items() if value},
        since=since,
        tail=lines,
        patience=duration_value(flags.pod_running_timeout, "--pod-running-timeout"),
        has_prefix=flags.prefix or flags.all_pods,
        has_timestamps=flags.timestamps,
        ignores_errors=flags.ignore_errors,
    )


def _time(text: str) -> str:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise CommandError(f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse "{text}" as "2006"')
    return f"{time.astimezone(UTC).replace(tzinfo=None, microsecond=0).isoformat()}Z"


# --- which logs ---


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
    pods = await pods_of(client, target, obj, patience=patience, verb="get the logs from", rank=rank_for_logs)
    if len(pods) > 1 and not flags.all_pods:
        session.note(f"Found {len(pods)} pods, using pod/{pods[0]['metadata']['name']}")
        return pods[:1]
    return pods


def _containers(session: Session, flags: argparse.Namespace, pod: Mapping[str, Any], container: str) -> list[str]:
    if flags.all_containers:
        spec = pod.get("spec") or {}
        fields = ("initContainers", "containers", "ephemeralContainers")
        return [str(each.get("name")) for field in fields for each in spec.get(field) or []]
    note: Callable[[str], None] | None = None if flags.all_pods else session.note
    if not container:
        annotated = ((pod.get("metadata") or {}).get("annotations") or {}).get(
            "kubectl.kubernetes.io/default-container"
        )
        if annotated and container_of(pod, annotated) is None:
            session.note(f'Default container name "{annotated}" not found in pod {pod["metadata"]["name"]}')
            pod = {**pod, "metadata": {**pod["metadata"], "annotations": {}}}
    return [str(choose_container(pod, container, note).get("name"))]


# --- their lines ---


async def _print_all(session: Session, client: Client, source: _Source, options: _Options) -> None:
    params = {**options.params, "container": source.container}
    try:
        async with client.stream("GET", source.pod.path("log"), params=params, endless=True) as stream:
            async for data in _prefixed(stream, source.prefix) if options.has_prefix else stream:
                session.write(data)
    except TrioformerError as exc:
        _ignore(exc, session, options)


async def _prefixed(stream: AsyncIterator[bytes], prefix: bytes) -> AsyncIterator[bytes]:
    """Yield whole lines, each with a prefix."""
    rest = b""
    async for data in stream:
        *lines, rest = (rest + data).split(b"\n")
        yield b"".join(prefix + line + b"\n" for line in lines)
    if rest:
        yield prefix + rest


async def _follow(session: Session, client: Client, source: _Source, options: _Options) -> None:
    from ...models.core_v1 import Pod  # noqa: PLC0415  # only who follows needs its fields

    pods = client.api(Pod, source.pod.namespace)
    prefix = source.prefix if options.has_prefix else b""
    is_first, begins = True, True
    deadline = math.inf
    while True:
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
                    is_first = False
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
            if not is_first or options.ignores_errors or not _is_waiting(exc):
                _ignore(exc, session, options)
                return
            if deadline == math.inf:
                deadline = trio.current_time() + options.patience
                session.note(str(getattr(exc, "status_message", "")))
            else:  # the status of the pod and its node do not agree
                await trio.sleep(_STATUS_DELAY)
        else:
            return
        await _wait_until_started(pods, source, deadline)


def _is_waiting(error: TrioformerError) -> bool:
    return isinstance(error, BadRequestError) and "is waiting to start" in error.status_message


def _ignore(error: TrioformerError, session: Session, options: _Options) -> None:
    if isinstance(error, BadRequestError) and "is not assigned to a node yet" in error.status_message:
        return  # it has no log, for which kubectl prints nothing
    if not options.ignores_errors:
        raise error
    session.print(f"error: {getattr(error, 'status_message', error)}")


def _explain(session: Session, error: Exception) -> None:
    """Say on standard error why there are no lines for a moment."""
    for each in failures_in(error):
        if isinstance(each, TrioformerError):
            session.note(f"Warning: {describe_failure(each, session.server)}")


async def _wait_until_started(pods: Api[Pod], source: _Source, deadline: float) -> None:
    from ...watchtools import wait_for  # noqa: PLC0415  # as above

    def has_started(pod: Pod) -> bool:
        status = pod.status
        found = (*status.container_statuses, *status.init_container_statuses, *status.ephemeral_container_statuses)
        return any(each.name == source.container and not each.state.waiting for each in found)

    with trio.CancelScope(deadline=deadline):
        await wait_for(pods, source.pod.name, has_started)
        return
    raise CommandError("timed out waiting for the condition")
