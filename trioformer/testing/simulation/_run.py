"""How one story goes."""

from __future__ import annotations

import gc
import logging
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final, final

import attrs
import trio
from trio.testing import MockClock

from ..._text import describe_error, one_line
from ..._util import first_leaf
from ...controller._internal import JournalRecord
from ...errors import NotFoundError
from ...models import resource_of
from .._scripted_pods import run_pod
from .._server import APIServer
from ._draw import mix
from ._network import Network
from ._record import Entry, Problem, Record, acting, stored_objects
from ._replica import Operator, current_life, run_replica
from ._scenario import Scenario
from ._schedule import Order, ordered
from ._states import State, describe
from ._story import Fault, Story
from ._surroundings import replaced
from ._world import World

QUIET: Final = 60.0
"""The seconds without a write after which a story has settled."""
QUIET_AFTER_DELETION: Final = 20.0
"""The same, after all objects were deleted."""
PATIENCE: Final = 300.0
"""The seconds after the last step or fault within which a story must settle."""
RETRY: Final = 600.0
"""The seconds within which a call to ``reconcile`` that has failed must be repeated."""
CALL: Final = 10.0
"""The seconds between two looks at the calls to ``reconcile`` that are running or due."""
BACKOFF: Final = 3.0
"""How much longer than the previous pause the pause before a repetition may be."""
STOPPING: Final = 60.0
"""The seconds within which a replica must stop."""
FIRST_REVISION: Final = 1_000_000
"""The first revision, so that versions in objects can be recognized."""
STORM: Final = 2
"""The seconds between two calls to ``reconcile`` for one request, while nothing is written, that are not settled."""


@final
@attrs.frozen(kw_only=True)
class Outcome:
    """What a story has led to."""

    story: Story
    problem: Problem | None
    """What went wrong first, which has ended the story."""
    state: State
    """The objects after the story has settled."""
    step_errors: tuple[str, ...]
    """The error of each step, or an empty string."""
    most_children: Mapping[tuple[str, str], int]
    """The largest number of objects at one time, by the owner's identity and the kind."""
    counts: Mapping[str, int]
    """The number of requests of each kind."""
    struck: tuple[Fault, ...]
    """The faults that occurred."""
    entries: tuple[Entry, ...]
    """The trace."""
    seconds: float
    """The virtual time at the end."""
    requests: int
    """The number of requests of the operator."""

    @property
    def missed(self) -> tuple[Fault, ...]:
        """The faults that did not occur."""
        return tuple(one for one in self.story.faults if one.kind != "clock" and one not in self.struck)


def run_story(operator: Operator, scenario: Scenario, story: Story) -> Outcome:
    """Run one story in a run of trio of its own."""
    clock = MockClock(autojump_threshold=0)
    run = _StoryRun(operator, scenario, story)
    mistake: Exception | None = None
    order = Order(story.schedule, _replica_of, clock.current_time, run.stop_loop)
    with quiet(), replaced(run.chance) as instrument, ordered(order):
        try:
            trio.run(run.main, clock=clock, instruments=[instrument])
        except ExceptionGroup as error:
            mistake = first_leaf(error)
        except BaseExceptionGroup as group:
            if group.subgroup(KeyboardInterrupt) is None:
                raise
            raise KeyboardInterrupt from None  # as pytest expects it
    if mistake is not None:  # in the scenario
        raise mistake
    return run.outcome()


def _replica_of(task: trio.lowlevel.Task) -> int:
    life = task.context.get(current_life)
    return -1 if life is None else life.index


@contextmanager
def quiet() -> Iterator[None]:
    """Disable logging and the garbage collector during the block."""
    before, collects = logging.root.manager.disable, gc.isenabled()
    logging.disable(logging.CRITICAL)
    gc.disable()
    try:
        yield
    finally:
        logging.disable(before)
        if collects:
            gc.enable()


