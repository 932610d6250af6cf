"""Install CustomResourceDefinitions, and wait until their kinds can be used.

A definition is established shortly before the server serves its kind.  In between, discovery does not show the kind,
and requests for its objects fail, first with 404, and then with 429 while the server creates their storage.
This state cannot be watched, so the client polls the server with increasing delays.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final, TypeAlias

import trio

from .._retry import Backoff, BackoffPolicy
from ..client import Api, Client, ListOptions
from ..errors import (
    CRDInstallError,
    ForbiddenError,
    NotFoundError,
    ServiceUnavailableError,
    TooManyRequestsError,
)
from ..models import KubernetesObject, to_dict
from ..models.apiextensions_v1 import CustomResourceDefinition, CustomResourceDefinitionCondition
from ..watchtools import deleted, wait_for
from ._definition import crds_of

__all__ = ["install_crds", "wait_until_served"]

Definition: TypeAlias = CustomResourceDefinition

FIELD_MANAGER: Final = "install-crds"
"""The default field manager, which is the same for all programs, so that a new version of a program can change older
definitions."""
BACKOFF: Final = BackoffPolicy(initial=0.05, factor=1.5, maximum=2.0, jitter=0.2)


async def install_crds(
    client: Client,
    *kinds: type[KubernetesObject] | CustomResourceDefinition,
    field_manager: str = FIELD_MANAGER,
    force: bool = False,
    may_drop_fields: bool = False,
) -> tuple[CustomResourceDefinition, ...]:
    """Install the CustomResourceDefinitions of kinds, and wait until the server serves the kinds.

    For example, call this function when an operator starts::

        with trio.fail_after(60):
            await install_crds(client, Website, Backup)

    Existing definitions are updated with server-side apply.
    This function can be called again at any time, and by several processes at once.  Unchanged definitions are not
    written.

    Args:
        client: The client, which needs permission to get, list, watch, create and patch CustomResourceDefinitions.
        kinds: Classes decorated with :func:`custom_resource`, including all versions of each kind, or complete
            definitions.
        field_manager: The field manager that owns the fields of the definitions.
        force: Whether to take over fields that another field manager, such as kubectl or Helm, has set.
        may_drop_fields: Whether a new definition may lack fields of the installed definition. The server then drops
            the values of these fields.

    Returns:
        The stored definitions, one for each kind.

    Raises:
        SchemaError: A class cannot be converted to a schema.
        CRDInstallError: A definition would drop fields, or a version in which objects are stored, or another definition
            has the same names.
        ConflictError: Another field manager has set a field to a different value.
        InvalidError: The server rejects a definition, for example because its scope has changed.
        StatusError: The server rejects a request.
        ConnectionFailedError: The server's certificate cannot be verified, or a definition could not be written.

    Cancellation:
        Some definitions may have been applied. It is safe to call the function again.

    Ownership:
        This function does not start a task.
    """
    classes = [each for each in kinds if not isinstance(each, CustomResourceDefinition)]
    definitions = [*crds_of(*classes), *(each for each in kinds if isinstance(each, CustomResourceDefinition))]
    api = client.api(CustomResourceDefinition)
    applied = [await _apply(api, each, field_manager, force, may_drop_fields) for each in definitions]
    return tuple([await wait_until_served(client, each) for each in applied])


async def wait_until_served(client: Client, definition: CustomResourceDefinition) -> CustomResourceDefinition:
    """Wait until a definition is established and the server serves all its versions.

    In a cluster with several API servers, this function waits only for the server that responds, and others may serve
    the kind later.

    Args:
        client: The client. If the client has no permission to list objects of the kind, the function uses discovery
            instead.
        definition: A definition that the server has stored.

    Returns:
        The stored definition.

    Raises:
        CRDInstallError: Another definition has the same names.
        NotFoundError: The definition does not exist or was deleted.
        StatusError: The server rejects a request.
        ConnectionFailedError: The server's certificate cannot be verified, or a request failed too many times.
    """
    established = await wait_for(client.api(CustomResourceDefinition), definition.name, _is_established)
    for version in established.spec.versions:
        if version.served:
            await _wait_for_version(client, established, version.name)
    return established


async def _apply(
    api: Api[Definition], definition: Definition, field_manager: str, force: bool, may_drop_fields: bool
) -> Definition:
    """Apply a definition after checking that it does not drop fields or a stored version.

    If the stored definition is being deleted, the function first waits until it is gone.
    """
    while True:
        try:
            stored = await api.get(definition.name)
        except NotFoundError:
            break
        if stored.metadata.deletion_timestamp is None:
            _check_stored_versions(stored, definition)
            if not may_drop_fields:
                _check_fields(stored, definition)
            break
        await wait_for(api, definition.name, deleted(uid=stored.uid))
    return await api.apply(definition, field_manager=field_manager, force=force)


def _check_stored_versions(stored: Definition, definition: Definition) -> None:
    wanted = {version.name for version in definition.spec.versions}
    dropped = [name for name in stored.status.stored_versions if name not in wanted]
    if dropped:
        raise CRDInstallError(
            f"{definition.name}: objects may be stored as {', '.join(dropped)}, but the new definition has only"
            f" {', '.join(sorted(wanted))}; keep the version with served=False, write every object once, and remove"
            " it from status.storedVersions before you drop it",
            name=definition.name,
        )


def _check_fields(stored: Definition, definition: Definition) -> None:
    """Check that a definition has all fields of the stored definition.

    Otherwise, an old process could drop the values of fields that a newer process uses.
    """
    wanted = {version["name"]: version for version in to_dict(definition)["spec"]["versions"]}
    for version in to_dict(stored)["spec"]["versions"]:
        old, new = (_root(each) for each in (version, wanted.get(version["name"], version)))
        if dropped := sorted(_dropped(old, new, "")):
            raise CRDInstallError(
                f"{definition.name}: the new schema of {version['name']} does not have {', '.join(dropped[:5])}, and"
                " the server would drop their values; install the newest classes, or pass may_drop_fields=True",
                name=definition.name,
            )


def _root(version: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = version.get("schema", {}).get("openAPIV3Schema", {})
    return found


def _dropped(old: dict[str, Any], new: dict[str, Any], path: str) -> Iterator[str]:
    if new.get("x-kubernetes-preserve-unknown-fields") or isinstance(new.get("additionalProperties"), bool):
        return
    properties = new.get("properties", {})
    for name, schema in old.get("properties", {}).items():
        if name in properties:
            yield from _dropped(schema, properties[name], f"{path}.{name}")
        elif "additionalProperties" not in new:
            yield f"{path}.{name}"
    for name, text in (("items", "[]"), ("additionalProperties", ".*")):
        if isinstance(old.get(name), dict) and isinstance(new.get(name), dict):
            yield from _dropped(old[name], new[name], path + text)


def _is_established(definition: Definition) -> bool:
    conditions = {each.type: each for each in definition.status.conditions}
    accepted, established = conditions.get("NamesAccepted"), conditions.get("Established")
    if accepted is not None and accepted.status == "False" and _is_current(accepted, definition):
        raise CRDInstallError(
            f"{definition.name}: the server does not accept its names: {accepted.message or accepted.reason};"
            " delete the other definition, or choose other names",
            name=definition.name,
        )
    return established is not None and established.status == "True" and _is_current(established, definition)


def _is_current(condition: CustomResourceDefinitionCondition, definition: Definition) -> bool:
    """Return whether a condition is for the current generation, or has no generation, as on older servers."""
    observed = condition.observed_generation or definition.status.observed_generation
    generation = definition.metadata.generation
    return observed is None or generation is None or observed >= generation


async def _wait_for_version(client: Client, definition: Definition, version: str) -> None:
    delays, spec = Backoff(BACKOFF), definition.spec
    while True:
        try:
            found = await client.discover(f"{spec.group}/{version}", spec.names.kind)
            await client.api(found).list_page(ListOptions(limit=1))
        except (NotFoundError, TooManyRequestsError, ServiceUnavailableError):
            await trio.sleep(delays.next_delay())
            with suppress(TooManyRequestsError, ServiceUnavailableError):
                if not await _serves(client, definition, version):
                    return
        except ForbiddenError:
            return
        else:
            return


async def _serves(client: Client, definition: Definition, version: str) -> bool:
    """Return whether the stored definition, which another program may have changed, still serves a version.

    Raises:
        NotFoundError: The definition was deleted.
    """
    stored = await client.api(Definition).get(definition.name)
    if stored.uid != definition.uid or stored.metadata.deletion_timestamp is not None:
        text = f"{definition.name} was deleted while the client waited for its versions"
        raise NotFoundError(text, code=404, reason="NotFound")
    return any(each.name == version and each.served for each in stored.spec.versions)
