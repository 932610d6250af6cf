"""Role-based access control: the rules that apply to a user, and whether they allow an action.

Source: kubernetes ``plugin/pkg/auth/authorizer/rbac``, ``pkg/registry/rbac/validation/rule.go``,
``pkg/apis/rbac/v1/evaluation_helpers.go``, and ``pkg/controller/clusterroleaggregation``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, final

import attrs

from .._storage._selection import selector_in
from .._storage._storage import JSONObject, Storage
from .._storage._values import objects_at, value_at

MASTERS: Final = "system:masters"
"""The group whose users may do everything, whatever the roles are."""
ACCOUNT: Final = "system:serviceaccount:"
"""The beginning of the names of service accounts as users."""
_GROUP: Final = "rbac.authorization.k8s.io"
_SEVERAL: Final = 2


@final
@attrs.frozen
class User:
    """A user, as the server knows it."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: JSONObject = attrs.field(factory=dict, hash=False)

    def info(self) -> JSONObject:
        """Return the ``userInfo`` of reviews."""
        found = {"username": self.name, "uid": self.uid, "groups": list(self.groups), "extra": self.extra}
        return {key: value for key, value in found.items() if value}


@final
@attrs.frozen
class Action:
    """What RBAC decides on: a request for a resource, or for a path that is not a resource."""

    verb: str
    group: str = ""
    resource: str = ""
    """The resource, with its subresource as in ``pods/log``; empty for a path."""
    namespace: str = ""
    name: str = ""
    path: str = ""


@final
@attrs.frozen
class Decision:
    """Whether an action is allowed, and why."""

    is_allowed: bool
    reason: str = ""
    """The binding that allows the action, the roles that do not exist, or an empty string."""


@final
@attrs.define(eq=False)
class Roles:
    """The roles and bindings in a storage."""

    storage: Storage
    _read: dict[str, tuple[int, dict[str, JSONObject]]] = attrs.field(init=False, factory=dict)
    """The decoded objects of each resource, and the position in the storage at which they were read."""

    def decide(self, user: User, action: Action) -> Decision:
        """Decide whether a user may act."""
        if MASTERS in user.groups:
            return Decision(is_allowed=True)
        problems: list[str] = []
        for rule, reason in self._granted(user, action.namespace, problems):
            if _covers(rule, action):
                return Decision(is_allowed=True, reason=f"RBAC: {reason}")
        return Decision(is_allowed=False, reason=f"RBAC: {_joined(problems)}" if problems else "")

    def rules(self, user: User, namespace: str) -> tuple[list[JSONObject], str]:
        """Return the rules of a user in a namespace, and the roles that do not exist."""
        problems: list[str] = []
        return [rule for rule, _ in self._granted(user, namespace, problems)], _joined(problems)

    def _granted(self, user: User, namespace: str, problems: list[str]) -> Iterator[tuple[JSONObject, str]]:
        """Yield the rules that bindings give to a user, each with its reason."""
        bindings = list(self._objects("clusterrolebindings").values())
        if namespace:
            found = self._objects("rolebindings").items()
            bindings += [one for key, one in found if key.rpartition("/")[0] == namespace]
        for binding in bindings:
            where = binding["metadata"].get("namespace", "")
            subject = next((one for one in objects_at(binding, "subjects") if _is(one, user, where)), None)
            if subject is None:
                continue
            kind, name = (str(value_at(binding, "roleRef", key) or "") for key in ("kind", "name"))
            key = f"{where}/{name}" if kind == "Role" else name
            role = self._objects(f"{kind.lower()}s").get(key)
            if role is None:
                problems.append(f'{kind.lower()}.{_GROUP} "{name}" not found')
                continue
            bound = binding["metadata"]["name"]
            title = f'RoleBinding "{bound}/{where}"' if where else f'ClusterRoleBinding "{bound}"'
            reason = f'allowed by {title} of {kind} "{name}" to {_described(subject, where)}'
            yield from ((rule, reason) for rule in self._rules_of(role))

    def _rules_of(self, role: JSONObject, seen: frozenset[str] = frozenset()) -> Iterator[JSONObject]:
        """Yield the rules of a role; those of an aggregated ClusterRole as its controller would write them."""
        name = role["metadata"]["name"]
        if not role.get("aggregationRule"):
            yield from objects_at(role, "rules")
        elif name not in seen:
            for selector in map(selector_in, objects_at(role, "aggregationRule", "clusterRoleSelectors")):
                for other in self._objects("clusterroles").values():
                    if other is not role and selector.matches(other["metadata"].get("labels") or {}):
                        yield from self._rules_of(other, seen | {name})

    def _objects(self, plural: str) -> dict[str, JSONObject]:
        """Return the objects of a resource by their keys."""
        resource = f"{plural}.{_GROUP}"
        end = self.storage.end(resource)
        found = self._read.get(resource)
        if found is None or found[0] != end:
            found = self._read[resource] = end, {one.key: one.decoded() for one in self.storage.snapshot(resource)}
        return found[1]


def _is(subject: JSONObject, user: User, namespace: str) -> bool:
    """Return whether a subject of a binding in a namespace is a user."""
    match subject.get("kind"):
        case "User":
            return bool(subject.get("name") == user.name)
        case "Group":
            return subject.get("name") in user.groups
        case _:
            return user.name == f"{ACCOUNT}{subject.get('namespace') or namespace}:{subject.get('name')}"


def _described(subject: JSONObject, namespace: str) -> str:
    """Return a subject as in kube-apiserver's reasons."""
    kind, name = subject.get("kind"), subject.get("name")
    return (
        f'{kind} "{name}/{subject.get("namespace") or namespace}"' if kind == "ServiceAccount" else f'{kind} "{name}"'
    )


def _joined(problems: list[str]) -> str:
    """Return several errors as Go's aggregate prints them."""
    found = list(dict.fromkeys(problems))
    return f"[{', '.join(found)}]" if len(found) >= _SEVERAL else "".join(found)


def _covers(rule: JSONObject, action: Action) -> bool:
    """Return whether a rule allows an action."""
    if not _has(rule, "verbs", action.verb):
        return False
    if action.path:
        return any(_is_below(url, action.path) for url in rule.get("nonResourceURLs") or ())
    _, slash, subresource = action.resource.partition("/")
    return (
        _has(rule, "apiGroups", action.group)
        and (_has(rule, "resources", action.resource) or (bool(slash) and _has(rule, "resources", f"*/{subresource}")))
        and (not rule.get("resourceNames") or action.name in rule["resourceNames"])
    )


def _has(rule: JSONObject, key: str, value: str) -> bool:
    found: Any = rule.get(key) or ()
    return "*" in found or value in found


def _is_below(url: str, path: str) -> bool:
    return url in ("*", path) or (url.endswith("*") and path.startswith(url.rstrip("*")))
