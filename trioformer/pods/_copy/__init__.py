"""Copy files to and from containers as a tar archive, with a tar process in the container.

::

    copy_from_pod   tar -cf - ── stdout ──▶ channel ──▶ _unpack.py ──▶ _tree.py ──▶ local files
    copy_to_pod     local files ──▶ _pack.py ──▶ channel ── stdin ──▶ tar -xpmf -

Each copy writes or reads its archive in a thread, which waits for the network with ``trio.from_thread``.  So the event
loop is not blocked, at most one batch is in memory, and cancellation ends the thread at the next batch.

- ``_from_pod.py``: the function :func:`copy_from_pod`
- ``_to_pod.py``: the function :func:`copy_to_pod`
- ``_unpack.py``: reads an untrusted archive
- ``_tree.py``: writes files below a directory, and never outside the directory
- ``_pack.py``: writes local files to an archive
- ``_process.py``: handles the standard error and exit code of tar
- ``_results.py``: the result of a copy
"""

from __future__ import annotations

import os

if not hasattr(os, "O_DIRECTORY"):  # required to stay inside of the target directory
    raise ImportError("copies from and to containers are not supported on Windows")

from ._from_pod import copy_from_pod as copy_from_pod
from ._to_pod import copy_to_pod as copy_to_pod

__all__ = ["copy_from_pod", "copy_to_pod"]
