"""``scale``: sets the number of replicas (kubectl ``pkg/cmd/scale``)."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final, final

import attrs
import trio

from ...errors import ConflictError
from ...models import FieldSelector, Unstructured, unstructured_kind
from ...watchtools import resuming_watch
from .._arguments import Parser
from .._dry_run import strategy_of
from .._failures import CommandError
from .._resources import Target
from .._session import Session
from .._values import duration_value, int_value
from ._objects import Found, add_result_flags, make_reporter, raise_all, read_objects

if TYPE_CHECKING:
    from ...client import Client

__all__ = ["add_flags", "run"]

_ATTEMPTS: Final = 10
"""How often a number is written that another client changes at the same time."""
_MERGE: Final = "application/merge-patch+json"
_OF_APPS: Final = ("", "apps")


def add_flags(parser: Parser) -> None:
    """Add the flags of ``scale``."""
    parser.add_argument("--replicas", default="", help="The new desired number of replicas. Required.")
    parser.add_argument("--current-replicas", default="-1", help="Scale only if this is the current number.")
    parser.add_argument("--resource-version", default="", help="Scale only if this is the current resource version.")
    parser.add_argument("--timeout", default="0s", help="How long to wait for the replicas; zero means don't wait.")
    parser.add_argument("-l", "--selector", default="", help="Selector (label query) to filter on.")
    parser.add_switch("--all", help="Select all resources in the namespace of the specified resource types")
    parser.add_argument("--dry-run", nargs="?", const="unchanged", default="none", help="none, server, or client.")
    add_result_flags(parser)


@final
@attrs.frozen
class _Options:
    replicas: int
    current: int | None
    resource_version: str
    is_tried_by_server: bool


async def run(session: Session, flags: argparse.Namespace) -> int | None:
    """Run ``scale``."""
    if not flags.replicas:
        raise CommandError('required flag(s) "replicas" not set')
    replicas = int_value(flags.replicas, "--replicas")
    current = int_value(flags.current_replicas, "--current-replicas")
    timeout = duration_value(flags.timeout, "--timeout")
    if replicas < 0:
        raise CommandError("The --replicas=COUNT flag is required, and COUNT must be greater than or equal to 0")
    if current < -1:
        raise CommandError("The --current-replicas must specify an integer of -1 or greater")
    dry_run = strategy_of(session, flags)
    suffix = {"client": " (dry run)", "server": " (server dry run)"}.get(dry_run, "")
    report = make_reporter(session, flags, f"scaled{suffix}")
    options = _Options(replicas, None if current < 0 else current, flags.resource_version, dry_run == "server")
    async with session.open_client() as client:
        found, errors = await read_objects(
            client, session, flags.arguments, selector=flags.selector, selects_all=flags.all
        )
        if flags.resource_version and len(found) > 1:
            raise CommandError("cannot use --resource-version with multiple resources")
        if not found:
            raise_all(errors)
            raise CommandError("no objects passed to scale")
        for each in found:
            replicas = options.replicas
            if dry_run != "client":
                replicas = await _scale(client, each.target, options)
            if timeout and dry_run == "none":
                await _wait(client, each.target, options.replicas, timeout)
            report(attrs.evolve(each, object=_with_replicas(each, replicas)))
    raise_all(errors)
    return None


def _with_replicas(found: Found, replicas: int) -> dict[str, Any]:
    if found.target.resource.group not in _OF_APPS:
        return found.object  # a custom kind may have the number elsewhere
    return {**found.object, "spec": {**(found.object.get("spec") or {}), "replicas": replicas}}


async def _scale(client: Client, target: Target, options: _Options) -> int:
    """Set the number, and return it as the server has it then."""
    path = target.path("scale")
    params = {"dryRun": "All"} if options.is_tried_by_server else {}
    if options.current is None and not options.resource_version:
        patch = {"spec": {"replicas": options.replicas}}
        response = await client.request("PATCH", path, params=params, body=patch, content_type=_MERGE)
        return _replicas(response.json())
    for attempt in range(_ATTEMPTS):
        scale = (await client.request("GET", path)).json()
        assert isinstance(scale, dict)
        was, version = _replicas(scale), str(scale["metadata"]["resourceVersion"])
        if options.current is not None and was != options.current:
            raise CommandError(f"Expected replicas to be {options.current}, was {was}")
        if options.resource_version and version != options.resource_version:
            raise CommandError(f"Expected resource version to be {options.resource_version}, was {version}")
        try:
            changed = {**scale, "spec": {**(scale.get("spec") or {}), "replicas": options.replicas}}
            return _replicas((await client.request("PUT", path, params=params, body=changed)).json())
        except ConflictError:
            if attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError


def _replicas(scale: Any, field: str = "spec") -> int:
    return int((scale.get(field) or {}).get("replicas") or 0)


async def _wait(client: Client, target: Target, replicas: int, patience: float) -> None:
    """Wait until there are as many replicas as wanted, or another number is wanted.

    The number is read from the subresource, since only the server knows which field it is, whenever the object changes.
    """

    async def is_done() -> bool:
        scale = (await client.request("GET", target.path("scale"))).json()
        return _replicas(scale) != replicas or _replicas(scale, "status") == replicas

    kind: type[Unstructured] = unstructured_kind(target.resource)
    api = client.api(kind, target.namespace)
    selector = FieldSelector.of({"metadata.name": target.name})
    with trio.move_on_after(patience):
        listed = await api.list(field_selector=selector)
        if await is_done():
            return
        async with resuming_watch(api, resource_version=listed.resource_version, field_selector=selector) as events:
            async for _ in events:
                if await is_done():
                    return
    raise CommandError(f'timed out waiting for "{target.name}" to be synced')
