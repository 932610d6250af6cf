"""``describe``: objects, and what has happened to them, for people."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from ...errors import NotFoundError, TrioformerError
from .._arguments import Parser
from .._failures import CommandError
from .._manifests import add_file_flags, has_files
from .._resources import Target, add_selector_flags, select
from .._session import Session
from ._chosen import choose_from_files
from ._describe_kinds import DESCRIBERS, describe_fields
from ._describe_related import request_events, request_related
from ._describe_text import at
from ._requests import items_of, request_pages

if TYPE_CHECKING:
    from ...client import Client

__all__ = ["add_flags", "run"]


def add_flags(parser: Parser) -> None:
    """Add the flags of ``describe``."""
    add_selector_flags(parser)
    add_file_flags(parser, "that name the resources to describe")
    parser.add_switch(
        "--show-events", help="Display events related to the described objects; by default of one object."
    )
    parser.set_defaults(show_events=None)
    parser.add_argument("--chunk-size", default="500", help="Return large lists in chunks. 0 disables it.")


async def run(session: Session, flags: argparse.Namespace) -> int | None:
    """Run ``describe``."""
    if not flags.arguments and not has_files(flags):
        raise CommandError(
            'You must specify the type of resource to describe. Use "trioformer api-resources" for a complete list of '
            "supported resources."
        )
    shown: list[tuple[Target, dict[str, Any]]] = []
    matched = False
    errors: list[Exception] = []
    async with session.open_client() as client:
        namespace = None if flags.all_namespaces else session.namespace
        selection = await choose_from_files(session, flags, client)
        selection = selection or await select(
            client,
            flags.arguments,
            namespace=namespace,
            selector=flags.selector,
            field_selector=flags.field_selector,
        )
        for target in selection.targets:
            try:
                may_match = len(flags.arguments) == 2 and "/" not in flags.arguments[0]
                objects, is_match = await _objects(client, target, flags, may_match=may_match)
            except TrioformerError as exc:
                errors.append(exc)
                continue
            matched = matched or is_match
            shown += [(target, obj) for obj in objects]
        # As for kubectl: the events of one object, of several only on request.
        is_one = len(shown) == 1 and not matched and not errors
        with_events = is_one if flags.show_events is None else flags.show_events
        for index, (target, obj) in enumerate(shown):
            text = await _described(client, target, obj, with_events=with_events)
            session.print(("\n\n" if index and not matched else "") + text, end="\n" if matched else "")
    if not shown and not errors:
        session.note("No resources found" if namespace is None else f"No resources found in {namespace} namespace.")
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise ExceptionGroup("some objects were not found", errors)
    return None


async def _objects(
    client: Client, target: Target, flags: argparse.Namespace, *, may_match: bool
) -> tuple[list[dict[str, Any]], bool]:
    """Request the objects; the one name that does not exist means all that begin with it, which the result says."""
    params: dict[str, str] = {}
    if flags.selector:
        params["labelSelector"] = flags.selector
    if flags.field_selector:
        params["fieldSelector"] = flags.field_selector
    try:
        pages = await request_pages(client, target, params, accept="application/json")
    except NotFoundError:
        if not may_match:
            raise
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
    events = await request_events(client, obj) if with_events else None
    describer = DESCRIBERS.get(resource)
    if describer is None:
        return describe_fields(obj, events)
    return describer(obj, events, await request_related(client, resource, obj))
