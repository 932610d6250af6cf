"""Objects and requests after which the embedded server has been wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.fuzz.server import Requests


def replication_controller(labels: Any) -> Requests:
    """A ReplicationController, which by default has the labels of its template."""
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}}
    names: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "ReplicationController",
        "metadata": {"name": "a", "namespace": "default"},
    }
    return Requests(("v1", names["kind"]), {**names, "spec": {"selector": {"app": "a"}, "template": template}}, ())


CASES: Mapping[str, Callable[[], Requests]] = {
    "labels of a template that are not text": lambda: replication_controller({"app": {"a": "b"}}),
    "labels of a template that are null": lambda: replication_controller({"app": None}),
}
