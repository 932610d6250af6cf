"""The objects that kube-apiserver creates in a new cluster, such as the Service ``kubernetes``.

They are in the files in ``bootstrap``, one for each kind, which ``tests/e2e/fetch_bootstrap.py`` writes.  The storage
reads them when the kind is first used, so that a new server costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from ._release import Release
from ._storage import Stored


def bootstrap_objects(release: Release, revision: int, created: str) -> Callable[[str], list[Stored]]:
    """Return a function that returns the objects of a resource.

    Args:
        release: The release of the cluster.
        revision: The revision of the objects.
        created: The time at which the objects were created.
    """

    def objects(resource: str) -> list[Stored]:
        version, time = str(revision).encode(), created.encode()
        return [
            Stored(key, revision, body[1:].replace(b"<revision>", version).replace(b"<time>", time))
            for key, body in release.table(f"bootstrap/{resource}.txt").items()
        ]

    return objects
