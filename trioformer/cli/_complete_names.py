"""Completion candidates from the cluster and the kubeconfig."""

from __future__ import annotations

import argparse
import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ._resources import Target, find_resource
from ._session import Session

if TYPE_CHECKING:
    from ..client import Client

__all__ = [
    "Ask",
    "containers",
    "contexts",
    "kinds",
    "kinds_and_objects",
    "namespaces",
    "pods",
    "pods_to_copy",
]

Candidates: TypeAlias = Mapping[str, str]
Ask: TypeAlias = Callable[["Client", Session, argparse.Namespace], Awaitable[Candidates]]
"""A function that requests candidates.  Its last argument contains the parsed flags and arguments."""

_WITH_PODS: Final = ("daemonsets", "deployments", "jobs", "replicasets", "services", "statefulsets")
_MOST: Final = 1000
"""The maximum number of names in a list."""
_METADATA: Final = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"


def contexts(session: Session) -> Candidates:
    """Return the names of the contexts in the kubeconfig."""
    import yaml  # noqa: PLC0415  # only here

    given = session.flags.kubeconfig or session.environ.get("KUBECONFIG")
    files = given.split(os.pathsep) if given else [os.path.expanduser("~/.kube/config")]
    found: dict[str, str] = {}
    for file in files:
        with suppress(OSError, ValueError, yaml.YAMLError):
            document = yaml.safe_load(Path(file).read_text(encoding="utf-8"))
            found.update((str(each["name"]), "") for each in document["contexts"])
    return found


async def namespaces(client: Client, _: Session, __: argparse.Namespace) -> Candidates:
    """Return the names of the namespaces."""
    return dict.fromkeys(await _names(client, "namespaces", None), "")


async def containers(client: Client, session: Session, flags: argparse.Namespace) -> Candidates:
    """Return the names of the containers in the pod given by the first argument."""
    name = flags.arguments[0].removeprefix("pod/").removeprefix("pods/") if flags.arguments else ""
    if not name or "/" in name:
        return {}
    target = Target(find_resource(await client.api_resources(), "pods"), session.namespace, name)
    pod: Any = (await client.request("GET", target.path())).json()
    fields = ("containers", "initContainers", "ephemeralContainers")
    return {
        str(each["name"]): str(each.get("image") or "") for field in fields for each in pod["spec"].get(field) or []
    }


async def kinds(client: Client, _: Session, flags: argparse.Namespace) -> Candidates:
    """Return the plural names of all readable kinds.

    In a list such as ``pods,serv``, the last kind is completed.
    """
    found: dict[str, str] = {}
    head, comma, _tail = flags.last.rpartition(",")
    for info in (await client.api_resources()).preferred:
        if "get" in info.verbs:
            name = f"{info.plural}.{info.group}" if info.plural in found and info.group else info.plural
            found[name] = info.kind
    return {f"{head}{comma}{name}": kind for name, kind in sorted(found.items())}


async def kinds_and_objects(client: Client, session: Session, flags: argparse.Namespace) -> Candidates:
    """Return the names of the objects if the line already contains their kind, or otherwise the readable kinds."""
    given = flags.arguments
    kind, slash, _ = flags.last.partition("/")
    if slash:
        return {f"{kind}/{name}": "" for name in await _names(client, kind, session) if f"{kind}/{name}" not in given}
    if not given:
        return await kinds(client, session, flags)
    if "/" in given[0]:
        return {f"{kind}/": about for kind, about in (await kinds(client, session, flags)).items()}
    return {name: "" for name in await _names(client, given[0], session) if name not in given[1:]}


async def pods(client: Client, session: Session, flags: argparse.Namespace) -> Candidates:
    """Return the names of pods and the kinds that have pods. After ``TYPE/``, return the kind's objects."""
    kind, slash, _ = flags.last.partition("/")
    if slash:
        return {f"{kind}/{name}": "" for name in await _names(client, kind, session)}
    found = dict.fromkeys(await _names(client, "pods", session), "")
    return found | {f"{each}/": "" for each in _WITH_PODS}


async def pods_to_copy(client: Client, session: Session, _: argparse.Namespace) -> Candidates:
    """Return the names of pods, each followed by a colon, for ``cp``."""
    return {f"{name}:": "" for name in await _names(client, "pods", session)}


async def _names(client: Client, kind: str, session: Session | None) -> list[str]:
    """Return the names of all objects of a kind, in the namespace of the session if the kind is namespaced."""
    resource = find_resource(await client.api_resources(), kind)
    namespace = session.namespace if session is not None and resource.namespaced else None
    response = await client.request(
        "GET", Target(resource, namespace).path(), params={"limit": str(_MOST)}, accept=_METADATA
    )
    listed: Any = response.json()
    return [str(each["metadata"]["name"]) for each in listed.get("items") or []]
