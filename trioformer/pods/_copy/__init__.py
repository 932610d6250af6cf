"""Files that are copied to and from containers, as a tar archive through a process that is executed there.

::

    copy_from_pod   tar -cf - ── stdout ──▶ channel ──▶ _unpack.py ──▶ _tree.py ──▶ local files
    copy_to_pod     local files ──▶ _pack.py ──▶ channel ── stdin ──▶ tar -xpmf -

The archive is made and read in one thread for each copy, which waits for the network through trio: nothing blocks the
event loop, no more than a batch is in memory, and cancelling ends the thread at the next batch.

- ``_from_pod.py``: :func:`copy_from_pod`
- ``_to_pod.py``: :func:`copy_to_pod`
- ``_unpack.py``: reads an archive that may be hostile
- ``_tree.py``: writes files below a directory, and never outside of it
- ``_pack.py``: makes an archive of local files
- ``_process.py``: what tar reports, and its end
- ``_results.py``: the result of a copy
"""

from __future__ import annotations

import os

if not hasattr(os, "O_DIRECTORY"):  # without it a link could lead out of a directory that is being written
    raise ImportError("copies from and to containers are not supported on Windows")

from ._from_pod import copy_from_pod as copy_from_pod
from ._to_pod import copy_to_pod as copy_to_pod

__all__ = ["copy_from_pod", "copy_to_pod"]
