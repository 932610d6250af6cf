"""The ``Authorization`` header; no other module reads a token or password."""

from __future__ import annotations

import base64
import logging
import re
from typing import Final, final

import trio

from .._files import FileRefusedError, read_file
from .._secret import Secret, conceal
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
        self._header: Secret[str] | None = None
        self._read_at = 0.0
        if config.token is not None:
            self._header = _bearer(conceal(config.token))
            if self._header is None:
                raise ConfigError("a token must not contain white space, control or non-ASCII characters", key="token")
        elif config.username is not None and self._file is None:
            if ":" in config.username:
                raise ConfigError("a user name must not contain a colon", key="username")
            self._header = _basic(config.username, conceal(config.password or ""))
        if self._file is not None:
            self._read(self._file)

    def __repr__(self) -> str:
        method = "none"
        if self._file is not None:
            method = f"token file {self._file}"
        elif self._header is not None:
            method = self._header.reveal().partition(" ")[0].lower()
        return f"<{type(self).__name__}: {method}>"

    def header(self) -> Secret[str] | None:
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
        header: Secret[str] | None = None
        cause: Exception | None = None
        try:
            token = Secret(read_file(file).reveal().strip())
            header = _bearer(token)
            problem = "" if header else "does not contain a valid token" if token else "is empty"
        except FileRefusedError as exc:
            problem, cause = str(exc), exc
        except OSError as exc:
            problem, cause = f"cannot be read: {exc.strerror}", exc
        if not problem:
            self._header = header
        elif self._header is None:
            raise ConfigError(f"the token file {problem}", file=file) from cause
        else:
            logger.warning("token file %s %s; keeping the previous token", file, problem)
        self._read_at = trio.current_time()


def _bearer(token: Secret[str] | Secret[bytes]) -> Secret[str] | None:
    """Make the header of a token; None if the token contains characters that it must not."""
    revealed = token.reveal()  # nothing below raises
    encoded = revealed.encode("utf-8", "replace") if isinstance(revealed, str) else revealed
    return Secret(f"Bearer {encoded.decode('ascii')}") if _VISIBLE.fullmatch(encoded) else None


def _basic(username: str, password: Secret[str]) -> Secret[str]:
    pair = Secret(f"{username}:{password.reveal()}".encode())
    return Secret(f"Basic {base64.b64encode(pair.reveal()).decode('ascii')}")
