"""Find the pod and port for connections to a pod, Service or workload, following the same rules as kubectl.

Source: ``pkg/cmd/portforward/portforward.go``, ``pkg/polymorphichelpers`` and ``pkg/util/podutils`` in kubectl.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, final

import attrs

from .._suggestions import describe
from ..client._internal import located
from ..errors import PortForwardError
from ..models import KubernetesObject, to_dict
from ._port_streams import PodConnection, connect

if TYPE_CHECKING:
    from ..client import Api
    from ..models.core_v1 import Pod

_SERVICES: Final = "services"
_PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}
FORWARDABLE: Final = (
    "pods",
    _SERVICES,
    "replicationcontrollers",
    "daemonsets.apps",
    "deployments.apps",
    "replicasets.apps",
    "statefulsets.apps",
    "jobs.batch",
)
"""The resources whose ports can be forwarded."""


@final
@attrs.frozen
class PortTarget:
    """A port of a pod to connect to."""

    pod: str
    """The name of the pod."""
    port: int
    """The port of the pod."""
    asked: int
    """The number of the requested port, which is the port of the Service if the object is a Service."""


@final
@attrs.frozen
class PortSource:
    """A requested port of a pod, Service or workload."""

    api: Api[Any]
    """The API of the object."""
    pods: Api[Pod]
    """The API of the pods in the object's namespace."""
    name: str
    """The name of the object."""
    port: int | str
    """The port, or its name."""
    where: str
    """The operation, for errors."""

    @property
    def is_pod(self) -> bool:
        """Whether the object is a pod."""
        return str(self.api.resource) == "pods"

    async def find(self) -> PortTarget:
        """Find the pod and its port; see :func:`find_target`."""
        return await find_target(self.api, self.pods, self.name, self.port, where=self.where)

    async def connect(self, target: PortTarget | None = None) -> PodConnection:
        """Connect to a pod, by default to the result of :meth:`find`; the caller must close the connection."""
        if target is None and self.is_pod and isinstance(self.port, int):
            target = PortTarget(self.name, self.port, self.port)  # the node checks it
        target = target or await self.find()
        pod = located(self.pods, "connect_port", target.pod, None)
        return await connect(pod.transport, pod.path("portforward"), where=self.where, pod=target.pod, port=target.port)


def check_port(port: int | str) -> int | str:
    """Check a port, and convert a string of digits to a number.

    Raises:
        TypeError: The port is neither a number nor a name.
        ValueError: The number is out of range, or the name is empty.
    """
    if isinstance(port, bool) or not isinstance(port, int | str):
        raise TypeError(f"a port must be a number or a name, not {describe(port)}")
    if isinstance(port, str) and ":" in port:
        raise ValueError(f"a port must be a number or a name, not {port!r}; pass the local port as local_port=")
    number = int(port) if isinstance(port, str) and port.isascii() and port.isdecimal() else port
    if isinstance(number, int) and not 1 <= number <= 65_535:
        raise ValueError(f"a port must be between 1 and 65535, not {number}")
    if not number:
        raise ValueError("the name of a port must not be empty")
    return number


async def find_target(api: Api[Any], pods: Api[Pod], name: str, port: int | str, *, where: str) -> PortTarget:
    """Choose a pod, and find its port.

    Args:
        api: The API of the resource.
        pods: The API of the pods in the same namespace.
        name: The name of the object.
        port: The number or name of the port.
        where: The name of the operation for error messages.

    Raises:
        NotFoundError: The object does not exist.
        PortForwardError: No pod is running, or the port does not exist or is not a TCP port.
    """
    if str(api.resource) == "pods":
        pod = _members(await pods.get(name))
        asked = found = _port_of_pod(pod, port, where)
    else:
        obj = _members(await api.get(name, namespace=pods.namespace))
        pod = await _choose(pods, obj, where)
        if str(api.resource) == _SERVICES:
            asked, found = _port_of_service(obj, pod, port, where)
        else:
            asked = found = _port_of_pod(pod, port, where)
    phase = (pod.get("status") or {}).get("phase")
    if phase != "Running":
        problem = f"unable to forward port because pod is not running. Current status={phase or 'Unknown'}"
        raise PortForwardError(f"{where}: {problem}")
    return PortTarget(str(pod["metadata"]["name"]), found, asked)


def _members(obj: KubernetesObject) -> dict[str, Any]:
    return to_dict(obj)


