"""Credential plugins: programs that print the user's credentials (a user's ``exec`` in a kubeconfig).

- ``_source.py``: the source of credentials that runs a plugin when it has to
- ``_process.py``: its process, which is killed with its children
- ``_exec_credential.py``: what a plugin is given, and what it prints
- ``_stderr.py``: what it writes to its standard error, with secrets hidden
- ``_policy.py``: :class:`PluginPolicy`, and where a command is found

All but the policy is imported when a client has a plugin.

Source: client-go ``plugin/pkg/client/auth/exec``.
"""

from __future__ import annotations

from ._policy import PluginPolicy as PluginPolicy

__all__ = ["PluginPolicy"]
