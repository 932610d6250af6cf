"""Find the pod and the container for ``logs``, ``exec`` and ``cp``, as kubectl does.

If a pod has several containers and the caller selects none of them, the library raises an error.  The tool uses the
first container and prints a note instead, as kubectl does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

import trio

from ...models import ResourceInfo, Unstructured, to_dict, unstructured_kind
from .._failures import CommandError
from .._printing import parse_time
from .._resources import Target, check_name, items_of, request_pages, select
from .._session import Session

if TYPE_CHECKING:
    from ...client import Api, Client
    from ...models import core_v1 as typed

__all__ = [
    "PODS",
    "Pod",
    "choose_container",
    "container_texts",
    "find_container",
    "find_pod",
    "has_ended",
    "pods_api",
    "pods_of",
    "read_named",
]

DEFAULT_CONTAINER: Final = "kubectl.kubernetes.io/default-container"
PODS: Final = ResourceInfo(group="", version="v1", kind="Pod", plural="pods", namespaced=True)
"""The resource for pods.  It is defined here, because discovery would require two requests."""
_WITH_SELECTORS: Final = ("daemonsets", "deployments", "replicasets", "statefulsets")

Pod = Mapping[str, Any]
"""The JSON object of a pod."""


def pods_api(client: Client, namespace: str) -> Api[typed.Pod]:
    """Return an API for pods without importing the class ``Pod``, because the import takes 60 ms."""
    kind: type[Unstructured] = unstructured_kind(PODS)
    return cast("Api[typed.Pod]", client.api(kind, namespace))


async def read_named(client: Client, session: Session, arguments: Sequence[str]) -> tuple[Target, dict[str, Any]]:
    """Read the object that the arguments name: ``NAME`` for a pod, ``TYPE/NAME`` or ``TYPE NAME``.

    Raises:
        CommandError: If the arguments are not valid.
        StatusError: If the object does not exist.
    """
    kind, slash, name = arguments[0].rpartition("/")
    if len(arguments) == 1 and (not slash or (kind in ("pod", "pods", "po") and name)):
        check_name(name)
        target = Target(PODS, session.namespace, name)
    else:
        selection = await select(client, arguments, namespace=session.namespace)
        if not selection.is_single:
            raise CommandError("expected a resource")
        target = selection.targets[0]
    pages = await request_pages(client, target, {}, accept="application/json")
    return target, pages[0]


async def find_pod(
    client: Client, session: Session, arguments: Sequence[str], *, patience: float, verb: str
) -> dict[str, Any]:
    """Return the pod that the arguments name. If they name a workload or Service, return its best pod.

    Args:
        client: The client for all requests.
        session: The session, which contains the namespace.
        arguments: The arguments that name the object, as for :func:`read_named`.
        patience: How long to wait for the first pod, in seconds.
        verb: The operation to name in error messages, such as ``attach to``.

    Raises:
        CommandError: If no pod appears in time, or the kind of the object does not have pods.
        StatusError: If the object does not exist.
    """
    target, obj = await read_named(client, session, arguments)
    if _is_pod(target):
        return obj
    return (await pods_of(client, target, obj, patience=patience, verb=verb))[0]


async def pods_of(
    client: Client, target: Target, obj: Mapping[str, Any], *, patience: float, verb: str
) -> list[dict[str, Any]]:
    """Return the pods of a workload or Service, with the best pod first.

    If there are no pods, this function waits for the first pod.
    """
    if _is_pod(target):
        return [dict(obj)]
    params = {"labelSelector": _selector_of(target, obj, verb)}
    where = Target(PODS, target.namespace)
    pages = await request_pages(client, where, params, accept="application/json")
    pods = [each for page in pages for each in items_of(page, where)]
    if pods:
        return sorted(pods, key=_rank)
    from ...watchtools import resuming_watch  # noqa: PLC0415  # most commands find their pod

    kind: type[Unstructured] = unstructured_kind(PODS)
    version = str((pages[-1].get("metadata") or {}).get("resourceVersion") or "")
    with trio.move_on_after(patience):
        async with resuming_watch(
            client.api(kind, where.namespace), resource_version=version, label_selector=params["labelSelector"]
        ) as events:
            async for event in events:
                if event.type != "DELETED":
                    return [to_dict(event.object)]
    raise CommandError("timed out waiting for the condition")


def _is_pod(target: Target) -> bool:
    return target.resource.kind == "Pod" and not target.resource.group


def _selector_of(target: Target, obj: Mapping[str, Any], verb: str) -> str:
    resource = target.resource
    spec = obj.get("spec") or {}
    selector = spec.get("selector") or {}
    if (resource.group, resource.plural) in (("", "services"), ("", "replicationcontrollers")):
        if not selector and resource.plural == "services":
            problem = f"invalid service '{target.name}': Service is defined without a selector"
            raise CommandError(f"cannot {verb} *v1.Service: {problem}")
        return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    if (resource.group == "apps" and resource.plural in _WITH_SELECTORS) or resource.gvk.kind == "Job":
        return _label_selector(selector)
    name = f"*{resource.version}.{resource.kind}"
    raise CommandError(f"cannot {verb} {name}: selector for {name} not implemented")


def _label_selector(selector: Mapping[str, Any]) -> str:
    parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for each in selector.get("matchExpressions") or []:
        key, values = each.get("key"), ",".join(each.get("values") or [])
        match each.get("operator"):
            case "In":
                parts.append(f"{key} in ({values})")
            case "NotIn":
                parts.append(f"{key} notin ({values})")
            case "Exists":
                parts.append(f"{key}")
            case _:
                parts.append(f"!{key}")
    return ",".join(parts)


# --- the best pod ---


def _rank(pod: Pod) -> tuple[Any, ...]:
    """Return a sort key for pods. The pod that is most likely to keep running has the lowest key."""
    ready = _ready_since(pod)
    is_deleted = "deletionTimestamp" in (pod.get("metadata") or {})
    return (_phase(pod) != "Running", is_deleted, ready is None, ready or 0.0, _created(pod))


def _phase(pod: Pod) -> str:
    return str((pod.get("status") or {}).get("phase") or "")


def _seconds(text: object) -> float:
    then = parse_time(text)
    return math.inf if then is None else then.timestamp()


def _created(pod: Pod) -> float:
    return _seconds((pod.get("metadata") or {}).get("creationTimestamp"))


def _ready_since(pod: Pod) -> float | None:
    for each in (pod.get("status") or {}).get("conditions") or []:
        if each.get("type") == "Ready" and each.get("status") == "True":
            return _seconds(each.get("lastTransitionTime"))
    return None


# --- the container ---


def container_texts(pod: Pod) -> str:
    """Return the names of all containers as kubectl lists them, for example ``web, debug (ephem), setup (init)``."""
    spec = pod.get("spec") or {}
    fields = (("containers", ""), ("ephemeralContainers", " (ephem)"), ("initContainers", " (init)"))
    return ", ".join(f"{each.get('name')}{suffix}" for field, suffix in fields for each in spec.get(field) or [])


def find_container(pod: Pod, name: str) -> dict[str, Any]:
    """Return the container with this name."""
    spec = pod.get("spec") or {}
    for field in ("containers", "initContainers", "ephemeralContainers"):
        for each in spec.get(field) or []:
            if each.get("name") == name:
                return dict(each)
    pod_name = (pod.get("metadata") or {}).get("name")
    raise CommandError(f"container {name} is not valid for pod {pod_name} out of: {container_texts(pod)}")


def choose_container(pod: Pod, name: str, note: Callable[[str], None] | None) -> dict[str, Any]:
    """Return the container with this name, or the default container of the pod.

    The default container is the container that the pod's annotation names, or otherwise the first container.

    Args:
        pod: The pod that contains the container.
        name: The name of the container, or an empty string for the default container.
        note: A function that is called with a note about the chosen container.  If None, no note is printed.
    """
    metadata, spec = pod.get("metadata") or {}, pod.get("spec") or {}
    name = name or (metadata.get("annotations") or {}).get(DEFAULT_CONTAINER) or ""
    if name:
        return find_container(pod, name)
    containers = spec.get("containers") or []
    if not containers:
        raise CommandError(f"pod {metadata.get('namespace')}/{metadata.get('name')} does not have any containers")
    first = dict(containers[0])
    has_more = len(containers) > 1 or spec.get("initContainers") or spec.get("ephemeralContainers")
    if has_more and note is not None:
        note(f'Defaulted container "{first.get("name")}" out of: {container_texts(pod)}')
    return first


def has_ended(pod: Pod) -> str:
    """Return the phase of a pod if the pod has ended, or otherwise an empty string."""
    phase = _phase(pod)
    return phase if phase in ("Succeeded", "Failed") else ""
