"""A replica that writes each ConfigMap of its share once a second, until SIGTERM.

Its identity is its user agent, so that kube-apiserver's audit log tells the replicas apart.
"""

from __future__ import annotations

import argparse
import logging
import math
import sys
from pathlib import Path

import trio

import trioformer
from trioformer import Client, ClientOptions, open_client
from trioformer.controller import Controller, Request, RequeueAfter
from trioformer.leaderelection import LeaderElectionOptions
from trioformer.manager import ManagerContext, run_controllers
from trioformer.models.core_v1 import ConfigMap
from trioformer.sharding import Shares

PERIOD = 1.0
PREFIX = "team-"


def writer(client: Client, context: ManagerContext) -> Controller:
    """Return the controller."""
    informer, turns = context.factory.informer(ConfigMap), dict[Request, tuple[int, float]]()

    async def reconcile(request: Request) -> RequeueAfter | None:
        if informer.lister.get(request) is None or not request.namespace.startswith(PREFIX):
            return None
        turn, written_at = turns.get(request, (0, -math.inf))
        if (wait := written_at + PERIOD - trio.current_time()) > 0:
            return RequeueAfter(wait)
        turns[request] = turn + 1, trio.current_time()
        await client.api(ConfigMap, request.namespace).patch(request.name, {"data": {"turn": str(turn)}})
        return RequeueAfter(PERIOD)

    controller = Controller(context.name, reconcile, workers=4)
    controller.watch(informer)
    return controller


async def main(options: argparse.Namespace, stop: trio.Event) -> None:
    """Run the controller."""
    duration, deadline, period = options.durations
    shares = Shares(
        options.name,
        identity=options.identity,
        options=LeaderElectionOptions(lease_duration=duration, renew_deadline=deadline, retry_period=period),
    )
    given = ClientOptions(user_agent=options.identity)
    async with open_client(kubeconfig=options.kubeconfig, options=given) as client:

        async def start(context: ManagerContext) -> Controller:
            return writer(client, context)

        await run_controllers(client, {"writer": start}, shares=shares, stop=stop)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--name", default="moves")
    parser.add_argument("--identity", required=True)
    parser.add_argument("--durations", type=float, nargs=3, default=(2.0, 1.4, 0.4))
    logging.basicConfig(level=logging.INFO, format="%(asctime)s.%(msecs)03d %(message)s", datefmt="%H:%M:%S")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    ended = trio.Event()
    sys.exit(trioformer.run(main, parser.parse_args(), ended, stop=ended))