@final
@attrs.define(eq=False)
class _StoryRun:
    operator: Operator
    scenario: Scenario
    story: Story
    server: APIServer = attrs.field(init=False)
    record: Record = attrs.field(init=False)
    world: World = attrs.field(init=False)
    network: Network = attrs.field(init=False)
    user: Any = attrs.field(init=False)
    """The instance of the scenario."""
    state: State = attrs.field(factory=dict)
    step_errors: list[str] = attrs.field(factory=list)
    seconds: float = 0.0
    _scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    _is_loop: bool = False

    def __attrs_post_init__(self) -> None:
        story = self.story
        self.server = APIServer(
            controllers=True,
            seed=story.seed,
            first_revision=FIRST_REVISION,
            run_pod=lambda pod, script: self.world.run_pod(run_pod, pod, script),
        )
        self.user = self.scenario.cls()
        always = partial(self._check_user, "always") if hasattr(self.user, "always") else None
        self.record = Record(self.server, always, self._scope.cancel)
        self.world = World(self.server, self.record)
        self.network = Network(self.record, self.world, [one for one in story.faults if one.kind != "clock"])

    def outcome(self) -> Outcome:
        """Return what the story has led to."""
        return Outcome(
            story=self.story,
            problem=self.record.problem,
            state=self.state,
            step_errors=tuple(self.step_errors),
            most_children=dict(self.record.most_children),
            counts=dict(self.network.counts),
            struck=tuple(self.network.struck),
            entries=tuple(self.record.entries),
            seconds=self.seconds,
            requests=self.record.requests,
        )

    @property
    def chance(self) -> int:
        """The seed of the operator's random numbers, which another schedule changes too."""
        schedule = self.story.schedule
        return mix(self.story.seed, len(schedule.policy), schedule.number)

    def stop_loop(self) -> None:
        """End the story, because tasks run without an end at one instant."""
        self._is_loop = True
        self._scope.cancel()

    async def main(self) -> None:
        """Tell the story from its beginning to its end, or until something is wrong."""
        with self._scope:
            async with trio.open_nursery() as cluster:
                with acting("the cluster"):
                    await cluster.start(self.server.run)
                async with trio.open_nursery() as replicas:
                    await self._tell(replicas)
                    replicas.cancel_scope.cancel()
                cluster.cancel_scope.cancel()
        if self._is_loop:
            self.record.report("hot loop", "tasks", "tasks run forever without waiting")
        self.seconds = trio.current_time()

    async def _tell(self, replicas: trio.Nursery) -> None:
        story, record = self.story, self.record
        self.scenario.serve_kinds(self.server)
        record.begin()
        if hasattr(self.user, "start"):
            self.user.start(self.world)
        skews = {one.replica: one.lasts for one in story.faults if one.kind == "clock"}
        for index in range(story.replicas):
            skew = skews.get(index, 0.0)
            seed = mix(self.chance, index)
            replicas.start_soon(run_replica, index, seed, skew, self.operator, self.network, replicas)
        for one in story.steps:
            await trio.sleep(one.wait)
            arguments = ", ".join(f"{name}={value!r}" for name, value in one.arguments.items())
            entry = record.add("the user", f"{one.name}({arguments})")
            entry.outcome = self.scenario.play(self.user, self.world, one)
            self.step_errors.append(entry.outcome)
        self.record.disturb(0)
        await self._settle(QUIET)
        self._check_user("eventually")
        self.state = describe(record)
        self._delete_all()
        await self._settle(QUIET_AFTER_DELETION)
        self._check_nothing_left()
        await self._stop()

    async def _settle(self, quiet_seconds: float) -> None:
        """Wait until nothing has been written for some time, but no longer than five minutes after the last fault."""
        record, since = self.record, trio.current_time()
        while True:
            until = max(since, record.disturbed_until) + quiet_seconds
            with trio.move_on_at(until) as quiet_time:
                await record.written.wait()
            if not quiet_time.cancelled_caught:
                since = trio.current_time()
                if since > record.disturbed_until + PATIENCE:
                    mine = [one for one in record.entries if one.who.startswith("replica")]
                    last = next(one for one in reversed(mine) if not one.what.startswith("reconcile"))
                    text = f"the operator still writes {PATIENCE:g} s after the last step or fault: {last.what}"
                    record.report("does not settle", " ".join(last.what.split()[:2]), text)
            elif max(since, record.disturbed_until) + quiet_seconds <= until:
                # A storm goes on: many calls at one instant may be a backlog of events.
                most = (until - since) / STORM
                seconds = {request: sum(one > since for one in found) for request, found in record.calls.items()}
                if storms := [request for request, count in seconds.items() if count >= most]:
                    record.report("does not settle", "calls", f"{storms[0]} is reconciled again and again")
                if not await self._wait_for_retries():
                    return
                since = trio.current_time()

    async def _wait_for_retries(self) -> bool:
        """Wait for the calls to ``reconcile`` that must follow: each failed one, and those that were asked for.

        Returns:
            Whether something may have changed.
        """
        first = {request: calls[0] for request, calls in self._failing()}
        pending, written = self._pending(), self.record.written
        if not (first or pending):
            return False

        def is_waiting() -> bool:
            return bool(pending & self._pending()) or any(calls[0] is first.get(one) for one, calls in self._failing())

        with trio.move_on_after(RETRY):
            while is_waiting():  # noqa: ASYNC110  # in virtual time
                await trio.sleep(CALL)
        await trio.sleep(CALL)
        for request, calls in self._failing():
            if calls[0] is not first.get(request):
                continue
            last, ago = calls[-1], trio.current_time() - calls[-1].began
            check = "fails each time"
            text = f"has failed {len(calls)} times in a row, the last time {ago:.0f} s ago: {last.error}"
            if ago > max(RETRY - 1, *(BACKOFF * (last.began - one.began) for one in calls[-2:])):
                check = "not tried again"
                text = f"failed ({last.error}), and was not repeated within {RETRY:g} s"
            self.record.report(check, last.error.partition(":")[0], f"the call for {request} {text}")
        return bool(first) or written.is_set()

    def _failing(self) -> list[tuple[str, list[JournalRecord[Any]]]]:
        """Return the failed calls since the last one that has not failed, in any replica, by request."""
        good: dict[str, float] = {}
        for call in (call for life in self.network.lives for call in life.causes.values()):
            if call.result != "error":
                good[str(call.request)] = max(call.began, good.get(str(call.request), 0.0))
        return [
            (request, calls)
            for life in self.network.lives
            for request, calls in life.failed_calls().items()
            if not life.is_dropped(calls[-1]) and calls[-1].began >= good.get(request, 0.0)
        ]

    def _pending(self) -> set[tuple[str, object]]:
        """Return the calls that are running or have asked for another call, which has not begun, with their results."""
        last = {
            (id(life), str(call.request)): (life, call) for life in self.network.lives for call in life.causes.values()
        }
        return {
            (call.reconcile_id, call.result)
            for life, call in last.values()
            if call.result in (None, "requeue_after") and not life.is_dropped(call)
        }

    # --- checks -------------------------------------------------------------------------------------------------------

    def _check_user(self, name: str) -> None:
        """Call a check of the scenario."""
        check = getattr(self.user, name, None)
        try:
            if check is not None and (result := check(self.world)) is not None:
                text = f"{name}() returned {result!r}, which is not checked; write assert instead of return"
                self.record.report(name, "", text)
        except Exception as error:  # noqa: BLE001  # whatever it is, the story is worth a report
            line = traceback.extract_tb(error.__traceback__)[-1].line or ""
            what = one_line(str(error)) if isinstance(error, AssertionError) else describe_error(error)
            self.record.report(name, line, f"{name}() fails: {what or line}")

    def _delete_all(self) -> None:
        """Delete the objects of the scenario's kinds."""
        self.record.add("the user", "deletes everything")
        for kind in self.scenario.kinds:
            for one in self.world.list(kind):
                if self.record.created_by.get(one.uid) == "the user":
                    with suppress(NotFoundError):  # the garbage collector may have deleted it with its owner
                        self.world.delete(one)

    def _check_nothing_left(self) -> None:
        record = self.record
        kinds = {resource_of(kind).kind for kind in self.scenario.kinds}
        for resource, stored in stored_objects(record):
            metadata = stored.decoded()["metadata"]
            kind, creator = record.kind_of(resource), record.created_by.get(metadata["uid"], "")
            if kind in kinds and metadata.get("finalizers"):
                text = f"{kind} {stored.key} was deleted, but keeps the finalizers {', '.join(metadata['finalizers'])}"
                record.report("something is left", f"finalizers of {kind}", text)
            elif creator.startswith("replica") and kind not in self.scenario.kept:
                text = f"{kind} {stored.key}, which {creator} has created, remains after everything was deleted"
                record.report("something is left", kind, text)

    async def _stop(self) -> None:
        """Stop all replicas, and check that they leave nothing behind."""
        record, lives = self.record, [life for life in self.network.lives if not life.over.is_set()]
        record.add("the story", "stops all replicas")
        self.network.end()
        for life in lives:
            life.stop()
        with trio.move_on_after(STOPPING):
            for life in lives:
                await life.over.wait()
        for life in lives:
            if not life.over.is_set():
                record.report("does not stop", "", f"{life.name} has not stopped after {STOPPING:g} s")
            if life.open_watches:
                record.report("something is left", "watches", f"{life.name} has stopped, but a watch is still open")
        for key, lease in record.leases.items():
            if lease.life in lives:
                text = f"{lease.name} has stopped, but still holds the Lease {key}"
                record.report("something is left", "Lease", text)
