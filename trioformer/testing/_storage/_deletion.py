"""What goes into a delete and what comes out of it."""

from __future__ import annotations

from typing import final

import attrs

from ._kinds import Served
from ._status import precondition_failed
from ._storage import Stored


@final
@attrs.frozen
class Preconditions:
    """What must hold for a delete."""

    uid: str | None = None
    """The object's uid."""
    resource_version: str | None = None
    """The object's resourceVersion."""

    def check(self, served: Served, current: Stored, uid: str) -> None:
        """Make sure that they hold.

        Raises:
            RefusedError: 409: one does not.
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
    """What a delete did."""

    last: Stored
    """The object as it was deleted, or as it waits for its finalizers."""
    is_done: bool
    """Whether the object is gone."""
