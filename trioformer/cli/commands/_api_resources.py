"""``api-resources``: the resources that the server serves."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from .._arguments import Parser
from .._failures import CommandError, UsageError
from .._session import Session
from ..printing import TableWriter, to_json, to_yaml

if TYPE_CHECKING:
    from ...models import ResourceInfo

__all__ = ["add_flags", "run"]


def add_flags(parser: Parser) -> None:
    """Add the flags of ``api-resources``."""
    parser.add_argument("--api-group", help="Limit to resources in the specified API group.")
    parser.add_argument(
        "--namespaced", nargs="?", const="true", help="If false, non-namespaced resources are returned."
    )
    parser.add_argument("--verbs", action="append", default=[], help="Limit to resources that support the verbs.")
    parser.add_argument("--categories", action="append", default=[], help="Limit to resources of the categories.")
    parser.add_argument("--sort-by", default="", help="Sort by 'name' or 'kind'.")
    parser.add_argument("-o", "--output", default="", help="Output format: name, wide, json or yaml.")
    parser.add_switch("--no-headers", help="Don't print headers.")
    parser.add_switch("--cached", help="Accepted and ignored: there is no cache.")


async def run(session: Session, flags: argparse.Namespace) -> int | None:
    """Run ``api-resources``."""
    if flags.arguments:
        raise UsageError(f"unexpected arguments: [{' '.join(flags.arguments)}]")
    if flags.sort_by not in ("", "name", "kind"):
        raise CommandError("--sort-by accepts only name or kind")
    if flags.output not in ("", "name", "wide", "json", "yaml"):
        raise CommandError(
            f'unable to match a printer suitable for the output format "{flags.output}", allowed formats are: '
            "json,name,wide,yaml"
        )
    async with session.open_client() as client:
        served = await client.api_resources()
    found = [info for info in served if _is_wanted(info, flags)]
    found.sort(key=lambda info: info.plural)
    if flags.sort_by != "name":
        found.sort(key=lambda info: info.kind if flags.sort_by == "kind" else info.group)
    _print(session, flags, found)
    if served.failures:
        text = ", ".join(f"{name}: {why}" for name, why in served.failures.items())
        raise CommandError(f"unable to retrieve the complete list of server APIs: {text}")
    return None


def _is_wanted(info: ResourceInfo, flags: argparse.Namespace) -> bool:
    if not info.verbs or (flags.api_group is not None and info.group != flags.api_group):
        return False
    if flags.namespaced is not None and info.namespaced != (flags.namespaced.lower() in ("true", "t", "1")):
        return False
    verbs = {verb for each in flags.verbs for verb in each.split(",")}
    categories = {category for each in flags.categories for category in each.split(",")}
    return verbs <= set(info.verbs) and categories <= set(info.categories)


def _print(session: Session, flags: argparse.Namespace, found: list[ResourceInfo]) -> None:
    if flags.output == "name":
        for info in found:
            session.print(str(info))
        return
    if flags.output in ("json", "yaml"):
        listed = {
            "apiVersion": "v1",
            "groupVersion": "",
            "kind": "APIResourceList",
            "resources": [_plain(info) for info in found],
        }
        session.print(to_json(listed) + "\n" if flags.output == "json" else to_yaml(listed), end="")
        return
    writer = TableWriter(session.out)
    is_wide = flags.output == "wide"
    if not flags.no_headers:
        writer.add(
            ["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND", *(["VERBS", "CATEGORIES"] if is_wide else [])]
        )
    for info in found:
        names = ",".join(info.short_names)
        cells = [info.plural, names, info.api_version, str(info.namespaced).lower(), info.kind]
        writer.add([*cells, *([",".join(info.verbs), ",".join(info.categories)] if is_wide else [])])
    writer.flush()


def _plain(info: ResourceInfo) -> dict[str, object]:
    found: dict[str, object] = {
        "kind": info.kind,
        "name": info.plural,
        "namespaced": info.namespaced,
        "singularName": info.singular,
        "verbs": list(info.verbs),
        "version": info.version,
    }
    if info.group:
        found["group"] = info.group
    if info.short_names:
        found["shortNames"] = list(info.short_names)
    if info.categories:
        found["categories"] = list(info.categories)
    return found
