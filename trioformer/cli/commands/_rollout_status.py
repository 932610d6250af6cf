"""``rollout status``: how far a rollout is, until it is done (kubectl ``pkg/polymorphichelpers/rollout_status.go``)."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import trio

from ...errors import NotFoundError
from ...models import Unstructured, to_dict, unstructured_kind
from ...watchtools import wait_for
from .._arguments import Parser
from .._failures import CommandError
from .._session import Session
from .._values import duration_value, int_value
from ._objects import Found, raise_all, read_objects

if TYPE_CHECKING:
    from ...client import Client

__all__ = ["add_flags", "run"]

_REVISION: Final = "deployment.kubernetes.io/revision"
Object = Mapping[str, Any]


def add_flags(parser: Parser) -> None:
    """Add the flags of ``rollout status``."""
    parser.add_switch("-w", "--watch", default=True, help="Watch the status of the rollout until it's done.")
    parser.add_argument("--revision", default="0", help="Pin to a specific revision for showing its status.")
    parser.add_argument("--timeout", default="0s", help="How long to watch, zero means never end.")
    parser.add_argument("-l", "--selector", default="", help="Selector (label query) to filter on.")


async def run(session: Session, flags: argparse.Namespace) -> int | None:
    """Run ``rollout status``."""
    revision = int_value(flags.revision, "--revision")
    timeout = duration_value(flags.timeout, "--timeout")
    if not flags.arguments:
        raise CommandError("required resource not specified")
    if revision < 0:
        raise CommandError(f"revision must be a positive integer: {revision}")
    async with session.open_client() as client:
        found, errors = await read_objects(client, session, flags.arguments, selector=flags.selector, selects_all=True)
        for each in found:
            try:
                await _follow(session, client, each, revision, timeout, watches=flags.watch)
            except CommandError as exc:
                errors.append(exc)
    raise_all(errors)
    if not found:
        session.note(f"No resources found in {session.namespace} namespace.")
    return None


async def _follow(
    session: Session, client: Client, found: Found, revision: int, patience: float, *, watches: bool
) -> None:
    resource = found.target.resource
    viewer = _VIEWERS.get((resource.group, resource.kind))
    if viewer is None:
        kind_name = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
        raise CommandError(f"no status viewer has been implemented for {kind_name}")

    def is_done(obj: Unstructured) -> bool:
        text, done = viewer(to_dict(obj), revision)
        session.print(text)
        session.out.flush()
        return done or not watches

    kind: type[Unstructured] = unstructured_kind(resource)
    with trio.CancelScope(deadline=trio.current_time() + patience) if patience else trio.CancelScope() as scope:
        try:
            await wait_for(client.api(kind, found.target.namespace), found.target.name, is_done)
        except NotFoundError as exc:
            raise CommandError("object has been deleted") from exc
    if scope.cancelled_caught:
        raise CommandError("timed out waiting for the condition")


def _number(obj: Object, *names: str) -> int:
    found: Any = obj
    for name in names:
        found = (found or {}).get(name)
    return int(found or 0)


def _is_observed(obj: Object) -> bool:
    return _number(obj, "metadata", "generation") <= _number(obj, "status", "observedGeneration")


def _name(obj: Object) -> str:
    return str(obj["metadata"]["name"])


def _deployment(obj: Object, revision: int) -> tuple[str, bool]:
    name, status = _name(obj), obj.get("status") or {}
    if revision:
        annotated = (obj["metadata"].get("annotations") or {}).get(_REVISION) or "0"
        try:
            running = int(annotated)
        except ValueError:
            problem = f'strconv.ParseInt: parsing "{annotated}": invalid syntax'
            raise CommandError(f'cannot get the revision of deployment "{name}": {problem}') from None
        if running != revision:
            raise CommandError(f"desired revision ({revision}) is different from the running revision ({running})")
    if not _is_observed(obj):
        return "Waiting for deployment spec update to be observed...", False
    for each in status.get("conditions") or []:
        if each.get("type") == "Progressing" and each.get("reason") == "ProgressDeadlineExceeded":
            raise CommandError(f'deployment "{name}" exceeded its progress deadline')
    wanted = _number(obj, "spec", "replicas")
    updated, total, available = (
        _number(status, field) for field in ("updatedReplicas", "replicas", "availableReplicas")
    )
    waiting = f'Waiting for deployment "{name}" rollout to finish:'
    if updated < wanted:
        return f"{waiting} {updated} out of {wanted} new replicas have been updated...", False
    if total > updated:
        return f"{waiting} {total - updated} old replicas are pending termination...", False
    if available < updated:
        return f"{waiting} {available} of {updated} updated replicas are available...", False
    return f'deployment "{name}" successfully rolled out', True


def _check_rolling(obj: Object) -> None:
    spec = obj.get("spec") or {}
    if (spec.get("updateStrategy") or {}).get("type") != "RollingUpdate":
        raise CommandError("rollout status is only available for RollingUpdate strategy type")


def _daemon_set(obj: Object, _: int) -> tuple[str, bool]:
    _check_rolling(obj)
    if not _is_observed(obj):
        return "Waiting for daemon set spec update to be observed...", False
    updated, wanted, available = (
        _number(obj, "status", field)
        for field in ("updatedNumberScheduled", "desiredNumberScheduled", "numberAvailable")
    )
    waiting = f'Waiting for daemon set "{_name(obj)}" rollout to finish:'
    if updated < wanted:
        return f"{waiting} {updated} out of {wanted} new pods have been updated...", False
    if available < wanted:
        return f"{waiting} {available} of {wanted} updated pods are available...", False
    return f'daemon set "{_name(obj)}" successfully rolled out', True


def _stateful_set(obj: Object, _: int) -> tuple[str, bool]:
    _check_rolling(obj)
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    if not _number(status, "observedGeneration") or not _is_observed(obj):
        return "Waiting for statefulset spec update to be observed...", False
    wanted, ready, updated = (
        _number(spec, "replicas"),
        _number(status, "readyReplicas"),
        _number(status, "updatedReplicas"),
    )
    if ready < wanted:
        return f"Waiting for {wanted - ready} pods to be ready...", False
    rolling = (spec.get("updateStrategy") or {}).get("rollingUpdate")
    if rolling is not None:
        partition = int(rolling.get("partition") or 0)
        if updated < wanted - partition:
            progress = f"{updated} out of {wanted - partition} new pods have been updated..."
            return f"Waiting for partitioned roll out to finish: {progress}", False
        return f"partitioned roll out complete: {updated} new pods have been updated...", True
    update, current = status.get("updateRevision") or "", status.get("currentRevision") or ""
    if update != current:
        return f"waiting for statefulset rolling update to complete {updated} pods at revision {update}...", False
    count = _number(status, "currentReplicas")
    return f"statefulset rolling update complete {count} pods at revision {current}...", True


_VIEWERS: Final[Mapping[tuple[str, str], Callable[[Object, int], tuple[str, bool]]]] = {
    ("apps", "Deployment"): _deployment,
    ("apps", "DaemonSet"): _daemon_set,
    ("apps", "StatefulSet"): _stateful_set,
}
