"""The rotation of the certificate, which the leader runs as a controller of one request.

Every change of the Secret, of a configuration or of an announcement leads to the same function, which reads everything
again: it writes the configurations, looks whether the state's wait is over, and writes the next state into the Secret.
Each write of the Secret requires the version that was read, so two leaders cannot move the rotation twice.
"""

from __future__ import annotations

import logging
from typing import Final, final

import attrs
import trio

from .._surroundings import wall_time
from ..cache import SharedInformerFactory
from ..client import Client
from ..controller import Controller, RequeueAfter, RetryAfter, annotations_changed
from ..errors import AlreadyExistsError, ConflictError
from ..models import KubernetesObject
from ..models.coordination_v1 import Lease
from ..models.core_v1 import Secret
from . import _issue
from ._announcements import SERVICE, Announcements, LiveReplica
from ._configurations import CONFIGURATIONS, Place
from ._install import Installer
from ._secret_states import Contents, RotationState, Written, begin, first, proceed, secret_with

logger = logging.getLogger("trioformer.webhooks")

PUBLISH_PERIOD: Final = 60.0
"""The seconds until every kube-apiserver has read the configurations."""
CLOCK_PERIOD: Final = 3600.0
"""The longest time until the age of the certificate is checked again, because the wall clock can be set."""


@final
@attrs.define(eq=False)
class Rotation:
    """Makes and rotates the certificate, and installs the webhooks; a controller of the manager."""

    client: Client
    place: Place
    installer: Installer
    _last: Contents | None = attrs.field(default=None, init=False)
    """The last valid contents of the Secret, to restore them."""
    _published: tuple[bytes, float] | None = attrs.field(default=None, init=False)
    """The CAs that all configurations contain, and since when, on trio's clock."""
    _announcements: Announcements = attrs.field(init=False)
    _controller: Controller[str] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._controller = Controller(self.name, self._reconcile, reads_own_writes=False)
        self._announcements = Announcements(self.client.api(Lease, namespace=self.place.namespace), self.place.service)

    @property
    def name(self) -> str:
        """The name of the controller."""
        return "webhooks"

    def watch(self, factory: SharedInformerFactory) -> None:
        """Watch what the rotation depends on with the informers of a factory, which the caller runs."""
        this = [self.place.secret]
        selector = {"metadata.name": self.place.secret}
        secrets = factory.informer(Secret, namespace=self.place.namespace, field_selector=selector, transform=None)
        self._controller.watch(secrets, enqueue=lambda _: this)
        leases = factory.informer(Lease, namespace=self.place.namespace, label_selector={SERVICE: self.place.service})
        self._controller.watch(leases, enqueue=lambda _: this, predicates=[annotations_changed])
        names: set[tuple[type[KubernetesObject], str]] = {(kind, self.place.name) for kind in CONFIGURATIONS}
        for kind, name in names | {(type(each), each.name) for each in self.installer.wanted}:
            informer = factory.informer(kind, namespace=None, field_selector={"metadata.name": name})
            self._controller.watch(informer, enqueue=lambda _: this)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run until cancelled or stopped."""
        async with trio.open_nursery() as nursery:
            await nursery.start(self._controller.run)
            self._controller.add(self.place.secret)  # there may be nothing to watch yet
            task_status.started()

    async def stop(self) -> None:
        """End :meth:`run` when the current step has ended."""
        await self._controller.stop()

    async def _reconcile(self, request: str) -> RequeueAfter | None:
        try:
            return await self._step()
        except (ConflictError, AlreadyExistsError) as exc:
            raise RetryAfter(1, f"another program has written at the same time: {exc}") from exc

    async def _step(self) -> RequeueAfter | None:
        """Install the webhooks, and move the rotation to its next state if the time has come."""
        stored = await self.client.api(Secret, namespace=self.place.namespace).get_or_none(self.place.secret)
        current = self._read(stored)
        if current is None:
            issued = _issue.issue(self.place.host, wall_time())
            return await self._write(stored, begin(self._last, issued) if self._last else first(issued))
        self._last = current
        replicas = await self._announcements.live()
        is_served = any(each.fingerprint == current.fingerprint for each in replicas)
        if current.state is not RotationState.SWITCHING and not is_served:
            return None  # a webhook that no replica serves would lock everybody out; an announcement calls this again
        was_complete = await self.installer.install(current.authorities)
        now = trio.current_time()
        if self._published is None or self._published[0] != current.authorities or not was_complete:
            self._published = current.authorities, now
        wait = self._remaining(current, replicas, now)
        if wait > 0:
            return RequeueAfter(min(wait, CLOCK_PERIOD))
        if current.state is RotationState.STABLE:
            return await self._write(stored, begin(current, _issue.issue(self.place.host, wall_time())))
        return await self._write(stored, proceed(current))

    def _read(self, stored: Secret | None) -> Contents | None:
        """Return the contents of the Secret, or None if they must be made anew."""
        problem = "does not exist"
        if stored is not None:
            try:
                current = Contents.read(stored, self.place.host)
                if wall_time() < current.validity.ends:
                    return current
                problem, self._last = "has expired", None
            except ValueError as exc:
                problem = f"is not valid, because {exc}"
        what = "a certificate is made" if self._last is None else "the last one is restored and replaced"
        level = logging.INFO if stored is None and self._last is None else logging.WARNING
        logger.log(level, "secret %s/%s %s; %s", self.place.namespace, self.place.secret, problem, what)
        return None

    def _remaining(self, current: Contents, replicas: list[LiveReplica], now: float) -> float:
        """Return how long the state waits, in seconds."""
        match current.state:
            case RotationState.STABLE:
                is_early = wall_time() < current.validity.begins
                return 0.0 if is_early else current.validity.renew_at - wall_time()
            case RotationState.PUBLISHING:
                assert self._published is not None
                return self._published[1] + PUBLISH_PERIOD - now
            case RotationState.SWITCHING:
                others = [each for each in replicas if each.fingerprint != current.fingerprint]
                # The next announcement calls this earlier.
                return min((each.expires_at - now for each in others), default=0.0)

    async def _write(self, stored: Secret | None, written: Written) -> RequeueAfter:
        """Write the Secret, if it is still as it was read."""
        secret = secret_with(stored, written, name=self.place.secret, namespace=self.place.namespace)
        self.installer.check_leader()
        api = self.client.api(Secret, namespace=self.place.namespace)
        await (api.create(secret) if stored is None else api.replace(secret))
        logger.info("secret %s/%s: %s", self.place.namespace, self.place.secret, written[0].name.lower())
        return RequeueAfter(0)
