"""The permissions that operators use in tests: what ``pytest --trioformer-rbac`` compares with a role.

A request is an operator's if :func:`~trioformer.manager.run_controllers` or a webhook in memory sends it, or if its
client was opened with ``APIServer.open_client(operator=True)``.  Permissions that every user has, such as discovery,
are not recorded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Final, final

import attrs
import trio
from trio.testing import MockClock

from ._serving._roles import Action
from ._storage._storage import Storage

PATIENCE: Final = 30.0
"""The seconds after which a test has failed that goes on without a permission."""
PATIENCE_ON_A_MOCK_CLOCK: Final = 6 * 3600.0
CLUSTER_ROLE: Final = "ClusterRole"
ROLE: Final = "Role"
NAMED: Final = frozenset({"get", "list", "watch", "update", "patch", "delete"})
"""The verbs that a role can limit to names.  For ``create``, the name is not in the path."""

_FOR_ALL_PATHS: Final = ("/api", "/apis", "/healthz", "/livez", "/openapi", "/readyz", "/version")
_FOR_ALL: Final = frozenset({"selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"})


@final
@attrs.frozen(order=True)
class Permission:
    """One verb of one resource in a role."""

    role: str
    """The kind of the role: ``ClusterRole`` or ``Role``."""
    group: str
    resource: str
    """The resource, with its subresource as in ``pods/log``; empty for a path."""
    verb: str
    name: str = ""
    """The only name; empty for all names.  Or a path that is not a resource."""

    def __str__(self) -> str:
        what = f"{self.resource}.{self.group}" if self.group else self.resource
        return " ".join(word for word in (self.verb, what, self.name) if word)


@final
@attrs.define(eq=False)
class Recorder:
    """Records which actions operators take in which tests."""

    denied: Permission | None = None
    """A permission that operators do not have at the moment."""
    _tests: dict[Action, set[str]] = attrs.field(factory=lambda: defaultdict(set))
    _varying: set[tuple[str, str]] = attrs.field(factory=set)
    """The resources whose names the operator did not know by itself, as groups and plurals."""

    def observer(self, test: str) -> Observer:
        """Return an observer that records the actions in a test."""
        return Observer(self, test)

    def record(self, action: Action, test: str, *, varies: bool) -> None:
        """Record an action in a test, and whether its name is another one in another cluster."""
        self._tests[action].add(test)
        if varies:
            self._varying.add(_kind_of(action))

    def is_known(self, action: Action, test: str) -> bool:
        """Return whether an action has been recorded in a test."""
        return test in self._tests.get(action, ())

    def permissions(self) -> dict[Permission, set[str]]:
        """Return the permissions that were used, each with the tests that used it."""
        namespaces: dict[tuple[tuple[str, str], str], set[str]] = defaultdict(set)
        for action, tests in self._tests.items():
            for test in tests:
                namespaces[_kind_of(action), test].add(_namespace_of(action))
        is_in_one = _is_one(set[str]().union(*namespaces.values()))
        # The resources that an operator uses in several namespaces at once, and not only in its own.
        wide = {kind for (kind, _), used in namespaces.items() if not _is_one(used)}
        found: dict[Permission, set[str]] = defaultdict(set)
        for action, tests in self._tests.items():
            kind = _kind_of(action)
            is_fixed = kind not in self._varying and bool(action.resource)
            # What has its names from the operator's code is also in the operator's own namespace.
            is_own = is_fixed and kind not in wide
            name = action.path or (action.name if is_fixed and action.verb in NAMED else "")
            role = ROLE if is_in_one or is_own else CLUSTER_ROLE
            found[Permission(role, action.group, action.resource, action.verb, name)] |= tests
        return found

    def state(self) -> list[Any]:
        """Return what was recorded as JSON, to send it from one process of pytest-xdist to another."""
        varying = [list(kind) for kind in sorted(self._varying)]
        return [varying, [[list(attrs.astuple(action)), sorted(tests)] for action, tests in self._tests.items()]]

    def add(self, state: list[Any]) -> None:
        """Add what another process has recorded."""
        varying, actions = state
        self._varying.update((group, plural) for group, plural in varying)
        for action, tests in actions:
            self._tests[Action(*action)].update(tests)


@final
@attrs.define(eq=False)
class Observer:
    """Records the actions of the operators in one test."""

    recorder: Recorder
    test: str
    inputs: set[tuple[str, str]] = attrs.field(factory=set)
    """The resources that the operator lists or watches in the test."""

    denied: trio.Event = attrs.field(factory=trio.Event)
    """Set when the operator lacks a permission, except after a write without a clear response."""

    def allows(self, action: Action, storage: Storage, *, confirms_write: bool) -> bool:
        """Record an action, and return whether the operator has the permission."""
        if action.resource in _FOR_ALL or _is_in(action.path, _FOR_ALL_PATHS):
            return True
        if not self.recorder.is_known(action, self.test):
            if action.verb in ("list", "watch") and not action.name:
                self.inputs.add(_kind_of(action))
            self.recorder.record(action, self.test, varies=self._varies(action, storage))
        denied = self.recorder.denied
        if denied is None or not _is_part(action, denied):
            return True
        if not confirms_write:
            self.denied.set()
        return False

    async def run(self) -> None:
        """Fail when the test has gone on for long without a permission, because it may wait forever.

        Raises:
            RuntimeError: The test has not ended.
        """
        await self.denied.wait()
        patience = PATIENCE_ON_A_MOCK_CLOCK if isinstance(trio.lowlevel.current_clock(), MockClock) else PATIENCE
        await trio.sleep(patience)
        raise RuntimeError(f"the test has not ended {patience:g} s after the operator lacked a permission")

    def _varies(self, action: Action, storage: Storage) -> bool:
        """Return whether the operator has a name from an object, rather than from its own code."""
        if _kind_of(action) in self.inputs:
            return True
        if not action.name or action.verb not in NAMED:
            return False
        quoted = f'"{action.name}"'.encode()
        for group, plural in self.inputs:
            for stored in storage.snapshot(f"{plural}.{group}" if group else plural):
                # A manager has the name of the operator, and often so has its Lease.
                body = stored.body.replace(b'"manager":' + quoted, b"")
                if quoted in body or action.name.startswith((f"{stored.name}-", f"{stored.name}.")):
                    return True
        return False


def _kind_of(action: Action) -> tuple[str, str]:
    return action.group, action.resource.partition("/")[0]


def _namespace_of(action: Action) -> str:
    """Return the namespace of an action; a namespace itself is in the cluster."""
    return "" if _kind_of(action) == ("", "namespaces") else action.namespace


def _is_one(namespaces: set[str]) -> bool:
    return len(namespaces) == 1 and namespaces != {""}


def _is_in(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)


def _is_part(action: Action, permission: Permission) -> bool:
    """Return whether an action needs a permission."""
    if (action.verb, action.group, action.resource) != (permission.verb, permission.group, permission.resource):
        return False
    return permission.name in ("", action.path or action.name)
