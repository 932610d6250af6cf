"""The rules for names, labels, annotations, owner references and finalizers.

Each kind has its own rule for names.  For most kinds, a name is a DNS subdomain, for some it is a DNS label, and for
RBAC kinds any path segment is allowed.

Source: apimachinery ``pkg/api/validate/content`` and ``pkg/api/validation``, and the validation of each group.
"""

from __future__ import annotations

import functools
import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from ...models._internal import decode, dumps
from ._field_errors import Verbatim, invalid_value, required, too_long
from ._kinds import ServedKind
from ._release import INSTALLED
from ._storage import JSONObject

_MAX_ANNOTATIONS: Final = 256 * 1024
"""The maximum total size of the keys and values of an object's annotations, in bytes."""

STANDARD_FINALIZERS: Final = frozenset({"orphan", "foregroundDeletion", "kubernetes"})

NameRule = Callable[[str], Iterator[str]]
"""A function that yields the reasons why a name is not valid."""


@functools.cache
def _format(name: str) -> tuple[Callable[[str], object], int, str]:
    """Return the pattern, the longest length and the problem of a format in ``formats.txt``."""
    found = decode(INSTALLED.table("formats.txt")[name])
    problem = found["problem"].replace("<pattern>", found["pattern"])
    return re.compile(found["pattern"]).fullmatch, found["longest"], problem


def format_problems(name: str, text: str, *, unit: str = "characters") -> Iterator[str]:
    """Yield the reasons why a string does not have a format.  The length in the message has the unit."""
    matches, longest, problem = _format(name)
    if len(text) > longest:
        yield f"must be no more than {longest} {unit}"
    if not matches(text):
        yield problem


subdomain_problems: Final[NameRule] = functools.partial(format_problems, "subdomain")
"""The rule for DNS subdomains (RFC 1123)."""
dns_1035_problems: Final[NameRule] = functools.partial(format_problems, "dns1035")
"""The rule for DNS labels (RFC 1035)."""


def label_problems(text: str) -> Iterator[str]:
    """Yield the reasons why a string is not a DNS label (RFC 1123)."""
    for problem in format_problems("label", text):
        has_dots = problem == _format("label")[2] and _format("subdomain")[0](text)
        yield "must not contain dots" if has_dots else problem


def segment_problems(name: str) -> Iterator[str]:
    """Yield the reasons why a string is not a path segment of a URL."""
    if name in (".", ".."):
        yield f"may not be '{name}'"
        return
    yield from (f"may not contain '{character}'" for character in "/%" if character in name)


def address_problems(text: str, *, is_name: bool = True) -> Iterator[str]:
    """Yield the reasons why a string is not an IP address, which must be in canonical form in a name."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        yield "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
    else:
        if is_name and str(address) != text:
            yield f'must be in canonical form ("{address}")'


_NAME_RULES: Mapping[str, NameRule] = {
    "certificatesigningrequests.certificates.k8s.io": segment_problems,
    "ipaddresses.networking.k8s.io": address_problems,
    "namespaces": label_problems,
    "services": label_problems,
    "statefulsets.apps": label_problems,
}
"""The rules for kinds whose names are not DNS subdomains, except for the kinds of RBAC."""


def _name_rule(served: ServedKind) -> NameRule:
    if served.info.group == "rbac.authorization.k8s.io":  # names such as system:node
        return segment_problems
    return _NAME_RULES.get(served.resource, subdomain_problems)


def name_causes(served: ServedKind, name: str, generate_name: str = "") -> list[JSONObject]:
    """Validate a new object's name and ``generateName``, and return the causes of all errors."""
    rule = _name_rule(served)
    causes = []
    if generate_name:
        # The generated part follows a dash at the end.
        prefix = f"{generate_name[:-2]}a" if len(generate_name) > 1 and generate_name.endswith("-") else generate_name
        causes += [invalid_value("metadata.generateName", generate_name, problem) for problem in rule(prefix)]
    if not name:
        return [*causes, required("metadata.name", "name or generateName is required")]
    return [*causes, *(invalid_value("metadata.name", name, problem) for problem in rule(name))]


