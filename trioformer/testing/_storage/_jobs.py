"""The labels and the selector of a new Job, which identify its pods.

Source: kubernetes ``pkg/registry/batch/job/strategy.go`` (``generateSelector``).
"""

from __future__ import annotations

from ._storage import JSONObject


def select_own_pods(job: JSONObject) -> None:
    """Label the pods of a new Job with its name and uid, and select them by the uid, unless the Job has a selector."""
    spec, metadata = job.get("spec"), job["metadata"]
    if not isinstance(spec, dict) or spec.get("manualSelector") or spec.get("selector") or "template" not in spec:
        return
    prefix, name, uid = "batch.kubernetes.io/", metadata["name"], metadata["uid"]
    own = {f"{prefix}controller-uid": uid, f"{prefix}job-name": name, "controller-uid": uid, "job-name": name}
    template = spec["template"]
    given = template.get("metadata") or {}
    labels = {**(given.get("labels") or {}), **own}
    spec["template"] = {**template, "metadata": {**given, "labels": labels}}
    spec["selector"] = {"matchLabels": {f"{prefix}controller-uid": uid}}
