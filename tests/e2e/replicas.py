"""Replicas of a program of which one leads: run as processes, stopped by signals, and checked by their fencing log."""

from __future__ import annotations

import itertools
import math
import random
import re
import signal
import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Literal, TypeAlias

import attrs
import trio

from tests.support.processes import Program, running

StrikeKind: TypeAlias = Literal["kill", "terminate", "freeze", "nap"]
"""What is done to the leader: SIGKILL; SIGTERM; SIGSTOP, and SIGCONT when another one leads; SIGSTOP, and SIGCONT about
when another one is going to."""


@attrs.frozen
class Entry:
    """A line of the fencing log."""

    time: float
    """When it happened, on the clock that all processes of a machine share; of an act, just before its body asked
    whether it still leads."""
    identity: str
    """Whose body it was."""
    token: int
    """The fencing token of its term: the lease's transitions."""
    controller: str
    """Which part of the body."""
    what: Literal["begin", "act", "end"]

    @classmethod
    def read(cls, log: Path) -> list[Entry]:
        """Read a whole log."""
        lines = [line.split() for line in log.read_text().splitlines()]
        return [cls(float(when), who, int(token), controller, what) for when, who, token, controller, what in lines]  # type: ignore[arg-type]  # as the program writes it


@attrs.frozen
class Strike:
    """A signal that was sent to the leader."""

    kind: StrikeKind
    identity: str
    """To whom."""
    token: int
    """In which of the terms."""
    time: float
    """When."""
    resumed: float
    """When it went on, if it was only stopped."""


def overlaps(log: Iterable[Entry], stopped: Collection[int] = ()) -> list[str]:
    """Report whatever a body did when a later one had begun, and of terms that are not one after the other.

    The exception is the end of a body that was stopped, and does nothing else when it goes on.

    Args:
        log: The log, in any order.
        stopped: The tokens of bodies that were stopped.
    """
    found: list[str] = []
    newest, leader = -1, ""
    ended: set[tuple[int, str]] = set()
    for entry in sorted(log, key=lambda entry: entry.time):
        if entry.token > newest and entry.what == "begin":
            newest, leader = entry.token, entry.identity
        elif entry.token < newest and not (entry.what == "end" and entry.token in stopped):
            found.append(f"{entry} while {leader} leads in term {newest}")
        elif entry.token > newest or (entry.token == newest and entry.identity != leader):
            found.append(f"{entry} although it has not begun, in term {newest} of {leader}")
        elif (entry.token, entry.controller) in ended:
            found.append(f"{entry} after its end")
        if entry.what == "end":
            ended.add((entry.token, entry.controller))
    return found


def late_writes(log: Iterable[Entry]) -> list[Entry]:
    """Find the acts that were written down after a later body had begun: those that a fencing token is for.

    Their bodies were stopped between the question whether they still lead and the write.
    Whoever heeds tokens refuses these, since each comes after a higher one.

    Args:
        log: The log, in the order in which it was written.
    """
    newest = -1
    found: list[Entry] = []
    for entry in log:
        if entry.what == "act" and entry.token < newest:
            found.append(entry)
        newest = max(newest, entry.token)
    return found


def end_of(log: Iterable[Entry], token: int) -> float:
    """Return when the last of a body has ended."""
    return max(entry.time for entry in log if entry.token == token and entry.what == "end")


def takeover(log: Iterable[Entry], strike: Strike) -> float:
    """Return the seconds from a strike until the next body has begun."""
    return min(entry.time for entry in log if entry.token > strike.token) - strike.time


@attrs.define(eq=False)
class Replica:
    """One process, and the lines of its log."""

    identity: str
    program: Program
    token: int = -1
    """The fencing token of its term, if it leads or has led."""
    knows: str = ""
    """Whom it waits for."""
    is_at_work: bool = False
    """Whether it has written something as the leader."""
    ended: trio.Event = attrs.field(factory=trio.Event)

    def read_line(self, line: str) -> bool:
        """Read a line of its log; returns whether anything has changed."""
        before = self.token, self.knows, self.is_at_work
        if match := re.search(r": acquired by '.+?', transitions (\d+)", line):
            self.token = int(match[1])
        elif match := re.search(r": held by '(.+?)'; ", line):
            self.knows = match[1]
        elif ": patched " in line:
            self.is_at_work = True
        return (self.token, self.knows, self.is_at_work) != before


