"""``top``: what nodes and pods use, where metrics are served (``metrics.k8s.io``)."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ...errors import NotFoundError
from ...models import Quantity
from .._arguments import Parser
from .._failures import CommandError, UsageError
from .._resources import check_name
from .._session import Session
from ..printing import TableWriter

if TYPE_CHECKING:
    from ...client import Client

__all__ = ["add_flags", "run"]

_GROUP: Final = "metrics.k8s.io"
_MEBI: Final = 1024 * 1024


def add_flags(parser: Parser) -> None:
    """Add the flags of ``top node`` and ``top pod``."""
    parser.add_argument("-l", "--selector", default="", help="Selector (label query) to filter on.")
    parser.add_argument("--field-selector", default="", help="Selector (field query) to filter on; of pods.")
    parser.add_argument("--sort-by", default="", help="Sort by 'cpu' or 'memory'.")
    parser.add_switch("--no-headers", help="If present, print output without headers")
    parser.add_switch("-A", "--all-namespaces", help="If present, list pods across all namespaces.")
    parser.add_switch("--containers", help="If present, print usage of containers within a pod.")
    parser.add_switch("--sum", help="Print the sum of the resource usage")
    parser.add_switch("--show-capacity", help="Print node resources based on Capacity instead of Allocatable.")


async def run(session: Session, flags: argparse.Namespace) -> int | None:
    """Run ``top node`` or ``top pod``."""
    if len(flags.arguments) > 1:
        raise UsageError(f"{flags.command.removeprefix('top ')} [NAME | -l label]")
    if flags.sort_by not in ("", "cpu", "memory"):
        raise CommandError("--sort-by accepts only cpu or memory")
    name = flags.arguments[0] if flags.arguments else ""
    if name:
        check_name(name)
    if name and flags.selector:
        flag = "--selector" if flags.command == "top node" else "selector"
        raise CommandError(f"only one of NAME or {flag} can be provided")
    async with session.open_client() as client:
        version = await _version(client)
        if flags.command == "top node":
            await _nodes(session, flags, client, version, name)
        else:
            await _pods(session, flags, client, version, name)
    return None


async def _version(client: Client) -> str:
    try:
        group = (await client.request("GET", f"/apis/{_GROUP}")).json()
    except NotFoundError as exc:
        raise CommandError("Metrics API not available") from exc
    versions = [each.get("version") for each in group.get("versions") or []] if isinstance(group, dict) else []
    if not versions:
        raise CommandError("Metrics API not available")
    return "v1beta1" if "v1beta1" in versions else str(versions[0])


async def _items(client: Client, path: str, name: str, params: Mapping[str, str]) -> list[dict[str, Any]]:
    found = (await client.request("GET", f"{path}/{name}" if name else path, params=params)).json()
    if not isinstance(found, dict):
        return []
    return [found] if name else list(found.get("items") or [])


def _query(flags: argparse.Namespace) -> dict[str, str]:
    given = {"labelSelector": flags.selector, "fieldSelector": flags.field_selector}
    return {key: value for key, value in given.items() if value}


async def _nodes(session: Session, flags: argparse.Namespace, client: Client, version: str, name: str) -> None:
    query = _query(flags)
    metrics = await _items(client, f"/apis/{_GROUP}/{version}/nodes", name, query)
    if not metrics:
        raise CommandError("metrics not available yet")
    nodes = await _items(client, "/api/v1/nodes", name, query)
    field = "capacity" if flags.show_capacity else "allocatable"
    available = {_name(node): (node.get("status") or {}).get(field) or {} for node in nodes}
    rows = [(_name(each), _usage([each])) for each in metrics]
    writer = TableWriter(session.out)
    if not flags.no_headers:
        writer.add(["NAME", "CPU(cores)", "CPU(%)", "MEMORY(bytes)", "MEMORY(%)", ""])
    for node, usage in _sorted(rows, flags.sort_by):
        cells = [node]
        for index, text in enumerate(_texts(usage)):
            cells.append(text)
            whole = available.get(node, {}).get(("cpu", "memory")[index])
            if whole is not None:
                amount = _amount(whole)
                cells.append(f"{int(usage[index] / amount * 100) if amount else 0}%")
        writer.add([*cells, ""])
        available.pop(node, None)
    for node in available:
        writer.add([node, *["<unknown>"] * 4, ""])
    writer.flush()


async def _pods(session: Session, flags: argparse.Namespace, client: Client, version: str, name: str) -> None:
    if name and flags.all_namespaces:
        raise CommandError("a resource cannot be retrieved by name across all namespaces")
    root = f"/apis/{_GROUP}/{version}"
    path = f"{root}/pods" if flags.all_namespaces else f"{root}/namespaces/{session.namespace}/pods"
    metrics = await _items(client, path, name, _query(flags))
    if not metrics:
        session.note(
            "No resources found" if flags.all_namespaces else f"No resources found in {session.namespace} namespace."
        )
        return
    writer = TableWriter(session.out)
    names = [*(["NAMESPACE"] if flags.all_namespaces else []), *(["POD"] if flags.containers else []), "NAME"]
    if not flags.no_headers:
        writer.add([*names, "CPU(cores)", "MEMORY(bytes)", ""])
    rows = [((_namespace(each) if flags.all_namespaces else "", _name(each)), each) for each in metrics]
    for (namespace, pod), each in _sorted_pods(rows, flags.sort_by):
        head = [namespace] if flags.all_namespaces else []
        containers = each.get("containers") or []
        if flags.containers:
            for container, usage in _sorted(
                [(one.get("name", ""), _usage([one])) for one in containers], flags.sort_by
            ):
                writer.add([*head, pod, container, *_texts(usage), ""])
        else:
            writer.add([*head, pod, *_texts(_usage(containers)), ""])
    if flags.sum:
        total = _usage([container for each in metrics for container in each.get("containers") or []])
        blank = [""] * len(names)
        writer.add([*blank, "________", "________", ""])
        writer.add([*blank, *_texts(total), ""])
    writer.flush()


def _sorted(rows: list[tuple[str, tuple[float, float]]], by: str) -> list[tuple[str, tuple[float, float]]]:
    if not by:
        return sorted(rows)
    return sorted(rows, key=lambda row: -row[1][by == "memory"])


def _sorted_pods(
    rows: list[tuple[tuple[str, str], dict[str, Any]]], by: str
) -> list[tuple[tuple[str, str], dict[str, Any]]]:
    if not by:
        return sorted(rows, key=lambda row: row[0])
    return sorted(rows, key=lambda row: -_usage(row[1].get("containers") or [])[by == "memory"])


def _usage(measured: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """Return the sum of what is used: cores and bytes."""
    used = [each.get("usage") or {} for each in measured]
    return sum(_amount(each.get("cpu", "0")) for each in used), sum(_amount(each.get("memory", "0")) for each in used)


def _amount(text: object) -> float:
    return float(Quantity(str(text)).value)


def _texts(usage: tuple[float, float]) -> list[str]:
    cores, size = usage
    millis = int(cores * 1000)
    return [f"{millis if millis == cores * 1000 else millis + 1}m", f"{int(size) // _MEBI}Mi"]


def _name(obj: Mapping[str, Any]) -> str:
    return str((obj.get("metadata") or {}).get("name", ""))


def _namespace(obj: Mapping[str, Any]) -> str:
    return str((obj.get("metadata") or {}).get("namespace", ""))
