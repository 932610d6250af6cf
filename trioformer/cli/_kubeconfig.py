"""The kubeconfig files as they are, for the commands that show them; what connects is loaded elsewhere."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from ..kubeconfig import load_config
from ._failures import CommandError
from ._session import Session

__all__ = ["kubeconfig_files", "read_kubeconfig"]

_SECTIONS: Final = ("clusters", "contexts", "users")


def kubeconfig_files(flags: argparse.Namespace, environ: Mapping[str, str]) -> list[str]:
    """Return the files that are read, in their order; some may not exist."""
    if flags.kubeconfig:
        return [flags.kubeconfig]
    if given := environ.get("KUBECONFIG"):
        return list(dict.fromkeys(file for file in given.split(os.pathsep) if file))
    home = environ.get("HOME")
    return [os.path.join(home, ".kube", "config")] if home else []


def read_kubeconfig(session: Session) -> dict[str, Any]:
    """Merge the files; the first one with an entry wins.

    Raises:
        CommandError: A file cannot be read, or is not a kubeconfig.
    """
    merged: dict[str, Any] = {"apiVersion": "v1", "kind": "Config", "preferences": {}, "current-context": ""}
    entries: dict[str, dict[str, Any]] = {section: {} for section in _SECTIONS}
    for file in kubeconfig_files(session.flags, session.environ):
        document = _read(file, must_exist=bool(session.flags.kubeconfig))
        merged["current-context"] = merged["current-context"] or document.get("current-context") or ""
        for section in _SECTIONS:
            for entry in document.get(section) or []:
                if isinstance(entry, dict) and entry.get("name"):
                    entries[section].setdefault(str(entry["name"]), entry)
    for section in _SECTIONS:
        found = [entries[section][name] for name in sorted(entries[section])]
        merged[section] = found or None
    return merged


def _read(file: str, *, must_exist: bool) -> dict[str, Any]:
    try:
        text = Path(file).read_text(encoding="utf-8")
    except FileNotFoundError as exc:
        if must_exist:
            raise CommandError(f"stat {file}: no such file or directory") from exc
        return {}
    except (OSError, UnicodeDecodeError) as exc:
        raise CommandError(f"{file}: cannot be read: {exc}") from exc
    try:
        document = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError):
        # The error of the parser would quote the line, which may hold a credential; that of the loader does not.
        load_config(kubeconfig=file)
        raise CommandError(f"{file}: is not a kubeconfig") from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise CommandError(f"{file}: is not a kubeconfig")
    return document
