"""Describes nodes, and what the pods on them request (kubectl ``pkg/describe/describe.go``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Final

from ...models import Quantity
from .._clock import age_of
from ._describe_related import Objects, Related
from ._describe_text import Description, at, rfc1123

__all__ = ["NODES"]

_ROLE: Final = "node-role.kubernetes.io/"
_NONE: Final = Quantity("0")
_STANDARD: Final = ("cpu", "memory", "ephemeral-storage")
_POOLS: Final = 10
_SYSTEM: Final = (
    ("Machine ID", "machineID"),
    ("System UUID", "systemUUID"),
    ("Boot ID", "bootID"),
    ("Kernel Version", "kernelVersion"),
    ("OS Image", "osImage"),
    ("Operating System", "operatingSystem"),
    ("Architecture", "architecture"),
    ("Container Runtime Version", "containerRuntimeVersion"),
    ("Kubelet Version", "kubeletVersion"),
)


def _node(obj: Mapping[str, Any], events: Objects | None, related: Related) -> str:
    text = Description()
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    text.field("Name", at(obj, "metadata", "name"))
    text.field("Roles", ",".join(sorted(_roles(at(obj, "metadata", "labels") or {}))) or "<none>")
    text.labels("Labels", at(obj, "metadata", "labels"))
    text.annotations(at(obj, "metadata", "annotations"))
    text.field("CreationTimestamp", rfc1123(at(obj, "metadata", "creationTimestamp")))
    taints = sorted(spec.get("taints") or [], key=lambda each: f"{each.get('effect')},{each.get('key')}")
    text.many("Taints", [_taint(each) for each in taints])
    text.field("Unschedulable", str(bool(spec.get("unschedulable"))).lower())
    _lease(text, (related.get("leases") or [{}])[0])
    _conditions(text, status.get("conditions") or [])
    text.line(0, "Addresses:")
    for address in status.get("addresses") or []:
        text.field(str(address.get("type")), address.get("address"), 1)
    for name, key in (("Capacity", "capacity"), ("Allocatable", "allocatable")):
        amounts = status.get(key) or {}
        if amounts:
            text.line(0, f"{name}:")
        for each in sorted(amounts):
            text.field(each, amounts[each], 1)
    _slices(text, related.get("resourceslices") or ())
    text.line(0, "System Info:")
    for name, key in _SYSTEM:
        text.field(name, at(status, "nodeInfo", key) or "", 1)
    if spec.get("podCIDR"):
        text.field("PodCIDR", spec["podCIDR"])
    if spec.get("podCIDRs"):
        text.field("PodCIDRs", ",".join(spec["podCIDRs"]))
    if spec.get("providerID"):
        text.field("ProviderID", spec["providerID"])
    if (pods := related.get("pods")) is None:
        text.field("Pods", "not authorized")
    else:
        _requested(text, pods, status.get("allocatable") or status.get("capacity") or {})
    text.events(events)
    return text.render()


def _roles(labels: Mapping[str, str]) -> Iterable[str]:
    roles = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE)} | {
        labels.get("kubernetes.io/role", "")
    }
    return roles - {""}


def _taint(taint: Mapping[str, Any]) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint.get('key')}{value}:{taint.get('effect') or ''}"


def _lease(text: Description, lease: Mapping[str, Any]) -> None:
    if problem := lease.get("problem"):
        text.field("Lease", f"Failed to get lease: {problem}")
        return
    spec = lease.get("spec") or {}
    text.line(0, "Lease:")
    text.field("HolderIdentity", spec.get("holderIdentity") or "<unset>", 1)
    for name, key in (("AcquireTime", "acquireTime"), ("RenewTime", "renewTime")):
        text.field(name, rfc1123(spec[key]) if spec.get(key) else "<unset>", 1)


def _conditions(text: Description, conditions: Objects) -> None:
    if not conditions:
        return
    text.line(0, "Conditions:\n  Type\tStatus\tLastHeartbeatTime\tLastTransitionTime\tReason\tMessage")
    text.line(1, "----\t------\t-----------------\t------------------\t------\t-------")
    for each in conditions:
        cells = [each.get("type"), each.get("status")]
        cells += [rfc1123(each.get(key)) for key in ("lastHeartbeatTime", "lastTransitionTime")]
        head = "".join(f"{cell} \t" for cell in [*cells, each.get("reason") or ""])
        text.line(1, head + (each.get("message") or ""))


def _slices(text: Description, slices: Objects) -> None:
    pools: dict[str, list[Mapping[str, Any]]] = {}
    for each in slices:
        spec = each.get("spec") or {}
        pools.setdefault(f"{spec.get('driver')}/{at(spec, 'pool', 'name')}", []).append(spec)
    if not pools:
        return
    rows = []
    for key in sorted(pools)[:_POOLS]:
        driver, _, pool = key.partition("/")
        devices = sum(len(spec.get("devices") or []) for spec in pools[key])
        rows.append((driver, pool, len(pools[key]), devices))
    text.line(0, "Node-Local ResourceSlices:")
    text.table(("Driver", "Pool", "Slices", "Devices"), rows)
    if len(pools) > _POOLS:
        text.line(1, f"...and {len(pools) - _POOLS} more pools")


def _requested(text: Description, pods: Objects, allocatable: Mapping[str, Any]) -> None:
    """Add the requests and limits of each pod, and their sums, as shares of what the node has."""
    text.field("Non-terminated Pods", f"({len(pods)} in total)")
    names = ("CPU Requests", "CPU Limits", "Memory Requests", "Memory Limits")
    text.line(1, "\t".join(["Namespace", "Name", "", *names, "Age"]))
    text.line(1, "\t".join(["---------", "----", "", *("-" * len(name) for name in names), "---"]))
    sums: dict[tuple[str, str], Quantity] = {}
    for pod in pods:
        amounts = {kind: _amounts(pod, kind) for kind in ("requests", "limits")}
        for kind, by_name in amounts.items():
            for name, amount in by_name.items():
                sums[kind, name] = sums.get((kind, name), _NONE) + amount
        cells = [
            _share(amounts[kind].get(name, _NONE), allocatable.get(name))
            for name in ("cpu", "memory")
            for kind in ("requests", "limits")
        ]
        head = [at(pod, "metadata", "namespace"), at(pod, "metadata", "name"), ""]
        text.line(1, "\t".join([*map(str, head), *cells, age_of(at(pod, "metadata", "creationTimestamp"))]))
    text.line(0, "Allocated resources:\n  (Total limits may be over 100 percent, i.e., overcommitted.)")
    huge = sorted(name for name in allocatable if name.startswith("hugepages-"))
    others = sorted(name for name in allocatable if name not in (*_STANDARD, *huge, "pods"))
    rows = []
    for name in (*_STANDARD, *huge, *others):
        used = [sums.get((kind, name), _NONE) for kind in ("requests", "limits")]
        rows.append([name, *(str(each) if name in others else _share(each, allocatable.get(name)) for each in used)])
    text.table(("Resource", "Requests", "Limits"), rows)


def _share(amount: Quantity, whole: object) -> str:
    """Return an amount and its percentage of what there is, if the node says it."""
    available = Quantity(str(whole)).value if whole is not None else Decimal(0)
    percent = int(amount.value * 100 / available) if available else 0
    return f"{amount.canonical if amount.value else 0} ({percent}%)"


def _amounts(pod: Mapping[str, Any], kind: str) -> dict[str, Quantity]:
    """Return the requests or the limits of a pod: of its containers together, or of an init container with more."""
    spec = pod.get("spec") or {}
    total: dict[str, Quantity] = {}
    for container in spec.get("containers") or []:
        _add(total, _declared(container, kind))
    sidecars: dict[str, Quantity] = {}
    highest: dict[str, Quantity] = {}
    for container in spec.get("initContainers") or []:
        own = _declared(container, kind)
        if container.get("restartPolicy") == "Always":  # it goes on beside the containers
            _add(total, own)
            _add(sidecars, own)
            own = dict(sidecars)
        else:
            _add(own, sidecars)
        _raise_to(highest, own)
    _raise_to(total, highest)
    total.update(_declared(spec, kind))
    for name, amount in (spec.get("overhead") or {}).items():
        if kind == "requests" or name in total:
            _add(total, {name: Quantity(str(amount))})
    return total


def _declared(holder: Mapping[str, Any], kind: str) -> dict[str, Quantity]:
    return {name: Quantity(str(amount)) for name, amount in (at(holder, "resources", kind) or {}).items()}


def _add(total: dict[str, Quantity], amounts: Mapping[str, Quantity]) -> None:
    for name, amount in amounts.items():
        total[name] = total[name] + amount if name in total else amount


def _raise_to(total: dict[str, Quantity], amounts: Mapping[str, Quantity]) -> None:
    for name, amount in amounts.items():
        if name not in total or amount > total[name]:
            total[name] = amount


NODES: Final = {"nodes": _node}
