"""Generate the source of a module with classes for CustomResourceDefinitions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, final

import attrs

from ._classes import Module, write_version
from ._source import imported

__all__ = ["Generated", "generate"]

_NAMES: Final = (
    "Annotated Call ClassVar Condition FrozenMap JSON KubernetesObject Literal Mapping Model PrinterColumn"
    " Quantity Rule ScaleSubresource Schema Time custom_resource resource_part"
)
"""The names that a generated module may import, and that its classes must not have."""
_STANDARD: Final = ("collections.abc", "typing")


@final
@attrs.frozen
class Generated:
    """A generated module."""

    text: str
    """The source, in the format of ruff and black."""
    kinds: tuple[str, ...]
    """The names of the classes that are kinds."""
    notes: tuple[str, ...]
    """Parts of the definitions that the classes do not express, one line each."""


def generate(definitions: Iterable[Mapping[str, Any]], versions: Collection[str] = ()) -> Generated:
    """Generate a module with a class for each version of each kind, and for each nested object.

    The name of a nested class is the kind and the path of the object without ``spec``, such as ``WebsiteTls`` for
    ``spec.tls`` in a Website.
    If a version is not the storage version, the name of its class ends with the version, such as ``WebsiteV1beta1``.

    Args:
        definitions: CustomResourceDefinitions of ``apiextensions.k8s.io/v1``, as plain values.
        versions: The versions to generate classes for. The default, an empty collection, selects all versions.

    Raises:
        ValueError: An item is not a CustomResourceDefinition, or has none of the requested versions.
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
    """Return the spec and the name of a definition, after a check that all required parts exist."""
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
