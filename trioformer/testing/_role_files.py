"""Files with the roles of operators, which ``pytest --trioformer-rbac`` compares and writes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from difflib import unified_diff
from pathlib import Path
from typing import Any, Final

import yaml

from ._recording import CLUSTER_ROLE, ROLE, Permission

_API: Final = "rbac.authorization.k8s.io/v1"
_VERBS: Final = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
_RULES: Final = re.compile(r"^rules:.*?(?=^[^\s#-]|\Z)", re.MULTILINE | re.DOTALL)
"""The rules in the text of a role, up to its next member."""
_BETWEEN: Final = re.compile(r"(?<=\n)---[^\n]*\n")


class RoleFileError(Exception):
    """A file does not contain valid roles.  The text is one line for the user."""


def read_roles(path: Path) -> set[Permission]:
    """Return the permissions in a file, which may have documents of other kinds.

    Permissions for ``finalizers`` are left out: an admission plugin asks for them, and no request shows it.

    Raises:
        RoleFileError: The file is missing or cannot be read, or it has several roles of a kind, or is not YAML.
    """
    found: set[Permission] = set()
    seen: set[str] = set()
    for document in _documents(path):
        kind = document["kind"]
        if kind in seen:
            raise RoleFileError(f"{path} has several documents of the kind {kind}: put each operator in its own file")
        seen.add(kind)
        found.update(_permissions_of(kind, document.get("rules") or ()))
    return {one for one in found if not one.resource.endswith("/finalizers")}


def _documents(path: Path) -> Iterator[dict[str, Any]]:
    try:
        text = path.read_text()
    except FileNotFoundError:
        raise RoleFileError(f"{path} does not exist: add --trioformer-rbac-write to write it") from None
    except OSError as exc:
        raise RoleFileError(f"{path} cannot be read: {exc.strerror}") from exc
    try:
        documents = list(yaml.safe_load_all(text))
    except yaml.YAMLError as exc:
        raise RoleFileError(f"{path} is not YAML: {' '.join(str(exc).split())}") from exc
    yield from (one for one in documents if isinstance(one, dict) and one.get("kind") in (CLUSTER_ROLE, ROLE))


def _permissions_of(role: str, rules: Iterable[dict[str, Any]]) -> Iterator[Permission]:
    for rule in rules:
        for verb in rule.get("verbs") or ():
            yield from (Permission(role, "", "", verb, url) for url in rule.get("nonResourceURLs") or ())
            for group in rule.get("apiGroups") or ():
                for resource in rule.get("resources") or ():
                    for name in rule.get("resourceNames") or ("",):
                        yield Permission(role, group, resource, verb, name)


def rules_of(permissions: Iterable[Permission]) -> list[dict[str, list[str]]]:
    """Return the rules for permissions, with as few rules as resources with different verbs need."""
    verbs: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for one in sorted(permissions, key=_place):
        verbs[one.group, one.resource, one.name].append(one.verb)
    names: dict[tuple[str, str, bool, tuple[str, ...]], list[str]] = defaultdict(list)
    for (group, resource, name), every in verbs.items():
        names[group, resource, bool(name), tuple(every)].append(name)
    rules: dict[tuple[str, bool, tuple[str, ...], tuple[str, ...]], list[str]] = defaultdict(list)
    for (group, resource, has_names, used), found in names.items():
        rules[group, bool(resource) and has_names, tuple(found), used].append(resource)
    return [_rule(group, resources, each, used) for (group, _, each, used), resources in rules.items()]


def _rule(group: str, resources: list[str], names: tuple[str, ...], verbs: tuple[str, ...]) -> dict[str, list[str]]:
    if resources == [""]:
        return {"nonResourceURLs": list(names), "verbs": list(verbs)}
    named = {} if names == ("",) else {"resourceNames": list(names)}
    return {"apiGroups": [group], "resources": resources, **named, "verbs": list(verbs)}


def _place(permission: Permission) -> tuple[object, ...]:
    verb = permission.verb
    return permission.group, permission.resource, permission.name, _VERBS.index(verb) if verb in _VERBS else -1, verb


def difference(path: Path, committed: set[Permission], used: set[Permission]) -> list[str]:
    """Return the lines of a diff from the roles in a file to those that tests use, or an empty list."""
    if committed == used:
        return []
    before, after = (_text_of(each).splitlines() for each in (committed, used))
    return list(unified_diff(before, after, str(path), "used by the tests", lineterm="", n=2))


def _text_of(permissions: set[Permission]) -> str:
    return "---\n".join(
        f"kind: {kind}\n{_rules_text(one for one in permissions if one.role == kind)}"
        for kind in (CLUSTER_ROLE, ROLE)
        if any(one.role == kind for one in permissions)
    )


def _rules_text(permissions: Iterable[Permission]) -> str:
    rules = rules_of(permissions)
    lines = [yaml.safe_dump([rule], default_flow_style=None, sort_keys=False, width=88) for rule in rules]
    return (
        "rules:\n" + "".join(f"  {line}\n" for text in lines for line in text.splitlines()) if rules else "rules: []\n"
    )


def write_roles(path: Path, used: set[Permission]) -> None:
    """Write the rules of the roles in a file, and keep the rest of the file.

    Raises:
        RoleFileError: The file cannot be written.
    """
    parts = _BETWEEN.split(path.read_text()) if path.exists() else []
    written: set[str] = set()
    for number, part in enumerate(parts):
        document = yaml.safe_load(part)
        kind = document.get("kind") if isinstance(document, dict) else None
        if kind in (CLUSTER_ROLE, ROLE):
            kept = [one for one in _permissions_of(kind, document.get("rules") or ()) if "/finalizers" in one.resource]
            text = _rules_text([*(one for one in used if one.role == kind), *kept])
            parts[number] = _RULES.sub(lambda _, text=text: text, part)
            written.add(kind)
    for kind in (CLUSTER_ROLE, ROLE):
        mine = [one for one in used if one.role == kind]
        if mine and kind not in written:
            name = path.stem.replace("_", "-")
            head = f"apiVersion: {_API}\nkind: {kind}\nmetadata:\n  name: {name}\n"
            parts.append(head + _rules_text(mine))
    try:
        path.write_text("---\n".join(parts))
    except OSError as exc:
        raise RoleFileError(f"{path} cannot be written: {exc.strerror}") from exc
