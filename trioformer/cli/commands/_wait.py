"""``wait``: waits until objects meet a condition (kubectl ``pkg/cmd/wait``).

It watches as :func:`~trioformer.watchtools.wait_for` does, across the ends and failures of watches.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, final

import attrs
import trio

from ...errors import NotFoundError, TrioformerError
from ...models import Unstructured, to_dict, unstructured_kind
from ...watchtools import created, deleted, has_condition, resuming_watch, wait_for
from .._arguments import Parser
from .._failures import CommandError
from .._resources import Target, select
from .._session import Session
from .._values import duration_value
from ..printing import JSONPath, JSONPathError, relaxed_path, sprint
from ._objects import Found, add_result_flags, make_reporter, raise_all, read_objects
from ._requests import items_of, request_pages

if TYPE_CHECKING:
    from ...client import Client

__all__ = ["add_flags", "run"]

_WEEK: Final = 7 * 24 * 3600.0
"""What a negative timeout means."""
_TIMED_OUT: Final = "timed out waiting for the condition"
_Check = Callable[[Unstructured], bool]


def add_flags(parser: Parser) -> None:
    """Add the flags of ``wait``."""
    parser.add_argument(
        "--for",
        dest="conditions",
        action="append",
        default=[],
        help="The condition to wait on: create, delete, condition=NAME[=VALUE] or jsonpath='{PATH}'[=VALUE].",
    )
    parser.add_argument("--timeout", default="30s", help="How long to wait. 0 checks once, negative waits for a week.")
    parser.add_argument("-l", "--selector", default="", help="Selector (label query) to filter on.")
    parser.add_argument("--field-selector", default="", help="Selector (field query) to filter on.")
    parser.add_switch("--all", help="Select all resources in the namespace of the specified resource types")
    parser.add_switch("-A", "--all-namespaces", help="If present, wait for objects in all namespaces.")
    add_result_flags(parser)


@final
@attrs.frozen
class _Condition:
    """One ``--for``: a check of the state of an object; None for a creation or a deletion."""

    text: str
    check: _Check | None = None


async def run(session: Session, flags: argparse.Namespace) -> int | None:
    """Run ``wait``."""
    report = make_reporter(session, flags, "condition met")
    timeout = duration_value(flags.timeout, "--timeout")
    conditions = [_condition(text) for text in flags.conditions]
    if not conditions:
        raise CommandError("unrecognized condition: []")
    texts = [each.text for each in conditions]
    async with session.open_client() as client:
        deadline = trio.current_time() + (_WEEK if timeout < 0 else timeout)
        if "create" in texts and timeout != 0:
            await _wait_for_creation(session, flags, client, deadline)
        found, errors = await _read(session, flags, client)
        is_for_deletion = "delete" in texts
        if is_for_deletion:
            errors = [each for each in errors if not isinstance(each, NotFoundError)]
        for each in found:
            try:
                await _wait(client, each, conditions, deadline, report, checks_once=timeout == 0)
            except (CommandError, TrioformerError) as exc:
                errors.append(exc)
    raise_all(errors)
    if not found and not is_for_deletion:
        raise CommandError("no matching resources found")
    return None


async def _read(session: Session, flags: argparse.Namespace, client: Client) -> tuple[list[Found], list[Exception]]:
    return await read_objects(
        client,
        session,
        flags.arguments,
        selector=flags.selector,
        field_selector=flags.field_selector,
        selects_all=flags.all,
        all_namespaces=flags.all_namespaces,
    )


# --- the conditions ---


def _condition(text: str) -> _Condition:
    if text.lower() in ("create", "delete"):
        return _Condition(text.lower())
    kind, has_value, rest = text.partition("=")
    if kind == "condition" and has_value:
        name, equals, value = rest.partition("=")
        return _Condition(text, has_condition(name, value if equals else "true"))
    if kind == "jsonpath" and has_value:
        return _Condition(text, _path_check(rest))
    raise CommandError(f'unrecognized condition: "{text}"')


def _path_check(text: str) -> _Check:
    parts = _split(text)
    if len(parts) > 2:
        raise CommandError(
            "jsonpath wait format must be --for=jsonpath='{.status.readyReplicas}'=3 or "
            "--for=jsonpath='{.status.readyReplicas}'"
        )
    if not parts[0]:
        raise CommandError("jsonpath expression cannot be empty")
    try:
        path = JSONPath(relaxed_path(parts[0]))
    except JSONPathError as exc:
        raise CommandError(str(exc)) from exc
    wanted = None
    if len(parts) == 2:
        wanted = parts[1].strip("'\"")
        if not wanted:
            raise CommandError(
                "jsonpath wait has to have a value after equal sign, like --for=jsonpath='{.status.readyReplicas}'=3"
            )

    def is_met_by(obj: Unstructured) -> bool:
        try:
            results = path.find(to_dict(obj))
        except JSONPathError as exc:
            raise CommandError(str(exc)) from exc
        if not results or not results[0]:
            return False
        if len(results) > 1:
            raise CommandError("given jsonpath expression matches more than one list")
        if len(results[0]) > 1:
            raise CommandError("given jsonpath expression matches more than one value")
        value = results[0][0]
        if wanted is None:
            return True
        if isinstance(value, Mapping | list | tuple):
            raise CommandError("jsonpath leads to a nested object or list which is not supported")
        return sprint(value).strip() == wanted.strip()

    return is_met_by


def _split(text: str) -> list[str]:
    """Split at each ``=`` that is not doubled."""
    return [part.replace("\0", "==") for part in text.replace("==", "\0").split("=")]


# --- the waits ---


async def _wait(
    client: Client,
    found: Found,
    conditions: Sequence[_Condition],
    deadline: float,
    report: Callable[[Found], None],
    *,
    checks_once: bool,
) -> None:
    kind: type[Unstructured] = unstructured_kind(found.target.resource)
    target = found.target
    api = client.api(kind, target.namespace)
    place = f"{target.resource.plural}/{target.name}"
    current = kind.of(found.object)
    for condition in conditions:
        if condition.text != "create":
            # What was read may do already: then nothing is watched, and it does not matter how late it is.
            if condition.check is not None and condition.check(current):
                pass
            elif checks_once:
                raise CommandError(f"condition not met for {place}")
            else:
                with trio.CancelScope(deadline=deadline) as scope:
                    if condition.check is None:
                        await wait_for(api, target.name, deleted(uid=current.uid))
                    else:
                        # A new object of the same name, such as of a StatefulSet, may meet it, too.
                        current = await wait_for(api, target.name, condition.check, missing_ok=True)
                if scope.cancelled_caught:
                    raise CommandError(f"{_TIMED_OUT} on {place}")
        report(Found(target, to_dict(current)))


async def _wait_for_creation(session: Session, flags: argparse.Namespace, client: Client, deadline: float) -> None:
    """Wait until what is named, or anything of what is selected, exists."""
    selector, field_selector = flags.selector, flags.field_selector
    selection = await select(
        client,
        flags.arguments,
        namespace=None if flags.all_namespaces else session.namespace,
        selector=selector,
        field_selector=field_selector,
    )
    has_timed_out = True
    with trio.CancelScope(deadline=deadline):
        for target in selection.targets:
            kind: type[Unstructured] = unstructured_kind(target.resource)
            api = client.api(kind, target.namespace)
            if target.name:
                await wait_for(api, target.name, created())
            elif await _exists_or_comes(client, target, selector, field_selector):
                break
        has_timed_out = False
    if has_timed_out:
        raise CommandError(_TIMED_OUT)


async def _exists_or_comes(client: Client, target: Target, selector: str, field_selector: str) -> bool:
    given = {"labelSelector": selector, "fieldSelector": field_selector}
    params = {key: value for key, value in given.items() if value}
    pages = await request_pages(client, target, params, accept="application/json")
    if any(items_of(page, target) for page in pages):
        return True
    kind: type[Unstructured] = unstructured_kind(target.resource)
    version: Any = (pages[-1].get("metadata") or {}).get("resourceVersion") or ""
    async with resuming_watch(
        client.api(kind, target.namespace),
        resource_version=version,
        label_selector=selector or None,
        field_selector=field_selector or None,
    ) as events:
        async for event in events:
            if event.type != "DELETED":
                return True
    return False
