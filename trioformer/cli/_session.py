"""The output, the configuration and the client of a command."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, TextIO, final

import attrs
import trio

from .._files import is_stream
from ..errors import ConfigError
from ._failures import CommandError

if TYPE_CHECKING:
    from ..client import Client
    from ..kubeconfig import ClusterConfig, ConfigOverrides
    from ..transport import ServerWarning

__all__ = ["Session"]


@final
@attrs.define(eq=False)
class Session:
    """The context of one run of a command: its flags, streams, configuration and client."""

    flags: argparse.Namespace
    """The parsed flags of the command."""
    out: TextIO
    """The standard output."""
    err: TextIO
    """The standard error."""
    environ: Mapping[str, str] = attrs.field(factory=lambda: os.environ)
    """The environment variables."""
    opener: Callable[..., AbstractAsyncContextManager[Client]] | None = None
    """A function that tests use to open a client.  If None, ``open_client()`` is used."""
    _config: ClusterConfig | None = attrs.field(default=None, init=False)

    def print(self, text: str = "", *, end: str = "\n") -> None:
        """Write text to standard output."""
        self.out.write(text + end)

    def write(self, data: bytes) -> None:
        """Write bytes to standard output immediately.

        If the output is a text stream, bytes that are not valid UTF-8 are replaced by U+FFFD.
        """
        write_bytes = getattr(self.out, "write_bytes", None)
        if write_bytes is not None:
            write_bytes(data)
        else:
            self.out.write(data.decode(errors="replace"))
            self.out.flush()

    def note(self, text: str) -> None:
        """Flush standard output, and write a line to standard error."""
        self.out.flush()
        self.err.write(text + "\n")
        self.err.flush()

    @property
    def config(self) -> ClusterConfig:
        """The server and the credentials, which are loaded on first use.

        Raises:
            ConfigError: If no configuration is found, or the configuration is not valid.
        """
        if self._config is None:
            from ..kubeconfig import load_config  # noqa: PLC0415  # `version --client` needs none

            try:
                self._config = load_config(
                    kubeconfig=self.flags.kubeconfig or None,
                    context=self.flags.context or None,
                    overrides=_overrides(self.flags),
                    environ=self.environ,
                )
            except ConfigError as exc:
                if "overrides." not in str(exc):
                    raise
                raise ConfigError(re.sub(r"\boverrides\.([a-z_.]+)", _flag_of, str(exc))) from exc
        return self._config

    async def load_stream(self) -> None:
        """Load the configuration in a thread if its file is a FIFO or a device.

        Such a file can be read only once, and reading it may block.

        Raises:
            ConfigError: If the configuration is not valid.
        """
        files = self.flags.kubeconfig or self.environ.get("KUBECONFIG") or ""
        if any(map(is_stream, [files, *files.split(os.pathsep)])):
            await trio.to_thread.run_sync(getattr, self, "config", abandon_on_cancel=True)

    @property
    def server(self) -> str:
        """The URL of the server for error messages, or an empty string before the configuration is loaded."""
        return "" if self._config is None else self._config.server

    @property
    def namespace(self) -> str:
        """The value of ``--namespace`` or, without this flag, the namespace of the configuration."""
        return str(self.flags.namespace) if self.flags.namespace else self.config.namespace

    @asynccontextmanager
    async def open_client(self) -> AsyncGenerator[Client, None]:
        """Open a client for the cluster."""
        from ..client import ClientOptions, open_client  # noqa: PLC0415  # `version --client` needs none
        from ._request_log import RequestLog  # noqa: PLC0415

        # JSON, because it has the fields that are newer than this release, and commands print whole objects.
        options = ClientOptions(user_agent=_user_agent(), warning_handler=self._warn, retries=2, protobuf=False)
        opener = self.opener or open_client
        observer = RequestLog(self.config.server, level) if (level := self.flags.verbosity) >= 6 else None
        async with opener(self.config, field_manager="trioformer-cli", observer=observer, options=options) as client:
            yield client

    def _warn(self, warning: ServerWarning) -> None:
        self.note(f"Warning: {warning.text}")


def _user_agent() -> str:
    from .._version import __version__  # noqa: PLC0415  # beside the client

    return f"trioformer-cli/{__version__}"


def _overrides(flags: argparse.Namespace) -> ConfigOverrides:
    from ..kubeconfig import ConfigOverrides, Impersonation  # noqa: PLC0415  # `version --client` needs none

    user = getattr(flags, "as")
    if flags.as_group and not user:
        raise CommandError("--as-group requires --as")
    return ConfigOverrides(
        namespace=flags.namespace,
        server=flags.server,
        ca_file=flags.certificate_authority,
        insecure_skip_tls_verify=flags.insecure_skip_tls_verify,
        token=flags.token,
        impersonate=Impersonation(user=user, groups=flags.as_group) if user else None,
    )


def _flag_of(found: re.Match[str]) -> str:
    """Return the flag that sets a field of the overrides."""
    name = found[1].removesuffix("_file")
    return "--certificate-authority" if name == "ca" else f"--{name.replace('_', '-')}"
