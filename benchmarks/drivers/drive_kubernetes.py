"""kubernetes, the official client: its SharedInformer; requests by threads, with as many connections."""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import Any

import crud
import measure
from kubernetes import client, config
from kubernetes.informer import SharedInformer
from listwatch import snake_read
from measure import Meter


def crud_of(api: client.CoreV1Api, name: str) -> None:
    made = client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name), data=crud.DATA)
    api.create_namespaced_config_map(crud.NAMESPACE, made)
    api.read_namespaced_config_map(name, crud.NAMESPACE)
    api.patch_namespaced_config_map(name, crud.NAMESPACE, crud.PATCH)
    api.delete_namespaced_config_map(name, crud.NAMESPACE)


def main() -> None:
    options = measure.options()
    config.load_kube_config(options.kubeconfig)
    if options.workload == "crud":
        configuration = client.Configuration.get_default_copy()
        configuration.connection_pool_maxsize = crud.WORKERS
        crud.drive_threads(options, partial(crud_of, client.CoreV1Api(client.ApiClient(configuration))))
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
