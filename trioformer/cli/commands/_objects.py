"""Objects that arguments name, read before something is done with them, and what is printed when it is done."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, final

import attrs

from ...errors import TrioformerError
from .._arguments import Parser
from .._failures import CommandError
from .._resources import Target, group_kind, select
from .._session import Session
from ..printing import make_printer
from ._requests import items_of, request_pages

if TYPE_CHECKING:
    from ...client import Client

__all__ = [
    "Found",
    "add_result_flags",
    "make_reporter",
    "raise_all",
    "read_objects",
    "target_of",
]

_PAGE: Final = "500"
_NOTHING_NAMED: Final = """\
You must provide one or more resources by argument or filename.
Example resource specifications include:
   '-f rsrc.yaml'
   '--filename=rsrc.json'
   '<resource> <name>'
   '<resource>'"""


@final
@attrs.frozen
class Found:
    """An object, and where it is."""

    target: Target
    """Its place."""
    object: dict[str, Any]
    """Its JSON."""

    @property
    def reference(self) -> str:
        """What stands before the report of what was done: ``deployment.apps/web``."""
        return f"{group_kind(self.target.resource)}/{self.target.name}"


def add_result_flags(parser: Parser) -> None:
    """Add the flags that choose how changed objects are printed."""
    parser.add_argument("-o", "--output", default="", help="Output format: json, yaml, name, jsonpath=….")
    parser.add_argument("--template", default="", help="Template string, or path to a template file, for -o jsonpath")
    parser.add_switch("--show-managed-fields", help="If true, keep the managedFields when printing objects")
    parser.add_switch("--allow-missing-template-keys", default=True, help="Ignored: missing keys are empty.")


def make_reporter(session: Session, flags: argparse.Namespace, operation: str) -> Callable[[Found], None]:
    """Return what prints ``deployment.apps/web scaled``, or the whole object with ``-o``.

    Raises:
        CommandError: There is no such form of output.
    """
    printer = make_printer(
        flags.output, session.out, template=flags.template, show_managed_fields=flags.show_managed_fields
    )
    if printer is None and flags.output:
        raise CommandError(f'unable to match a printer suitable for the output format "{flags.output}"')

    def report(found: Found) -> None:
        if printer is None:
            session.print(f"{found.reference} {operation}")
        else:
            printer.print(found.object)
            printer.finish()

    return report


async def read_objects(
    client: Client,
    session: Session,
    arguments: Sequence[str],
    *,
    selector: str = "",
    field_selector: str = "",
    selects_all: bool = False,
    all_namespaces: bool = False,
) -> tuple[list[Found], list[Exception]]:
    """Read the objects that arguments name or selectors choose.

    Args:
        client: The client.
        session: Has the namespace.
        arguments: Such as ``deploy/web``, ``deploy web`` or ``deployments``.
        selector: The label selector.
        field_selector: The field selector.
        selects_all: Whether a type alone means all its objects.
        all_namespaces: Whether those of all namespaces are meant.

    Returns:
        The objects, and the errors of those that cannot be read.

    Raises:
        CommandError: The arguments are not valid.
        TrioformerError: The resources of the server cannot be discovered.
    """
    has_selector = bool(selector or field_selector)
    if not arguments:
        raise CommandError(
            "at least one resource must be specified to use a selector" if has_selector else _NOTHING_NAMED
        )
    selection = await select(
        client,
        arguments,
        namespace=None if all_namespaces else session.namespace,
        selector=selector,
        field_selector=field_selector,
    )
    if not (selection.has_names or has_selector or selects_all):
        raise CommandError("resource(s) were provided, but no name was specified")
    found: list[Found] = []
    errors: list[Exception] = []
    params = {"labelSelector": selector, "fieldSelector": field_selector, "limit": _PAGE}
    for target in selection.targets:
        query = {} if target.name else {key: value for key, value in params.items() if value}
        try:
            pages = await request_pages(client, target, query, accept="application/json")
        except (TrioformerError, CommandError) as exc:
            errors.append(exc)
            continue
        found += [Found(target_of(each, target), each) for page in pages for each in items_of(page, target)]
    return found, errors


def target_of(obj: Mapping[str, Any], target: Target) -> Target:
    """Return the place of one object of a list."""
    metadata = obj.get("metadata") or {}
    namespace = metadata.get("namespace") or target.namespace
    return attrs.evolve(target, name=str(metadata.get("name") or ""), namespace=namespace)


def raise_all(errors: Sequence[Exception]) -> None:
    """Raise one error, or several in a group, which are reported a line each, as kubectl does without ``error:``."""
    if len(errors) == 1:
        raise errors[0]
    if errors:
        lines = [CommandError(str(each), is_bare=True) if isinstance(each, CommandError) else each for each in errors]
        raise ExceptionGroup("some objects failed", lines)
