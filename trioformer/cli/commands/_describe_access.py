"""Describes service accounts, roles, bindings and certificate requests (kubectl ``pkg/describe/describe.go``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ._describe_related import Objects, Related
from ._describe_text import Description, at
from ._rules import compact_rules

__all__ = ["ACCESS"]

_PULL: Final = "Image pull secrets:"


def _service_account(obj: Mapping[str, Any], events: Objects | None, _: Related) -> str:
    text = Description()
    text.head(obj)
    names = [str(each.get("name")) for each in obj.get("imagePullSecrets") or []]
    for index, name in enumerate(names or ["<none>"]):
        text.line(0, f"{_PULL if index == 0 else ' ' * len(_PULL)}\t{name}")
    text.events(events)
    return text.render()


def _role(obj: Mapping[str, Any], _: Objects | None, __: Related) -> str:
    text = Description()
    text.head(obj, with_namespace=False)
    text.line(0, "PolicyRule:")
    rules = [
        (resource, f"[{urls}]", f"[{names}]", f"[{' '.join(verbs)}]")
        for (resource, urls, names), verbs in compact_rules(obj.get("rules") or [])
    ]
    text.table(("Resources", "Non-Resource URLs", "Resource Names", "Verbs"), rules)
    return text.render()


def _binding(obj: Mapping[str, Any], _: Objects | None, __: Related) -> str:
    text = Description()
    text.head(obj, with_namespace=False)
    text.line(0, "Role:")
    text.field("Kind", at(obj, "roleRef", "kind") or "", 1)
    text.field("Name", at(obj, "roleRef", "name") or "", 1)
    text.line(0, "Subjects:")
    keys = ("kind", "name", "namespace")
    rows = [[each.get(key) or "" for key in keys] for each in obj.get("subjects") or []]
    text.table(("Kind", "Name", "Namespace"), rows)
    return text.render()


ACCESS: Final = {
    "clusterrolebindings.rbac.authorization.k8s.io": _binding,
    "clusterroles.rbac.authorization.k8s.io": _role,
    "rolebindings.rbac.authorization.k8s.io": _binding,
    "roles.rbac.authorization.k8s.io": _role,
    "serviceaccounts": _service_account,
}
