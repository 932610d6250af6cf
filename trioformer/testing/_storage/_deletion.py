"""The options and the result of a delete.

Source: apiserver ``pkg/registry/generic/registry/store.go`` (``deletionFinalizersForGarbageCollection``), and
apimachinery ``ValidateDeleteOptions``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias, cast, final

import attrs

from ._field_errors import invalid_value, not_supported
from ._go_types import check_delete_options
from ._kinds import ServedKind
from ._status import bad_request, cause, invalid_options, precondition_failed
from ._storage import JSONObject, Stored

Policy: TypeAlias = Literal["Background", "Foreground", "Orphan"]
"""What happens to the dependents of a deleted object: they are deleted after the object, deleted before the object, or
kept."""

FOREGROUND: Final = "foregroundDeletion"
"""The finalizer of an object that waits for its dependents."""
ORPHAN: Final = "orphan"
"""The finalizer of an object whose dependents are orphaned."""
_ORPHANED_BY_DEFAULT: Final = frozenset({"jobs.batch", "replicationcontrollers"})
_POLICIES: Final = ("Foreground", "Background", "Orphan", "nil")


def finalizers_after(served: ServedKind, metadata: JSONObject, policy: Policy | None) -> list[str]:
    """Return the finalizers of an object after a request to delete the object.

    A garbage collector removes the finalizers ``orphan`` and ``foregroundDeletion`` later.
    """
    before: list[str] = metadata.get("finalizers") or []
    if policy is None:
        if ORPHAN in before:
            policy = "Orphan"
        elif FOREGROUND in before:
            policy = "Foreground"
        elif served.resource in _ORPHANED_BY_DEFAULT and "deletionTimestamp" not in metadata:
            policy = "Orphan"
    own = {"Orphan": [ORPHAN], "Foreground": [FOREGROUND]}.get(policy or "", [])
    return [*(one for one in before if one not in (ORPHAN, FOREGROUND)), *own]


@final
@attrs.frozen(kw_only=True)
class DeleteOptions:
    """The options of a delete (``meta/v1 DeleteOptions``).  A precondition that is None is not checked."""

    uid: str | None = None
    """The precondition for the object's uid."""
    resource_version: str | None = None
    """The precondition for the object's resourceVersion."""
    policy: Policy | None = None
    """The policy for dependents; None for the default of the kind."""
    dry_run: bool = False
    """True for a dry run."""

    def check(self, served: ServedKind, current: Stored, uid: str) -> None:
        """Check the preconditions against an object.

        Raises:
            APIStatusError: A precondition is not met (409).
        """
        if self.uid is not None and self.uid != uid:
            problem = f"the UID in the precondition ({self.uid}) does not match the UID in record ({uid}). "
            problem += "The object might have been deleted and then recreated"
            raise precondition_failed(served.info, current.name, problem)
        if self.resource_version is not None and self.resource_version != str(current.revision):
            problem = f"the ResourceVersion in the precondition ({self.resource_version}) does not match the "
            problem += f"ResourceVersion in record ({current.revision}). The object might have been modified"
            raise precondition_failed(served.info, current.name, problem)

    def as_object(self) -> JSONObject:
        """Return the options as a dict, for webhooks."""
        preconditions = {"uid": self.uid, "resourceVersion": self.resource_version}
        given = {
            "preconditions": {key: value for key, value in preconditions.items() if value is not None},
            "propagationPolicy": self.policy,
            "dryRun": ["All"] if self.dry_run else None,
        }
        return {key: value for key, value in given.items() if value}

    @classmethod
    def parse(cls, body: Mapping[str, Any] | None, query: Mapping[str, str]) -> DeleteOptions:
        """Parse the delete options from the body, or from the query if there is no body.

        Raises:
            APIStatusError: The options are not valid (400 or 422).
        """
        of_query = {
            "propagationPolicy": query.get("propagationPolicy") or None,
            "dryRun": [query["dryRun"]] if "dryRun" in query else [],
        }
        if body is not None:
            check_delete_options(body)
        elif (seconds := query.get("gracePeriodSeconds")) and not seconds.lstrip("+-").isdecimal():
            raise bad_request(f'strconv.ParseInt: parsing "{seconds}": invalid syntax')
        given = of_query if body is None else body
        preconditions: Any = given.get("preconditions") or {}
        policy, orphan = given.get("propagationPolicy"), given.get("orphanDependents")
        causes = []
        if policy is not None and orphan is not None:
            problem = "orphanDependents and deletionPropagation cannot be both set"
            causes.append(invalid_value("propagationPolicy", policy, problem))
        elif policy not in (None, "Background", "Foreground", "Orphan"):
            causes.append(not_supported("propagationPolicy", policy, _POLICIES))
        dry_run = given.get("dryRun") or []
        if dry_run not in ([], ["All"]):
            shown = ", ".join(f'"{one}"' for one in dry_run) if isinstance(dry_run, list) else dry_run
            problem = f'Unsupported value: [{shown}]: supported values: "All"'
            causes.append(cause("FieldValueNotSupported", problem, "dryRun"))
        if causes:
            raise invalid_options("DeleteOptions", causes)
        if orphan is not None:
            policy = "Orphan" if orphan else "Background"
        return cls(
            uid=preconditions.get("uid"),
            resource_version=preconditions.get("resourceVersion"),
            policy=cast("Policy | None", policy),
            dry_run=bool(dry_run),
        )


BACKGROUND: Final = DeleteOptions(policy="Background")


@final
@attrs.frozen
class Deletion:
    """The result of a delete."""

    last: Stored
    """The object's last state, or its state while it waits for its finalizers."""
    is_done: bool
    """True if the object is removed."""
