"""The file that keeps the objects and the identity of a server on a socket while the server does not run.

The file is JSON.  It is replaced atomically, so after a crash it has either the old or the new content.
"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import Any, Final, final

import attrs
import trio

from .._files import read_file, write_private
from .._secret import Secret
from ..models._internal import decode, dumps
from ._identity import Identity
from ._server import APIServer
from ._state import APIServerSnapshot
from ._storage._custom import DEFINITIONS, update_kinds
from ._storage._kinds import Kinds
from ._storage._status import APIStatusError
from ._storage._storage import Stored

if sys.platform != "win32":
    import fcntl

logger: Final = logging.getLogger("trioformer.testing")

_FORMAT: Final = 1
_DELAY: Final = 1.0
"""Seconds between a change and the next write of the file, so that many changes are written at once."""
_DAMAGED: Final = (ValueError, LookupError, TypeError, AttributeError, APIStatusError)
"""The errors at a file with other content."""


class StateError(Exception):
    """The file cannot be used.  The message names the file and the reason."""


@final
@attrs.define(eq=False)
class StateFile:
    """The file of one server, which no other process uses at the same time."""

    path: Path
    identity: Identity | None = None
    """The identity of the server, or None if it has none."""
    _content: dict[str, Any] | None = None
    _changed: trio.Event = attrs.field(factory=trio.Event)
    _lock: int = -1

    @classmethod
    def open(cls, path: Path) -> StateFile:
        """Lock and read a file, which need not exist.

        Raises:
            StateError: Another server uses the file, or the file cannot be read or is not valid.
        """
        state = cls(path.resolve())  # a link to a file has the lock of the file
        state._take_lock()
        try:
            state._content = content = decode(read_file(path).reveal())
            if content["format"] != _FORMAT or not isinstance(content["revision"], int):
                raise ValueError("format")
            if (given := content["identity"]) is not None:
                secrets = {name: Secret(given[name]) for name in ("key", "token")}
                state.identity = Identity(**given | secrets | {"names": frozenset(given["names"])})
        except FileNotFoundError:
            pass
        except OSError as exc:
            raise StateError(f"{path} cannot be read: {exc.strerror}") from exc
        except _DAMAGED:  # its text may show secrets
            raise state._damaged() from None
        return state

    def _damaged(self) -> StateError:
        return StateError(f"{self.path} is not a state file of this server; move it away to start with a new cluster")

    def _take_lock(self) -> None:
        if sys.platform == "win32":
            return
        lock = f"{self.path}.lock"  # not the file itself, which is replaced
        try:
            self._lock = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StateError(f"another server uses {self.path}") from None
        except OSError as exc:
            raise StateError(f"{lock} cannot be opened: {exc.strerror}") from exc

    def restore(self, server: APIServer) -> bool:
        """Give a new server the objects in the file, and return whether there was a file.

        Raises:
            StateError: The content is not valid.
        """
        if self._content is None:
            return False
        try:
            objects = {
                resource: {key: Stored(key, one[0], one[1].encode(), *one[2:]) for key, one in found.items()}
                for resource, found in self._content["objects"].items()
            }
            kinds = Kinds.builtin(server._kinds.release)
            for definition in objects.get(DEFINITIONS, {}).values():
                update_kinds(kinds, definition.decoded())
            server.restore(APIServerSnapshot(self._content["revision"], objects, kinds))
        except _DAMAGED:
            raise self._damaged() from None
        self._content = None
        return True

    async def run(self, server: APIServer, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Write the file now, a second after each change, and when this method is cancelled.  Errors are logged."""
        server._storage.observers.append(lambda *_: self._changed.set())
        try:
            await self._save(server)
            task_status.started()
            while True:
                await self._changed.wait()
                await trio.sleep(_DELAY)
                self._changed = trio.Event()
                await self._save(server)
        finally:
            with trio.CancelScope(shield=True):
                await self._save(server)

    async def _save(self, server: APIServer) -> None:
        try:
            await trio.to_thread.run_sync(self._write, server.snapshot())
        except OSError as exc:
            logger.error("%s cannot be written: %s", self.path, exc.strerror)  # noqa: TRY400  # the reason is there

    def _write(self, snapshot: APIServerSnapshot) -> None:
        """Replace the file.  This takes long, but the snapshot does not change meanwhile.

        Raises:
            OSError: The file cannot be written.
        """
        identity = self.identity and attrs.asdict(self.identity, value_serializer=_plain)
        objects = {
            resource: {key: (one.revision, one.body.decode(), one.version) for key, one in found.items()}
            for resource, found in snapshot._objects.items()
        }
        content = {"format": _FORMAT, "revision": snapshot.revision, "identity": identity, "objects": objects}
        new = f"{self.path}.new"
        write_private(new, Secret(dumps(content)))
        os.replace(new, self.path)


def _plain(_: object, attribute: object, value: Any) -> Any:
    return value.reveal() if isinstance(value, Secret) else sorted(value) if isinstance(value, frozenset) else value
