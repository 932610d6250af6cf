"""kubernetes, the official client: its SharedInformer."""

from __future__ import annotations

import threading
import time
from typing import Any

import measure
from kubernetes import client, config
from kubernetes.informer import SharedInformer
from listwatch import snake_read
from measure import Meter


def main() -> None:
    options = measure.options()
    config.load_kube_config(options.kubeconfig)
    informer = SharedInformer(client.CoreV1Api().list_pod_for_all_namespaces)
    listed, watched = threading.Event(), threading.Event()
    left = {"added": options.pods, "modified": options.events * options.handlers}
    seen: list[tuple[Any, int]] = []

    def on_added(pod: Any) -> None:
        left["added"] -= 1
        if not left["added"]:
            listed.set()

    def on_modified(pod: Any) -> None:
        if options.read:
            snake_read(pod)
        if options.workload == "latency":
            seen.append((pod, time.time_ns()))
        left["modified"] -= 1
        if not left["modified"]:
            watched.set()

    informer.add_event_handler("ADDED", on_added)
    for _ in range(options.handlers):
        informer.add_event_handler("MODIFIED", on_modified)
    meter = Meter()
    informer.start()
    listed.wait()
    result: dict[str, object] = {"objects": len(informer.cache.list()), **meter.read()}
    if options.workload == "sync":
        measure.finish(result)
    measure.ready()
    meter = Meter()
    watched.wait()
    result = {"events": options.events, **meter.read()}
    if options.workload == "latency":
        result |= measure.latencies([(int(pod.metadata.annotations[measure.SENT]), at) for pod, at in seen])
    measure.finish(result)


if __name__ == "__main__":
    main()
