"""Options of a client that few programs change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

import attrs

from .._suggestions import check_sync, describe
from ._limits import DEFAULT_LIMITS, Limits
from ._warnings import ServerWarning
from .auth._exec_policy import PluginPolicy
from .policy._retries import MAX_RETRIES

_ALL_PLUGINS: Final = PluginPolicy()


@final
@attrs.frozen(kw_only=True)
class ClientOptions:
    """Options of :func:`~trioformer.client.open_client` that few programs change.

    For example::

        options = ClientOptions(retries=0, user_agent="website-operator/1.0")
        async with open_client(options=options) as client:
            ...

    Raises:
        ValueError: ``user_agent`` has invalid characters, or ``retries`` is not an int of at least 0.
        TypeError: ``warning_handler`` is async or does not accept an argument, or another option has the wrong type.
    """

    user_agent: str | None = None
    """The ``User-Agent`` header; None for the library and its version."""
    compression: bool | None = None
    """Whether the server may compress large objects and lists with gzip.

    None to allow it unless the program runs with the configuration of a pod or the server is on this machine.
    A kubeconfig with ``disable-compression`` forbids it.
    """
    warning_handler: Callable[[ServerWarning], None] | None = None
    """Receives each warning of the server, for example about a deprecated API.

    None to log each text once, with the logger ``trioformer.transport``.
    """
    limits: Limits = DEFAULT_LIMITS
    """Limits of responses."""
    retries: int = MAX_RETRIES
    """The maximum number of retries of a request, where they are safe.

    A request is sent again if the server asks for it with ``Retry-After`` (429, 503, and other 5xx errors for reads),
    and if the connection fails during a read or before any part of a write was sent.
    0 to disable retries.
    """
    plugin_policy: PluginPolicy = _ALL_PLUGINS
    """The credential plugins that the kubeconfig may run, and their timeouts; by default all."""

    def __attrs_post_init__(self) -> None:
        agent = self.user_agent
        if not isinstance(agent, str | None):
            raise TypeError(f"a user agent must be a string, not {describe(agent)}")
        if agent is not None and not (agent.isascii() and agent.isprintable()):
            raise ValueError(f"a user agent must be printable ASCII, not {agent!r}")
        if type(self.retries) is not int or self.retries < 0:
            raise ValueError(f"retries must be an int of at least 0, not {self.retries!r}")
        if not isinstance(self.compression, bool | None):
            raise TypeError(f"compression must be True, False or None, not {describe(self.compression)}")
        if not isinstance(self.limits, Limits):
            raise TypeError(f"limits must be Limits(...), not {describe(self.limits)}")
        if not isinstance(self.plugin_policy, PluginPolicy):
            raise TypeError(f"plugin_policy must be PluginPolicy(...), not {describe(self.plugin_policy)}")
        if self.warning_handler is not None:
            check_sync(self.warning_handler, "warning_handler", "def on_warning(warning)")


DEFAULT_OPTIONS: Final = ClientOptions()
