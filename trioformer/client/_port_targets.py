"""Which pod and which of its ports are meant by a port of a pod, a Service, or what runs pods.

The choices are kubectl's.

Source: kubectl ``pkg/cmd/portforward/portforward.go``, ``pkg/polymorphichelpers`` and ``pkg/util/podutils``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, final

import attrs

from .._suggestions import describe
from ..errors import PortForwardError
from ..models import KubernetesObject, to_dict
from ._port_streams import PodConnection, connect

if TYPE_CHECKING:
    from ..models.core_v1 import Pod
    from ._api_reads import ApiReads

_SERVICES: Final = "services"
_FORWARDABLE: Final = (
    "pods",
    _SERVICES,
    "replicationcontrollers",
    "daemonsets.apps",
    "deployments.apps",
    "replicasets.apps",
    "statefulsets.apps",
    "jobs.batch",
)
"""The resources with a port that can be forwarded."""


@final
@attrs.frozen
class PortTarget:
    """A port of a pod."""

    pod: str
    """The name of the pod."""
    port: int
    """The port."""


@final
@attrs.frozen
class PortSource:
    """A port of a pod, of a Service, or of what runs pods; it says which pod that is."""

    api: ApiReads[Any]
    """The API of the object."""
    pods: ApiReads[Pod]
    """That of the pods in its namespace."""
    name: str
    """The name of the object."""
    port: int | str
    """The port, or its name."""
    where: str
    """The operation, for errors."""

    @property
    def is_pod(self) -> bool:
        """Whether it is always the same pod."""
        return str(self.api.resource) == "pods"

    async def find(self) -> PortTarget:
        """Find the pod; :func:`find_target` has the errors."""
        return await find_target(self.api, self.pods, self.name, self.port, where=self.where)

    async def connect(self, target: PortTarget | None = None) -> PodConnection:
        """Connect to a port of a pod, by default to the one that is found; the caller closes the connection.

        It raises what :meth:`find` and :func:`~._port_streams.connect` raise.
        """
        if target is None and self.is_pod and isinstance(self.port, int):
            target = PortTarget(self.name, self.port)  # the node says whether there is one
        target = target or await self.find()
        path = self.pods._paths.object(target.pod, subresource="portforward")
        return await connect(self.pods._transport, path, where=self.where, pod=target.pod, port=target.port)


def check_port(port: int | str) -> int | str:
    """Check a port; a text of digits is a number.

    Raises:
        TypeError: It is neither a number nor a name.
        ValueError: There is no such port.
    """
    if isinstance(port, bool) or not isinstance(port, int | str):
        raise TypeError(f"a port must be a number, or the name of one, not {describe(port)}")
    number = int(port) if isinstance(port, str) and port.isascii() and port.isdecimal() else port
    if isinstance(number, int) and not 1 <= number <= 65_535:
        raise ValueError(f"a port must be between 1 and 65535, not {number}")
    if not number:
        raise ValueError("the name of a port must not be empty")
    return number


def check_resource(method: str, resource: str) -> None:
    """Check that a resource has ports that can be forwarded.

    Raises:
        TypeError: It has none.
    """
    if resource not in _FORWARDABLE:
        kinds = "pods, services, and what runs pods"
        raise TypeError(f"{method}() is for {kinds}, and this is the API of {resource}")


async def find_target(api: ApiReads[Any], pods: ApiReads[Pod], name: str, port: int | str, *, where: str) -> PortTarget:
    """Find the pod, and its port.

    Args:
        api: The API of the resource.
        pods: That of the pods in the same namespace.
        name: The name of the object.
        port: The port, or its name.
        where: The operation, for errors.

    Raises:
        NotFoundError: There is no object of this name.
        PortForwardError: No pod runs, or there is no such port, or it is not of TCP.
    """
    if str(api.resource) == "pods":
        pod = _members(await pods.get(name))
        phase = (pod.get("status") or {}).get("phase")
        if phase != "Running":
            raise PortForwardError(f"{where}: the pod is not running, its status is {phase or 'unknown'}")
        return PortTarget(name, _port_of_pod(pod, port, where))
    obj = _members(await api.get(name, namespace=pods.namespace))
    pod = await _choose(pods, obj, where)
    found = (
        _port_of_service(obj, pod, port, where) if str(api.resource) == _SERVICES else _port_of_pod(pod, port, where)
    )
    return PortTarget(str(pod["metadata"]["name"]), found)


def _members(obj: KubernetesObject) -> dict[str, Any]:
    return to_dict(obj)


async def _choose(pods: ApiReads[Pod], obj: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Choose the pod that is most likely to respond."""
    selector = (obj.get("spec") or {}).get("selector")
    if not selector:
        raise PortForwardError(f"{where}: it has no selector, so it selects no pods")
    is_plain = obj.get("kind") in ("Service", "ReplicationController")
    labels = _selector_text({"matchLabels": selector} if is_plain else selector)
    listed = [_members(pod) for pod in await pods.list(label_selector=labels)]
    running = [pod for pod in listed if (pod.get("status") or {}).get("phase") == "Running"]
    if not running:
        count = f"none of its {len(listed)} pods runs" if listed else f"there is no pod with the labels {labels}"
        raise PortForwardError(f"{where}: {count}")
    return max(running, key=_rank)


