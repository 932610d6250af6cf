"""A real kube-apiserver full of pods, for as long as standard input is open.

::

    KUBEBUILDER_ASSETS=… python benchmarks/servers/cluster.py --pods 10000 --directory .cache/bench/cluster
    python benchmarks/servers/cluster.py --record      # writes pod.json: what the server makes of a pod

Says ``{"kubeconfig": …}`` when it is ready; then obeys lines on standard input:

- ``write COUNT INTERVAL``: patch an annotation of one pod after the other, which holds the time at which the request
  was sent (nanoseconds of the wall clock); one every INTERVAL seconds; then says ``{"written": COUNT}``

The same directory is used again with what it holds: loading 10,000 pods takes a minute.
"""

from __future__ import annotations

import argparse
import base64
import http.client
import json
import ssl
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import local
from urllib.parse import urlsplit

import pods
import trio
import yaml

from trioformer.testing import ControlPlane

CONNECTIONS = 16
SENT = "bench.example.com/sent"


class Requests:
    """Sends requests with a connection for each thread."""

    def __init__(self, kubeconfig: Path) -> None:
        read = yaml.safe_load(kubeconfig.read_text())
        cluster, user = read["clusters"][0]["cluster"], read["users"][0]["user"]
        self._url = urlsplit(cluster["server"])
        self._tls = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        with tempfile.NamedTemporaryFile() as pair:
            pair.write(
                base64.b64decode(user["client-certificate-data"]) + b"\n" + base64.b64decode(user["client-key-data"])
            )
            pair.flush()
            self._tls.load_cert_chain(pair.name)
        self._local = local()

    def send(
        self, method: str, path: str, body: object = None, content_type: str = "application/json"
    ) -> dict[str, object]:
        connection: http.client.HTTPSConnection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = http.client.HTTPSConnection(self._url.hostname or "", self._url.port, context=self._tls)
            self._local.connection = connection
        data = None if body is None else json.dumps(body).encode()
        connection.request(method, path, data, {"Content-Type": content_type, "Accept": "application/json"})
        answer = connection.getresponse()
        said: dict[str, object] = json.loads(answer.read())
        if answer.status >= 300 and said.get("reason") != "AlreadyExists":
            raise RuntimeError(f"{method} {path}: {answer.status} {said.get('message')}")
        return said


def load_pod(requests: Requests, number: int) -> dict[str, object]:
    """Create a pod, and write its status as a kubelet does."""
    where = f"/api/v1/namespaces/{pods.namespace_of(number)}/pods"
    requests.send("POST", f"{where}?fieldManager=kube-controller-manager", pods.new_pod(number))
    return requests.send(
        "PATCH",
        f"{where}/{pods.name_of(number)}/status?fieldManager=kubelet",
        {"status": pods.new_status(number)},
        "application/strategic-merge-patch+json",
    )


def load(requests: Requests, count: int) -> None:
    for number in range(pods.NAMESPACES):
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": pods.namespace_of(number)}}
        requests.send("POST", "/api/v1/namespaces", namespace)
    with ThreadPoolExecutor(CONNECTIONS) as threads:
        for _ in threads.map(lambda number: load_pod(requests, number), range(count)):
            pass


def record(requests: Requests) -> None:
    """Write what the server made of pod 0, as it stands in a list."""
    pod = load_pod(requests, 0)
    del pod["kind"], pod["apiVersion"]
    pods.RECORDED.write_text(json.dumps(pod, indent=1) + "\n")


def write(requests: Requests, count: int, interval: float) -> None:
    for number in range(count):
        patch = {"metadata": {"annotations": {SENT: str(time.time_ns())}}}
        path = f"/api/v1/namespaces/{pods.namespace_of(number)}/pods/{pods.name_of(number)}"
        requests.send("PATCH", path, patch, "application/merge-patch+json")
        time.sleep(interval)
    say(written=count)


def say(**values: object) -> None:
    print(json.dumps(values), flush=True)


async def main() -> None:
    parser = argparse.ArgumentParser(description="Run a real kube-apiserver full of pods.")
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--directory", type=Path)
    parser.add_argument("--record", action="store_true", help="write pod.json beside this program, and end")
    options = parser.parse_args()
    directory: Path | None = options.directory
    loaded = directory / f"loaded-{options.pods}" if directory else None
    async with ControlPlane(directory=directory) as control_plane:
        requests = Requests(control_plane.kubeconfig)
        if options.record:
            await trio.to_thread.run_sync(load, requests, 0)
            await trio.to_thread.run_sync(record, requests)
            return
        began = time.monotonic()
        if loaded is None or not loaded.exists():
            await trio.to_thread.run_sync(load, requests, options.pods)
        if loaded is not None:
            loaded.touch()
        say(kubeconfig=str(control_plane.kubeconfig), loaded_in=round(time.monotonic() - began, 1))
        while line := await trio.to_thread.run_sync(sys.stdin.readline):
            command, *arguments = line.split()
            if command == "write":
                await trio.to_thread.run_sync(write, requests, int(arguments[0]), float(arguments[1]))


if __name__ == "__main__":
    trio.run(main)
