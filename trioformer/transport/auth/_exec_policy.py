"""Decide which plugins may run, and find their commands.

Source: client-go ``plugin/pkg/client/auth/exec/exec.go`` (``checkAllowlistLocked``) and Go's ``exec.LookPath``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final, Literal, final

import attrs

from ..._text import quoted

PATIENCE: Final = 240.0
"""The default timeout of a run, in seconds. Plugins that open a browser wait three minutes for the user."""

NOT_INSTALLED: Final = "is not installed"
_POLICIES: Final = ("AllowAll", "DenyAll", "Allowlist")


def _tuple(commands: Iterable[str] | None) -> tuple[str, ...] | None:
    if isinstance(commands, str):
        raise TypeError(f"allowlist must be a list of commands, such as [{commands!r}], not a string")
    return None if commands is None else tuple(commands)


@final
@attrs.frozen(kw_only=True)
class PluginPolicy:
    """Which credential plugins a kubeconfig may run, and their timeout.

    ``PluginPolicy(policy="Allowlist", allowlist=["aws"])`` corresponds to kubectl's ``credentialPluginPolicy`` and
    ``credentialPluginAllowlist``.
    A command is allowed if the list contains the command as it is written in the kubeconfig, the path of the command,
    or a name that resolves to the same path.
    The plugin is started with exactly the path that was checked.

    Raises:
        ValueError: The policy is unknown, ``patience`` is not positive, the allowlist is missing, empty or not
            normalized, or there is an allowlist although the policy is not ``"Allowlist"``.
        TypeError: The allowlist is a string.
    """

    policy: Literal["AllowAll", "DenyAll", "Allowlist"] = "AllowAll"
    """Whether all plugins may run, no plugins, or only those in the allowlist."""
    allowlist: tuple[str, ...] | None = attrs.field(default=None, converter=_tuple)
    """The commands that may run. Each is a path, or a name that is searched for in ``PATH``."""
    patience: float = PATIENCE
    """The timeout of a run in seconds, including the time for a login by the user. ``math.inf`` means no timeout."""

    def __attrs_post_init__(self) -> None:
        if self.policy not in _POLICIES:
            raise ValueError(f"policy must be one of {', '.join(_POLICIES)}, not {self.policy!r}")
        if not self.patience > 0:
            raise ValueError(f"patience must be more than 0 seconds, not {self.patience}")
        if self.policy != "Allowlist":
            if self.allowlist is not None:
                raise ValueError(f'an allowlist requires policy="Allowlist", not {self.policy!r}')
            return
        if not self.allowlist:
            raise ValueError('policy="Allowlist" requires an allowlist; to allow no plugin, use "DenyAll"')
        for command in self.allowlist:
            if not command or _cleaned(command) != command:
                raise ValueError(f"a command of the allowlist must be a name or a normalized path, not {command!r}")


class PluginError(Exception):
    """A plugin did not provide a credential. The message is a predicate, to which the name of the plugin is prepended.

    The frames of the traceback contain credentials, so this error never leaves the package.

    Attributes:
        permanent: Whether a retry would fail for the same reason.
    """

    def __init__(self, text: str, *, permanent: bool = False) -> None:
        super().__init__(text)
        self.permanent = permanent


def find_plugin(command: str, policy: PluginPolicy) -> str:
    """Return the path of the program to run.

    Raises:
        PluginError: The program cannot be run, or the policy does not allow it.
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
    """Find an executable file. A path is used unchanged, and a name is searched for in the directories of ``PATH``.

    As in Go, relative directories in ``PATH`` are ignored, so that a program in the working directory is not run by
    mistake.
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
    """Normalize a path. A name stays a name, and ``./x`` stays a path."""
    if not os.path.dirname(command):
        return command
    return os.path.normpath(os.path.abspath(command) if command.startswith(".") else command)
