"""Forward a local port to a pod of a Service, and send an HTTP request through it.

Run it against the cluster that kubectl uses, or against an embedded cluster::

    python examples/port_forward.py --embedded
    python examples/port_forward.py web 80 --path /healthz
    python examples/port_forward.py web http --keep
"""

from __future__ import annotations

import argparse
import sys

import httpx
import trio
from command_line import Arguments, connect, namespace_of, parser_of, start

from trioformer import Api
from trioformer.models.core_v1 import Service
from trioformer.pods import forward_port
from trioformer.testing import APIServer, ScriptedConnection


async def get(
    services: Api[Service], name: str, port: str, path: str
) -> httpx.Response:
    """Send an HTTP request through a local port."""
    async with (
        forward_port(services, name, port) as forward,
        httpx.AsyncClient() as http,
    ):
        print(f"{forward.url} is port {forward.pod_port} of {forward.pod}")
        return await http.get(f"{forward.url}{path}")


async def main(arguments: Arguments) -> int:
    """Print the response, and return 1 if it is an error."""
    async with connect(arguments, simulate_web) as client:
        services = client.api(Service, namespace_of(arguments, client))
        try:
            response = await get(
                services, arguments.service, arguments.port, arguments.path
            )
        except httpx.TransportError as error:
            print(f"no response: {error}", file=sys.stderr)
            return 1
        print(
            f"{response.status_code} {response.reason_phrase}: "
            f"{response.text[:200].rstrip()}"
        )
        if arguments.keep:
            async with forward_port(
                services, arguments.service, arguments.port
            ) as forward:
                print(f"{forward.url}: Ctrl-C ends it")
                await trio.sleep_forever()
    return int(response.is_error)


async def simulate_web(
    server: APIServer, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Create a pod that serves HTTP, and a Service that selects the pod."""
    labels = {"app": "web"}
    ports = [{"name": "http", "containerPort": 8080}]
    spec = {
        "nodeName": "node-1",
        "containers": [{"name": "main", "image": "web:1", "ports": ports}],
    }
    metadata = {"name": "web-0", "namespace": "default", "labels": labels}
    server.create(
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    )
    service = {
        "selector": labels,
        "ports": [{"name": "web", "port": 80, "targetPort": "http"}],
    }
    metadata = {"name": "web", "namespace": "default"}
    server.create(
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": service}
    )

    async def respond(connection: ScriptedConnection) -> None:
        request = b""
        while b"\r\n\r\n" not in request:
            if not (data := await connection.receive_some()):
                return
            request += data
        body = b"hello from web-0: " + request.partition(b"\r\n")[0] + b"\n"
        head = (
            b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
            % len(body)
        )
        await connection.send_all(head + body)

    server.script_pod("web-0").on_connect(8080, respond)
    task_status.started()
    await trio.sleep_forever()


def url_path(text: str) -> str:
    """Parse the path of a URL for argparse."""
    if not text.startswith("/"):
        raise argparse.ArgumentTypeError(f"{text!r} must begin with a slash")
    return text


if __name__ == "__main__":
    parser = parser_of(__doc__, is_namespaced=True)
    parser.add_argument("service", nargs="?", default="web", help="default: web")
    parser.add_argument(
        "port",
        nargs="?",
        default="80",
        help="the port of the Service, or its name; default: 80",
    )
    parser.add_argument("--path", type=url_path, default="/", help="default: /")
    parser.add_argument(
        "--keep", action="store_true", help="forward a local port until Ctrl-C"
    )
    start(main, parser)
