"""Follow the logs of all pods that match a selector, as the program stern does.

An informer reports the pods and the instances of their containers; a restart of a container starts a new instance.
Each instance is identified by its number of restarts, and a separate task follows its log.  So no instance is followed
twice, and the last lines of one instance cannot be mistaken for lines of the next.
"""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import AsyncGenerator, Collection, Iterable
from typing import Final, TypeAlias, final

import attrs
import trio

from .._retry import REQUEST_ERRORS, Backoff, WatchErrorHandler, is_permanent, log_failure
from .._suggestions import describe
from .._text import MAX_NAME, one_line, quoted
from .._util import NoPublicConstructor, Slices, first_leaf, open_serving_nursery, opened_by
from ..cache import (
    Added,
    ApiListWatch,
    Deleted,
    ReflectorOptions,
    SharedInformer,
    SharedInformerFactory,
    Updated,
)
from ..client import Api
from ..client._internal import FieldSelectorLike, LabelSelectorLike, check_api, check_kind
from ..errors import BadRequestError, DecodeError, NotFoundError, TrioformerError
from ..models import FieldSelector, LabelSelector
from ..models.core_v1 import ContainerStatus, Pod
from ._log_lines import LogLine
from ._log_requests import LogTime, check_max_line_bytes, log_params
from ._logs import LogLines
from ._read_logs import follow_instance

MAX_LINE_BYTES: Final = 64 * 1024
"""The default maximum size of a line, which limits the memory for buffered lines."""
MAX_CONTAINERS: Final = 200
"""The default maximum number of followed containers, each of which needs a connection."""
DELETED_PATIENCE: Final = 10.0
"""The number of seconds without lines after which the log of a deleted pod is closed.  If the node has failed, the log
would otherwise never end."""
ATTEMPTS: Final = 5
"""The maximum number of rejected requests for the log of a container that is running according to its status."""

logger = logging.getLogger("trioformer.pods")

InstanceKey: TypeAlias = tuple[str, str, int]
"""The uid of the pod, the name of the container, and the number of restarts."""


@final
@attrs.define(eq=False)
class _Follower:
    """The state of the task that follows one instance of a container."""

    deadline: float = math.inf
    """The time when the task stops waiting for lines, which is finite only after the pod was deleted."""
    scope: trio.CancelScope | None = None
    """The cancel scope of the last wait for lines."""
    has_delivered: bool = False
    """Whether lines were received, which reading the log from its start would repeat."""

    def end_soon(self) -> None:
        """Close the log if no lines arrive for a while, because the pod was deleted."""
        self.deadline = min(self.deadline, trio.current_time() + DELETED_PATIENCE)
        if self.scope is not None:
            self.scope.deadline = self.deadline

    def record_delivery(self) -> None:
        """Restart the timeout for a deleted pod, so that it does not include the time that a slow reader needs."""
        self.has_delivered = True
        if self.deadline < math.inf:
            self.deadline = trio.current_time() + DELETED_PATIENCE

    async def receive(self, lines: LogLines) -> list[LogLine]:
        """Wait for lines; return an empty list at the end of the log or after the timeout for a deleted pod."""
        self.scope = trio.CancelScope(deadline=self.deadline)
        with self.scope:
            return await lines.receive_batch()
        return []


