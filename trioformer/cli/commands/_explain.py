"""``explain``: the documentation of a kind, from the server's OpenAPI (kubectl ``pkg/explain/v2``)."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ...errors import NotFoundError
from .._arguments import Parser
from .._failures import CommandError
from .._resources import find_resource
from .._session import Session
from ._explain_text import UnknownFieldError, explain

if TYPE_CHECKING:
    from ...client import ApiResources
    from ...models import ResourceInfo

__all__ = ["add_flags", "run"]


def add_flags(parser: Parser) -> None:
    """Add the flags of ``explain``."""
    parser.add_switch("-R", "--recursive", help="Print the name of all the fields recursively.")
    parser.add_argument("--api-version", default="", help="Use given api-version (group/version) of the resource.")
    parser.add_argument("-o", "--output", default="plaintext", help="Format in which to render: plaintext.")


async def run(session: Session, flags: argparse.Namespace) -> int | None:
    """Run ``explain``."""
    if not flags.arguments:
        raise CommandError(
            'You must specify the type of resource to explain. Use "trioformer api-resources" for a complete list of '
            "supported resources."
        )
    if len(flags.arguments) > 1:
        raise CommandError("We accept only this format: explain RESOURCE")
    if flags.output != "plaintext":
        raise CommandError(f'unrecognized format: {flags.output}: only "plaintext" is supported')
    async with session.open_client() as client:
        served = await client.api_resources()
        try:
            info, fields = _find(served, flags.arguments[0].rstrip("."))
        except CommandError as exc:
            raise CommandError(str(exc), is_bare=True) from exc
        group, version = info.group, info.version
        if flags.api_version:
            group, _, version = flags.api_version.rpartition("/")
            if not all(part.strip(".") for part in flags.api_version.split("/")):
                raise CommandError(f"unexpected GroupVersion string: {flags.api_version}")
            group, version = quote(group, safe=""), quote(version, safe="")
        path = f"/openapi/v3/apis/{group}/{version}" if group else f"/openapi/v3/api/{version}"
        try:
            document: Any = (await client.request("GET", path, accept="application/json")).json()
        except NotFoundError as exc:
            raise CommandError(f'couldn\'t find resource for "{group}/{version}, Resource={info.plural}"') from exc
    kind = {"group": group, "kind": info.kind, "version": version}
    schema = _schema_of(document, kind)
    head = [f"GROUP:      {group}"] if group else []
    head += [f"KIND:       {info.kind}", f"VERSION:    {version}", "", ""]
    if schema is None:
        session.print("\n".join(head), end="")
        raise CommandError(f"GVK map[group:{group} kind:{info.kind} version:{version}] not found in OpenAPI schema")
    try:
        text = explain(schema, document, fields, is_recursive=flags.recursive)
    except UnknownFieldError:
        session.print("\n".join(head), end="")
        raise CommandError(f'field "{fields[-1]}" does not exist') from None
    session.print("\n".join(head) + text)
    return None


def _find(served: ApiResources, text: str) -> tuple[ResourceInfo, list[str]]:
    """Find the resource, and the fields behind its name, which may have a group: ``deployments.apps.spec``."""
    first, *fields = text.split(".")
    found = find_resource(served, first)
    for info in served:
        if first in (info.plural, info.singular, info.kind.lower(), *info.short_names):
            name = str(info)
            if "." in name and (text == name or text.startswith(f"{name}.")):
                rest = text[len(name) :].strip(".")
                return info, rest.split(".") if rest else []
    return found, fields


def _schema_of(document: Any, kind: dict[str, str]) -> dict[str, Any] | None:
    schemas = (document.get("components") or {}).get("schemas") or {} if isinstance(document, dict) else {}
    for name in sorted(schemas):
        for each in schemas[name].get("x-kubernetes-group-version-kind") or []:
            if {"group": "", **each} == kind:
                found: dict[str, Any] = schemas[name]
                return found
    return None
