"""The ``Authorization`` header; the only place where a secret is looked at."""

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

_SENDABLE: Final = re.compile(rb"[\x21-\x7e]+")

logger = logging.getLogger("trioformer.transport")


@final
class Authorization:
    """Makes the ``Authorization`` header of each request: a bearer token, basic authentication, or none.

    A token file is read again when it was last read a minute ago; one that is empty, or cannot be read or sent, leaves
    the old token in use.
    ``repr()`` shows no secret, and no error does.

    Raises:
        ConfigError: A token file holds no token and there is none to use instead, or a user name or token cannot be
            sent.
    """

    __slots__ = ("_file", "_header", "_read_at")

    def __init__(self, config: ClusterConfig) -> None:
        self._file = config.token_file
        self._header: str | None = None
        self._read_at = 0.0
        if config.token is not None:
            if not _SENDABLE.fullmatch(config.token.encode()):
                raise ConfigError("a token must not hold white space, control or non-ASCII characters", key="token")
            self._header = f"Bearer {config.token}"
        elif config.username is not None and self._file is None:
            if ":" in config.username:
                raise ConfigError("a user name must not hold a colon", key="username")
            pair = f"{config.username}:{config.password or ''}".encode()
            self._header = f"Basic {base64.b64encode(pair).decode('ascii')}"
        if self._file is not None:
            self._read(self._file)

    def __repr__(self) -> str:
        how = f"token file {self._file}" if self._file else (self._header or "none").partition(" ")[0].lower()
        return f"<{type(self).__name__}: {how}>"

    def header(self) -> str | None:
        """The header's value for a request that is sent now; None when nobody in particular asks."""
        if self._file is not None and trio.current_time() >= self._read_at + TOKEN_PERIOD:
            self._read(self._file)
        return self._header

    def refused(self, since: float) -> None:
        """Take note of a 401 to a request that was sent at ``since``: a token as old as that is read again.

        A token that was read later was not the one refused (client-go ``ResetTokenOlderThan``).
        """
        if self._read_at <= since:
            self._read_at = since - TOKEN_PERIOD

    def _read(self, file: str) -> None:
        token = b""
        cause: Exception | None = None
        try:
            with open(file, "rb") as opened:
                token = opened.read().strip()
            problem = "" if _SENDABLE.fullmatch(token) else "holds what is no token" if token else "is empty"
        except (OSError, ValueError) as exc:
            problem, cause = f"cannot be read: {getattr(exc, 'strerror', None) or exc}", exc
        if not problem:
            self._header = f"Bearer {token.decode('ascii')}"
        elif self._header is None:
            raise ConfigError(f"the token file {problem}", file=file) from cause
        else:
            logger.warning("token file %s %s; keeping the token of before", file, problem)
        self._read_at = trio.current_time()
