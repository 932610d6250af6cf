"""The user of a request, and the check that its roles allow the request.

The server does not check passwords and certificates: a client is the administrator, unless it has a token of a service
account that this server granted, or impersonates another user.

Source: apiserver ``pkg/endpoints/filters/impersonation``, ``pkg/authorization/authorizerfactory`` and
``pkg/endpoints/handlers/responsewriters/errors.go``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, Final, Protocol, final
from urllib.parse import unquote

import attrs

from ..._listeners import bearer_token
from ...errors import SelectorError
from ...models import FieldSelector
from .._storage._registry import Registry
from .._storage._status import APIStatusError, status_error
from .._storage._storage import JSONObject, Storage
from .._storage._values import value_at
from ._requests import RequestRecord
from ._roles import ACCOUNT, MASTERS, Action, Decision, Roles, User
from ._tokens import AUDIENCE, TokenError, user_of

ADMINISTRATOR: Final = User("trioformer-admin", (MASTERS, "system:authenticated"))
OPERATOR: Final = "trioformer.operator"
"""The key in the ASGI scope for the function that records and allows the actions of the operator that sends a
request."""


class ActionObserver(Protocol):
    """Observes the actions of operators in a test."""

    def allows(self, action: Action, storage: Storage, *, confirms_write: bool) -> bool:
        """Return whether the operator may act.  This method is called before each action."""
        ...

    async def run(self) -> None:
        """Run beside each server of the test."""
        ...


operator_actions: Final[ContextVar[ActionObserver | None]] = ContextVar("operator_actions", default=None)

_AUTHENTICATED: Final = "system:authenticated"
_ANONYMOUS: Final = ("system:anonymous", "system:unauthenticated")
_IMPERSONATES: Final = b"impersonate-"
_EXTRA: Final = "impersonate-extra-"


@final
@attrs.frozen
class Caller:
    """The user of a request."""

    user: User
    roles: Roles
    is_checked: bool = False
    """Whether the roles of the user limit what it may do."""
    _is_allowed: Callable[[Action, Storage], bool] | None = None
    """Observes the actions of an operator."""

    def check(self, record: RequestRecord, verb: str = "") -> None:
        """Check that the user may send a request, or that the request may also do what ``verb`` says.

        Raises:
            APIStatusError: No role allows this (403).
        """
        if self.is_checked or self._is_allowed is not None:
            self.check_action(action_of(record, verb or record.verb))

    def check_action(self, action: Action) -> None:
        """Check that the user may act.

        Raises:
            APIStatusError: No role allows the action (403).
        """
        decision = self.decide(self.user, action)
        if self._is_allowed is not None and not self._is_allowed(action, self.roles.storage):
            decision = Decision(is_allowed=False)
        if not decision.is_allowed:
            raise forbidden(self.user, action, decision.reason)

    def decide(self, user: User, action: Action) -> Decision:
        """Decide whether a user may act."""
        return self.roles.decide(user, action) if self.is_checked else Decision(is_allowed=True)

    def review(self, spec: object, *, names_user: bool) -> JSONObject:
        """Return the status of an access review, which is about its own user or about the user of the request."""
        user = self.user
        if names_user:
            name, uid, groups, extra = (value_at(spec, key) for key in ("user", "uid", "groups", "extra"))
            user = User(name or "", tuple(groups or ()), uid or "", extra or {})
        asked: Any = value_at(spec, "resourceAttributes") or value_at(spec, "nonResourceAttributes")
        given = {key: asked.get(key) or "" for key in ("verb", "group", "resource", "namespace", "name", "path")}
        if subresource := asked.get("subresource"):
            given["resource"] += f"/{subresource}"
        decision = self.decide(user, Action(**given))
        return {"allowed": decision.is_allowed, **({"reason": decision.reason} if decision.reason else {})}


@final
@attrs.define(eq=False)
class Access:
    """Knows the users of requests."""

    _registry: Registry
    _is_enforced: bool
    """Whether roles limit what users may do.  Otherwise, every user may do everything."""
    _roles: Roles = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._roles = Roles(self._registry.storage)

    def admit(self, scope: Mapping[str, Any], record: RequestRecord) -> Caller:
        """Return the user of a request, who may send it.

        Raises:
            APIStatusError: A token has expired (401), or no role allows the request (403).
        """
        user = self._authenticated(scope["headers"])
        caller = Caller(user, self._roles, self._is_enforced, scope.get(OPERATOR))
        wanted = [(name.decode(), value.decode()) for name, value in scope["headers"] if name.startswith(_IMPERSONATES)]
        if wanted:
            caller = attrs.evolve(caller, user=_impersonated(caller, wanted))
        caller.check(record)
        return caller

    def _authenticated(self, headers: Iterable[tuple[bytes, bytes]]) -> User:
        token = bearer_token(headers)
        try:
            found = None if token is None else user_of(self._registry, token.reveal(), [AUDIENCE])
        except TokenError:
            raise status_error(401) from None
        if found is None:
            return ADMINISTRATOR
        info = found[0]
        return User(info["username"], tuple(info["groups"]), info["uid"], info["extra"])


def _impersonated(caller: Caller, headers: list[tuple[str, str]]) -> User:
    """Return the user whom a request impersonates.

    Raises:
        APIStatusError: The request has no name of the user (400), or its user may not impersonate that user (403).
    """
    values: dict[str, list[str]] = {}
    for key, value in headers:
        values.setdefault(key, []).append(value)
    name = values.get("impersonate-user", [""])[0]
    if not name:
        raise status_error(400, message="requested impersonation without impersonating a user")
    extra = {unquote(key.removeprefix(_EXTRA)).lower(): each for key, each in values.items() if key.startswith(_EXTRA)}
    user = User(name, tuple(values.get("impersonate-group", ())), values.get("impersonate-uid", [""])[0], extra)
    for action in _impersonations(user):
        decision = caller.decide(caller.user, action)
        if not decision.is_allowed:
            raise forbidden(caller.user, action, decision.reason)
    groups = user.groups
    if not groups and name.startswith(ACCOUNT):
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{name.split(':')[2]}")
    rest = _ANONYMOUS[1] if name == _ANONYMOUS[0] else _AUTHENTICATED
    return attrs.evolve(user, groups=groups if rest in groups else (*groups, rest))


def _impersonations(user: User) -> Iterator[Action]:
    """Yield what a request that impersonates a user needs, in kube-apiserver's order."""
    api, verb = "authentication.k8s.io", "impersonate"
    if user.name.startswith(ACCOUNT):
        namespace, _, name = user.name.removeprefix(ACCOUNT).partition(":")
        yield Action(verb, resource="serviceaccounts", namespace=namespace, name=name)
    else:
        yield Action(verb, resource="users", name=user.name)
    yield from (Action(verb, resource="groups", name=group) for group in user.groups)
    if user.uid:
        yield Action(verb, api, "uids", name=user.uid)
    for key, values in user.extra.items():
        yield from (Action(verb, api, f"userextras/{key}", name=value) for value in values)


