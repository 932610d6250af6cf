"""The command ``port-forward``, which forwards local ports to a pod (kubectl ``pkg/cmd/portforward``).

kubectl exits when a connection to a pod fails.  This command exits only if the arguments name a pod and the pod is
deleted.
"""

from __future__ import annotations

import argparse
import ipaddress
import re
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final, final

import attrs
import trio

from ...errors import ListenError, NotFoundError, PortForwardError, TrioformerError
from ...models import KubernetesObject, unstructured_kind
from ...pods import forward_port
from .._arguments import Parser
from .._failures import CommandError, UsageError
from .._resources import Target, select
from .._session import Session

if TYPE_CHECKING:
    from ...client import Api
    from ...pods._internal import PortForward

__all__ = ["add_flags", "run"]

_FORWARDABLE: Final = {
    "": ("pods", "services", "replicationcontrollers"),
    "apps": ("daemonsets", "deployments", "replicasets", "statefulsets"),
    "batch": ("jobs",),
}
"""The resources whose ports can be forwarded, by group."""


def add_flags(parser: Parser) -> None:
    """Add the flags of ``port-forward``."""
    parser.add_argument(
        "--address",
        action="append",
        default=[],
        help="Addresses to listen on, separated by commas: IP addresses, or localhost for 127.0.0.1 and ::1",
    )


async def run(session: Session, flags: argparse.Namespace) -> int | None:
    """Run ``port-forward``."""
    arguments = flags.arguments + (flags.after_dashes or [])
    if len(arguments) < 2:
        raise UsageError("TYPE/NAME and list of ports are required for port-forward")
    addresses = _addresses(flags.address)
    ports = [_Port.parse(each) for each in arguments[1:]]
    named = arguments[0]
    async with session.open_client() as client, AsyncExitStack() as stack:
        words = [named] if "/" in named else ["pods", named]
        target = (await select(client, words, namespace=session.namespace)).targets[0]
        _check_kind(target)
        api: Api[KubernetesObject] = client.api(unstructured_kind(target.resource), target.namespace)
        lost = trio.Event()
        has_any = False
        for port in ports:
            opened = _Forwarding(session, port, target.resource.kind == "Pod", lost)
            try:
                forward = await stack.enter_async_context(
                    forward_port(
                        api,
                        target.name,
                        port.remote,
                        local_port=port.local,
                        address=addresses,
                        on_error=opened.report_error,
                    )
                )
            except ListenError as exc:
                session.note(f"Unable to listen on port {port.local or port.remote}: {_text(exc)}")
                continue
            except PortForwardError as exc:
                raise CommandError(_text(exc)) from exc
            opened.forward = forward
            has_any = True
            for host, number in forward.addresses:
                shown = f"[{host}]" if ":" in host else host
                session.print(f"Forwarding from {shown}:{number} -> {forward.pod_port}")
            session.out.flush()
        if not has_any:
            raise CommandError(f"unable to listen on any of the requested ports: {[str(each) for each in ports]}")
        await lost.wait()
    raise CommandError("lost connection to pod")


@final
@attrs.define(eq=False)
class _Forwarding:
    """Reports the errors of one forwarded port."""

    _session: Session
    _port: _Port
    _is_pod: bool
    _lost: trio.Event
    """An event that is set when the pod has been deleted."""
    forward: PortForward | None = None

    def report_error(self, error: TrioformerError) -> None:
        """Print the error that prevented a connection from being forwarded."""
        if self.forward is not None:
            ports = f"{self.forward.port} -> {self.forward.pod_port}"
            self._session.note(f"an error occurred forwarding {ports}: {_text(error)}")
        if self._is_pod and isinstance(error, NotFoundError):
            self._lost.set()


@final
@attrs.frozen
class _Port:
    """A local port and the remote port that it is forwarded to."""

    local: int | None
    """The local port.  0 selects a free port, and None selects the number of the remote port."""
    remote: str
    """The number or name of the port of the pod or Service."""

    @classmethod
    def parse(cls, text: str) -> _Port:
        """Parse ``5000``, ``8888:5000``, ``:5000`` or ``8443:https``.

        Raises:
            CommandError: If the text is not a valid port.
        """
        found = re.fullmatch(r"(?:([0-9]{0,5}):)?([0-9]{1,5}|[a-z0-9-]*[a-z][a-z0-9-]*)", text)
        numbers = [int(each) for each in (found.groups() if found else ()) if each and each.isdecimal()]
        if found is None or max(numbers, default=0) > 65_535 or not found[2].strip("0"):
            raise CommandError(
                f"{text!r} is not a valid port; examples of valid ports: 5000, 8888:5000, :5000, 8443:https"
            )
        local, remote = found.groups()
        return cls(None if local is None else int(local or 0), remote)

    def __str__(self) -> str:
        return self.remote if self.local is None else f"{self.local}:{self.remote}"


def _addresses(given: list[str]) -> list[str]:
    addresses = [each for text in given for each in text.split(",")] or ["localhost"]
    for each in addresses:
        try:
            if each != "localhost":
                ipaddress.ip_address(each)
        except ValueError:
            raise CommandError(f"{each} is not a valid IP") from None
    return sorted(addresses)


def _check_kind(target: Target) -> None:
    resource = target.resource
    if resource.plural not in _FORWARDABLE.get(resource.group, ()):
        name = f"*{resource.version}.{resource.kind}"
        raise CommandError(f"cannot attach to {name}: selector for {name} not implemented")


def _text(error: TrioformerError) -> str:
    """Return the text of an error without the name of the operation."""
    if isinstance(error, PortForwardError | ListenError):
        return str(error).partition(": ")[2]
    return str(error)
