"""Warns, once for each reason, about configurations that are used but open to others.

helm warns about the permissions of kubeconfig files in the same way; kubectl does not warn.
"""

from __future__ import annotations

import functools
import logging
import shlex
import stat

_log = logging.getLogger("trioformer.kubeconfig")


@functools.lru_cache(maxsize=1024)
def warn_once(text: str) -> None:
    """Log a warning, unless it was logged before; the texts that are remembered are limited."""
    _log.warning("%s", text)


def warn_about_permissions(file: str, mode: int, *, has_credentials: bool) -> None:
    """Warn if users other than the file's owner may change it, or read credentials in it.

    Args:
        file: Its path, as it was given.
        mode: Its permissions; those of directories, and access control lists, are not considered.
        has_credentials: Whether a credential is in it; the files that it names are not meant.
    """
    found = [(mode & stat.S_IWGRP, mode & stat.S_IWOTH, "change it, and so have credentials sent elsewhere")]
    if has_credentials:
        found.append((mode & stat.S_IRGRP, mode & stat.S_IROTH, "read the credentials in it"))
    problems = [
        f"{'every user' if by_others else 'its group'} may {what}"
        for by_group, by_others, what in found
        if by_group or by_others
    ]
    if problems:
        shown = " and ".join(problems)
        warn_once(f"{file}: {shown} (mode {stat.S_IMODE(mode):04o}): run chmod 600 {shlex.quote(file)}")
