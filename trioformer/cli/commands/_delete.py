"""``delete``: objects of files, with names, or that a selector selects."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final, cast, final

import attrs
import trio

from ...errors import ForbiddenError, MethodNotAllowedError, NotFoundError, TrioformerError
from .._arguments import Parser
from .._dry_run import strategy_of
from .._failures import CommandError, UsageError
from .._manifests import add_file_flags, has_files, raise_all, read_documents, source_error
from .._resources import Target, group_kind
from .._session import Session
from .._values import duration_value
from ._chosen import add_choice_flags, choose

if TYPE_CHECKING:
    from ...client import Client

__all__ = ["add_flags", "run"]

_SUFFIXES: Final = {"none": "", "client": " (dry run)", "server": " (server dry run)"}
_CASCADES: Final = {
    "background": "Background",
    "foreground": "Foreground",
    "orphan": "Orphan",
    "true": "Background",
    "false": "Orphan",
}


def add_flags(parser: Parser) -> None:
    """Add the flags of ``delete``."""
    add_file_flags(parser, "that contain the resources to delete")
    add_choice_flags(parser)
    parser.add_argument(
        "--cascade",
        nargs="?",
        const="background",
        default="background",
        help='Must be "background", "orphan", or "foreground": what becomes of the objects that these own.',
    )
    parser.add_argument(
        "--dry-run",
        nargs="?",
        const="unchanged",
        default="none",
        help='Must be "none", "server", or "client". client: send nothing; server: send it, and nothing is deleted.',
    )
    parser.add_switch("--force", help="If true, immediately remove resources from API and bypass graceful deletion.")
    parser.add_argument(
        "--grace-period",
        default="-1",
        help="Seconds given to the resource to terminate gracefully. Ignored if negative. 0 needs --force.",
    )
    parser.add_switch(
        "--ignore-not-found", help="Treat an object that is not found as success; the default with --all."
    )
    parser.add_switch("--now", help="Same as --grace-period=1.")
    parser.add_argument("-o", "--output", default="", help='Output mode. Use "-o name" for shorter output.')
    parser.add_argument("--timeout", default="0s", help="The time to wait before giving up on a delete; 0s: no limit.")
    parser.add_switch("--wait", default=True, help="If true, wait for resources to be gone before returning.")


@final
@attrs.frozen
class _Plan:
    """How objects are deleted."""

    grace_period: int | None
    cascade: str
    dry_run: str
    ignores_missing: bool
    is_name_only: bool


async def run(session: Session, flags: argparse.Namespace) -> int | None:
    """Run ``delete``."""
    if not flags.arguments and not has_files(flags):
        raise CommandError(
            "You must provide one or more resources by argument or filename.\nExample resource specifications "
            "include:\n   '-f rsrc.yaml'\n   '--filename=rsrc.json'\n   '<resource> <name>'\n   '<resource>'"
        )
    if flags.all and flags.selector:
        raise CommandError("setting 'all' parameter but found a non empty selector. ")
    plan = _plan(session, flags)
    timeout = duration_value(flags.timeout, "--timeout")
    if plan.grace_period == 0:
        session.note(
            "Warning: Immediate deletion does not wait for confirmation that the running resource has been terminated. "
            "The resource may continue to run on the cluster indefinitely."
        )
    async with session.open_client() as client:
        chosen, errors = await _choose(session, flags, client)
        if flags.namespace and not flags.all_namespaces and any(target.namespace is None for target, _ in chosen):
            session.note("Warning: deleting cluster-scoped resources, not scoped to the provided namespace")
        pending: list[tuple[Target, str]] = []
        for target, source in chosen:
            try:
                uid = await _delete(session, client, target, plan)
            except TrioformerError as exc:
                if not (plan.ignores_missing and isinstance(exc, NotFoundError)):
                    errors.append(source_error("deleting", source, exc) if source else exc)
                continue
            if uid:
                pending.append((target, uid))
        raise_all(errors)
        if not chosen:
            session.print("No resources found")
        if flags.wait and plan.dry_run == "none":
            await _wait(client, pending, timeout)
    return None


def _plan(session: Session, flags: argparse.Namespace) -> _Plan:
    if flags.output not in ("", "name"):
        raise CommandError(f"unexpected -o output mode: {flags.output}. We only support '-o name'")
    if flags.cascade not in _CASCADES:
        raise CommandError(f'invalid cascade value ({flags.cascade}). Must be "background", "foreground", or "orphan"')
    try:
        grace_period = int(flags.grace_period)
    except ValueError:
        raise UsageError(
            f'invalid argument "{flags.grace_period}" for "--grace-period" flag: strconv.ParseInt: parsing '
            f'"{flags.grace_period}": invalid syntax'
        ) from None
    if flags.now:
        if grace_period != -1:
            raise CommandError("--now and --grace-period cannot be specified together")
        grace_period = 1
    if flags.force:
        if grace_period > 0:
            raise CommandError("--force and --grace-period greater than 0 cannot be specified together")
        grace_period = 0
    elif grace_period == 0:
        grace_period = 1  # as for kubectl: nothing is lost by mistake
    selects = bool(flags.all or flags.selector or flags.field_selector)
    return _Plan(
        grace_period=None if grace_period < 0 else grace_period,
        cascade=_CASCADES[flags.cascade],
        dry_run=strategy_of(session, flags),
        ignores_missing=flags.ignore_not_found or selects,
        is_name_only=flags.output == "name",
    )


async def _choose(
    session: Session, flags: argparse.Namespace, client: Client
) -> tuple[list[tuple[Target, str]], list[Exception]]:
    """Return the objects, each with the file that it is in."""
    if not has_files(flags) or flags.arguments:
        targets, errors = await choose(session, flags, client, flags.arguments)
        return [(target, "") for target in targets], errors
    from ...manifests._internal import CRDS  # noqa: PLC0415  # with the files

    documents, errors = await read_documents(session, flags, client, selector=flags.selector)
    # Definitions and namespaces last: whatever is in them would be gone already.
    documents = sorted(documents, key=lambda one: one.target.rank <= CRDS)
    return [(Target(each.resource, each.namespace, each.name), each.source) for each in documents], errors


async def _delete(session: Session, client: Client, target: Target, plan: _Plan) -> str:
    """Delete an object, and return its uid if it may still be there."""
    uid = ""
    if plan.dry_run != "client":
        options: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": plan.cascade,
        }
        if plan.grace_period is not None:
            options["gracePeriodSeconds"] = plan.grace_period
        if plan.dry_run == "server":
            options["dryRun"] = ["All"]
        response = cast("Any", (await client.request("DELETE", target.path(), body=options)).json())
        about = response.get("details" if response.get("kind") == "Status" else "metadata") or {}
        uid = str(about.get("uid") or "")
    kind = group_kind(target.resource)
    if plan.is_name_only:
        session.print(f"{kind}/{target.name}")
        return uid
    operation = "force deleted" if plan.grace_period == 0 else "deleted"
    where = f" from {target.namespace} namespace" if target.namespace is not None else ""
    session.print(f'{kind} "{target.name}" {operation}{where}{_SUFFIXES[plan.dry_run]}')
    return uid


async def _wait(client: Client, pending: list[tuple[Target, str]], timeout: float) -> None:  # noqa: ASYNC109  # the flag
    """Wait until the objects are gone, as long as the user may watch them."""
    from ...models import unstructured_kind  # noqa: PLC0415  # `--wait=false` needs none of it
    from ...watchtools import deleted, wait_for  # noqa: PLC0415

    for target, uid in pending:
        api = client.api(unstructured_kind(target.resource), target.namespace)
        with trio.CancelScope() as scope:
            if timeout:
                scope.deadline = trio.current_time() + timeout
            try:
                await wait_for(api, target.name, deleted(uid=uid))
            except NotFoundError:
                continue  # the kind is gone with its definition
            except (ForbiddenError, MethodNotAllowedError):
                return
        if scope.cancelled_caught:
            raise CommandError(
                f"timed out waiting for the condition on {target.resource.plural}/{target.name}",
            )
