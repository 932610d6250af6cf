"""kubernetes, the official client: commands in a pod, by the loop that its examples have."""

from __future__ import annotations

from functools import partial

import executing
from kubernetes import client, config
from kubernetes.stream import stream


def main() -> None:
    options, measured, received = executing.options(), executing.Measurements(), 0
    config.load_kube_config(options.kubeconfig)
    connect = client.CoreV1Api().connect_get_namespaced_pod_exec
    execute = partial(stream, connect, executing.POD, executing.NAMESPACE, stdout=True, stderr=True)
    execute(command=executing.SHORT)
    measured.begin()
    for _ in range(options.times):
        execute(command=executing.SHORT)
    measured.end("short")
    measured.begin()
    process = execute(command=executing.long(options.size), _preload_content=False, binary=True)
    while process.is_open():
        process.update(timeout=1)
        if process.peek_stdout():
            received += len(process.read_stdout())
    received += len(process.read_stdout(timeout=0) or b"")
    measured.end("long")
    measured.finish(options.size, received)


if __name__ == "__main__":
    main()
