"""Workloads and what tests ask about them."""

from __future__ import annotations

from typing import Any

from trioformer.testing import APIServer

JSON = dict[str, Any]


def workload(kind: str, name: str, *, image: str = "web:1", **spec: Any) -> JSON:
    """Return a workload whose pods have one container and the label ``app``."""
    restart = "Never" if kind == "Job" else "Always"
    pod = {"containers": [{"name": "main", "image": image}], "restartPolicy": restart}
    given: JSON = {"template": {"metadata": {"labels": {"app": name}}, "spec": pod}}
    if kind != "Job":
        given["selector"] = {"matchLabels": {"app": name}}
    api_version = "batch/v1" if kind == "Job" else "apps/v1"
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": {**given, **spec}}


def image_patch(image: str) -> JSON:
    """Return a merge patch of a workload that changes the image."""
    return {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}}


def pods(server: APIServer, **labels: str) -> list[Any]:
    """Return the pods of the namespace ``default``."""
    selector = ",".join(f"{key}={value}" for key, value in labels.items())
    return list(server.list("pods", namespace="default", label_selector=selector))


def images(server: APIServer) -> list[str]:
    """Return the images of the pods, sorted."""
    return sorted(pod["spec"]["containers"][0]["image"] for pod in pods(server))


def status(server: APIServer, kind: str, name: str) -> Any:
    """Return the status of a workload."""
    return server.get(kind, name)["status"]


def condition(server: APIServer, kind: str, name: str, which: str) -> str | None:
    """Return the reason of a condition, or None."""
    conditions = status(server, kind, name).get("conditions") or ()
    return next((one["reason"] for one in conditions if one["type"] == which), None)


def owner(obj: Any) -> JSON:
    """Return the only owner reference of an object."""
    (reference,) = obj["metadata"]["ownerReferences"]
    found: JSON = reference
    return found
