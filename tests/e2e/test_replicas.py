"""Replicas of ``examples/controller_manager.py`` against a real kube-apiserver, while their leaders are struck down.

The fencing log is the proof: each controller of a leader appends when it begins, writes something and ends, with the
lease's transitions as its token.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from pathlib import Path

import pytest
import trio

from tests.e2e.replicas import Blow, Entry, Replicas, end_of, late_writes, overlaps, takeover
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
BLOWS: Mapping[Blow, tuple[int, int]] = {"kill": (8, -9), "terminate": (8, 0), "freeze": (5, 1), "nap": (4, 1)}
"""How often each blow is dealt, and with what code its target ends; 1 is that the lease was lost."""


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
    control_plane: ControlPlane, tmp_path: Path, count: int
) -> None:
    """25 strikes each, in an order, and at moments, that the seed has chosen; the seed is the number of replicas."""
    name, fencing_log, rng = f"replicas-{count}", tmp_path / "fencing.log", random.Random(count)
    times = {"--lease-duration": LEASE_DURATION, "--renew-deadline": RENEW_DEADLINE, "--retry-period": RETRY_PERIOD}
    command = [PROGRAM, "--leader-elect", *(str(word) for option in times.items() for word in option)]
    command += ["--kubeconfig", str(control_plane.kubeconfig), "--namespace", name, "--fencing-log", str(fencing_log)]
    # A nap may end before anyone has taken over, but never before the leader is to give up.
    replicas = Replicas(count, tuple(command), rng, naps=(RENEW_DEADLINE, LEASE_DURATION + RETRY_PERIOD))
    names = [f"web-{number}" for number in range(OBJECTS)]
    blows: list[Blow] = [blow for blow, (times_dealt, _) in BLOWS.items() for _ in range(times_dealt)]
    rng.shuffle(blows)
    with trio.fail_after(600):  # the strikes take a minute or two; on a busy machine, more
        async with open_client(load_config(kubeconfig=control_plane.kubeconfig)) as client:
            await client.api(Namespace).create(Namespace(metadata=ObjectMeta(name=name)))
            replica_sets = client.api(ReplicaSet, namespace=name)
            for each in names:
                await replica_sets.create(replica_set(each))
            async with trio.open_nursery() as nursery:
                nursery.start_soon(undo, replica_sets, names)
                nursery.start_soon(replicas.run)
                strikes = [await replicas.strike(blow) for blow in blows]
                await replicas.stop()
                nursery.cancel_scope.cancel()

    log = Entry.read(fencing_log)
    taken = {strike: takeover(log, strike) for strike in strikes}
    late = late_writes(log)
    print(f"{count} replicas, {len(strikes)} strikes, {len(log)} lines, {len(late)} late writes")
    for strike, seconds in taken.items():
        print(f"{strike.blow:9} {strike.identity:12} {seconds:.3f} s")

    stopped = {strike.token for strike in strikes if strike.blow in ("freeze", "nap")}
    assert overlaps(log, stopped) == []
    # What was under way when its process was stopped: one write at most, as there is no checkpoint before it.
    assert {entry.token for entry in late} <= stopped
    assert len({entry.token for entry in late}) == len(late)
    for strike in strikes:
        if strike.token in stopped:
            assert end_of(log, strike.token) <= strike.resumed + RETRY_PERIOD + MARGIN, strike
    # Nobody else has lost the lease, or failed.
    expected = {strike.identity: BLOWS[strike.blow][1] for strike in strikes}
    assert {who: code for who, code, _ in replicas.ends} == {who: 0 for who, _, _ in replicas.ends} | expected
    for strike, seconds in taken.items():
        bound = RETRY_PERIOD if strike.blow == "terminate" else LEASE_DURATION + RETRY_PERIOD
        assert seconds <= bound + MARGIN, strike
