"""The objects that a command changes: those of files, those that are named, or those that a selector selects."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import attrs

from ...errors import TrioformerError
from .._failures import CommandError
from .._manifests import has_files, raise_all, read_documents
from .._resources import Selection, Target, select
from .._session import Session
from ._requests import items_of, request_pages

if TYPE_CHECKING:
    from ...client import Client

__all__ = ["add_choice_flags", "choose", "choose_from_files", "get_chosen"]


def add_choice_flags(parser: Any) -> None:
    """Add the flags that choose among objects."""
    parser.add_argument("-l", "--selector", default="", help="Selector (label query) to filter on.")
    parser.add_argument("--field-selector", default="", help="Selector (field query) to filter on.")
    parser.add_switch("--all", help="Select all resources, in the namespace of the specified resource types")
    parser.add_switch("-A", "--all-namespaces", help="If present, select objects across all namespaces.")


async def choose_from_files(session: Session, flags: argparse.Namespace, client: Client) -> Selection | None:
    """Return the objects of the files that are given; None without files.

    Raises:
        CommandError: There are other arguments as well, a file is not valid, or the server does not know a kind.
        TrioformerError: The server did not say which kinds it serves.
    """
    if not has_files(flags):
        return None
    if flags.arguments:
        raise CommandError(
            "when paths, URLs, or stdin is provided as input, you may not specify resource arguments as well"
        )
    documents, errors = await read_documents(session, flags, client)
    raise_all(errors)
    targets = tuple(Target(each.resource, each.namespace, each.name) for each in documents)
    return Selection(targets, len(targets) == 1)


async def choose(
    session: Session, flags: argparse.Namespace, client: Client, arguments: list[str]
) -> tuple[list[Target], list[Exception]]:
    """Return the objects that the arguments and flags choose, each with its name; and what went wrong.

    Raises:
        CommandError: The arguments are not valid, or choose nothing.
        TrioformerError: The server did not say which kinds it serves.
    """
    if flags.all and flags.selector:
        raise CommandError("cannot set --all and --selector at the same time")
    if flags.all and flags.field_selector:
        raise CommandError("cannot set --all and --field-selector at the same time")
    if (found := await choose_from_files(session, flags, client)) is not None:
        return list(found.targets), []
    selects = bool(flags.all or flags.selector or flags.field_selector)
    selection = await select(
        client,
        arguments,
        namespace=None if flags.all_namespaces else session.namespace,
        selector=flags.selector,
        field_selector=flags.field_selector,
    )
    if selection.has_names and flags.all:
        raise CommandError("name cannot be provided when a selector is specified")
    if not selection.has_names and not selects:
        raise CommandError("resource(s) were provided, but no name was specified")
    params = {"labelSelector": flags.selector, "fieldSelector": flags.field_selector, "limit": "500"}
    params = {key: value for key, value in params.items() if value}
    chosen: list[Target] = []
    errors: list[Exception] = []
    for target in selection.targets:
        if target.name:
            chosen.append(target)
            continue
        try:
            pages = await request_pages(client, target, params, accept="application/json")
        except (TrioformerError, CommandError) as exc:
            errors.append(exc)
            continue
        for page in pages:
            for obj in items_of(page, target):
                metadata = obj["metadata"]
                place = metadata.get("namespace") if target.resource.namespaced else None
                chosen.append(attrs.evolve(target, namespace=place, name=metadata["name"]))
    return chosen, errors


async def get_chosen(client: Client, target: Target) -> dict[str, Any]:
    """Request an object.

    Raises:
        NotFoundError: It does not exist.
        CommandError: The response is no object.
        TrioformerError: The server rejected the request, or no response arrived.
    """
    found: Any = (await client.request("GET", target.path())).json()
    if not isinstance(found, dict) or not isinstance(found.get("metadata"), dict):
        raise CommandError(f"unexpected response to GET {target.path()}: not an object of the API")
    return found
