"""The command ``run``, which executes a command in each running pod that a selector matches."""

from __future__ import annotations

import argparse
from typing import Any

import trio

from ...errors import TrioformerError
from ...pods import run_in_pod
from .._arguments import Parser
from .._failures import UsageError
from .._resources import Target, items_of, request_pages
from .._session import Session
from ._pods import PODS, choose_container, pods_api

__all__ = ["add_flags", "run"]


def add_flags(parser: Parser) -> None:
    """Add the flags of ``run``."""
    parser.add_argument("-l", "--selector", default="", help="Select pods by their labels")
    parser.add_argument("-c", "--container", default="", help="The container; by default as for exec")
    parser.add_argument("--at-once", type=int, default=5, help="The number of pods that execute the command at a time")


async def run(session: Session, flags: argparse.Namespace) -> int | None:
    """Run ``run``."""
    command, at_once = flags.after_dashes, flags.at_once
    if flags.arguments or not flags.selector or not command or at_once < 1:
        raise UsageError("a selector and a command after -- are required: trioformer run -l app=web -- hostname")
    failed: list[str] = []
    limiter = trio.CapacityLimiter(at_once)
    async with session.open_client() as client:
        target = Target(PODS, session.namespace)
        params = {"labelSelector": flags.selector}
        pages = await request_pages(client, target, params, accept="application/json")
        pods = [each for page in pages for each in items_of(page, target)]
        pods = [each for each in pods if (each.get("status") or {}).get("phase") == "Running"]
        if not pods:
            session.note(f"no running pods found in namespace {session.namespace}")
            return 1
        api = pods_api(client, session.namespace)

        async def run_in(pod: dict[str, Any]) -> None:
            name = pod["metadata"]["name"]
            container = choose_container(pod, flags.container, None)["name"]
            async with limiter:
                try:
                    result = await run_in_pod(api, name, command, container=container, check=False)
                except TrioformerError as exc:  # continue in the other pods
                    failed.append(name)
                    session.note(f"{name}: {exc}")
                    return
            for line in result.stdout.decode(errors="replace").splitlines():
                session.print(f"{name}: {line}")
            for line in result.stderr.decode(errors="replace").splitlines():
                session.note(f"{name}: {line}")
            if result.exit_code:
                failed.append(name)
                session.note(f"{name}: exit code {result.exit_code}")

        async with trio.open_nursery() as nursery:
            for pod in pods:
                nursery.start_soon(run_in, pod)
    return 1 if failed else None