async def _choose(pods: Api[Pod], obj: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Choose the pod that is most likely to respond."""
    selector = (obj.get("spec") or {}).get("selector")
    name = f"{obj['kind']} '{obj['metadata']['name']}'"
    if not selector:
        raise PortForwardError(f"{where}: {name} does not select any pods: it has no selector")
    is_plain = obj.get("kind") in ("Service", "ReplicationController")
    labels = _selector_text({"matchLabels": selector} if is_plain else selector)
    listed = [_members(pod) for pod in await pods.list(label_selector=labels)]
    if not listed:
        where_pods = f"in namespace {obj['metadata'].get('namespace')}"
        raise PortForwardError(f"{where}: no pod {where_pods} matches the selector {labels} of {name}")
    return max(listed, key=_rank)


def _selector_text(selector: Mapping[str, Any]) -> str:
    texts = [f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()]
    for each in selector.get("matchExpressions") or ():
        key, values = each["key"], ",".join(each.get("values") or ())
        operators = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key}
        texts.append(operators.get(each["operator"], f"!{key}"))
    return ",".join(texts)


def _rank(pod: Mapping[str, Any]) -> tuple[object, ...]:
    """Return a sort key with the same order as ``ActivePods`` in kubectl."""
    status, metadata = pod.get("status") or {}, pod["metadata"]
    ready = [each for each in status.get("conditions") or () if each.get("type") == "Ready"]
    is_ready = any(each.get("status") == "True" for each in ready)
    since = ready[0].get("lastTransitionTime") or "9" if is_ready else ""
    deleted = metadata.get("deletionTimestamp")
    restarts = max((each.get("restartCount", 0) for each in status.get("containerStatuses") or ()), default=0)
    created = metadata.get("creationTimestamp") or "9"
    has_node = bool((pod.get("spec") or {}).get("nodeName"))
    phase = _PHASES.get(str(status.get("phase")), 0)
    return has_node, phase, is_ready, not deleted, deleted or "", _Earlier(since), -restarts, _Earlier(created)


@final
@attrs.frozen
class _Earlier:
    """A sort key in which an earlier time is greater."""

    time: str

    def __lt__(self, other: _Earlier) -> bool:
        return self.time > other.time


def _ports_in(pod: Mapping[str, Any]) -> list[dict[str, Any]]:
    spec = pod.get("spec") or {}
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    return [port for each in containers for port in each.get("ports") or ()]


def _port_of_pod(pod: Mapping[str, Any], port: int | str, where: str) -> int:
    ports = _ports_in(pod)
    number = port if isinstance(port, int) else _named(ports, port, "containerPort", _pod(pod), where)
    _check_protocol([each for each in ports if each.get("containerPort") == number], port, where)
    return number


def _port_of_service(
    service: Mapping[str, Any], pod: Mapping[str, Any], port: int | str, where: str
) -> tuple[int, int]:
    """Return the port number of a Service and the matching port number of its pod."""
    name = service["metadata"]["name"]
    ports: list[dict[str, Any]] = (service.get("spec") or {}).get("ports") or []
    number = port if isinstance(port, int) else _named(ports, port, "port", f"Service '{name}'", where)
    found = [each for each in ports if each.get("port") == number]
    if not found:
        numbers = ", ".join(str(each.get("port")) for each in ports) or "no ports"
        raise PortForwardError(f"{where}: Service {name} does not have a service port {number}; it has {numbers}")
    _check_protocol(found, port, where)
    if service["spec"].get("clusterIP") == "None":
        return number, number  # its name resolves to the pods themselves
    target = found[0].get("targetPort") or number
    if isinstance(target, str):
        target = _named(_ports_in(pod), target, "containerPort", _pod(pod), where)
    return number, target


def _named(ports: list[dict[str, Any]], name: str, field: str, owner: str, where: str) -> int:
    for each in ports:
        if each.get("name") == name:
            return int(each[field])
    names = ", ".join(str(each["name"]) for each in ports if each.get("name")) or "no named ports"
    raise PortForwardError(f"{where}: {owner} does not have a named port '{name}'; it has {names}")


def _pod(pod: Mapping[str, Any]) -> str:
    return f"Pod '{pod['metadata']['name']}'"


def _check_protocol(found: list[dict[str, Any]], port: int | str, where: str) -> None:
    protocols = {each.get("protocol") or "TCP" for each in found}
    if found and protocols == {"UDP"}:
        raise PortForwardError(f"{where}: UDP protocol is not supported for {port}")
