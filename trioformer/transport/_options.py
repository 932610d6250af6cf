"""Client options that few programs change."""

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
        TypeError: ``warning_handler`` is async or does not accept one argument, or another option has the wrong type.
    """

    user_agent: str | None = None
    """The ``User-Agent`` header. The default, None, stands for the library and its version."""
    compression: bool | None = None
    """Whether the server may compress large objects and lists with gzip. The default, None, allows compression unless
    the program uses the configuration of a pod or the server is on this machine.
    A kubeconfig with ``disable-compression`` forbids compression.
    """
    warning_handler: Callable[[ServerWarning], None] | None = None
    """A function that receives each warning from the server, for example about a deprecated API. The default, None,
    logs each text once with the logger ``trioformer.transport``.
    """
    limits: Limits = DEFAULT_LIMITS
    """The limits on responses."""
    protobuf: bool = True
    """Whether lists and watches of built-in kinds request protobuf, which needs less CPU and memory than JSON.

    A server that does not support protobuf responds with JSON.
    """
    retries: int = MAX_RETRIES
    """The maximum number of retries of a request, if retries are safe. A request is sent again if the server asks for
    a retry with ``Retry-After`` (429, 503, and other 5xx errors for reads), or if the connection fails during a read
    or before any part of a write was sent. 0 disables retries.
    """
    plugin_policy: PluginPolicy = _ALL_PLUGINS
    """Which credential plugins the kubeconfig may run, and their timeout. By default, all plugins may run."""

    def __attrs_post_init__(self) -> None:
        agent = self.user_agent
        if not isinstance(agent, str | None):
            raise TypeError(f"a user agent must be a string, not {describe(agent)}")
        if agent is not None and not (agent.isascii() and agent.isprintable()):
            raise ValueError(f"a user agent must be printable ASCII, not {agent!r}")
        if type(self.retries) is not int or self.retries < 0:
            raise ValueError(f"retries must be an int of at least 0, not {self.retries!r}")
        if type(self.protobuf) is not bool:
            raise TypeError(f"protobuf must be True or False, not {describe(self.protobuf)}")
        if not isinstance(self.compression, bool | None):
            raise TypeError(f"compression must be True, False or None, not {describe(self.compression)}")
        if not isinstance(self.limits, Limits):
            raise TypeError(f"limits must be Limits(...), not {describe(self.limits)}")
        if not isinstance(self.plugin_policy, PluginPolicy):
            raise TypeError(f"plugin_policy must be PluginPolicy(...), not {describe(self.plugin_policy)}")
        if self.warning_handler is not None:
            check_sync(self.warning_handler, "warning_handler", "def on_warning(warning)")


DEFAULT_OPTIONS: Final = ClientOptions()
