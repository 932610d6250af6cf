"""Write objects as YAML that kubectl and :func:`load_manifests` read back unchanged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import yaml

from .._yaml import resolve_scalar
from ..models import KubernetesObject, to_dict
from ._apply_set import MEMBER_LABEL
from ._manifest import Manifest

_OF_THE_SERVER: Final = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid")
_BASE: type[Any] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def dump_manifests(
    objects: Iterable[KubernetesObject | Manifest], *, drop_server_fields: bool = False, drop_status: bool = False
) -> str:
    """Return objects as YAML with one document for each object, or an empty string if there are no objects.

    Each document begins with the line ``---``, so that several results can be concatenated.

    For example, export deployments in order to apply them to another cluster::

        deployments = await client.api(Deployment, namespace="web").list()
        text = dump_manifests(deployments, drop_server_fields=True, drop_status=True)

    Strings that any YAML version would read as a number, a boolean or null are quoted.

    Args:
        objects: The objects or manifests to write, in this order.
        drop_server_fields: Whether to omit the metadata that the server sets, such as ``uid`` and ``managedFields``.
            Objects with these fields cannot be applied.  The label of an ApplySet is also omitted, because a copy is
            not a member of the set.
        drop_status: Whether to omit the ``status``.

    Raises:
        DecodeError: An object is not valid JSON, or has too many levels.
    """
    return dump_documents(
        _plain(each, drop_server_fields=drop_server_fields, drop_status=drop_status) for each in objects
    )


def dump_documents(values: Iterable[Mapping[str, object]]) -> str:
    """Return plain values as YAML in the format of :func:`dump_manifests`."""
    documents = list(values)
    if not documents:
        return ""
    text: str = yaml.dump_all(
        documents,
        Dumper=_Dumper,
        allow_unicode=True,
        sort_keys=False,
        default_flow_style=False,
        width=1 << 20,
        explicit_start=True,
    )
    return text


def dump_sorted(value: object) -> str:
    """Return a plain value as YAML with sorted keys, as Go servers send it."""
    text: str = yaml.dump(value, Dumper=_Dumper, allow_unicode=True, sort_keys=True, default_flow_style=False)
    return text


def _plain(each: KubernetesObject | Manifest, *, drop_server_fields: bool, drop_status: bool) -> dict[str, Any]:
    obj = each.object if isinstance(each, Manifest) else each
    value = to_dict(obj)
    # In kubectl's order.
    ordered = {key: value[key] for key in ("apiVersion", "kind", "metadata") if key in value} | value
    if drop_status:
        ordered.pop("status", None)
    metadata = ordered.get("metadata")
    if drop_server_fields and isinstance(metadata, dict):
        kept = {key: metadata[key] for key in metadata if key not in _OF_THE_SERVER}
        labels = kept.get("labels")
        if isinstance(labels, dict) and MEMBER_LABEL in labels:
            kept["labels"] = {key: labels[key] for key in labels if key != MEMBER_LABEL}
            if not kept["labels"]:
                del kept["labels"]
        ordered["metadata"] = kept
    return ordered


class _Dumper(_BASE):  # type: ignore[misc]  # libyaml's or Python's, found at run time
    """A YAML dumper that quotes ambiguous strings and does not use aliases."""

    def ignore_aliases(self, _: object) -> bool:
        """Return True, because equal parts of an object must be written in full."""
        return True


def _text(dumper: Any, value: str) -> Any:
    if "\n" in value and _is_block(value):
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|")
    is_plain = isinstance(resolve_scalar(value), str) if value else False
    style = None if is_plain and value != "<<" else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


def _is_block(value: str) -> bool:
    """Return whether a multi-line string can be written as a YAML block that does not need an indentation indicator."""
    lines = value.split("\n")
    return (
        all(line.isprintable() and line == line.rstrip() for line in lines)
        and bool(lines[0])
        and not lines[0].startswith(" ")
    )


_Dumper.add_representer(str, _text)
