"""The preconditions and the result of a delete."""

from __future__ import annotations

from typing import final

import attrs

from ._kinds import ServedKind
from ._status import precondition_failed
from ._storage import Stored


@final
@attrs.frozen
class Preconditions:
    """The preconditions of a delete; a field that is None is not checked."""

    uid: str | None = None
    """The object's uid."""
    resource_version: str | None = None
    """The object's resourceVersion."""

    def check(self, served: ServedKind, current: Stored, uid: str) -> None:
        """Check the preconditions against an object.

        Raises:
            APIStatusError: 409 when one does not hold.
        """
        if self.uid is not None and self.uid != uid:
            problem = f"the UID in the precondition ({self.uid}) does not match the UID in record ({uid}). "
            problem += "The object might have been deleted and then recreated"
            raise precondition_failed(served.info, current.name, problem)
        if self.resource_version is not None and self.resource_version != str(current.revision):
            problem = f"the ResourceVersion in the precondition ({self.resource_version}) does not match the "
            problem += f"ResourceVersion in record ({current.revision}). The object might have been modified"
            raise precondition_failed(served.info, current.name, problem)


@final
@attrs.frozen
class Deletion:
    """The result of a delete."""

    last: Stored
    """The object's last state, or its state while it waits for its finalizers."""
    is_done: bool
    """Whether the object is removed."""
