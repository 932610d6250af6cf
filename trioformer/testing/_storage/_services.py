"""The addresses and the ports of Services.

Source: kubernetes ``pkg/registry/core/service/storage/alloc.go`` and ``pkg/registry/core/service/strategy.go``.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Final

from ._field_errors import invalid_value
from ._kind_rules import NODE_PORTS
from ._metadata import json_equal
from ._storage import JSONObject, Storage

_NETWORK: Final = ipaddress.ip_network("10.0.0.0/16")
_ADDRESSES: Final = range(2, 65_535)
"""The numbers of the cluster IPs in the network.  The first address belongs to the Service ``kubernetes``."""
_TAKEN: Final = re.compile(r'(?<=")10\.0\.\d+\.\d+(?=")|(?<=odePort":)\d+')
_NODE_PORT_TYPES: Final = ("NodePort", "LoadBalancer")
_ADDRESS_FIELDS: Final = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
_TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(_ADDRESS_FIELDS, ("ClusterIP", *_NODE_PORT_TYPES)),
    "internalTrafficPolicy": ("ClusterIP", *_NODE_PORT_TYPES),
    "externalTrafficPolicy": _NODE_PORT_TYPES,
    **dict.fromkeys(("allocateLoadBalancerNodePorts", "healthCheckNodePort", "loadBalancerClass"), ("LoadBalancer",)),
}
"""The types of Services that have a field.  A change of the type removes the field unless the client sets it anew."""


def create_service(storage: Storage, service: JSONObject, now: str) -> None:
    """Set the addresses and the ports of a new Service."""
    _allocate(storage, _key_of(service), service["spec"])


def update_service(storage: Storage, before: JSONObject, after: JSONObject) -> None:
    """Keep the addresses and the ports of a changed Service, as far as its type has them, and set missing ones."""
    old, new = before["spec"], after["spec"]
    if new.get("clusterIP") != old.get("clusterIP") and new.get("clusterIPs") == old.get("clusterIPs"):
        new["clusterIPs"] = [new["clusterIP"]] if new.get("clusterIP") else []
    kind, ports = new["type"], new.get("ports") or ()
    for name, types in _TYPES.items():
        is_needed = kind in types or (name == "externalTrafficPolicy" and bool(new.get("externalIPs")))
        if not is_needed and json_equal(new.get(name), old.get(name)):
            new.pop(name, None)
        elif is_needed and name in _ADDRESS_FIELDS and not new.get(name) and old.get(name):
            new[name] = old[name]
    known = {port.get("name"): port["nodePort"] for port in old.get("ports") or () if port.get("nodePort")}
    for port in ports:
        if kind in _NODE_PORT_TYPES:
            if not port.get("nodePort") and known.get(port.get("name")):
                port["nodePort"] = known[port.get("name")]
        elif port.get("nodePort") == known.get(port.get("name")):
            port.pop("nodePort", None)
    _allocate(storage, _key_of(after), new)


def _key_of(service: JSONObject) -> str:
    return f"{service['metadata']['namespace']}/{service['metadata']['name']}"


def _allocate(storage: Storage, key: str, spec: JSONObject) -> None:
    """Set the addresses and the ports of a Service."""
    if spec["type"] == "ExternalName":
        return
    addresses = spec.get("clusterIPs") or [spec.get("clusterIP") or _free(storage, key, _ADDRESSES, _address)]
    is_dual = addresses[0] == "None" and not spec.get("selector")
    spec["clusterIP"], spec["clusterIPs"] = addresses[0], addresses
    _take(storage, key, addresses)
    policy = spec.setdefault("ipFamilyPolicy", "RequireDualStack" if is_dual else "SingleStack")
    if not spec.get("ipFamilies"):
        families = ["IPv6" if ":" in one else "IPv4" for one in addresses]
        spec["ipFamilies"] = [*families, "IPv6"] if is_dual and policy != "SingleStack" else families
    if spec["type"] not in _NODE_PORT_TYPES or spec.get("allocateLoadBalancerNodePorts") is False:
        return
    ports = spec.get("ports") or ()
    # The ports of two protocols with the same number have the same node port.
    given = {port["port"]: port["nodePort"] for port in ports if port.get("nodePort")}
    _take(storage, key, map(str, given.values()))
    for port in ports:
        if not port.get("nodePort"):
            port["nodePort"] = given.get(port["port"]) or int(_free(storage, key, NODE_PORTS))
            given[port["port"]] = port["nodePort"]
    if spec["type"] == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local":
        spec["healthCheckNodePort"] = spec.get("healthCheckNodePort") or int(_free(storage, key, NODE_PORTS))


def _address(number: int) -> str:
    return f"10.0.{number >> 8}.{number & 255}"


def _taken(storage: Storage) -> dict[str, str]:
    """Return the addresses and ports that Services have or deleted Services had, with the key of the Service."""
    if not storage.taken:
        for stored in storage.snapshot("services"):
            storage.taken.update(dict.fromkeys(_TAKEN.findall(stored.body.decode()), stored.key))
    return storage.taken


def _holder(storage: Storage, text: str) -> str:
    """Return the key of the Service that has an address or a port, or an empty string."""
    key = _taken(storage).get(text, "")
    stored = storage.get("services", key) if key else None
    return key if stored is not None and text in _allocated(stored.decoded()["spec"]) else ""


def _take(storage: Storage, key: str, texts: Iterable[str]) -> None:
    """Note the addresses or ports that a client has chosen, unless another Service has them."""
    for text in texts:
        if _taken(storage).get(text) != key and not _holder(storage, text):
            storage.taken[text] = key


def _free(storage: Storage, key: str, numbers: range, text_of: Callable[[int], str] = str) -> str:
    """Take a text that is not taken.  Those of deleted Services are free if no others are left."""
    for i in range(2 * len(numbers)):
        text = text_of(numbers[(storage.revision + i) % len(numbers)])
        if text not in _taken(storage):
            storage.taken[text] = key
            return text
        if i == len(numbers):
            storage.taken.clear()
    raise LookupError("all addresses or ports are taken")


# --- conflicts --------------------------------------------------------------------------------------------------------


def _allocated(spec: JSONObject) -> set[str]:
    """Return the addresses and the ports of a Service."""
    ports = [spec.get("healthCheckNodePort"), *(port.get("nodePort") for port in spec.get("ports") or ())]
    addresses = [one for one in spec.get("clusterIPs") or () if one != "None"]
    return {*addresses, *(str(port) for port in ports if port)}


def allocation_causes(
    storage: Storage, key: str, service: JSONObject, old: JSONObject | None, *, dry_run: bool
) -> Iterator[JSONObject]:
    """Check that the new addresses and ports of a Service are valid and free, and yield the causes of errors.

    kube-apiserver allocates them one after the other, so it reports only the first.
    """
    spec = service["spec"]
    wanted = _allocated(spec) - (set() if old is None else _allocated(old["spec"]))
    used = {text for text in wanted if _holder(storage, text) not in ("", key)}
    addresses = spec.get("clusterIPs") or []
    for address in (one for one in addresses if one in wanted):
        problem = _address_problem(address)
        if ":" in address:
            yield invalid_value("spec.clusterIPs[0]", addresses, "IPv6 is not configured on this cluster")
        elif problem or (address in used and not dry_run):
            problem = problem or "provided IP is already allocated"
            yield invalid_value("spec.clusterIPs", addresses, f"failed to allocate IP {address}: {problem}")
    of_port: dict[int, int] = {}
    for i, port in enumerate(spec.get("ports") or ()):
        number = port.get("nodePort")
        if number and str(number) in wanted:
            is_repeated = old is None and of_port.setdefault(number, port["port"]) != port["port"]
            if is_repeated or str(number) in used:
                problem = "provided port is already allocated"
                yield invalid_value(f"spec.ports[{i}].nodePort", number, problem)


def _address_problem(address: str) -> str:
    with suppress(ValueError):
        number = int(ipaddress.ip_address(address)) - int(_NETWORK.network_address)
        if not 0 < number < _NETWORK.num_addresses - 1:
            return f"the provided IP ({address}) is not in the valid range. The range of valid IPs is {_NETWORK}"
    return ""
