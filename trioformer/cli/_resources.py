"""The resources that arguments name, as kubectl's builder reads them (cli-runtime ``pkg/resource/builder.go``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, final
from urllib.parse import quote

import attrs

from ._failures import CommandError

if TYPE_CHECKING:
    from ..client import ApiResources, Client
    from ..models import ResourceInfo

__all__ = ["TABLES", "Selection", "Target", "add_selector_flags", "check_name", "find_resource", "group_kind", "select"]

TABLES: Final = (
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
)
"""What ``Accept`` says for the server's tables."""


@final
@attrs.frozen
class Target:
    """One request: an object, or all objects of a kind."""

    resource: ResourceInfo
    """The resource."""
    namespace: str | None
    """The namespace; None for all, and for kinds that are in none."""
    name: str = ""
    """The name; empty for all."""

    def path(self, subresource: str = "") -> str:
        """Return the path of the request."""
        namespace = None if self.namespace is None else quote(self.namespace, safe="")
        return self.resource.path(
            namespace=namespace, name=quote(self.name, safe="") or None, subresource=subresource or None
        )


@final
@attrs.frozen
class Selection:
    """What the arguments name."""

    targets: tuple[Target, ...]
    """The requests, in order."""
    is_single: bool
    """Whether one object is meant, by its name."""

    @property
    def has_names(self) -> bool:
        """Whether objects are named."""
        return any(target.name for target in self.targets)


def add_selector_flags(parser: Any) -> None:
    """Add the flags that select among objects."""
    parser.add_argument("-l", "--selector", default="", help="Selector (label query) to filter on.")
    parser.add_argument("--field-selector", default="", help="Selector (field query) to filter on.")
    parser.add_switch("-A", "--all-namespaces", help="If present, list the objects across all namespaces.")


def group_kind(resource: ResourceInfo) -> str:
    """Return what stands before names: ``pod``, ``deployment.apps``."""
    kind = resource.kind.lower()
    return f"{kind}.{resource.group}" if resource.group else kind


def find_resource(served: ApiResources, text: str) -> ResourceInfo:
    """Return the resource with a name that kubectl accepts.

    Raises:
        CommandError: The server has none.
    """
    try:
        found = served.find(text)
    except ValueError:
        found = None
    if found is None:
        name = text.partition(".")[0]
        failed = f" (without {', '.join(served.failures)}, which cannot be discovered)" if served.failures else ""
        raise CommandError(f'the server doesn\'t have a resource type "{name}"{failed}')
    return found


async def select(
    client: Client,
    arguments: Sequence[str],
    *,
    namespace: str | None,
    program: str = "trioformer",
    selector: str = "",
    field_selector: str = "",
) -> Selection:
    """Find what arguments such as ``pods web-0``, ``deploy/web`` or ``pods,services`` name.

    Args:
        client: The client whose server has the resources.
        arguments: The arguments, of which there is at least one.
        namespace: The namespace; None for all.
        program: The name of the program, for errors.
        selector: The label selector, which cannot be together with names.
        field_selector: The field selector, likewise.

    Raises:
        CommandError: They are not valid, or the server has no such resource.
        TrioformerError: The resources of the server cannot be discovered.
    """
    has_selector = bool(selector or field_selector)
    pairs = _pairs(arguments, program)
    if pairs is not None and has_selector:
        raise CommandError("selectors and the all flag cannot be used when passing resource/name arguments")
    if pairs is None and len(arguments) > 1 and has_selector:
        raise CommandError("name cannot be provided when a selector is specified")
    served = await client.api_resources()
    if pairs is not None:
        targets = [_target(find_resource(served, kind), namespace, name) for kind, name in pairs]
        return Selection(tuple(targets), len(pairs) == 1)
    kinds = _expanded(arguments[0], served)
    names = arguments[1:]
    if names:
        resource = find_resource(served, kinds[0])
        return Selection(tuple(_target(resource, namespace, name) for name in names), len(names) == 1)
    resources = dict.fromkeys(find_resource(served, kind) for kind in kinds)
    return Selection(tuple(Target(each, namespace if each.namespaced else None) for each in resources), False)


def check_name(name: str) -> None:
    """Check that a name can be a part of a path; without one, the path would be that of all objects.

    Raises:
        CommandError: It cannot.
    """
    if not name:
        raise CommandError("resource name may not be empty")
    problems = [f"may not be '{each}'" for each in (".", "..") if name == each]
    problems += [f"may not contain '{each}'" for each in "/%" if each in name]
    if problems:
        raise CommandError(f'invalid resource name "{name}": [{" ".join(problems)}]')


def _target(resource: ResourceInfo, namespace: str | None, name: str) -> Target:
    if resource.namespaced and namespace is None:
        raise CommandError("a resource cannot be retrieved by name across all namespaces")
    check_name(name)
    return Target(resource, namespace if resource.namespaced else None, name)


def _pairs(arguments: Sequence[str], program: str) -> list[tuple[str, str]] | None:
    """Read ``TYPE/NAME`` and ``TYPE,TYPE NAME``; None for ``TYPE NAME``."""
    kinds = arguments[0].split(",")
    if len(arguments) > 1 and len(kinds) > 1:
        arguments = [f"{kind}/{name}" for kind in kinds for name in arguments[1:]]
    with_slash = [each for each in arguments if "/" in each]
    if not with_slash:
        return None
    if len(with_slash) != len(arguments):
        raise CommandError(
            "there is no need to specify a resource type as a separate argument when passing arguments in "
            f"resource/name form (e.g. '{program} get resource/<resource_name>' instead of '{program} get resource "
            "resource/<resource_name>'"
        )
    pairs = []
    for each in arguments:
        kind, _, name = each.partition("/")
        if "/" in name:
            raise CommandError("arguments in resource/name form may not have more than one slash")
        if not kind or not name or "," in kind:
            raise CommandError("arguments in resource/name form must have a single resource and name")
        pairs.append((kind, name))
    return pairs


def _expanded(text: str, served: ApiResources) -> list[str]:
    """Replace categories such as ``all`` by their resources."""
    kinds: list[str] = []
    for kind in text.split(","):
        members = [str(info) for info in served if kind in info.categories]
        kinds += members or [kind]
    return kinds