def action_of(record: RequestRecord, verb: str) -> Action:
    """Return what RBAC decides on for a request."""
    if not record.is_resource:
        return Action(verb, path=record.path)
    subresource = (record.subresource or "").partition("/")[0]
    resource = f"{record.resource}/{subresource}" if subresource else record.resource
    name = record.name or ""
    if not name and verb in ("list", "watch"):
        name = _selected_name(record.query.get("fieldSelector", ""))
    # A namespace is in itself.
    namespace = record.namespace or (record.name if record.resource == "namespaces" and not record.group else "")
    return Action(verb, record.group, resource, namespace or "", name)


def _selected_name(selector: str) -> str:
    """Return the only name that a field selector selects, or an empty string."""
    try:
        found = FieldSelector.parse(selector).requirements
    except SelectorError:  # the handler rejects it
        return ""
    return next((value for path, operator, value in found if path == "metadata.name" and operator != "!="), "")


def forbidden(user: User, action: Action, reason: str = "") -> APIStatusError:
    """Return the 403 error for an action that no role allows."""
    who, why = f'User "{user.name}" cannot {action.verb}', f": {reason}" if reason else ""
    if action.path:
        return status_error(403, message=f'forbidden: {who} path "{action.path}"{why}', details={})
    plural = action.resource.partition("/")[0]
    details = {"name": action.name, "group": action.group, "kind": plural}
    what = f"{plural}.{action.group}" if action.group else plural
    name = f' "{action.name}"' if action.name else ""
    where = f'in the namespace "{action.namespace}"' if action.namespace else "at the cluster scope"
    problem = f'{who} resource "{action.resource}" in API group "{action.group}" {where}{why}'
    given = {key: value for key, value in details.items() if value}
    return status_error(403, message=f"{what}{name} is forbidden: {problem}", details=given)
