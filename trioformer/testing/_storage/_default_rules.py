"""The defaults of built-in types that depend on other fields.

- Those that are values are in ``default_rules.txt``.  Each line has a type or a path, as in ``defaults.txt``, and a
  list of conditions and defaults.  The conditions are the values that fields may have, or whether they have a value.
  Null is the value of an absent field.  The value ``<field>`` is that of another field, and null removes the field.
- The others are set by a function, which takes an object in the form in which the client sent it, before the defaults
  of the table are set.

Source: kubernetes ``pkg/apis/*/*/defaults.go``, and its conversions for the labels and selectors of workloads.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from copy import deepcopy
from typing import Final

from ._storage import JSONObject
from ._values import objects_at, value_at

WRONG_TYPE: Final = (AttributeError, LookupError, TypeError, ValueError)
"""The exceptions that a value of the wrong type causes.  The direct API stores objects with such values."""
TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"
"""The annotation of a DaemonSet that counts the changes of its template."""


@functools.lru_cache(1_000)
def pull_policy(image: object) -> str:
    """Return the policy for an image, which is always pulled if its tag may move to another image."""
    name = str(image or "")
    tag = name.rpartition("/")[2].partition("@")[0].partition(":")[2]
    return "Always" if tag == "latest" or not (tag or "@" in name) else "IfNotPresent"


def set_defaults(cases: list[tuple[JSONObject, JSONObject]], obj: JSONObject) -> None:
    """Set the defaults in a line of ``default_rules.txt`` whose conditions an object meets."""
    for conditions, defaults in cases:
        for name, wanted in conditions.items():
            value = obj.get(name)
            if wanted is None:
                if value is not None:
                    break
            elif value not in wanted if wanted.__class__ is list else bool(value) is not wanted:
                break
        else:
            for name, default in defaults.items():
                if default is None:
                    obj.pop(name, None)
                elif default.__class__ is str and default.startswith("<"):
                    obj[name] = deepcopy(obj.get(default[1:-1]))
                else:
                    obj[name] = default.copy() if default.__class__ is dict else default


# --- pods -------------------------------------------------------------------------------------------------------------


def _set_pull_policy(name: str, policy: str, obj: JSONObject) -> None:
    if not obj.get(policy):
        obj[policy] = pull_policy(obj.get(name))


_container = functools.partial(_set_pull_policy, "image", "imagePullPolicy")


def _volume(volume: JSONObject) -> None:
    if all(source is None for name, source in volume.items() if name != "name"):
        volume["emptyDir"] = {}


def _pod(pod: JSONObject) -> None:
    for container in objects_at(pod, "spec", "initContainers") + objects_at(pod, "spec", "containers"):
        if limits := value_at(container, "resources", "limits"):
            resources = container["resources"]
            resources["requests"] = {**limits, **(resources.get("requests") or {})}
        for port in objects_at(container, "ports") if pod["spec"].get("hostNetwork") is True else ():
            if not port.get("hostPort"):
                port["hostPort"] = port.get("containerPort")


# --- workloads --------------------------------------------------------------------------------------------------------


def take_labels(workload: JSONObject) -> dict[str, str]:
    """Give a workload without labels those of its pods, and return them.

    Both then share one dict, as in kube-apiserver, so that a Job also gets the labels that are generated for its pods.
    """
    labels: dict[str, str] = value_at(workload, "spec", "template", "metadata", "labels") or {}
    metadata = workload["metadata"]
    if labels and not metadata.get("labels") and all(isinstance(each, str) for each in labels.values()):
        metadata["labels"] = labels
    return labels


def _daemon_set(daemon_set: JSONObject) -> None:
    metadata = daemon_set["metadata"]
    metadata["annotations"] = {TEMPLATE_GENERATION: "1", **(metadata.get("annotations") or {})}


def _replication_controller(controller: JSONObject) -> None:
    labels = take_labels(controller)
    if labels and not controller["spec"].get("selector"):
        controller["spec"]["selector"] = dict(labels)


def _limits(item: JSONObject) -> None:
    if item.get("type") == "Container":
        least, most, requests = (item.get(name) or {} for name in ("min", "max", "defaultRequest"))
        item["default"] = limits = {**most, **(item.get("default") or {})}
        item["defaultRequest"] = {**least, **limits, **requests}


RULES: Final[dict[str, Callable[[JSONObject], object]]] = {
    "apps_v1.DaemonSet": _daemon_set,
    "batch_v1.Job": take_labels,
    "core_v1.Container": _container,
    "core_v1.EphemeralContainerCommon": _container,
    "core_v1.ImageVolumeSource": functools.partial(_set_pull_policy, "reference", "pullPolicy"),
    "core_v1.LimitRangeItem": _limits,
    "core_v1.Pod": _pod,
    "core_v1.ReplicationController": _replication_controller,
    "core_v1.Volume": _volume,
}
"""The functions, by the types of the objects that they take."""
