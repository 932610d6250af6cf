"""Wrap credentials in objects that do not show them.

Some tools, such as ``pytest -l``, Sentry and rich, print the local variables of each frame of a traceback.
So every variable, argument or attribute that holds a token, a password or a key is a :class:`Secret`. The credential
is revealed only in the call that needs it.
"""

from __future__ import annotations

import hmac
from typing import AnyStr, Final, Generic, NoReturn, final

HIDDEN: Final = "<hidden>"


@final
class Secret(Generic[AnyStr]):
    """A credential that ``repr()``, ``str()`` and ``format()`` do not show.

    Two secrets are equal if their credentials are equal. A secret is false if its credential is empty.
    A secret has no ``__dict__`` and cannot be pickled, so the credential is not written anywhere by accident.
    This is not an attrs class, because other tools could find and show its fields.

    Args:
        credential: The credential, a str or bytes.
    """

    __slots__ = ("_credential",)

    def __init__(self, credential: AnyStr) -> None:
        self._credential: AnyStr = credential

    def reveal(self) -> AnyStr:
        """Return the credential. Do not assign the result to a variable."""
        return self._credential

    def __repr__(self) -> str:
        return HIDDEN

    def __bool__(self) -> bool:
        return bool(self._credential)

    def __eq__(self, other: object) -> bool:
        """Compare the credentials in constant time."""
        if not isinstance(other, Secret):
            return NotImplemented
        mine, theirs = self._credential, other._credential
        return isinstance(mine, str) is isinstance(theirs, str) and hmac.compare_digest(_bytes(mine), _bytes(theirs))

    def __hash__(self) -> int:
        return hash(self._credential)

    def __copy__(self) -> Secret[AnyStr]:
        return self

    def __deepcopy__(self, memo: object) -> Secret[AnyStr]:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret cannot be pickled, because the result would contain the credential")


def conceal(credential: AnyStr | Secret[AnyStr]) -> Secret[AnyStr]:
    """Return the credential as a :class:`Secret`. An existing secret is returned unchanged."""
    return credential if isinstance(credential, Secret) else Secret(credential)


def _bytes(credential: str | bytes) -> bytes:
    return credential.encode("utf-8", "surrogatepass") if isinstance(credential, str) else credential