def _selector_text(selector: Mapping[str, Any]) -> str:
    texts = [f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()]
    for each in selector.get("matchExpressions") or ():
        key, values = each["key"], ",".join(each.get("values") or ())
        operators = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key}
        texts.append(operators.get(each["operator"], f"!{key}"))
    return ",".join(texts)


def _rank(pod: Mapping[str, Any]) -> tuple[object, ...]:
    """Compare as kubectl's ``ActivePods``; among pods that run."""
    status, metadata = pod.get("status") or {}, pod["metadata"]
    ready = [each for each in status.get("conditions") or () if each.get("type") == "Ready"]
    is_ready = any(each.get("status") == "True" for each in ready)
    since = ready[0].get("lastTransitionTime") or "9" if is_ready else ""
    deleted = metadata.get("deletionTimestamp")
    restarts = max((each.get("restartCount", 0) for each in status.get("containerStatuses") or ()), default=0)
    created = metadata.get("creationTimestamp") or "9"
    has_node = bool((pod.get("spec") or {}).get("nodeName"))
    return has_node, is_ready, not deleted, deleted or "", _Earlier(since), -restarts, _Earlier(created)


@final
@attrs.frozen
class _Earlier:
    """A time, of which the earlier one is the greater one."""

    time: str

    def __lt__(self, other: _Earlier) -> bool:
        return self.time > other.time


def _ports_in(pod: Mapping[str, Any]) -> list[dict[str, Any]]:
    spec = pod.get("spec") or {}
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    return [port for each in containers for port in each.get("ports") or ()]


def _port_of_pod(pod: Mapping[str, Any], port: int | str, where: str) -> int:
    ports = _ports_in(pod)
    number = port if isinstance(port, int) else _named(ports, port, "containerPort", "the pod", where)
    _check_protocol([each for each in ports if each.get("containerPort") == number], port, where)
    return number


def _port_of_service(service: Mapping[str, Any], pod: Mapping[str, Any], port: int | str, where: str) -> int:
    ports: list[dict[str, Any]] = (service.get("spec") or {}).get("ports") or []
    number = port if isinstance(port, int) else _named(ports, port, "port", "the service", where)
    found = [each for each in ports if each.get("port") == number]
    if not found:
        raise PortForwardError(f"{where}: the service does not have a port {number}, only {_listed(ports, 'port')}")
    _check_protocol(found, port, where)
    if service["spec"].get("clusterIP") == "None":
        return number  # its name resolves to the pods themselves
    target = found[0].get("targetPort") or number
    return target if isinstance(target, int) else _named(_ports_in(pod), target, "containerPort", "the pod", where)


def _named(ports: list[dict[str, Any]], name: str, field: str, owner: str, where: str) -> int:
    for each in ports:
        if each.get("name") == name:
            return int(each[field])
    names = ", ".join(str(each["name"]) for each in ports if each.get("name")) or "none"
    raise PortForwardError(f"{where}: {owner} does not have a port with the name {name!r}; the names are: {names}")


def _listed(ports: list[dict[str, Any]], field: str) -> str:
    return ", ".join(str(each.get(field)) for each in ports) or "none"


def _check_protocol(found: list[dict[str, Any]], port: int | str, where: str) -> None:
    protocols = {each.get("protocol") or "TCP" for each in found}
    if found and protocols == {"UDP"}:
        raise PortForwardError(f"{where}: port {port} is of UDP, which is not supported")
