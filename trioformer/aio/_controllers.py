"""Controllers whose functions are asyncio functions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, TypeVar, Unpack, final

import attrs
import trio

from .. import manager
from ..cache import HandlerRegistration, ResourceEventHandler, SharedInformer, SharedInformerFactory
from ..cache._internal import Overflow
from ..controller import Controller
from ..controller._internal import convert_functions
from ..events import EventRecorder
from ..leaderelection import Leadership
from ..manager import HTTPOptions, LeaderElection
from ..models import KubernetesObject
from ._guest import Guest
from ._proxies import Client

if TYPE_CHECKING:
    from ..metrics import Metrics

T = TypeVar("T", bound=KubernetesObject)


@final
@attrs.frozen(kw_only=True, eq=False)
class ManagerContext:
    """The argument of a controller initializer in an asyncio program, as :class:`trioformer.manager.ManagerContext`."""

    client: Client
    """The client that was passed to :func:`run_controllers`."""
    name: str
    """The controller's name in the manager."""
    factory: SharedInformerFactory
    """The factory of shared informers, which is running, so that requested informers start immediately.

    Their listers and ``controller.watch(informer)`` work here; their coroutine methods need trio."""
    recorder: EventRecorder
    """An event recorder that records events in the name of the controller."""
    _context: manager.ManagerContext = attrs.field(alias="context")

    @property
    def leadership(self) -> Leadership | None:
        """The leadership under which the controller runs, or None without leader election."""
        return self._context.leadership

    def add_event_handler(
        self,
        informer: SharedInformer[T],
        handler: ResourceEventHandler[T],
        *,
        buffer_size: int = 1_024,
        overflow: Overflow = "coalesce",
    ) -> HandlerRegistration[T]:
        """Add a handler whose methods are asyncio functions; see :meth:`SharedInformer.add_event_handler`."""
        hosted = _HostedHandler(handler, self.client._door.guest)
        name = type(handler).__name__
        return informer.add_event_handler(hosted, buffer_size=buffer_size, overflow=overflow, name=name)


@final
class _HostedHandler(ResourceEventHandler[T]):
    """A handler that calls the methods of another one in the asyncio loop."""

    def __init__(self, handler: ResourceEventHandler[T], guest: Guest) -> None:
        self._on_add = guest.hosted(handler.on_add)
        self._on_update = guest.hosted(handler.on_update)
        self._on_delete = guest.hosted(handler.on_delete)

    async def on_add(self, obj: T, /, *, is_initial: bool) -> None:
        await self._on_add(obj, is_initial=is_initial)

    async def on_update(self, old: T, new: T, /) -> None:
        await self._on_update(old, new)

    async def on_delete(self, obj: T, /, *, is_stale: bool) -> None:
        await self._on_delete(obj, is_stale=is_stale)


ControllerInitializer: TypeAlias = Callable[[ManagerContext], Coroutine[Any, Any, Controller[Any] | None]]
"""An asyncio function that creates a controller, whose functions are asyncio functions, without running it."""


class ManagerOptions(TypedDict, total=False):
    """The options of :func:`run_controllers`, which are those of the manager in trio."""

    enabled: str
    disabled_by_default: Collection[str]
    always: Collection[str]
    start_interval: float
    http: str | HTTPOptions | None
    checks: Mapping[str, Callable[[], str]] | None
    live_checks: Mapping[str, Callable[[], str]] | None
    leader_election: LeaderElection | None
    warm_up: bool
    metrics: Metrics | None
    shutdown_grace: float


async def run_controllers(
    client: Client,
    initializers: Mapping[str, ControllerInitializer],
    *,
    stop: asyncio.Event | None = None,
    **options: Unpack[ManagerOptions],
) -> None:
    """Run controllers in an asyncio program until they are stopped or cancelled.

    For example, in a FastAPI lifespan::

        async def start_pods(context: aio.ManagerContext) -> Controller:
            pods = context.factory.informer(Pod)

            async def reconcile(request: Request) -> None:
                ...  # asyncio: await context.client.api(Pod).get(request)

            controller = Controller(context.name, reconcile)
            controller.watch(pods)
            return controller

        async with aio.open_client() as client, asyncio.TaskGroup() as group:
            running = group.create_task(aio.run_controllers(client, {"pods": start_pods}))
            running.add_done_callback(lambda _: signal.raise_signal(signal.SIGTERM))  # uvicorn would go on
            yield  # the app runs
            running.cancel()

    ``reconcile``, ``on_error``, ``on_paused`` and the methods of handlers are asyncio functions.  Each call is an
    asyncio task that is cancelled at ``reconcile_deadline``, when the leadership is lost and when this function is
    cancelled.  The worker waits for its end.
    Predicates and enqueue functions are plain functions, as always.

    The loop must not be blocked: trio shares its thread, so a program that blocks for longer than the lease's renewal
    deadline loses its leadership.

    Args:
        client: The client that all controllers share.
        initializers: A mapping of controller names to asyncio functions that create the controllers.
        stop: An event that shuts the manager down gracefully when it is set.
        options: The other keyword arguments of :func:`trioformer.manager.run_controllers`.

    Raises:
        ExceptionGroup: As :func:`trioformer.manager.run_controllers`.

    Cancellation:
        Everything is cancelled immediately, and has ended when this function raises ``CancelledError``.
    """
    guest = client._door.guest
    stopping = trio.Event()

    async def initialize(initializer: ControllerInitializer, context: manager.ManagerContext) -> Controller[Any] | None:
        name, factory, recorder = context.name, context.factory, context.recorder
        wrapped = ManagerContext(client=client, name=name, factory=factory, recorder=recorder, context=context)
        controller = await guest.hosted(initializer)(wrapped)
        if controller is not None and not isinstance(controller, Controller):
            raise TypeError(f"initializer {name!r} must return a Controller or None, not {controller!r}")
        if controller is not None:
            convert_functions(controller, guest.hosted)
        return controller

    async def wait_for_stop() -> None:
        await (stop or asyncio.Event()).wait()
        stopping.set()

    waiting = asyncio.create_task(wait_for_stop())
    try:
        await guest.call(
            manager.run_controllers,
            client._target,
            {name: partial(initialize, initializer) for name, initializer in initializers.items()},
            stop=stopping,
            **options,
        )
    finally:
        waiting.cancel()
