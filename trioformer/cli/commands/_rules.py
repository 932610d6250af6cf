"""The rules of RBAC as kubectl shows them (component-helpers ``auth/rbac/validation``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["compact_rules"]


def compact_rules(rules: Iterable[Mapping[str, Any]]) -> list[tuple[tuple[str, str, str], list[str]]]:
    """Put the verbs of each resource together, and sort; those of URLs stay apart, as for kubectl.

    Returns:
        Resource, URL and the names of objects, and the verbs.
    """
    verbs: dict[tuple[str, str, str], list[str]] = {}
    of_urls: list[tuple[tuple[str, str, str], list[str]]] = []
    for rule in rules:
        given = [str(verb) for verb in rule.get("verbs") or []]
        for group in rule.get("apiGroups") or []:
            for resource in rule.get("resources") or []:
                plural, slash, subresource = str(resource).partition("/")
                text = f"{plural}.{group}" if group else plural
                for name in rule.get("resourceNames") or [""]:
                    known = verbs.setdefault((f"{text}{slash}{subresource}", "", str(name)), [])
                    known += [verb for verb in given if verb not in known]
        of_urls += [(("", str(url), ""), [verb]) for url in rule.get("nonResourceURLs") or [] for verb in given]
    return sorted([*verbs.items(), *of_urls], key=lambda rule: _order(*rule))


def _order(key: tuple[str, str, str], verbs: list[str]) -> tuple[str, ...]:
    """Return what rules are sorted by: the text of a PolicyRule in Go."""
    resource, urls, names = key
    plural, _, rest = resource.partition(".")
    group, slash, subresource = rest.partition("/")
    return tuple(f"{text}]" for text in (" ".join(verbs), group, f"{plural}{slash}{subresource}", names, urls))
