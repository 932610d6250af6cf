"""Kill, replace and suspend replicas that share objects, and check by the audit log that each has one writer.

::

    KUBEBUILDER_ASSETS=… python benchmarks/share_moves.py [--kills 100] [--updates 20] [--stops 20]

Four replicas (``drivers/share_operator.py``) with Leases of 2 seconds divide 32 ConfigMaps into 16 ranges on a real
kube-apiserver, and write each of them once a second.

- A kill is SIGKILL of a replica that owns ranges.  Another is started when all ranges have an owner again.
- A rolling update replaces one replica after the other by SIGTERM.  Every other update starts the next one before.
- A stop is SIGSTOP for 1 to 6 seconds, and then SIGCONT.

Everything that is measured comes from the audit log, whose times are those of one clock:

- A replica owns a range from the request that acquired the Lease, until it has released the Lease, or until the Lease's
  duration has passed since the last request that renewed it.
- A range has an owner again when the response to the next one's request is complete, and its list is in the cache when
  this owner begins to write an object of the range.

Fails if two replicas own a range at one time, or if one writes an object without owning its range.
Requests that the replica has cancelled are not counted there: kube-apiserver may receive them late.
Writes after SIGCONT are counted apart: a process that was suspended between its check and the request sends it anyway.
"""

from __future__ import annotations

import argparse
import bisect
import collections
import itertools
import json
import math
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import trio

sys.path.insert(0, str(Path(__file__).parent.parent))

from trioformer import SharedInformer, open_client
from trioformer.cache import ApiListWatch
from trioformer.models import ObjectMeta
from trioformer.models.coordination_v1 import Lease
from trioformer.models.core_v1 import ConfigMap, Namespace
from trioformer.sharding._ranges import range_of
from trioformer.testing import ControlPlane

BENCHMARKS = Path(__file__).resolve().parent
NAME = "moves"
RANGES, REPLICAS = 16, 4
LEASE_DURATION, RENEW_DEADLINE, RETRY_PERIOD = 2.0, 1.4, 0.4
BOUND = LEASE_DURATION + 2 * RETRY_PERIOD
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "omitManagedFields": True,
    "rules": [
        {
            "level": "Request",
            "namespaces": ["default"],
            "verbs": ["create", "update", "patch", "delete"],
            "resources": [{"group": "coordination.k8s.io", "resources": ["leases"]}],
        },
        {"level": "Metadata", "verbs": ["patch"], "resources": [{"group": "", "resources": ["configmaps"]}]},
        {"level": "None"},
    ],
}


def namespaces() -> list[str]:
    """Return the names of two namespaces for each range."""
    left, found = collections.Counter(dict.fromkeys(range(RANGES), 2)), []
    for name in map("team-{}".format, itertools.count()):
        if left[range_of(name, RANGES)] > 0:
            left[range_of(name, RANGES)] -= 1
            found.append(name)
        if not left.total():
            return found
    raise AssertionError


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110  # the state of other processes
        await trio.sleep(0.05)


@dataclass(frozen=True)
class Blow:
    """What was done to a replica, and when."""

    kind: str
    identity: str
    at: float
    resumed_at: float = math.inf


