"""The text of a module with the classes of CustomResourceDefinitions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, final

import attrs

from ._classes import Module, write_version
from ._source import imported

__all__ = ["Generated", "generate"]

_NAMES: Final = (
    "Annotated Call ClassVar Condition EMPTY_MAP FrozenMap JSON KubernetesObject Literal Mapping Model PrinterColumn"
    " Quantity Rule ScaleSubresource Schema Time custom_resource resource_part"
)
"""What a module may import, so that no class has such a name."""
_STANDARD: Final = ("collections.abc", "typing")


@final
@attrs.frozen
class Generated:
    """The source of a module."""

    text: str
    """The source, in the format of ruff and black."""
    kinds: tuple[str, ...]
    """The names of the classes of kinds."""
    notes: tuple[str, ...]
    """What the definitions say and the classes do not, one line each."""


def generate(definitions: Iterable[Mapping[str, Any]], versions: Collection[str] = ()) -> Generated:
    """Make the source of a module with a class for each kind, each version of it, and each object in them.

    A part of the class names is the path of the object, without ``spec``: ``WebsiteTls`` for ``spec.tls`` of a Website.
    The class of a version that is not stored has the version in its name: ``WebsiteV1beta1``.

    Args:
        definitions: CustomResourceDefinitions of ``apiextensions.k8s.io/v1``, as plain values.
        versions: The versions to make classes for; empty for all.

    Raises:
        ValueError: A definition has none of the versions, or is not one.
    """
    module = Module(taken={*_NAMES.split()})
    kinds: list[str] = []
    described: list[str] = []
    for definition in definitions:
        spec, name = _spec_of(definition)
        wanted = [one for one in spec["versions"] if not versions or one["name"] in versions]
        if not wanted:
            served = ", ".join(str(one["name"]) for one in spec["versions"])
            raise ValueError(f"{name} has no version {' or '.join(sorted(versions))}; it has {served}")
        # The stored version has the name of the kind.
        in_order = sorted(wanted, key=lambda one: one.get("storage") is not True)
        kinds += [write_version(module, spec["names"], one, spec, is_only=len(wanted) == 1) for one in in_order]
        described.append(f"{spec['names']['kind']} ({spec['group']})")
        if (spec.get("conversion") or {}).get("strategy", "None") != "None":
            module.notes.append(f"{name}: its conversion webhook")
    return Generated(_text(module, described), tuple(kinds), tuple(module.notes))


def _text(module: Module, described: list[str]) -> str:
    head = ['"""Custom resources: ' + ", ".join(described) + '."""', "", "from __future__ import annotations", ""]
    names = module.uses.names
    for standard in (True, False):
        group = [imported(name, names[name]) for name in sorted(names) if (name in _STANDARD) is standard]
        head += [*group, ""] if group else []
    return "\n".join(head) + "\n\n" + "\n\n\n".join(module.classes) + "\n"


def _spec_of(definition: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """Return the spec of a definition and its name, if it has all that is read of it."""
    spec = definition.get("spec")
    metadata = definition.get("metadata")
    name = str(metadata.get("name", "")) if isinstance(metadata, Mapping) else ""
    shown = name or "the CustomResourceDefinition"
    names = spec.get("names") if isinstance(spec, Mapping) else None
    for where, holder, keys in (("spec", spec, ("group", "versions")), ("spec.names", names, ("kind", "plural"))):
        for key in keys:
            if not isinstance(holder, Mapping) or not holder.get(key):
                raise ValueError(f"{shown} has no {where}.{key}")
    assert isinstance(spec, Mapping)  # for type checkers
    versions = spec["versions"]
    if not isinstance(versions, list) or not all(isinstance(one, Mapping) and one.get("name") for one in versions):
        raise ValueError(f"{shown} has versions without a name")
    return spec, shown
