"""The faults: what is done to all connections of the informers, or to the server, at one moment."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, TypeAlias

import trio

from tests.e2e.tcp_proxy import TcpProxy
from trioformer.testing import ControlPlane

FaultKind: TypeAlias = Literal["unreachable", "blackhole", "killed", "reset"]
"""All connections are reset, and new ones at once as well; connections and new ones stay open and pass no byte until
they are reset at the end; kube-apiserver is killed and started again; all connections are reset once."""
KINDS: Sequence[FaultKind] = ("unreachable", "blackhole", "killed", "reset")
OUTAGE = (1.0, 5.0)
"""Seconds that an outage lasts, at least and at most.

One of ``killed`` is longer by the start of the server; one of ``reset`` has no duration.
"""


def random_outage(rng: random.Random) -> float:
    return rng.uniform(*OUTAGE)


async def strike(kind: FaultKind, network: Sequence[TcpProxy], control_plane: ControlPlane, duration: float) -> float:
    """Cause an outage of so many seconds; returns when it has ended."""
    if kind == "killed":
        await control_plane.kill_api_server()
        await trio.sleep(duration)
        await control_plane.start_api_server()
    else:
        for proxy in network:
            proxy.is_reachable = kind != "unreachable"
            proxy.is_silent = kind == "blackhole"
            if kind == "blackhole":
                proxy.freeze()
            else:
                proxy.cut()
        if kind != "reset":
            await trio.sleep(duration)
        for proxy in network:
            proxy.is_reachable = True
            proxy.is_silent = False
            if kind == "blackhole":
                proxy.cut()
    return trio.current_time()


@contextmanager
def suspended(control_plane: ControlPlane) -> Iterator[None]:
    """Suspend kube-apiserver during the block: the kernel still accepts connections and acknowledges data."""
    process_id = control_plane.process_ids["kube-apiserver"]
    os.kill(process_id, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process_id, signal.SIGCONT)