# --- labels, annotations, owners and finalizers -----------------------------------------------------------------------


@functools.lru_cache(4_096)
def key_problems(key: str) -> tuple[str, ...]:
    """Return the reasons why a string is not a valid key or finalizer such as ``example.com/name`` or ``name``."""
    return tuple(_key_problems(key))


def _key_problems(key: str) -> Iterator[str]:
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        prefix_problem = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        yield f"a valid label key {_format('key')[2]} {prefix_problem}"
        return
    if slash and not prefix:
        yield "prefix part must be non-empty"
    elif prefix:
        yield from (f"prefix part {problem}" for problem in format_problems("subdomain", prefix, unit="bytes"))
    if not name:
        yield "name part must be non-empty"
    yield from (f"name part {problem}" for problem in format_problems("key", name, unit="bytes"))


@functools.lru_cache(4_096)
def value_problems(value: str) -> tuple[str, ...]:
    """Return the reasons why a string is not a valid label value."""
    return tuple(format_problems("value", value, unit="bytes"))


def metadata_causes(metadata: Mapping[str, Any], path: str = "metadata") -> list[JSONObject]:
    """Validate labels, annotations, owner references and finalizers, and return the causes of all errors."""
    causes: list[JSONObject] = []
    for key, value in (metadata.get("labels") or {}).items():
        causes += [invalid_value(f"{path}.labels", key, problem) for problem in key_problems(key)]
        causes += [invalid_value(f"{path}.labels", value, problem) for problem in value_problems(value)]
    annotations = metadata.get("annotations") or {}
    for key in annotations:
        causes += [invalid_value(f"{path}.annotations", key, problem) for problem in key_problems(key.lower())]
    if sum(len(text.encode()) for pair in annotations.items() for text in pair) > _MAX_ANNOTATIONS:
        causes.append(too_long(f"{path}.annotations", _MAX_ANNOTATIONS))
    if owners := metadata.get("ownerReferences"):
        causes += _owner_causes(owners, f"{path}.ownerReferences")
    finalizers = metadata.get("finalizers") or ()
    for one in finalizers:
        causes += [invalid_value(f"{path}.finalizers", one, problem) for problem in key_problems(one)]
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        problem = "finalizer orphan and foregroundDeletion cannot be both set"
        causes.append(invalid_value(f"{path}.finalizers", finalizers, problem))
    return causes


def _owner_causes(owners: list[JSONObject], path: str) -> Iterator[JSONObject]:
    controller = ""
    for owner in owners:
        names = {key: owner.get(key) or "" for key in ("apiVersion", "kind", "name", "uid")}
        for key, text in names.items():
            if not text:
                problem = "version must not be empty" if key == "apiVersion" else "must not be empty"
                yield invalid_value(f"{path}.{key}", text, problem)
        if (names["apiVersion"], names["kind"]) == ("v1", "Event"):
            yield invalid_value(
                path, Verbatim(dumps(owner).decode()), "/v1, Kind=Event is disallowed from being an owner"
            )
        if owner.get("controller"):
            this = f"{names['kind']}/{names['name']}"
            if controller:
                problem = "Only one reference can have Controller set to true."
                found = f'Found "true" in references for {controller} and {this}'
                yield invalid_value(path, Verbatim(dumps(owners).decode()), f"{problem} {found}")
            else:
                controller = this


def unqualified_finalizers(finalizers: list[str]) -> list[int]:
    """Return the indexes of the finalizers without a domain. Built-in kinds do not allow such finalizers."""
    return [i for i, one in enumerate(finalizers) if "/" not in one and one not in STANDARD_FINALIZERS]


def finalizer_warnings(finalizers: list[str], old: list[str]) -> list[str]:
    """Return warnings for new finalizers without a domain in a custom object."""
    warnings = []
    for one in sorted(set(finalizers) - set(old)):
        if "/" not in one and one not in STANDARD_FINALIZERS:
            path = " including a path (/)" if "." in one else ""
            advice = f"prefer a domain-qualified finalizer name{path} to avoid accidental conflicts"
            warnings.append(f'metadata.finalizers: "{one}": {advice} with other finalizer writers')
    return warnings
