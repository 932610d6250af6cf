"""The objects that kube-apiserver creates in a new cluster, such as the Service ``kubernetes``.

They are in the files in ``bootstrap``, one for each kind, which ``tests/e2e/fetch_bootstrap.py`` writes.  The storage
reads them when the kind is first used, so that a new server costs nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

from ._storage import Stored


def bootstrap_objects(revision: int, created: str) -> Callable[[str], list[Stored]]:
    """Return a function that returns the objects of a resource.

    Args:
        revision: The revision of the objects.
        created: The time at which the objects were created.
    """

    def objects(resource: str) -> list[Stored]:
        version, time = str(revision).encode(), created.encode()
        return [
            Stored(key, revision, body.replace(b"<revision>", version).replace(b"<time>", time))
            for key, body in _lines(resource)
        ]

    return objects


@functools.cache
def _lines(resource: str) -> tuple[tuple[str, bytes], ...]:
    """Return the key and the body of each object."""
    file = Path(__file__).with_name("bootstrap") / f"{resource}.txt"
    if not file.is_file():
        return ()
    pairs = (line.split(b" ", 1) for line in file.read_bytes().splitlines())
    return tuple((key.decode(), body[1:]) for key, body in pairs)
