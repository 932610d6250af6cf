"""Run a command in every pod of a selector, in a few pods at the same time, and print
the output of each.

Run it against the cluster that kubectl uses, or against an embedded cluster, whose
pods simulate one command::

    python examples/run_in_pods.py --embedded
    python examples/run_in_pods.py -l app=web --at-once 5 -- cat /etc/hostname
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

import trio
from command_line import Arguments, connect, namespace_of, parser_of, positive, start

from trioformer import Api, TrioformerError
from trioformer.models.core_v1 import Pod
from trioformer.pods import run_in_pod
from trioformer.testing import APIServer, ScriptedProcess


async def run_in_all(
    api: Api[Pod], pods: Iterable[Pod], command: Sequence[str], *, at_once: int
) -> dict[str, str | TrioformerError]:
    """Run a command in pods, and return the output for each name of a pod."""
    results: dict[str, str | TrioformerError] = {}
    limiter = trio.CapacityLimiter(at_once)

    async def run(pod: Pod) -> None:
        async with limiter:
            try:
                done = await run_in_pod(api, pod, command)
                results[pod.name] = done.text.rstrip()
            except TrioformerError as error:  # the other pods continue
                results[pod.name] = error

    async with trio.open_nursery() as nursery:
        for pod in pods:
            nursery.start_soon(run, pod)
    return results


async def main(arguments: Arguments) -> int:
    """Print the results in the order of the pods, and return 1 if any command has
    failed.
    """
    async with connect(arguments, simulate_pods) as client:
        api = client.api(Pod, namespace_of(arguments, client))
        pods = [
            pod
            for pod in await api.list(label_selector=arguments.selector)
            if pod.status.phase == "Running"
        ]
        if not pods:
            print("no such pod is running", file=sys.stderr)
            return 1
        results = await run_in_all(
            api, pods, arguments.command or ["hostname"], at_once=arguments.at_once
        )
    for name, result in sorted(results.items()):
        print(f"{name}: {result}")
    return int(any(isinstance(result, TrioformerError) for result in results.values()))


async def simulate_pods(
    server: APIServer, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Create six pods that can run ``hostname``, which takes a second. In two pods,
    every other command fails.
    """
    for number in range(6):
        metadata = {
            "name": f"web-{number}",
            "namespace": "default",
            "labels": {"app": "web"},
        }
        spec = {
            "nodeName": "node-1",
            "containers": [{"name": "main", "image": "web:1"}],
        }
        server.create(
            {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        )

        async def execute(process: ScriptedProcess, number: int = number) -> int:
            await trio.sleep(1)
            if process.command != ("hostname",) and number in (2, 5):
                await process.stderr.send_all(b"no space left on device\n")
                return 1
            await process.stdout.send_all(f"web-{number}\n".encode())
            return 0

        server.script_pod(f"web-{number}").on_exec(execute)
    task_status.started()
    await trio.sleep_forever()


if __name__ == "__main__":
    parser = parser_of(__doc__, is_namespaced=True)
    parser.add_argument(
        "command",
        nargs="*",
        help="the program and its arguments, after --; default: hostname",
    )
    parser.add_argument(
        "--selector", "-l", default="", metavar="LABELS", help="default: all pods"
    )
    parser.add_argument(
        "--at-once", type=positive, default=3, metavar="N", help="default: 3"
    )
    start(main, parser)
