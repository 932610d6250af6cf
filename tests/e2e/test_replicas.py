"""Replicas of ``examples/controller_manager.py`` on a real kube-apiserver, with leaders that are killed or suspended.

The fencing log is the proof: each controller of a leader appends when it begins, writes something and ends, with the
lease's transitions as its token.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import pytest
import trio

from tests.e2e.replicas import Entry, Replicas, StrikeKind, end_of, late_writes, overlaps, takeover
from tests.support.processes import ROOT
from trioformer import load_config, open_client
from trioformer.client import Api
from trioformer.models import ObjectMeta, from_dict
from trioformer.models.apps_v1 import ReplicaSet
from trioformer.models.core_v1 import Namespace
from trioformer.testing import ControlPlane

PROGRAM = str(ROOT / "examples" / "controller_manager.py")
ANNOTATION = "example.com/running"
OBJECTS = 30

LEASE_DURATION, RENEW_DEADLINE, RETRY_PERIOD = 3.0, 2.0, 0.5
MARGIN = 0.5
"""What requests and the scheduling of processes may add, on two cores that are busy."""
EXIT_CODES: Mapping[StrikeKind, int] = {"kill": -9, "terminate": 0, "freeze": 1, "nap": 1}
"""The exit code of the target of each kind; 1 is that the lease was lost."""
STRIKES: Mapping[int, Sequence[StrikeKind]] = {2: ["kill", "terminate", "freeze"], 3: ["kill", "terminate", "nap"]}
"""The signals of an ordinary run, by the number of replicas."""
MANY_STRIKES: Mapping[StrikeKind, int] = {"kill": 8, "terminate": 8, "freeze": 5, "nap": 4}
"""How often each kind is sent in a long run."""


async def undo(api: Api[ReplicaSet], names: Collection[str]) -> None:
    """Take away all that the leader writes, soon after it has written all, so that it is often in arrears."""
    written: set[str] = set()
    while True:
        async with api.watch() as events:
            async for event in events:
                if ANNOTATION in event.object.metadata.annotations:
                    written.add(event.object.name)
                if written >= set(names):
                    await trio.sleep(0.2)  # two cores have other things to do, too
                    written.clear()
                    for name in names:
                        await api.patch(name, {"metadata": {"annotations": {ANNOTATION: None}}})


def replica_set(name: str) -> ReplicaSet:
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "main", "image": "busybox"}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": name}}, "template": template}
    return from_dict(ReplicaSet, {"metadata": {"name": name}, "spec": spec})


@pytest.mark.parametrize("count", [2, 3])
async def test_there_are_never_two_active_bodies_and_the_next_one_takes_over_in_time(
    control_plane: ControlPlane, tmp_path: Path, pytestconfig: pytest.Config, count: int
) -> None:
    """3 strikes each, and 25 in a long run, in an order, and at moments, that the number of replicas has seeded."""
    name, fencing_log, rng = f"replicas-{count}", tmp_path / "fencing.log", random.Random(count)
    times = {"--lease-duration": LEASE_DURATION, "--renew-deadline": RENEW_DEADLINE, "--retry-period": RETRY_PERIOD}
    command = [PROGRAM, "--leader-elect", *(str(word) for option in times.items() for word in option)]
    command += ["--kubeconfig", str(control_plane.kubeconfig), "--namespace", name, "--fencing-log", str(fencing_log)]
    # A nap may end before anyone has taken over, but never before the leader is to give up.
    replicas = Replicas(count, tuple(command), rng, naps=(RENEW_DEADLINE, LEASE_DURATION + RETRY_PERIOD))
    names = [f"web-{number}" for number in range(OBJECTS)]
    kinds = list(STRIKES[count])
    if pytestconfig.getoption("--long"):
        kinds = [kind for kind, count_of_kind in MANY_STRIKES.items() for _ in range(count_of_kind)]
    rng.shuffle(kinds)
    with trio.fail_after(600):  # many strikes take minutes; on a busy machine, more
        async with open_client(load_config(kubeconfig=control_plane.kubeconfig)) as client:
            await client.api(Namespace).create(Namespace(metadata=ObjectMeta(name=name)))
            replica_sets = client.api(ReplicaSet, namespace=name)
            for each in names:
                await replica_sets.create(replica_set(each))
            async with trio.open_nursery() as nursery:
                nursery.start_soon(undo, replica_sets, names)
                nursery.start_soon(replicas.run)
                strikes = [await replicas.strike(kind) for kind in kinds]
                await replicas.stop()
                nursery.cancel_scope.cancel()

    log = Entry.read(fencing_log)
    taken = {strike: takeover(log, strike) for strike in strikes}
    late = late_writes(log)
    print(f"{count} replicas, {len(strikes)} strikes, {len(log)} lines, {len(late)} late writes")
    for strike, seconds in taken.items():
        print(f"{strike.kind:9} {strike.identity:12} {seconds:.3f} s")

    stopped = {strike.token for strike in strikes if strike.kind in ("freeze", "nap")}
    assert overlaps(log, stopped) == []
    # What was under way when its process was stopped: one write at most, as there is no checkpoint before it.
    assert {entry.token for entry in late} <= stopped
    assert len({entry.token for entry in late}) == len(late)
    for strike in strikes:
        if strike.token in stopped:
            assert end_of(log, strike.token) <= strike.resumed + RETRY_PERIOD + MARGIN, strike
    # Nobody else has lost the lease, or failed.
    expected = {strike.identity: EXIT_CODES[strike.kind] for strike in strikes}
    assert {who: code for who, code, _ in replicas.ends} == {who: 0 for who, _, _ in replicas.ends} | expected
    for strike, seconds in taken.items():
        bound = RETRY_PERIOD if strike.kind == "terminate" else LEASE_DURATION + RETRY_PERIOD
        assert seconds <= bound + MARGIN, strike
