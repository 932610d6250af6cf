"""Write the configurations of webhooks, and their CAs, with server-side apply.

Two field managers share each object: one owns the rules, the other owns only ``caBundle``.  So the leader can replace
the CAs in a configuration whose rules belong to a newer release, or to a program that deploys manifests.

The problem: kube-apiserver calls a webhook as soon as it is stored, and a call without the right CA fails.  And a
webhook whose CA has an owner stays in the list when the owner of its rules removes it, and is not valid any more.
So a new webhook is written with its CA, which the first manager then gives up, and a webhook is removed from the list
before the rest is applied.
"""

from __future__ import annotations

import base64
import copy
import logging
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias, final

import attrs

from .._text import quoted
from ..client import Api, Client
from ..errors import NotFoundError
from ..models import KubernetesObject, from_dict, resource_of, to_dict
from ..models.apiextensions_v1 import CustomResourceDefinition
from ._configurations import CONFIGURATIONS, Place

logger = logging.getLogger("trioformer.webhooks")

RELEASE: Final = "webhooks.trioformer/release"
"""The annotation of a configuration or CRD with the release that has written the rules."""

Members: TypeAlias = dict[str, Any]


def release_key(release: str) -> tuple[int, ...]:
    """Return what two releases are compared by.

    Raises:
        ValueError: The release does not consist of numbers separated by dots.
    """
    parts = release.split(".")
    if not all(part.isascii() and part.isdecimal() for part in parts):
        raise ValueError(f"a release consists of numbers separated by dots, such as 1.4.2, not {quoted(release)}")
    return tuple(map(int, parts))


@final
@attrs.define(eq=False)
class Installer:
    """Installs the webhooks of one release."""

    client: Client
    place: Place
    """The Service, whose name is the field manager of the rules."""
    release: str
    wanted: Sequence[KubernetesObject]
    """The configurations, and a CustomResourceDefinition with only its ``conversion`` for each converted kind."""
    check_leader: Callable[[], None]
    """Raises an exception if another process may lead."""
    _reported: set[str] = attrs.field(factory=set, init=False)

    async def install(self, authorities: bytes) -> bool:
        """Write all objects, and return whether all of them trusted these CAs already.

        Raises:
            NotFoundError: The CustomResourceDefinition of a converted kind does not exist.
            ConflictError: Another program has changed an object at the same time.
        """
        ca = base64.b64encode(authorities).decode()
        kinds = {type(each) for each in self.wanted}
        for kind in CONFIGURATIONS:
            if kind not in kinds:
                await self._remove(kind)
        return all([await self._install(each, ca) for each in self.wanted])

    async def _install(self, wanted: KubernetesObject, ca: str) -> bool:
        api: Api[KubernetesObject] = self.client.api(type(wanted))
        stored = await api.get_or_none(wanted.name)
        if stored is None and isinstance(wanted, CustomResourceDefinition):
            text = f"the CustomResourceDefinition {wanted.name} does not exist; install it with install_crds()"
            raise NotFoundError(text, code=404, reason="NotFound")
        raw, old = to_dict(wanted), {} if stored is None else to_dict(stored)
        present, names = _client_configs(old), [*_client_configs(raw)]
        version = "" if stored is None else stored.resource_version
        if is_newer := stored is not None and self._is_newer(stored):
            names = [*present]
        elif removed := present.keys() - names:
            kept = [each for each in old["webhooks"] if each["name"] not in removed]
            self.check_leader()
            remaining = from_dict(type(wanted), {**old, "webhooks": kept})
            version = (await api.replace(remaining, field_manager=self.place.service)).resource_version
        rules = {**raw, "metadata": {**raw["metadata"], "annotations": {RELEASE: self.release}}}
        if not is_newer and names - present.keys():
            version = await self._apply(api, _with_cas(rules, ca), version, self.place.service)
        if names:
            version = await self._apply(api, _only_cas(raw, names, ca), version, f"{self.place.service}-ca")
        if not is_newer:
            await self._apply(api, rules, version, self.place.service)
        return all(present.get(name, {}).get("caBundle") == ca for name in names)

    async def _apply(self, api: Api[KubernetesObject], members: Members, version: str, manager: str) -> str:
        """Apply an object unless it has changed since a version, and return its new version."""
        metadata = {**members["metadata"], **({"resourceVersion": version} if version else {})}
        obj = from_dict(api.kind, {**members, "metadata": metadata})
        self.check_leader()
        return (await api.apply(obj, field_manager=manager, force=True)).resource_version

    async def _remove(self, kind: type[KubernetesObject]) -> None:
        """Delete a configuration that this release does not have any more."""
        api = self.client.api(kind)
        stored = await api.get_or_none(self.place.name)
        if stored is not None and RELEASE in stored.metadata.annotations and not self._is_newer(stored):
            self.check_leader()
            await api.delete(stored.name, resource_version=stored.resource_version)

    def _is_newer(self, stored: KubernetesObject) -> bool:
        """Return whether a newer release has written the rules, and log this once."""
        written = stored.metadata.annotations.get(RELEASE, "")
        try:
            is_newer = bool(written) and release_key(written) > release_key(self.release)
        except ValueError:
            is_newer = False
        where = f"{resource_of(type(stored)).kind} {stored.name}"
        if is_newer and where not in self._reported:
            text = "%s: release %s has written the rules, and %s keeps them; to go back, remove the annotation %s"
            logger.warning(text, where, written, self.release, RELEASE)
            self._reported.add(where)
        return is_newer


def _client_configs(members: Members) -> dict[str, Members]:
    """Return the ``clientConfig`` of each webhook by its name, or that of a conversion."""
    if "webhooks" in members:
        return {each["name"]: each.get("clientConfig", {}) for each in members["webhooks"]}
    conversion = members.get("spec", {}).get("conversion", {})
    return {"": conversion["webhook"].get("clientConfig", {})} if "webhook" in conversion else {}


def _with_cas(members: Members, ca: str) -> Members:
    """Return an object with the CA of each webhook."""
    found = copy.deepcopy(members)
    for config in _client_configs(found).values():
        config["caBundle"] = ca
    return found


def _only_cas(members: Members, names: Sequence[str], ca: str) -> Members:
    """Return an object that contains nothing but the CA of each webhook."""
    head, config = {name: members[name] for name in ("apiVersion", "kind", "metadata")}, {"caBundle": ca}
    if "webhooks" in members:
        return {**head, "webhooks": [{"name": name, "clientConfig": config} for name in names]}
    return {**head, "spec": {"conversion": {"strategy": "Webhook", "webhook": {"clientConfig": config}}}}
