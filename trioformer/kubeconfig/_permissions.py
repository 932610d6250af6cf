"""Warns, once for each reason, about files that others may read or change.

helm warns about the permissions of kubeconfig files in the same way; kubectl does not warn.
"""

from __future__ import annotations

import logging
import os
import shlex
import stat
from pathlib import Path

from .._util import warn_once

_log = logging.getLogger("trioformer.kubeconfig")


def warn_about_permissions(file: str, mode: int, *, has_credentials: bool) -> None:
    """Warn if users other than the file's owner may change it, or read credentials in it.

    Nobody changes a file on a read-only file system, nor its permissions, so there is no warning.
    In a volume that kubelet writes, who may read is the pod's choice: the default of a Secret is mode 0644, and a pod's
    ``fsGroup`` adds the group.

    Args:
        file: Its path, as it was given.
        mode: Its permissions; those of directories, and access control lists, are not considered.
        has_credentials: Whether a credential is in it; the files that it names are not meant.
    """
    is_volume = _is_in_volume(file)
    found = [(mode & stat.S_IWGRP, mode & stat.S_IWOTH, "change it, and so have credentials sent elsewhere")]
    if has_credentials and not is_volume:
        found.append((mode & stat.S_IRGRP, mode & stat.S_IROTH, "read the credentials in it"))
    problems = [
        f"{'every user' if by_others else 'its group'} may {what}"
        for by_group, by_others, what in found
        if by_group or by_others
    ]
    if problems and not _is_read_only(file):
        shown = " and ".join(problems)
        advice = "set defaultMode: 0400 in its volume" if is_volume else f"run chmod 600 {shlex.quote(file)}"
        warn_once(_log, f"{file}: {shown} (mode {stat.S_IMODE(mode):04o}): {advice}")


def _is_in_volume(file: str) -> bool:
    """Whether a path leads to a volume of a Secret or a ConfigMap, where kubelet links ``..data`` to ``..2026…``."""
    return any(part.startswith("..") for part in Path(os.path.realpath(file)).parts)


def _is_read_only(file: str) -> bool:
    try:
        return bool(os.statvfs(file).f_flag & os.ST_RDONLY)
    except OSError:  # it was replaced or removed meanwhile
        return False
