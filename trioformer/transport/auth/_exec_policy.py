"""Which plugins may run, and where a command is found.

Source: client-go ``plugin/pkg/client/auth/exec/exec.go`` (``checkAllowlistLocked``) and Go's ``exec.LookPath``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final, Literal, final

import attrs

from ..._text import quoted

PATIENCE: Final = 240.0
"""Seconds for a run: plugins that open a browser wait three minutes for the user."""

NOT_INSTALLED: Final = "is not installed"
_POLICIES: Final = ("AllowAll", "DenyAll", "Allowlist")


def _tuple(commands: Iterable[str] | None) -> tuple[str, ...] | None:
    if isinstance(commands, str):
        raise TypeError(f"allowlist must be a list of commands, such as [{commands!r}], not a string")
    return None if commands is None else tuple(commands)


@final
@attrs.frozen(kw_only=True)
class PluginPolicy:
    """Which credential plugins a kubeconfig may run, and for how long; an argument of `open_client`.

    ``PluginPolicy(policy="Allowlist", allowlist=["aws"])`` is what ``credentialPluginPolicy`` and
    ``credentialPluginAllowlist`` are for kubectl.
    A command is allowed if it is in the list as it is in the kubeconfig, or if its path is, or if an entry without a
    directory is found at the same path.
    What was checked is what is run.

    Raises:
        ValueError: The policy is unknown; the allowlist is missing, empty, not normalized, or given without
            ``"Allowlist"``; or ``patience`` is not positive.
        TypeError: The allowlist is a string.
    """

    policy: Literal["AllowAll", "DenyAll", "Allowlist"] = "AllowAll"
    """Whether all, none, or those of the list may run."""
    allowlist: tuple[str, ...] | None = attrs.field(default=None, converter=_tuple)
    """The commands that may run: names, which are found in ``PATH``, or paths."""
    patience: float = PATIENCE
    """Seconds that a run may take, in which the user may have to log in; ``math.inf`` for any number."""

    def __attrs_post_init__(self) -> None:
        if self.policy not in _POLICIES:
            raise ValueError(f"policy must be one of {', '.join(_POLICIES)}, not {self.policy!r}")
        if not self.patience > 0:
            raise ValueError(f"patience must be more than 0 seconds, not {self.patience}")
        if self.policy != "Allowlist":
            if self.allowlist is not None:
                raise ValueError(f'an allowlist needs policy="Allowlist", not {self.policy!r}')
            return
        if not self.allowlist:
            raise ValueError('policy="Allowlist" needs an allowlist; to allow no plugin, use "DenyAll"')
        for command in self.allowlist:
            if not command or _cleaned(command) != command:
                raise ValueError(f"a command of the allowlist must be a name or a normalized path, not {command!r}")


class PluginError(Exception):
    """Why there is no credential, as a predicate that follows the plugin's name.

    The frames of what raises it have credentials as variables, so nothing outside of this package sees it.

    Attributes:
        permanent: Whether the next run has the same problem.
    """

    def __init__(self, text: str, *, permanent: bool = False) -> None:
        super().__init__(text)
        self.permanent = permanent


def find_plugin(command: str, policy: PluginPolicy) -> str:
    """Return the path of the program to run.

    Raises:
        PluginError: It cannot or must not be run.
    """
    if policy.policy == "DenyAll":
        raise PluginError('is not allowed: plugin_policy is "DenyAll"', permanent=True)
    command = _cleaned(command)
    path = look_path(command)
    if policy.allowlist is not None and command not in policy.allowlist:
        entries = (entry for entry in policy.allowlist if os.path.basename(entry) == os.path.basename(command))
        if path is None or all(look_path(entry) != path for entry in entries):
            raise PluginError("is not in the allowlist of plugin_policy; add its command", permanent=True)
    if path is None:
        what = "the file does not exist or is not executable"
        if not os.path.dirname(command):
            what = f"no directory of PATH has an executable file {quoted(command)}"
        raise PluginError(f"{NOT_INSTALLED}: {what}", permanent=True)
    return path


def look_path(command: str) -> str | None:
    """Find an executable file: a path as it is, a name in the directories of ``PATH``.

    As in Go, directories that are not absolute are ignored: what is in the working directory is not run by mistake.
    """
    directories = [""]
    if not os.path.dirname(command):
        directories = [each for each in os.environ.get("PATH", "").split(os.pathsep) if os.path.isabs(each)]
    endings = [""]
    if os.name == "nt":
        endings += os.environ.get("PATHEXT", ".COM;.EXE;.BAT;.CMD").split(os.pathsep)
    paths = (os.path.join(directory, command + ending) for directory in directories for ending in endings)
    return next((path for path in paths if _is_executable(path)), None)


def _is_executable(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _cleaned(command: str) -> str:
    """Normalize a path; a name stays a name, and ``./x`` a path."""
    if not os.path.dirname(command):
        return command
    return os.path.normpath(os.path.abspath(command) if command.startswith(".") else command)
