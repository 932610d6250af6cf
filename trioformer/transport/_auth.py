"""The ``Authorization`` header; no other module reads a secret."""

from __future__ import annotations

import base64
import logging
import re
from typing import Final, final

import trio

from ..errors import ConfigError
from ..kubeconfig import ClusterConfig

TOKEN_PERIOD: Final = 60.0
"""Seconds after which a token file is read again (client-go ``transport/token_source.go``)."""

_VISIBLE: Final = re.compile(rb"[\x21-\x7e]+")

logger = logging.getLogger("trioformer.transport")


@final
class Authorization:
    """Makes the ``Authorization`` header of each request: a bearer token, basic authentication, or none.

    A token file is read again a minute after it was last read; the old token stays in use while the file is empty, not
    readable, or does not contain a valid token.
    Neither ``repr()`` nor an error shows a secret.

    Raises:
        ConfigError: A token file does not contain a valid token and there is no other token, or a user name or token
            contains characters that it must not.
    """

    __slots__ = ("_file", "_header", "_read_at")

    def __init__(self, config: ClusterConfig) -> None:
        self._file = config.token_file
        self._header: str | None = None
        self._read_at = 0.0
        if config.token is not None:
            if not _VISIBLE.fullmatch(config.token.encode()):
                raise ConfigError("a token must not contain white space, control or non-ASCII characters", key="token")
            self._header = f"Bearer {config.token}"
        elif config.username is not None and self._file is None:
            if ":" in config.username:
                raise ConfigError("a user name must not contain a colon", key="username")
            pair = f"{config.username}:{config.password or ''}".encode()
            self._header = f"Basic {base64.b64encode(pair).decode('ascii')}"
        if self._file is not None:
            self._read(self._file)

    def __repr__(self) -> str:
        method = f"token file {self._file}" if self._file else (self._header or "none").partition(" ")[0].lower()
        return f"<{type(self).__name__}: {method}>"

    def header(self) -> str | None:
        """Return the value of the header for a request that is sent now; None for an anonymous request."""
        if self._file is not None and trio.current_time() >= self._read_at + TOKEN_PERIOD:
            self._read(self._file)
        return self._header

    def record_unauthorized(self, sent_at: float) -> None:
        """Let the next request read the token file again, after a 401 to a request that was sent at ``sent_at``.

        A token that was read later is not the rejected one (client-go ``ResetTokenOlderThan``).
        """
        if self._read_at <= sent_at:
            self._read_at = sent_at - TOKEN_PERIOD

    def _read(self, file: str) -> None:
        token = b""
        cause: Exception | None = None
        try:
            with open(file, "rb") as opened:
                token = opened.read().strip()
            problem = "" if _VISIBLE.fullmatch(token) else "does not contain a valid token" if token else "is empty"
        except (OSError, ValueError) as exc:
            problem, cause = f"cannot be read: {getattr(exc, 'strerror', None) or exc}", exc
        if not problem:
            self._header = f"Bearer {token.decode('ascii')}"
        elif self._header is None:
            raise ConfigError(f"the token file {problem}", file=file) from cause
        else:
            logger.warning("token file %s %s; keeping the previous token", file, problem)
        self._read_at = trio.current_time()
