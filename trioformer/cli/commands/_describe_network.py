"""Describes services, endpoints, ingresses and network policies (kubectl ``pkg/describe/describe.go``)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from .._clock import parse_time
from ._describe_related import Objects, Related
from ._describe_text import Description, at, pairs_text, selector_text, set_or_not

__all__ = ["NETWORK"]

_SHOWN: Final = 3
"""How many addresses are shown of a service."""


def _service(obj: Mapping[str, Any], events: Objects | None, related: Related) -> str:
    text = Description()
    spec = obj.get("spec") or {}
    text.head(obj)
    text.field("Selector", pairs_text(spec.get("selector")))
    text.field("Type", spec.get("type") or "")
    if spec.get("ipFamilyPolicy"):
        text.field("IP Family Policy", spec["ipFamilyPolicy"])
    text.field("IP Families", ",".join(spec.get("ipFamilies") or []) or "<none>")
    text.field("IP", spec.get("clusterIP") or "")
    text.field("IPs", ",".join(spec.get("clusterIPs") or []) or "<none>")
    for name, value in (
        ("External IPs", ",".join(spec.get("externalIPs") or [])),
        ("Desired LoadBalancer IP", spec.get("loadBalancerIP")),
        ("External Name", spec.get("externalName")),
        ("LoadBalancer Ingress", _balancer(at(obj, "status", "loadBalancer", "ingress"))),
    ):
        if value:
            text.field(name, value)
    for port in spec.get("ports") or []:
        name, protocol = port.get("name") or "<unset>", port.get("protocol") or ""
        text.field("Port", f"{name}\t{port.get('port')}/{protocol}")
        text.field("TargetPort", f"{port.get('targetPort', 0)}/{protocol}")
        if port.get("appProtocol"):
            text.field("AppProtocol", port["appProtocol"])
        if port.get("nodePort"):
            text.field("NodePort", f"{name}\t{port['nodePort']}/{protocol}")
        text.field("Endpoints", _addresses(related.get("endpointslices") or (), port.get("name") or ""))
    text.field("Session Affinity", spec.get("sessionAffinity") or "")
    for name, value in (
        ("External Traffic Policy", spec.get("externalTrafficPolicy")),
        ("Internal Traffic Policy", spec.get("internalTrafficPolicy")),
        ("HealthCheck NodePort", spec.get("healthCheckNodePort")),
        ("LoadBalancer Source Ranges", ",".join(spec.get("loadBalancerSourceRanges") or [])),
        ("Traffic Distribution", spec.get("trafficDistribution")),
    ):
        if value:
            text.field(name, value)
    text.events(events)
    return text.render()


def _balancer(ingress: Any) -> str:
    texts = []
    for each in ingress or []:
        mode = f" ({each['ipMode']})" if each.get("ipMode") else ""
        texts.append(f"{each['ip']}{mode}" if each.get("ip") else str(each.get("hostname", "")))
    return ", ".join(texts)


def _addresses(slices: Objects, name: str) -> str:
    """Return the addresses that are ready for a port of a service, of which some are left out."""
    if not slices:
        return "<none>"
    shown: list[str] = []
    count, has_more = 0, False
    for each in slices:
        # A headless service may have no ports.
        ports = [one for one in each["ports"] if (one.get("name") or "") == name] if each.get("ports") else [None]
        for port in ports:
            for endpoint in each.get("endpoints") or []:
                has_more = has_more or len(shown) == _SHOWN
                if at(endpoint, "conditions", "ready") is False:
                    continue
                count += 1
                if not has_more:
                    shown.append(_address(str((endpoint.get("addresses") or [""])[0]), port))
    text = ",".join(shown)
    return f"{text} + {count - _SHOWN} more..." if has_more else text


def _address(host: str, port: Mapping[str, Any] | None) -> str:
    if port is None:
        return host
    return f"[{host}]:{port.get('port')}" if ":" in host else f"{host}:{port.get('port')}"


def _endpoints(obj: Mapping[str, Any], events: Objects | None, _: Related) -> str:
    text = Description()
    text.head(obj)
    text.line(0, "Subsets:")
    for subset in obj.get("subsets") or []:
        for name, key in (("Addresses", "addresses"), ("NotReadyAddresses", "notReadyAddresses")):
            text.field(name, ",".join(str(each.get("ip")) for each in subset.get(key) or []) or "<none>", 1)
        if ports := subset.get("ports"):
            text.line(1, "Ports:")
            rows = [(port.get("name") or "<unset>", port.get("port"), port.get("protocol")) for port in ports]
            text.table(("Name", "Port", "Protocol"), rows, 2)
        text.line(0, "")
    text.events(events)
    return text.render()


def _endpoint_slice(obj: Mapping[str, Any], events: Objects | None, _: Related) -> str:
    text = Description()
    text.head(obj)
    text.field("AddressType", obj.get("addressType") or "")
    if ports := obj.get("ports"):
        text.line(0, "Ports:")
        rows = [(port.get("name") or "<unset>", set_or_not(port.get("port")), port.get("protocol")) for port in ports]
        text.table(("Name", "Port", "Protocol"), rows)
    else:
        text.line(0, "Ports: <unset>")
    endpoints = obj.get("endpoints") or []
    text.line(0, "Endpoints:" if endpoints else "Endpoints: <none>")
    for endpoint in endpoints:
        text.field("- Addresses", ", ".join(endpoint.get("addresses") or []) or "<none>", 1)
        text.line(2, "Conditions:")
        text.field("Ready", set_or_not(at(endpoint, "conditions", "ready")), 3)
        text.field("Hostname", set_or_not(endpoint.get("hostname")), 2)
        if (target := endpoint.get("targetRef")) is not None:
            text.field("TargetRef", f"{target.get('kind', '')}/{target.get('name', '')}", 2)
        text.field("NodeName", set_or_not(endpoint.get("nodeName")), 2)
        text.field("Zone", set_or_not(endpoint.get("zone")), 2)
    text.events(events)
    return text.render()


def _ingress(obj: Mapping[str, Any], events: Objects | None, related: Related) -> str:
    text = Description()
    spec = obj.get("spec") or {}
    text.field("Name", at(obj, "metadata", "name"))
    text.labels("Labels", at(obj, "metadata", "labels"))
    text.field("Namespace", at(obj, "metadata", "namespace") or "")
    entries = at(obj, "status", "loadBalancer", "ingress") or []
    addresses = {str(each.get("ip") or each.get("hostname") or "") for each in entries} - {""}
    text.field("Address", ",".join(sorted(addresses)))
    text.field("Ingress Class", spec.get("ingressClassName", "<none>"))
    default = spec.get("defaultBackend")
    default_text = "<default>" if default is None else _backend(default, related)
    text.field("Default backend", default_text)
    if tls := spec.get("tls"):
        text.line(0, "TLS:")
        for each in tls:
            secret, hosts = each.get("secretName"), ",".join(each.get("hosts") or [])
            text.line(1, f"{secret} terminates {hosts}" if secret else f"SNI routes {hosts}")
    text.line(0, "Rules:")
    text.line(1, "Host\tPath\tBackends\n  ----\t----\t--------")
    rules = [rule for rule in spec.get("rules") or [] if rule.get("http") is not None]
    for rule in rules:
        text.line(1, f"{rule.get('host') or '*'}\t")
        for path in rule["http"].get("paths") or []:
            text.line(2, f"\t{path.get('path') or ''} \t{_backend(path.get('backend') or {}, related)}")
    if not rules:
        text.line(1, f"*\t*\t{default_text}")
    text.annotations(at(obj, "metadata", "annotations"))
    text.events(events)
    return text.render()


def _backend(backend: Mapping[str, Any], related: Related) -> str:
    if (wanted := backend.get("service")) is None:
        resource = backend.get("resource")
        if resource is None:
            return ""
        group = resource.get("apiGroup", "<none>")
        return f"APIGroup: {group}, Kind: {resource.get('kind', '')}, Name: {resource.get('name', '')}"
    name, port = wanted.get("name", ""), wanted.get("port") or {}
    shown = f"{name}:{port.get('number') or port.get('name') or ''}"
    service = next((each for each in related.get("services") or () if at(each, "metadata", "name") == name), {})
    if problem := service.get("problem"):
        return f"{shown} (<error: {problem}>)"
    port_name = ""
    for each in at(service, "spec", "ports") or []:
        is_number = port.get("number") and port.get("number") == each.get("port")
        if is_number or (port.get("name") and port.get("name") == each.get("name")):
            port_name = each.get("name") or ""
    label = "kubernetes.io/service-name"
    slices = related.get("endpointslices") or ()
    return f"{shown} ({_addresses([one for one in slices if at(one, 'metadata', 'labels', label) == name], port_name)})"


def _ingress_class(obj: Mapping[str, Any], events: Objects | None, _: Related) -> str:
    text = Description()
    text.head(obj, with_namespace=False)
    text.field("Controller", at(obj, "spec", "controller") or "")
    if (parameters := at(obj, "spec", "parameters")) is not None:
        text.line(0, "Parameters:")
        text.optional("APIGroup", parameters.get("apiGroup"), 1)
        text.field("Kind", parameters.get("kind") or "", 1)
        text.field("Name", parameters.get("name") or "", 1)
    text.events(events)
    return text.render()


def _service_cidr(obj: Mapping[str, Any], events: Objects | None, _: Related) -> str:
    text = Description()
    text.head(obj, with_namespace=False)
    text.field("CIDRs", ", ".join(at(obj, "spec", "cidrs") or []))
    if conditions := at(obj, "status", "conditions"):
        text.line(0, "Status:")
        text.dated_conditions(conditions)
    text.events(events)
    return text.render()


def _ip_address(obj: Mapping[str, Any], events: Objects | None, _: Related) -> str:
    text = Description()
    text.head(obj, with_namespace=False)
    if (parent := at(obj, "spec", "parentRef")) is not None:
        text.line(0, "Parent Reference:")
        for name in ("group", "resource", "namespace", "name"):
            text.field(name.title(), parent.get(name) or "", 1)
    text.events(events)
    return text.render()


def _network_policy(obj: Mapping[str, Any], _: Objects | None, __: Related) -> str:
    text = Description()
    spec = obj.get("spec") or {}
    text.field("Name", at(obj, "metadata", "name"))
    text.field("Namespace", at(obj, "metadata", "namespace") or "")
    text.field("Created on", _go_time(at(obj, "metadata", "creationTimestamp")))
    text.labels("Labels", at(obj, "metadata", "labels"))
    text.annotations(at(obj, "metadata", "annotations"))
    text.line(0, "Spec:")
    everywhere = "<none> (Allowing the specific traffic to all pods in this namespace)"
    # Level 1, then level 2 on the same line, as kubectl.
    text.line(1, f"PodSelector:     {selector_text(spec.get('podSelector'), everywhere)}")
    types = spec.get("policyTypes") or []
    for kind, key, ends in (("ingress", "ingress", "From"), ("egress", "egress", "To")):
        if kind.title() not in types:
            text.line(1, f"Not affecting {kind} traffic")
            continue
        text.line(1, f"Allowing {kind} traffic:")
        _rules(text, spec.get(key) or [], kind, ends)
    text.line(1, f"Policy Types: {', '.join(types)}")
    return text.render()


def _rules(text: Description, rules: Objects, kind: str, end: str) -> None:
    if not rules:
        text.line(2, f"<none> (Selected pods are isolated for {kind} connectivity)")
    for index, rule in enumerate(rules):
        for port in rule.get("ports") or []:
            protocol = port.get("protocol") or "TCP"
            number = port.get("port", "<nil>")
            if port.get("endPort") is None:
                text.line(2, f"To Port: {number}/{protocol}")
            else:
                text.line(2, f"To Port Range: {number}-{port['endPort']}/{protocol}")
        if not rule.get("ports"):
            text.line(2, "To Port: <any> (traffic allowed to all ports)")
        peers = rule.get(end.lower()) or []
        for peer in peers:
            text.line(2, f"{end}:")
            _peer(text, peer)
        if not peers:
            text.line(2, f"{end}: <any> (traffic not restricted by {'source' if end == 'From' else 'destination'})")
        if index < len(rules) - 1:
            text.line(2, "----------")


def _peer(text: Description, peer: Mapping[str, Any]) -> None:
    selectors = [(name, key) for name, key in _SELECTORS if peer.get(key) is not None]
    for name, key in selectors:
        text.line(3, f"{name}: {selector_text(peer[key])}")
    if not selectors and (block := peer.get("ipBlock")):
        text.line(3, "IPBlock:")
        text.line(4, f"CIDR: {block.get('cidr') or ''}")
        text.line(4, f"Except: {', '.join(block.get('except') or [])}")


_SELECTORS: Final = (("NamespaceSelector", "namespaceSelector"), ("PodSelector", "podSelector"))


def _go_time(text: object) -> str:
    """Return a time as Go prints it: ``2006-01-02 15:04:05 +0000 UTC``."""
    then = parse_time(text)
    if then is None:
        return "0001-01-01 00:00:00 +0000 UTC"
    local = then.astimezone()
    zone = local.tzname() if local.utcoffset() != timedelta(0) else "UTC"
    return f"{local:%Y-%m-%d %H:%M:%S %z} {zone}"


NETWORK: Final = {
    "endpoints": _endpoints,
    "endpointslices.discovery.k8s.io": _endpoint_slice,
    "ingressclasses.networking.k8s.io": _ingress_class,
    "ingresses.networking.k8s.io": _ingress,
    "ipaddresses.networking.k8s.io": _ip_address,
    "networkpolicies.networking.k8s.io": _network_policy,
    "servicecidrs.networking.k8s.io": _service_cidr,
    "services": _service,
}