@final
@attrs.define(eq=False, repr=False)
class FollowedLogs(metaclass=NoPublicConstructor):
    """The lines from the logs of several pods, opened and closed by :func:`follow_logs_of`.

    ``async for line in logs`` iterates over the lines.  The loop never ends by itself, because new pods
    may be added.
    The lines of one container instance are in the order of its log, but lines from different containers can be in any
    order.
    """

    _pods: Api[Pod]
    _containers: frozenset[str] | None
    _since: LogTime | None
    _tail_lines: int | None
    _max_line_bytes: int
    _on_retry: WatchErrorHandler | None
    _sender: trio.MemorySendChannel[LogLine]
    _receiver: trio.MemoryReceiveChannel[LogLine]
    _limiter: trio.CapacityLimiter
    _followers: dict[InstanceKey, _Follower] = attrs.field(factory=dict, init=False)
    """The followers of all known instances whose pods still exist, including ended instances."""
    _open: int = attrs.field(default=0, init=False)
    _error: Exception | None = attrs.field(default=None, init=False)
    """The error to raise when the program reads lines."""
    _slices: Slices = attrs.field(factory=Slices, init=False)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._pods!r}: {self._open} containers>"

    def __aiter__(self) -> FollowedLogs:
        return self

    async def __anext__(self) -> LogLine:
        if self._slices.is_over():
            await self._slices.checkpoint()
        await trio.lowlevel.checkpoint_if_cancelled()
        try:
            return self._receiver.receive_nowait()
        except (trio.WouldBlock, trio.ClosedResourceError):
            return await self._receive()

    async def _receive(self) -> LogLine:
        try:
            return await self._receiver.receive()
        except trio.ClosedResourceError:
            assert self._error is not None
            raise self._error from None

    async def receive_batch(self) -> list[LogLine]:
        """Wait for lines, and return up to 100 lines.

        Raises:
            StatusError: The permission to list pods or to read logs is missing.
            ConnectionFailedError: The certificate of the server cannot be verified.
            trio.ClosedResourceError: The block has ended.

        Cancellation:
            No line is lost.
        """
        lines = [await self._receive()]
        with contextlib.suppress(trio.WouldBlock):
            while len(lines) < 100:
                lines.append(self._receiver.receive_nowait())
        return lines

    async def _deliver(self, lines: Iterable[LogLine]) -> None:
        for line in lines:
            try:
                self._sender.send_nowait(line)
            except trio.WouldBlock:
                await self._sender.send(line)

    def _fail(self, error: Exception) -> None:
        """Store an error for the next read, and discard the buffered lines."""
        self._error = self._error or error
        self._receiver.close()

    # --- the pods ---

    async def _run_informer(self, informer: SharedInformer[Pod]) -> None:
        try:
            await informer.run()
        except Exception as error:
            leaf = first_leaf(error)
            if not isinstance(leaf, TrioformerError):
                raise
            self._fail(leaf)

    async def _run(self, informer: SharedInformer[Pod], nursery: trio.Nursery) -> None:
        """Follow the pods that the informer reports."""
        with informer.subscribe() as notifications:
            async for notification in notifications:
                match notification:
                    case Added(pod, is_initial):
                        self._follow_all(pod, nursery, is_initial=is_initial)
                    case Updated(_, pod):
                        self._follow_all(pod, nursery, is_initial=False)
                    case Deleted(pod):
                        self._end_all(pod)
        error = informer.state.error
        self._fail(trio.ClosedResourceError("the informer of the pods has stopped") if error is None else error)

    async def _warn_of_missing(self, informer: SharedInformer[Pod]) -> None:
        """Log a warning for requested containers that no pod has at the start."""
        names: set[str] = set()
        try:
            await informer.wait_until_synced()
            for pod in informer.lister.list():
                spec = pod.spec
                names.update(each.name for each in (*spec.init_containers, *spec.containers))
                names.update(each.name for each in spec.ephemeral_containers)
        except (trio.ClosedResourceError, DecodeError):
            return  # the reader gets the error; an undecodable pod may have the container
        for missing in sorted((self._containers or frozenset()) - names) if names else ():
            known = one_line(", ".join(sorted(names)), longest=MAX_NAME)
            logger.warning("no pod has a container named %s yet; the containers are %s", quoted(missing), known)

    def _follow_all(self, pod: Pod, nursery: trio.Nursery, *, is_initial: bool) -> None:
        """Start a task for each container instance that has started and is not followed yet."""
        status = pod.status
        for each in (*status.init_container_statuses, *status.container_statuses, *status.ephemeral_container_statuses):
            key = pod.uid, each.name, each.restart_count
            is_wanted = self._containers is None or each.name in self._containers
            if is_wanted and has_begun(each) and key not in self._followers:
                self._followers[key] = follower = _Follower()
                nursery.start_soon(self._follow, pod, each, follower, is_initial)

    def _end_all(self, pod: Pod) -> None:
        for key in [key for key in self._followers if key[0] == pod.uid]:
            self._followers.pop(key).end_soon()

    async def _follow(self, pod: Pod, status: ContainerStatus, follower: _Follower, is_initial: bool) -> None:
        """Follow one instance until it has ended."""
        name = f"container {status.name} of pod {pod.namespace}/{pod.name}"
        if self._limiter.available_tokens < 1:
            what = "%s: its log waits, because %g other logs are followed; increase max_containers"
            logger.warning(what, name, self._limiter.total_tokens)
        backoff, attempts = Backoff(), 0
        async with self._limiter:
            self._open += 1
            try:
                while trio.current_time() < follower.deadline:
                    attempts += 1
                    error = await self._try_to_follow(pod, status, follower, is_initial=is_initial)
                    is_refused = isinstance(error, BadRequestError | NotFoundError)
                    if error is None or (isinstance(error, NotFoundError) and not follower.has_delivered):
                        return
                    if is_permanent(error) and not is_refused:
                        self._fail(error)
                        return
                    if follower.has_delivered or (is_refused and attempts >= ATTEMPTS):
                        logger.warning("%s: its log is no longer followed: %s", name, error)
                        return
                    self._report(error)
                    await trio.sleep(backoff.next_delay())
            finally:
                self._open -= 1

    async def _try_to_follow(
        self, pod: Pod, status: ContainerStatus, follower: _Follower, *, is_initial: bool
    ) -> TrioformerError | None:
        """Follow one instance; return the error of the request, or None at the end of the log."""
        try:
            async with follow_instance(
                self._pods,
                pod,
                container=status.name,
                since=self._since if is_initial else None,
                tail_lines=self._tail_lines if is_initial else None,
                restart_count=status.restart_count,
                max_line_bytes=self._max_line_bytes,
                on_retry=self._report,
            ) as lines:
                while batch := await follower.receive(lines):
                    await self._deliver(batch)
                    follower.record_delivery()
        except REQUEST_ERRORS as error:
            return error
        except trio.BrokenResourceError:
            pass  # the reader receives an error
        return None

    def _report(self, error: Exception) -> None:
        if self._on_retry is not None:
            self._on_retry(error)
        else:
            log_failure(logger, error)