@dataclass
class Replicas:
    """The processes, and what their Leases say."""

    kubeconfig: Path
    logs: Path
    leases: SharedInformer[Lease]
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    blows: list[Blow] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def start(self) -> str:
        identity = f"replica-{next(self._numbers)}"
        command = [sys.executable, str(BENCHMARKS / "drivers" / "share_operator.py"), "--name", NAME]
        command += ["--kubeconfig", str(self.kubeconfig), "--identity", identity]
        command += ["--durations", *map(str, (LEASE_DURATION, RENEW_DEADLINE, RETRY_PERIOD))]
        with (self.logs / f"{identity}.log").open("wb") as log:
            self.processes[identity] = subprocess.Popen(command, stderr=log, cwd=BENCHMARKS.parent)
        return identity

    def owned(self) -> dict[str, int]:
        """How many ranges each replica that runs owns, as far as the cache of the Leases tells."""
        holders = [each.spec.holder_identity for each in self.leases.lister if "-range-" in each.name]
        return {identity: holders.count(identity) for identity in self.processes}

    def is_member(self, identity: str) -> bool:
        return any(each.name == f"{NAME}-member-{identity}" for each in self.leases.lister)

    async def until_owned(self) -> None:
        """Wait until each range has an owner that runs."""
        await until(lambda: sum(self.owned().values()) == RANGES)

    async def until_even(self) -> None:
        """Wait until all replicas own the same number of ranges."""
        await until(lambda: set(self.owned().values()) == {RANGES // REPLICAS})

    async def end(self, identity: str, sent: signal.Signals) -> None:
        self.processes[identity].send_signal(sent)
        self.blows.append(Blow(sent.name, identity, time.time()))
        await trio.to_thread.run_sync(self.processes.pop(identity).wait)

    async def kill(self, rng: random.Random) -> None:
        """Kill a replica, and start another."""
        await self.until_owned()
        if rng.random() < 0.5:
            with trio.move_on_after(40):
                await self.until_even()
        await trio.sleep(rng.uniform(0, 2))
        owners = sorted(identity for identity, count in self.owned().items() if count)
        await self.end(rng.choice(owners), signal.SIGKILL)
        await self.until_owned()
        await trio.sleep(rng.uniform(0, 2))
        self.start()

    async def update(self, rng: random.Random, *, surge: bool) -> None:
        """Replace all replicas, one after the other."""
        with trio.move_on_after(40):
            await self.until_even()
        for identity in list(self.processes):
            if not surge:
                await self.end(identity, signal.SIGTERM)
            started = self.start()
            await until(partial(self.is_member, started))
            if surge:
                await self.end(identity, signal.SIGTERM)
            await trio.sleep(rng.uniform(0, 2))

    async def stop(self, rng: random.Random) -> None:
        """Suspend a replica."""
        await self.until_owned()
        await trio.sleep(rng.uniform(1, 5))
        identity = rng.choice(sorted(identity for identity, count in self.owned().items() if count))
        process, began = self.processes[identity], time.time()
        process.send_signal(signal.SIGSTOP)
        await trio.sleep(rng.uniform(1, 6))
        self.blows.append(Blow("SIGSTOP", identity, began, time.time()))
        process.send_signal(signal.SIGCONT)
        await trio.sleep(2)


# --- the audit log ---


@dataclass
class Term:
    """The time in which a replica owned a range.  A renewal after the Lease has expired begins another term."""

    number: int
    holder: str
    began: float
    """When the request that acquired the Lease was received."""
    acquired: float
    """When the response to it was complete."""
    renewed: float
    """When the last request that renewed it was received."""
    released: float = math.inf
    """When the request that released it was received."""
    requests: int = 1

    @property
    def ended(self) -> float:
        return min(self.released, self.renewed + LEASE_DURATION)


@dataclass(frozen=True)
class Write:
    """A write of a ConfigMap."""

    writer: str
    name: str
    number: int
    began: float
    ended: float
    code: int
    """504 if the replica has cancelled the request, for example because it has lost the range."""


def seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def read_log(path: Path) -> tuple[list[Term], list[Write], dict[str, int]]:
    """Return the terms in their order, the writes, and how many requests of Leases were refused."""
    terms, writes, refused = list[Term](), list[Write](), collections.Counter[str]()
    updates = collections.defaultdict[int, list[tuple[int, float, float, str]]](list)
    for line in path.open():
        try:
            each = json.loads(line)
        except json.JSONDecodeError:  # the last line may not be complete
            continue
        began, ended = seconds(each["requestReceivedTimestamp"]), seconds(each["stageTimestamp"])
        found = each["objectRef"]
        if found["resource"] == "configmaps":
            namespace = found["namespace"]
            name = f"{namespace}/{found['name']}"
            code = each["responseStatus"]["code"]
            writes.append(Write(each["userAgent"], name, range_of(namespace, RANGES), began, ended, code))
            continue
        name = found.get("name") or each["requestObject"]["metadata"]["name"]
        if "-range-" not in name:
            continue
        if (code := each["responseStatus"]["code"]) >= 300:
            refused[str(code)] += 1
            continue
        # Responses may be complete in another order than the versions of the Lease.
        version = int(each["requestObject"]["metadata"].get("resourceVersion", "0"))
        holder = each["requestObject"]["spec"].get("holderIdentity") or ""
        updates[int(name.rpartition("-")[2])].append((version, began, ended, holder))
    for number, of_range in updates.items():
        last: Term | None = None
        for _, began, ended, holder in sorted(of_range):
            if last is not None and last.holder == holder and began <= last.ended:
                last.renewed, last.requests = began, last.requests + 1
            elif not holder:
                if last is not None and began <= last.ended:
                    last.released = began
            else:
                last = Term(number, holder, began, ended, began)
                terms.append(last)
    return terms, writes, refused


def overlaps(terms: Sequence[Term]) -> list[str]:
    """Find terms that begin before the one before has ended."""
    found, by_range = [], dict[int, Term]()
    for term in terms:
        last = by_range.get(term.number)
        if last is not None and term.acquired < last.ended:
            found.append(f"{term} before the end of {last}")
        by_range[term.number] = term
    return found


def strays(terms: Sequence[Term], writes: Sequence[Write]) -> list[tuple[Write, float]]:
    """Find writes of replicas that did not own the range, and for how long they had not."""
    by_owner = collections.defaultdict[tuple[int, str], list[Term]](list)
    for term in terms:
        by_owner[term.number, term.holder].append(term)
    found = []
    for write in writes:
        before = [term for term in by_owner[write.number, write.writer] if term.began <= write.began]
        if not before:
            found.append((write, math.inf))
        elif write.began > before[-1].ended:
            found.append((write, write.began - before[-1].ended))
    return found


def simultaneous(writes: Sequence[Write]) -> list[tuple[Write, Write]]:
    """Find the writes of one object by two replicas at overlapping times."""
    newest, found = dict[str, Write](), []
    for write in sorted(writes, key=lambda write: write.began):
        last = newest.get(write.name)
        if last is not None and last.writer != write.writer and write.began < last.ended:
            found.append((last, write))
        if last is None or write.ended > last.ended:
            newest[write.name] = write
    return found


@dataclass(frozen=True)
class Move:
    """How long a range had no owner after a blow, and no owner with a full cache."""

    blow: Blow
    number: int
    owned: float
    written: float
    term: Term
    """That of the next owner."""

    @property
    def request(self) -> float:
        return self.term.acquired - self.term.began


def moves_of(blows: Sequence[Blow], terms: Sequence[Term], writes: Sequence[Write]) -> list[Move]:
    """Measure the ranges that a replica owned when it was killed, and the end of a term of one that was terminated."""
    by_range = collections.defaultdict[int, list[Term]](list)
    for term in terms:
        by_range[term.number].append(term)
    begun = collections.defaultdict[tuple[int, str], list[float]](list)
    for write in sorted(writes, key=lambda write: write.began):
        begun[write.number, write.writer].append(write.began)
    found = []
    for blow in blows:
        for number, of_range in by_range.items():
            for term, after in itertools.pairwise(of_range):
                if term.holder != blow.identity or term.ended < blow.at or term.began > blow.at:
                    continue
                if blow.kind == "SIGSTOP" and term.ended > blow.resumed_at + RETRY_PERIOD:
                    continue  # it has kept the range
                since = blow.at if blow.kind == "SIGKILL" else term.ended
                first = begun[number, after.holder]
                written = next(iter(first[bisect.bisect(first, after.began) :]), math.inf)
                written = math.inf if written > after.ended else written  # it lost the range before
                found.append(Move(blow, number, after.acquired - since, written - since, after))
    return found


def told(values: Sequence[float]) -> str:
    ordered = sorted(values)
    p99 = ordered[int(len(ordered) * 0.99)]
    return f"median {statistics.median(ordered):.3f} s, p99 {p99:.3f} s, most {ordered[-1]:.3f} s"


def report(terms: list[Term], writes: list[Write], refused: Mapping[str, int], blows: list[Blow]) -> bool:
    """Print what was found, and return whether it is as it must be."""
    print(f"{len(terms)} terms, {sum(term.requests for term in terms):,} requests that acquired or renewed a Lease")
    print(f"{len(writes):,} writes of objects; requests of Leases that were refused: {dict(refused)}")
    moves = moves_of(blows, terms, writes)
    for kind in ("SIGKILL", "SIGTERM", "SIGSTOP"):
        some = [move for move in moves if move.blow.kind == kind]
        if not some:
            continue
        count = sum(blow.kind == kind for blow in blows)
        print(f"{kind}: {count} times, {len(some)} ranges changed their owners")
        print(f"  owned again after: {told([move.owned for move in some])}")
        wrote = [move for move in some if move.written < math.inf]
        print(f"  first write after: {told([move.written for move in wrote])}; none of {len(some) - len(wrote)}")
        print(f"  write after owned: {told([move.written - move.owned for move in wrote])}")
        if kind == "SIGKILL":
            for move in sorted((move for move in some if move.owned > BOUND), key=lambda move: -move.owned):
                words = f"range {move.number} of {move.blow.identity}, its request took {move.request:.3f} s"
                print(f"  later than {BOUND:.1f} s: {move.owned:.3f} s, {words}")
    two, both, stray = overlaps(terms), simultaneous(writes), strays(terms, writes)
    print(f"two owners at one time: {len(two)}", *two, sep="\n  ")
    stops = [blow for blow in blows if blow.kind == "SIGSTOP"]

    stopped = collections.defaultdict[Blow, list[tuple[Write, float]]](list)
    others, cancelled = [], []
    for write, late in stray:
        near = [each for each in stops if each.identity == write.writer and -0.2 < write.began - each.resumed_at < 5]
        (stopped[near[-1]] if near else cancelled if write.code == 504 else others).append((write, late))
    print(f"objects written by two replicas at one time: {len(both)}", *both, sep="\n  ")
    print(f"writes by a replica that does not own the range: {len(others)} without a stop", *others, sep="\n  ")
    print(f"the same, of requests that it had cancelled: {len(cancelled)}", *cancelled, sep="\n  ")
    for blow in stops:
        late = stopped[blow]
        lasted = max((write.began - blow.resumed_at for write, _ in late), default=0.0)
        seconds_stopped = blow.resumed_at - blow.at
        print(f"  stopped for {seconds_stopped:.2f} s: {len(late)} writes without owning, until {lasted:.3f} s after")
    late_kills = [move for move in moves if move.blow.kind == "SIGKILL" and move.owned > BOUND]
    return not two and not others and not both and not late_kills


# --- the run ---


async def strike(options: argparse.Namespace, directory: Path) -> tuple[list[Blow], Path]:
    """Start the servers and the replicas, and strike them."""
    rng, audit = random.Random(options.seed), directory / "audit.log"
    (directory / "policy.json").write_text(json.dumps(POLICY))
    flags = ["--feature-gates=ShardedListAndWatch=true", f"--audit-policy-file={directory / 'policy.json'}"]
    flags += [f"--audit-log-path={audit}", "--audit-log-maxsize=100000"]
    async with (
        ControlPlane(api_server_flags=flags) as control_plane,
        open_client(kubeconfig=control_plane.kubeconfig) as client,
        trio.open_nursery() as nursery,
    ):
        for name in namespaces():
            await client.api(Namespace).create(Namespace(metadata=ObjectMeta(name=name)))
            await client.api(ConfigMap, name).create(ConfigMap(metadata=ObjectMeta(name="web")))
        leases = SharedInformer(ApiListWatch(client.api(Lease, "default"), f"trioformer.dev/shares={NAME}"))
        await nursery.start(leases.run)
        replicas = Replicas(control_plane.kubeconfig, directory, leases)
        actions = [partial(replicas.kill, rng)] * options.kills
        actions += [partial(replicas.update, rng, surge=number % 2 == 0) for number in range(options.updates)]
        actions += [partial(replicas.stop, rng)] * options.stops
        try:
            for _ in range(REPLICAS):
                replicas.start()
            for number, action in enumerate(actions):
                with trio.move_on_after(180) as scope:
                    await action()
                last, result = replicas.blows[-1], "not complete after 180 s" if scope.cancelled_caught else "complete"
                for identity in [each for each, process in replicas.processes.items() if process.poll() is not None]:
                    result = f"{identity} has ended with {replicas.processes.pop(identity).returncode}"
                    replicas.start()
                (directory / "blows.json").write_text(json.dumps([vars(each) for each in replicas.blows]))
                words = f"{number + 1} of {len(actions)}: {last.kind} of {last.identity}, {result}"
                print(f"{words}, load {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
            await trio.sleep(5)
        finally:
            for process in replicas.processes.values():
                process.kill()
                process.wait()
        nursery.cancel_scope.cancel()
    return replicas.blows, audit


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--updates", type=int, default=20)
    parser.add_argument("--stops", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--directory", type=Path, required=True, help="for the logs")
    parser.add_argument("--read", action="store_true", help="only read the logs of an earlier run")
    options = parser.parse_args()
    options.directory.mkdir(parents=True, exist_ok=True)
    if options.read:
        given: list[dict[str, Any]] = json.loads((options.directory / "blows.json").read_text())
        blows, audit = [Blow(**each) for each in given], options.directory / "audit.log"
    else:
        blows, audit = trio.run(strike, options, options.directory.absolute())
    if not report(*read_log(audit), blows):
        sys.exit(1)


if __name__ == "__main__":
    main()
