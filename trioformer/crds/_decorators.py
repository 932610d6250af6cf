"""Decorators for the classes of custom resources and their parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, dataclass_transform

import attrs

from ..models import JSON, KubernetesObject, Model, ResourceInfo
from ..models._internal import EMPTY_MAP, guess_plural
from ._facts import CustomResource, MapType, PrinterColumn, Rule, ScaleSubresource, Schema, as_texts

__all__ = ["custom_resource", "resource_part"]

K = TypeVar("K", bound=KubernetesObject)
M = TypeVar("M", bound=Model)


@dataclass_transform(kw_only_default=True, frozen_default=True, eq_default=False, field_specifiers=(attrs.field,))
def custom_resource(
    api_version: str,
    *,
    kind: str | None = None,
    plural: str | None = None,
    singular: str | None = None,
    namespaced: bool = True,
    short_names: Sequence[str] = (),
    categories: Sequence[str] = (),
    status: bool | None = None,
    scale: ScaleSubresource | None = None,
    printer_columns: Sequence[PrinterColumn] = (),
    selectable_fields: Sequence[str] = (),
    rules: Sequence[Rule] = (),
    stored: bool | None = None,
    served: bool = True,
    deprecated: bool | str = False,
    preserve_unknown_fields: bool | None = None,
) -> Callable[[type[K]], type[K]]:
    """Turn the decorated class into the class of a custom resource.

    For example::

        @custom_resource("example.com/v1", short_names=("ws",), printer_columns=(PrinterColumn("Host", ".spec.host"),))
        class Website(KubernetesObject):
            '''A page that is served under a host name.'''

            spec: WebsiteSpec
            status: WebsiteStatus | None = None

    The decorator sets ``__resource__``, and applies ``attrs.frozen(kw_only=True)`` unless attrs has already processed
    the class.
    :func:`crd_of` makes the CustomResourceDefinition from the class.

    Args:
        api_version: The group and version, such as ``example.com/v1``.
        kind: The name of the kind. The default, None, uses the name of the class.
        plural: The plural name, which appears in URLs.  The default, None, uses the lower-case kind with a plural
            ending, which is ``s``, ``es`` (after an s) or ``ies`` (replacing a y).
        singular: The singular name. The default, None, uses the kind in lower case.
        namespaced: Whether objects of the kind belong to namespaces.
        short_names: The names that kubectl accepts instead of the plural.
        categories: The names of groups that ``kubectl get`` lists together, such as ``all``.
        status: Whether the status is a subresource. The default, None, defines a status subresource if the class has a
            field ``status``.
        scale: The fields of the scale subresource. The default, None, defines no scale subresource.
        printer_columns: The columns that ``kubectl get`` prints.
        selectable_fields: The JSON paths of up to eight fields that field selectors can use, such as ``.spec.host``.
        rules: The validation rules for the whole object.
        stored: Whether the server stores objects in this version. The default, None, is for kinds with only one
            version.
        served: Whether the server serves this version.
        deprecated: Whether the server sends a warning to clients that use this version. A string is the text of the
            warning.
        preserve_unknown_fields: Whether the server stores top-level members for which the class has no fields.

    Raises:
        ValueError: A name is not valid, or ``api_version`` has no group.
        TypeError: The class is not a KubernetesObject, or a field has a type that models do not support.
    """
    group, slash, version = api_version.rpartition("/")
    if not slash or not group:
        raise ValueError(f"api_version must be a group and a version, such as example.com/v1, not {api_version!r}")

    def decorate(cls: type[K]) -> type[K]:
        made = _made(cls, KubernetesObject)
        names = {attribute.name for attribute in attrs.fields(made)}
        has_status = "status" in names if status is None else status
        own_kind = made.__name__ if kind is None else kind
        subresources = (*(("status",) if has_status else ()), *(("scale",) if scale is not None else ()))
        made.__resource__ = ResourceInfo(
            group=group,
            version=version,
            kind=own_kind,
            plural=guess_plural(own_kind) if plural is None else plural,
            namespaced=namespaced,
            short_names=as_texts(short_names, "short_names"),
            subresources=subresources,
            categories=as_texts(categories, "categories"),
            singular=own_kind.lower() if singular is None else singular,
        )
        facts = CustomResource(
            printer_columns=tuple(printer_columns),
            selectable_fields=as_texts(selectable_fields, "selectable_fields"),
            scale=scale,
            served=served,
            stored=stored,
            deprecated=bool(deprecated),
            deprecation_warning=deprecated if isinstance(deprecated, str) and deprecated else None,
            schema=Schema(rules=rules, preserve_unknown_fields=preserve_unknown_fields),
        )
        made.__custom_resource__ = facts
        return made

    return decorate


@dataclass_transform(kw_only_default=True, frozen_default=True, eq_default=False, field_specifiers=(attrs.field,))
def resource_part(
    *,
    rules: Sequence[Rule] = (),
    map_type: MapType | None = None,
    preserve_unknown_fields: bool | None = None,
    min_properties: int | None = None,
    max_properties: int | None = None,
    more: Mapping[str, JSON] = EMPTY_MAP,
) -> Callable[[type[M]], type[M]]:
    """Turn the decorated class into a part of custom resources, such as a spec.

    The decorator applies ``attrs.frozen(kw_only=True)`` unless attrs has already processed the class.  The arguments
    of the decorator are added to the schema of every field that has this class as its type::

        @resource_part(rules=(Rule("self.minReplicas <= self.maxReplicas"),))
        class Range(Model):
            min_replicas: int = 1
            max_replicas: int

    Args:
        rules: The validation rules for the part.
        map_type: ``atomic`` if the part as a whole has a single owner in server-side apply.  The default, None, means
            that each field has its own owner.
        preserve_unknown_fields: Whether the server stores members for which the class has no fields.
        min_properties: The minimum number of members.
        max_properties: The maximum number of members.
        more: Additional members of the schema, such as ``oneOf``, under the API's names.

    Raises:
        TypeError: The class is not a Model, or a field has a type that models do not support.
    """

    def decorate(cls: type[M]) -> type[M]:
        made = _made(cls, Model)
        facts = Schema(
            rules=rules,
            map_type=map_type,
            preserve_unknown_fields=preserve_unknown_fields,
            min_properties=min_properties,
            max_properties=max_properties,
            more=more,
        )
        made.__schema__ = facts
        return made

    return decorate


def _made(cls: Any, base: type[Any]) -> type[Any]:
    """Apply ``attrs.frozen`` to a class unless attrs has already processed the class."""
    if not isinstance(cls, type) or not issubclass(cls, base):
        name = getattr(cls, "__name__", repr(cls))
        raise TypeError(f"{name} is not a {base.__name__}; write class {name}({base.__name__})")
    if "__attrs_attrs__" in vars(cls):
        return cls
    decorate = attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
    made: type[Any] = decorate(cls)
    return made
