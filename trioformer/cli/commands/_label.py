"""``label`` and ``annotate``: set and remove labels and annotations."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Any, Final, cast

from ...errors import TrioformerError
from .._arguments import Parser
from .._dry_run import Reporter, add_change_flags, query_of_change, strategy_of
from .._failures import CommandError
from .._manifests import add_file_flags, has_files, raise_all
from .._resources import Target, group_kind
from .._session import Session
from ._chosen import add_choice_flags, choose, get_chosen

if TYPE_CHECKING:
    from ...client import Client

__all__ = ["add_flags", "run"]

_VALUE: Final = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_LONGEST: Final = 63


def add_flags(parser: Parser) -> None:
    """Add the flags of ``label`` and ``annotate``."""
    add_file_flags(parser, "that name the resources to update")
    add_choice_flags(parser)
    add_change_flags(parser, field_manager="")
    parser.add_switch("--list", help="If true, display the labels or annotations of a resource.")
    parser.add_switch("--overwrite", help="If true, allow values to be overwritten, otherwise reject such updates.")
    parser.add_argument(
        "--resource-version", default="", help="Update only if this is the current version. For a single resource."
    )


async def run(session: Session, flags: argparse.Namespace) -> int | None:
    """Run ``label`` or ``annotate``."""
    is_label = flags.command == "label"
    word = "label" if is_label else "annotation"
    flags.field_manager = flags.field_manager or f"kubectl-{flags.command}"
    arguments, pairs = _split(flags.arguments, word)
    changes = _changes(pairs, is_label=is_label)
    if flags.list and flags.output:
        raise CommandError("--list and --output may not be specified together")
    if not arguments and not has_files(flags):
        raise CommandError("one or more resources must be specified as <resource> <name> or <resource>/<name>")
    if not changes and not flags.list:
        raise CommandError(f"at least one {word} update is required")
    flags.arguments = arguments
    dry_run = strategy_of(session, flags)
    reporter = Reporter.of(session, flags, dry_run)
    async with session.open_client() as client:
        targets, errors = await choose(session, flags, client, arguments)
        if flags.resource_version and len(targets) != 1:
            raise CommandError("--resource-version may only be used with a single resource")
        for target in targets:
            try:
                if flags.list:
                    await _list(session, client, target, f"{word}s", is_single=len(targets) == 1)
                else:
                    await _update(session, flags, client, target, f"{word}s", changes, reporter)
            except (TrioformerError, CommandError) as exc:
                errors.append(exc)
        reporter.finish()
        raise_all(errors)
    return None


def _split(arguments: list[str], word: str) -> tuple[list[str], list[str]]:
    """Separate resources from the changes behind them."""
    resources: list[str] = []
    pairs: list[str] = []
    for argument in arguments:
        is_pair = ("=" in argument and argument[0] != "=") or (argument.endswith("-") and argument != "-")
        if not is_pair and pairs:
            raise CommandError(f"all resources must be specified before {word} changes: {argument}")
        (pairs if is_pair else resources).append(argument)
    return resources, pairs


def _changes(pairs: list[str], *, is_label: bool) -> dict[str, str | None]:
    changes: dict[str, str | None] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if equals and is_label and not (_VALUE.fullmatch(value) and len(value) <= _LONGEST):
            raise CommandError(
                f'invalid label value: "{pair}": a valid label must be at most {_LONGEST} letters, digits, "-", "_" or '
                '".", and begin and end with a letter or digit'
            )
        new = value if equals else None
        key = key if equals else pair[:-1]
        if key in changes and (changes[key] is None) is not (new is None):
            raise CommandError(
                "can not both modify and remove a label in the same command"
                if is_label
                else f"can not both modify and remove the following annotation(s) in the same command: {key}"
            )
        changes[key] = new
    return changes


async def _list(session: Session, client: Client, target: Target, field: str, *, is_single: bool) -> None:
    found = (await get_chosen(client, target))["metadata"].get(field) or {}
    if not is_single:
        resource = target.resource
        session.print(f"Listing {field} for {resource.kind}.{resource.group}/{target.name}:")
    for key in sorted(found):
        session.print(f"{'' if is_single else ' '}{key}={found[key]}")


async def _update(
    session: Session,
    flags: argparse.Namespace,
    client: Client,
    target: Target,
    field: str,
    changes: dict[str, str | None],
    reporter: Reporter,
) -> None:
    obj = await get_chosen(client, target)
    old: dict[str, str] = obj["metadata"].get(field) or {}
    if not flags.overwrite:
        taken = [key for key, value in changes.items() if value is not None and old.get(key, value) != value]
        if taken:
            problems = [f"'{key}' already has a value ({old[key]}), and --overwrite is false" for key in taken]
            if field == "annotations":
                values = "; ".join(f"'{key}' already has a value ({old[key]})" for key in taken)
                problems = [f"--overwrite is false but found the following declared annotation(s): {values}"]
            text = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
            raise CommandError(text)
    added = [key for key, value in changes.items() if value is not None and old.get(key) != value]
    removed = [key for key, value in changes.items() if value is None and key in old]
    if field == "labels" and reporter.dry_run != "client":
        for key, value in changes.items():
            if value is None and key not in old:
                session.print(f'label "{key}" not found.')
    # As for kubectl, a request is sent for annotations in any case.
    if reporter.dry_run == "client":
        new = {**old, **changes}
        kept = {key: value for key, value in new.items() if value is not None}
        obj = {**obj, "metadata": {**obj["metadata"], field: kept}}
    elif added or removed or field == "annotations":
        obj = await _send(flags, client, target, {field: changes}, reporter.dry_run)
    reporter.report(f"{group_kind(target.resource)}/{target.name}", _operation(field, added, removed), obj)


async def _send(
    flags: argparse.Namespace, client: Client, target: Target, metadata: dict[str, Any], dry_run: str
) -> dict[str, Any]:
    if flags.resource_version:
        metadata = {**metadata, "resourceVersion": flags.resource_version}
    response = await client.request(
        "PATCH",
        target.path(),
        params=query_of_change(flags, dry_run),
        body={"metadata": metadata},
        content_type="application/merge-patch+json",
    )
    return cast("dict[str, Any]", response.json())


def _operation(field: str, added: list[str], removed: list[str]) -> str:
    if field == "annotations":
        return "annotated"
    if added and removed:
        return "modified"
    if added:
        return "labeled"
    return "unlabeled" if removed else "not labeled"
