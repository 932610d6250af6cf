"""``describe``: objects, and what has happened to them, for people."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import attrs

from ...errors import NotFoundError, TrioformerError
from .._arguments import Parser
from .._failures import CommandError
from .._resources import Target, add_selector_flags, select
from .._session import Session
from ._describe_kinds import DESCRIBERS, Objects, describe_fields
from ._describe_text import at, selector_text
from ._requests import items_of, request_pages

if TYPE_CHECKING:
    from ...client import Client

__all__ = ["add_flags", "run"]


def add_flags(parser: Parser) -> None:
    """Add the flags of ``describe``."""
    add_selector_flags(parser)
    parser.add_switch(
        "--show-events", help="Display events related to the described objects; by default of one object."
    )
    parser.set_defaults(show_events=None)
    parser.add_argument("--chunk-size", default="500", help="Return large lists in chunks. 0 disables it.")


async def run(session: Session, flags: argparse.Namespace) -> int | None:
    """Run ``describe``."""
    if not flags.arguments:
        raise CommandError(
            'You must specify the type of resource to describe. Use "trioformer api-resources" for a complete list of '
            "supported resources."
        )
    shown: list[tuple[Target, dict[str, Any]]] = []
    matched = False
    errors: list[Exception] = []
    async with session.open_client() as client:
        namespace = None if flags.all_namespaces else session.namespace
        selection = await select(
            client,
            flags.arguments,
            namespace=namespace,
            selector=flags.selector,
            field_selector=flags.field_selector,
        )
        for target in selection.targets:
            try:
                objects, is_match = await _objects(client, target, flags)
            except TrioformerError as exc:
                errors.append(exc)
                continue
            matched = matched or is_match
            shown += [(target, obj) for obj in objects]
        # As for kubectl: the events of one object, of several only on request.
        with_events = len(shown) == 1 and not matched if flags.show_events is None else flags.show_events
        for index, (target, obj) in enumerate(shown):
            text = await _described(client, target, obj, with_events=with_events)
            session.print(("\n\n" if index and not matched else "") + text, end="\n" if matched else "")
    if not shown and not errors:
        is_in_one = namespace is not None and all(target.resource.namespaced for target in selection.targets)
        session.note(f"No resources found in {namespace} namespace." if is_in_one else "No resources found")
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise ExceptionGroup("some objects were not found", errors)
    return None


async def _objects(client: Client, target: Target, flags: argparse.Namespace) -> tuple[list[dict[str, Any]], bool]:
    """Request the objects; a name that does not exist means all whose names begin with it, which the result says."""
    params: dict[str, str] = {}
    if flags.selector:
        params["labelSelector"] = flags.selector
    if flags.field_selector:
        params["fieldSelector"] = flags.field_selector
    try:
        pages = await request_pages(client, target, params, accept="application/json")
    except NotFoundError:
        every = attrs.evolve(target, name="")
        pages = await request_pages(client, every, {}, accept="application/json")
        found = [obj for page in pages for obj in items_of(page, every)]
        matching = [obj for obj in found if str(at(obj, "metadata", "name")).startswith(target.name)]
        if not matching:
            raise
        return matching, True
    return [obj for page in pages for obj in items_of(page, target)], False


async def _described(client: Client, target: Target, obj: Mapping[str, Any], *, with_events: bool) -> str:
    resource = str(target.resource)
    events = await _events(client, obj) if with_events else None
    describer = DESCRIBERS.get(resource)
    if describer is None:
        return describe_fields(obj, events)
    return describer(obj, events, await _related(client, resource, obj))


async def _events(client: Client, obj: Mapping[str, Any]) -> Objects:
    namespace = at(obj, "metadata", "namespace") or ""
    selector = {
        "involvedObject.name": at(obj, "metadata", "name"),
        "involvedObject.namespace": namespace,
        "involvedObject.kind": obj.get("kind"),
        "involvedObject.uid": at(obj, "metadata", "uid"),
    }
    text = ",".join(f"{key}={value}" for key, value in selector.items() if value)
    return await _list(client, f"{_core(namespace)}/events", {"fieldSelector": text})


async def _related(client: Client, resource: str, obj: Mapping[str, Any]) -> Objects:
    """Request what a description names beside the object: pods, ReplicaSets or endpoints."""
    namespace, name = (str(at(obj, "metadata", key) or "") for key in ("namespace", "name"))
    where = quote(namespace, safe="")
    selector = {"labelSelector": selector_text(at(obj, "spec", "selector"))}
    if resource == "services":
        path = f"/apis/discovery.k8s.io/v1/namespaces/{where}/endpointslices"
        return await _list(client, path, {"labelSelector": f"kubernetes.io/service-name={name}"})
    if resource == "deployments.apps":
        found = await _list(client, f"/apis/apps/v1/namespaces/{where}/replicasets", selector)
    elif resource == "replicasets.apps":
        found = await _list(client, f"{_core(namespace)}/pods", selector)
    else:
        return ()
    uid = at(obj, "metadata", "uid")
    return [
        each
        for each in found
        if any(owner.get("uid") == uid for owner in at(each, "metadata", "ownerReferences") or [])
    ]


def _core(namespace: str) -> str:
    return f"/api/v1/namespaces/{quote(namespace, safe='')}" if namespace else "/api/v1"


async def _list(client: Client, path: str, params: dict[str, str]) -> Objects:
    """Request a list, which is empty where the user may not or the server does not have it."""
    try:
        found: Any = (await client.request("GET", path, params=params)).json()
    except TrioformerError:
        return ()
    items = found.get("items") if isinstance(found, dict) else None
    return items or ()