def has_begun(status: ContainerStatus) -> bool:
    """Return whether an instance of a container has started and therefore has a log."""
    state = status.state
    return state.running is not None or state.terminated is not None or status.last_state.terminated is not None


@opened_by("log", "async with follow_logs_of(client.api(Pod, namespace=...)) as lines:")
async def follow_logs_of(
    pods: Api[Pod],
    *,
    label_selector: LabelSelectorLike | None = None,
    field_selector: FieldSelectorLike | None = None,
    factory: SharedInformerFactory | None = None,
    containers: Collection[str] | None = None,
    since: LogTime | None = None,
    tail_lines: int | None = None,
    max_line_bytes: int = MAX_LINE_BYTES,
    max_containers: int = MAX_CONTAINERS,
    buffer_size: int = 1_024,
    on_retry: WatchErrorHandler | None = None,
) -> AsyncGenerator[FollowedLogs, None]:
    """Follow the logs of all pods that match a selector, including pods that are added later.

    Yields an endless iterator of lines, each with ``pod``, ``container``, ``data`` and ``time``::

        async with follow_logs_of(client.api(Pod, namespace="default"), label_selector="app=web") as lines:
            async for line in lines:
                print(line.pod, line.container, line)

    To wait for lines and get up to 100 lines at once, call ``await lines.receive_batch()``.  If a read is cancelled,
    no line is lost.
    The lines of one container instance are in the order of its log, but lines from different containers can be in any
    order.

    All containers are followed, including init containers and restarted containers.  As with :func:`follow_logs`, no
    line is lost or repeated if a connection breaks.

    Args:
        pods: The API of pods in a namespace.
        label_selector: A selector for the labels of the pods, such as ``deployment.spec.selector.match_labels``. The
            default, None, selects all pods.
        field_selector: A selector for the fields of the pods. The default, None, selects all pods.
        factory: A running informer factory, whose informer is used. The default, None, starts a separate informer.
        containers: The names of the containers to follow. The default, None, follows all containers.  A warning is
            logged for a name that no pod has at the start.
        since: The time of the oldest line to return for existing pods; see :func:`follow_logs`.
        tail_lines: The number of existing lines to return for each existing container. 0 returns only new lines.
        max_line_bytes: The maximum size of a line including its timestamp. A longer line is returned in pieces.
        max_containers: The maximum number of containers to follow at the same time, each on its own connection. If
            there are more, a warning is logged, and the others wait.
        buffer_size: The maximum number of buffered lines.  While the buffer is full, nothing more is read from the
            servers.
        on_retry: A function that is called with every failure before a retry. By default, each cause is logged
            immediately, and then once a minute.

    Raises:
        SelectorError: A selector cannot be parsed.
        ValueError: A number or a time is out of range.
        TypeError: ``pods`` is not an API of pods, or ``containers`` is a string.

    Ownership:
        The block runs a task for the pods and a task for each followed container.  The end of the block cancels these
        tasks and closes all connections.  Exceptions in the block are not wrapped in groups.  If a request fails, the
        next read raises the error.
    """
    check_api(pods, "pods")
    check_kind(pods.resource, "follow_logs_of")
    log_params(container=None, since=since, tail_lines=tail_lines)
    check_max_line_bytes(max_line_bytes)
    if isinstance(containers, str):
        raise TypeError(f"containers must be a collection of names, not a string; write containers=[{containers!r}]")
    if not isinstance(containers, Iterable | None):
        raise TypeError(f"containers must be a collection of names, not {describe(containers)}")
    if type(max_containers) is not int or max_containers < 1:
        raise ValueError(f"max_containers must be an int of at least 1, not {max_containers!r}")
    labels, fields = LabelSelector.of(label_selector), FieldSelector.of(field_selector)
    if type(buffer_size) is not int or buffer_size < 1:
        raise ValueError(f"buffer_size must be an int of at least 1, not {buffer_size!r}")
    async with contextlib.AsyncExitStack() as stack:
        if factory is not None:
            informer = await stack.enter_async_context(
                factory.open_informer(Pod, namespace=pods.namespace, label_selector=labels, field_selector=fields)
            )
        else:
            source = ApiListWatch(pods, str(labels) or None, str(fields) or None)
            informer = SharedInformer(source, options=ReflectorOptions(watch_error_handler=on_retry))
        nursery = await stack.enter_async_context(open_serving_nursery())
        logs = FollowedLogs._create(
            pods,
            None if containers is None else frozenset(containers),
            since,
            tail_lines,
            max_line_bytes,
            on_retry,
            *trio.open_memory_channel[LogLine](buffer_size),
            trio.CapacityLimiter(max_containers),
        )
        nursery.start_soon(logs._run, informer, nursery)
        if containers is not None:
            nursery.start_soon(logs._warn_of_missing, informer)
        if factory is None:
            nursery.start_soon(logs._run_informer, informer)
        try:
            yield logs
        finally:
            logs._fail(trio.ClosedResourceError("these lines are closed: their `async with` block has ended"))
