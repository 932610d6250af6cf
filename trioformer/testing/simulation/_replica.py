"""The replicas of the operator, which start again after they have ended."""

from __future__ import annotations

import random
import uuid
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Final, TypeAlias

import attrs
import trio

from ..._surroundings import Surroundings, surroundings
from ..._text import describe_error
from ...client import Client, ClientOptions, open_client
from ...client._internal import simulated_cluster
from ...controller._internal import collect_journal
from ...kubeconfig import ClusterConfig
from ._life import LONGEST_RESTART, Life, place_of
from ._network import Network, StoryTransport

Operator: TypeAlias = Callable[[Client], Awaitable[object]]
"""The program: it runs until it is cancelled."""

FIRST_RESTART: Final = 10.0
"""The seconds before a replica that has ended with an error starts again, which double up to five minutes."""
STABLE_AFTER: Final = 600.0
"""The seconds after which a replica that ends with an error starts again after the shortest pause."""

current_life: Final[ContextVar[Life | None]] = ContextVar("current_life", default=None)
"""The life of the replica to which the current task belongs."""


async def run_replica(
    index: int, seed: int, skew: float, operator: Operator, network: Network, nursery: trio.Nursery
) -> None:
    """Run one replica of the operator, life after life, until the story stops it."""
    pause = FIRST_RESTART
    seeds = random.Random(seed)
    while not network.over.is_set():
        life = Life(network.record.server, network.record, index, seeds.getrandbits(64), skew, nursery)
        network.lives.append(life)
        began = trio.current_time()
        nursery.start_soon(_live, life, operator, network)
        await life.over.wait()
        if network.over.is_set():  # stopped in the meantime
            return
        if life.restarts_after is not None:
            await trio.sleep(life.restarts_after)
            continue
        network.record.add(life.name, "ended", life.error)
        if not network.struck:  # a fault may have caused the error
            network.record.report("operator failed", life.error.partition(":")[0], f"{life.name} ended: {life.error}")
        pause = FIRST_RESTART if trio.current_time() - began >= STABLE_AFTER else pause
        network.record.disturb(pause)
        await trio.sleep(pause)
        pause = min(2 * pause, LONGEST_RESTART)


async def _live(life: Life, operator: Operator, network: Network) -> None:
    """Run the operator once."""
    current_life.set(life)
    collect_journal.set(life.collect)
    surroundings.set(_surroundings(life))
    transport = StoryTransport(life, network)
    config = ClusterConfig(server="http://embedded.invalid", source="simulation")
    simulated_cluster.set(lambda options: (config, transport, attrs.evolve(options, protobuf=False)))
    options = ClientOptions(protobuf=False)
    await trio.lowlevel.checkpoint()  # with the clock of the replica
    try:
        async with trio.open_nursery() as life.connection:
            with life.scope:
                async with open_client(config, http_transport=transport, options=options) as client:
                    await operator(client)
                life.error = "it returned, although it was not stopped"
            life.connection.cancel_scope.cancel()
    except (Exception, SystemExit) as error:  # noqa: BLE001  # the operator starts again, as in a pod
        life.error = f"{describe_error(error)}{place_of(error)}"
    except BaseExceptionGroup as group:
        _, rest = group.split((Exception, SystemExit))
        if rest is not None:
            raise
        life.error = describe_error(group)
    finally:
        life.over.set()


def _surroundings(life: Life) -> Surroundings:
    generator = random.Random(life.seed)
    return Surroundings(
        wall_time=life.wall_time,
        machine_time=trio.current_time,
        boot_time=trio.current_time,
        host_name=lambda: f"replica-{life.index}",
        new_uuid=lambda: uuid.UUID(int=generator.getrandbits(128), version=4),
        new_generator=lambda: random.Random(generator.getrandbits(64)),
        is_simulated=True,
    )
