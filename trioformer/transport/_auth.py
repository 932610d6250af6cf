"""Tokens and passwords of the configuration; no other module reads them."""

from __future__ import annotations

import logging
import re
from contextlib import AbstractContextManager, nullcontext
from typing import Final, final

from .._files import FileRefusedError, read_file
from .._secret import Secret, conceal
from ..errors import ConfigError
from ..kubeconfig import ClusterConfig
from ._credentials import Credential, basic_authorization
from ._file_changes import FileChanges

TOKEN_PERIOD: Final = 60.0
"""Seconds after which a token file is read again without a visible change (client-go ``transport/token_source.go``)."""

_VISIBLE: Final = re.compile(rb"[\x21-\x7e]+")

logger = logging.getLogger("trioformer.transport")


@final
class Authorization:
    """The source of credentials that the configuration has: a bearer token, basic authentication, or none.

    Implements :class:`~._credentials.CredentialSource`.

    A token file that has changed is read before a request, as :mod:`._file_changes` describes; the old token stays in
    use while the file is empty, not readable, or does not contain a valid token.
    Neither ``repr()`` nor an error shows a secret.

    Raises:
        ConfigError: A token file does not contain a valid token and there is no other token, or a user name or token
            contains characters that it must not.
    """

    __slots__ = ("_changes", "_file", "_latest", "_problem")

    def __init__(self, config: ClusterConfig) -> None:
        self._file = config.token_file
        self._latest = Credential()
        self._problem = ""
        self._changes = FileChanges([self._file], period=TOKEN_PERIOD)
        if config.token is not None:
            header = _bearer(conceal(config.token))
            if header is None:
                raise ConfigError("a token must not contain white space, control or non-ASCII characters", key="token")
            self._latest = Credential(header)
        elif config.username is not None and self._file is None:
            if ":" in config.username:
                raise ConfigError("a user name must not contain a colon", key="username")
            self._latest = Credential(basic_authorization(config.username, conceal(config.password or "")))
        if self._file is not None:
            self._read(self._file)

    def __repr__(self) -> str:
        method = "none"
        if self._file is not None:
            method = f"token file {self._file}"
        elif self._latest.authorization is not None:
            method = self._latest.authorization.reveal().partition(" ")[0].lower()
        return f"<{type(self).__name__}: {method}>"

    @property
    def latest(self) -> Credential:
        return self._latest

    async def get(self) -> Credential:
        if self._file is not None and self._changes.must_read():
            self._changes.record_read()
            self._read(self._file)
        return self._latest

    def reject(self, credential: Credential) -> None:
        # A token that was read later is not the rejected one (client-go ``ResetTokenOlderThan``).
        if credential is self._latest:
            self._changes.record_rejection()

    def in_use(self) -> AbstractContextManager[None]:
        return nullcontext()

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
            if header != self._latest.authorization:
                self._latest = Credential(header)
        elif self._latest.authorization is None:
            raise ConfigError(f"the token file {problem}", file=file) from cause
        elif problem != self._problem:  # it may be found each second
            logger.warning("token file %s %s; keeping the previous token", file, problem)
        self._problem = problem


def _bearer(token: Secret[str] | Secret[bytes]) -> Secret[str] | None:
    """Make the header of a token; None if the token contains characters that it must not."""
    revealed = token.reveal()  # nothing below raises
    encoded = revealed.encode("utf-8", "replace") if isinstance(revealed, str) else revealed
    return Secret(f"Bearer {encoded.decode('ascii')}") if _VISIBLE.fullmatch(encoded) else None
