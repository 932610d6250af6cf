"""What runs by itself and repeats requests: an election and an event recorder, with the responses of a fuzzer."""

from __future__ import annotations

import random
from typing import Any

import httpx
import trio
from prometheus_client import CollectorRegistry

from trioformer.client import Client
from trioformer.errors import LeadershipLostError, TrioformerError
from trioformer.events import EventRecorder
from trioformer.leaderelection import LeaderElector, Leadership
from trioformer.metrics import Metrics
from trioformer.models import from_json
from trioformer.models.core_v1 import Pod

from .http_memory import MemoryServer, Reply
from .json_text import mutate, write
from .objects import new_object
from .oracle import Oracle
from .secrets import CONTENT

PERIOD = 120.0
"""Virtual seconds that a loop runs."""


def new_lease(rng: random.Random) -> bytes:
    """Make a Lease, which is broken in most cases."""
    spec: dict[str, Any] = {
        "holderIdentity": rng.choice(("other", "", "me", "\x1b[2J", "x" * 9_000, None)),
        "leaseDurationSeconds": rng.choice((15, 0, -1, 2**31, 10**400, 1, None)),
        "renewTime": rng.choice(
            ("2026-01-12T08:15:42.000000Z", "9999-12-31T23:59:59.999999Z", "0001-01-01T00:00:00Z", "x")
        ),
        "leaseTransitions": rng.choice((1, 2**63, -1, 10**400)),
        "novel": CONTENT,
    }
    meta = {"name": "lease", "namespace": "default", "resourceVersion": rng.choice(("5", "", "x", "9" * 5_000))}
    lease: dict[str, Any] = {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": meta, "spec": spec}
    for _ in range(rng.choice((0, 0, 1, 2))):
        mutate(rng, lease)
    return write(lease)


async def lead(client: Client, oracle: Oracle) -> None:
    """Take part in an election."""
    elector = LeaderElector(client, name="lease", namespace="default", identity="me")

    async def work(leadership: Leadership) -> None:
        await trio.sleep(30)

    async def run() -> None:
        with trio.move_on_after(PERIOD):
            await elector.run(work)

    await oracle.call(run, (TrioformerError, LeadershipLostError))
    oracle.secrets(repr(elector.statistics().last_error), "repr of an elector's last error")
    metrics = Metrics(registry=CollectorRegistry())
    metrics.register_elector(elector, name="lease")
    check_metrics(metrics, oracle)


async def record(client: Client, server: MemoryServer, reply: Reply, oracle: Oracle) -> None:
    """Record Events about an object with secrets, with the text of an error as their note."""
    pod = from_json(Pod, write(new_object(random.Random(0), "Pod", 1, typed=True)))

    def respond(request: httpx.Request) -> Reply:
        if request.method in ("POST", "PATCH"):
            oracle.secrets(server.content.decode("utf-8", "replace"), "an Event")
        return reply

    server.respond = respond
    error = await oracle.call(lambda: client.api(Pod, "default").get("web-1"))
    recorder = EventRecorder(client, controller="example.com/fuzzed", instance="one")

    async def run() -> None:
        with trio.move_on_after(PERIOD):
            async with trio.open_nursery() as nursery:
                await nursery.start(recorder.run)
                for _ in range(2):
                    recorder.event(pod, reason="Failed", action="Getting", note=str(error)[:2_000])
                    await trio.sleep(1)

    await oracle.call(run)
    oracle.secrets(repr(recorder.statistics()), "repr of a recorder's statistics")


def check_metrics(metrics: Metrics, oracle: Oracle) -> None:
    """Check that no secret is in the text of metrics."""
    text = metrics.render()[0].decode()
    oracle.secrets(text, "the metrics")
    oracle.expect(all(len(line) < 2_000 for line in text.splitlines()), "a line of the metrics is not bounded")