@attrs.define(eq=False)
class Replicas:
    """So many replicas; when one ends, another one is started in its place, under another name."""

    count: int
    command: tuple[str, ...]
    """The program and its arguments."""
    rng: random.Random
    naps: tuple[float, float]
    """For how long a nap lasts, at least and at most."""
    alive: dict[str, Replica] = attrs.field(factory=dict)
    """Those that have not ended, by identity."""
    ends: list[tuple[str, int, str]] = attrs.field(factory=list)
    """Who has ended, with which code and last line to stderr."""
    _stop: bool = False
    _news: trio.Event = attrs.field(factory=trio.Event)

    async def run(self) -> None:
        """Keep them running until cancelled or stopped."""
        async with trio.open_nursery() as nursery:
            for slot in range(self.count):
                nursery.start_soon(self._keep, slot)

    async def stop(self) -> None:
        """Terminate all, one after the other, the leader first; none is started again."""
        self._stop = True
        for replica in sorted(self.alive.values(), key=lambda each: -each.token):
            replica.program.process.terminate()
            await replica.ended.wait()

    async def _keep(self, slot: int) -> None:
        for life in itertools.count(1):
            if self._stop:
                return
            identity = f"replica-{slot}.{life}"
            async with running(*self.command, "--identity", identity) as program, trio.open_nursery() as nursery:
                replica = self.alive[identity] = Replica(identity, program)
                nursery.start_soon(self._listen, replica)
                code = await program.process.wait()
            del self.alive[identity]
            self.ends.append((identity, code, "".join(program.errors[-1:])))
            replica.ended.set()
            self._notify()

    async def _listen(self, replica: Replica) -> None:
        program, seen = replica.program, 0
        while not program.is_over:
            await program.wait_for(lambda _, seen=seen: len(program.errors) > seen or program.is_over)  # type: ignore[misc]  # bound early
            for line in program.errors[seen:]:
                seen += 1
                if replica.read_line(line):
                    self._notify()

    def _notify(self) -> None:
        self._news.set()
        self._news = trio.Event()

    async def wait_for(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition on the state of the programs is true."""
        while not condition():
            await self._news.wait()

    @property
    def leader(self) -> Replica | None:
        """Who works as the leader, while all the others know that and wait; None before that is so."""
        leader = max(self.alive.values(), key=lambda each: each.token, default=None)
        others = [each for each in self.alive.values() if each is not leader]
        if leader is None or not leader.is_at_work or len(others) < self.count - 1:
            return None
        return leader if all(each.knows == leader.identity for each in others) else None

    async def strike(self, kind: StrikeKind) -> Strike:
        """Wait for all, and a random time; send a signal to the leader; wait until another one leads."""
        await self.wait_for(lambda: self.leader is not None)
        await trio.sleep(self.rng.uniform(0, 1))  # any moment between two renewals
        leader = self.leader
        assert leader is not None, "the leader has lost the lease before the signal"
        token, process = leader.token, leader.program.process
        signals = {"kill": signal.SIGKILL, "terminate": signal.SIGTERM}
        struck, resumed = time.monotonic(), math.nan
        process.send_signal(signals.get(kind, signal.SIGSTOP))
        if kind == "nap":
            await trio.sleep(self.rng.uniform(*self.naps))
            resumed = time.monotonic()
            process.send_signal(signal.SIGCONT)
        await self.wait_for(lambda: any(each.token > token for each in self.alive.values()))
        if kind == "freeze":
            await trio.sleep(self.rng.uniform(0, 0.3))
            resumed = time.monotonic()
            process.send_signal(signal.SIGCONT)
        await leader.ended.wait()
        return Strike(kind, leader.identity, token, struck, resumed)
