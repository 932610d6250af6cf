"""``auth can-i``: whether the user may do something."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final

from .._arguments import Parser
from .._failures import CommandError
from .._session import Session
from ..printing import TableWriter
from ._rules import compact_rules

if TYPE_CHECKING:
    from ...client import Client
    from ...models import ResourceInfo

__all__ = ["add_flags", "run"]

_GROUP: Final = "/apis/authorization.k8s.io/v1"
_VERBS: Final = (
    *("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "use", "bind"),
    *("impersonate", "*", "approve", "sign", "escalate", "attest"),
)
_URL_VERBS: Final = ("get", "put", "post", "head", "options", "delete", "patch", "*")


def add_flags(parser: Parser) -> None:
    """Add the flags of ``auth can-i``."""
    parser.add_switch("-A", "--all-namespaces", help="If true, check the specified action in all namespaces.")
    parser.add_switch("-q", "--quiet", help="If true, suppress output and just return the exit code.")
    parser.add_switch("--list", help="If true, prints all allowed actions.")
    parser.add_switch("--no-headers", help="If true, prints allowed actions without headers")
    parser.add_argument("--subresource", default="", help="SubResource such as pod/log or deployment/scale")


async def run(session: Session, flags: argparse.Namespace) -> int | None:
    """Run ``auth can-i``."""
    if flags.list:
        await _list(session, flags)
        return None
    if len(flags.arguments) != 2:
        raise CommandError(
            "you must specify two arguments: verb resource or verb resource/resourceName.\n"
            "See 'trioformer auth can-i -h' for help and examples."
        )
    verb, subject = flags.arguments
    async with session.open_client() as client:
        if subject.startswith("/"):
            spec = _url_spec(session, flags, verb, subject)
        else:
            spec = await _resource_spec(session, flags, client, verb, subject)
        if flags.no_headers:
            raise CommandError("--no-headers cannot be set without --list specified")
        status = await _review(client, "SelfSubjectAccessReview", spec)
    is_allowed = bool(status.get("allowed"))
    if not flags.quiet:
        reasons = [str(text) for name in ("reason", "evaluationError") if (text := status.get(name))]
        session.print("yes" if is_allowed else " - ".join(["no", *reasons]))
    return 0 if is_allowed else 1


def _url_spec(session: Session, flags: argparse.Namespace, verb: str, url: str) -> dict[str, Any]:
    if flags.subresource:
        raise CommandError("--subresource can not be used with NonResourceURL")
    if verb not in _URL_VERBS:
        session.note(f"Warning: verb '{verb}' is not a known verb\n")
    return {"nonResourceAttributes": {"verb": verb, "path": url}}


async def _resource_spec(
    session: Session, flags: argparse.Namespace, client: Client, verb: str, subject: str
) -> dict[str, Any]:
    kind, _, name = subject.partition("/")
    found: ResourceInfo | None = None
    if kind != "*":
        try:
            found = (await client.api_resources()).find(kind.lower())
        except ValueError:
            found = None
        if found is None and kind not in ("users", "groups"):
            plural, _, group = kind.lower().partition(".")
            where = f" in group '{group}'" if group else ""
            session.note(f"Warning: the server doesn't have a resource type '{plural}'{where}\n")
    if found is not None and not flags.all_namespaces:
        if not found.namespaced:
            where = f" in group '{found.group}'" if found.group else ""
            session.note(f"Warning: resource '{found.plural}' is not namespace scoped{where}\n")
        if verb not in _VERBS:
            session.note(f"Warning: verb '{verb}' is not a known verb\n")
    attributes = {
        "namespace": "" if flags.all_namespaces else session.namespace,
        "verb": verb,
        "group": "" if found is None else found.group,
        "resource": kind if found is None else found.plural,
        "subresource": flags.subresource,
        "name": name,
    }
    return {"resourceAttributes": {key: value for key, value in attributes.items() if value}}


async def _list(session: Session, flags: argparse.Namespace) -> None:
    if flags.arguments:
        raise CommandError("list option must be specified with no arguments")
    if flags.quiet or flags.all_namespaces or flags.subresource:
        raise CommandError("list option can't be specified with neither quiet, all-namespaces nor subresource options")
    async with session.open_client() as client:
        status = await _review(client, "SelfSubjectRulesReview", {"namespace": session.namespace})
    if status.get("incomplete"):
        session.note(f"Warning: the list may be incomplete: {status.get('evaluationError', '')}")
    rules = compact_rules([*(status.get("resourceRules") or []), *(status.get("nonResourceRules") or [])])
    writer = TableWriter(session.out)
    if not flags.no_headers:
        writer.add(["Resources", "Non-Resource URLs", "Resource Names", "Verbs"])
    for (resource, urls, names), verbs in rules:
        cells = [resource, f"[{urls}]", f"[{names}]", f"[{' '.join(verbs)}]"]
        writer.add(cells)
    writer.flush()


async def _review(client: Client, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec}
    response = await client.request("POST", f"{_GROUP}/{kind.lower()}s", body=body)
    found = response.json()
    status = found.get("status") if isinstance(found, dict) else None
    return status if isinstance(status, dict) else {}
