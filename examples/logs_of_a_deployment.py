"""Follow the logs of all pods of a Deployment, including pods that a rollout starts,
as stern does.

Run it against the cluster that kubectl uses, or against an embedded cluster in which a
pod is replaced every few seconds::

    python examples/logs_of_a_deployment.py --embedded
    python examples/logs_of_a_deployment.py web --tail 10 --container main
"""

from __future__ import annotations

import itertools

import trio
from command_line import Arguments, connect, namespace_of, parser_of, positive, start

from trioformer.models.apps_v1 import Deployment
from trioformer.models.core_v1 import Pod
from trioformer.pods import follow_logs_of
from trioformer.testing import APIServer


async def simulate_web(
    server: APIServer, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Let two pods of a Deployment log two lines per second, and replace a pod every
    three seconds.
    """
    labels, containers = {"app": "web"}, [{"name": "main", "image": "web:1"}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    server.create(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web"},
            "spec": spec,
        }
    )
    numbers = itertools.count()

    def run_pod() -> str:
        name = f"web-{next(numbers)}"
        metadata = {"name": name, "namespace": "default", "labels": labels}
        server.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": metadata,
                "spec": {"containers": containers},
            }
        )
        server.script_pod(name).write_log("listening on port 8080")
        return name

    names = [run_pod(), run_pod()]
    task_status.started()
    for step in itertools.count(1):
        await trio.sleep(0.5)
        for name in names:
            server.script_pod(name).write_log(f"GET /items/{step} 200")
        if step % 6 == 0:
            server.script_pod(names[0]).write_log("shutting down")
            server.delete(Pod, names.pop(0))
            names.append(run_pod())


async def main(arguments: Arguments) -> None:
    """Read the selector of the Deployment, and print the log lines of its pods."""
    async with connect(arguments, simulate_web) as client:
        namespace = namespace_of(arguments, client)
        deployment = await client.api(Deployment, namespace).get(arguments.deployment)
        async with follow_logs_of(
            client.api(Pod, namespace),
            label_selector=deployment.spec.selector.match_labels,
            containers=arguments.container,
            tail_lines=arguments.tail,
        ) as lines:
            async for line in lines:
                print(line.pod, line.container, line, flush=True)


if __name__ == "__main__":
    parser = parser_of(__doc__, is_namespaced=True)
    parser.add_argument("deployment", nargs="?", default="web", help="default: web")
    parser.add_argument(
        "--container",
        "-c",
        action="append",
        metavar="NAME",
        help="default: all containers",
    )
    parser.add_argument(
        "--tail",
        type=positive,
        metavar="LINES",
        help="of pods that run already; default: all",
    )
    start(main, parser)
