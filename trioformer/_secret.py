"""A credential in an object that does not show it.

Tracebacks may print the local variables of each frame: ``pytest -l``, Sentry and rich do.
So a token, password or key is a :class:`Secret` wherever it is a variable, an argument or an attribute, and is revealed
only as an argument of the call that needs it.
"""

from __future__ import annotations

import hmac
from typing import AnyStr, Final, Generic, NoReturn, final

HIDDEN: Final = "<hidden>"


@final
class Secret(Generic[AnyStr]):
    """Holds a credential; ``repr()``, ``str()`` and ``format()`` do not show it.

    Two are equal if their credentials are; one is false if its credential is empty.
    It has no ``__dict__`` and is not pickled, so that it is written nowhere by accident.
    It is not an attrs class, because other programs could find and show its fields.

    Args:
        credential: A str or bytes.
    """

    __slots__ = ("_credential",)

    def __init__(self, credential: AnyStr) -> None:
        self._credential: AnyStr = credential

    def reveal(self) -> AnyStr:
        """Return the credential; do not assign it to a variable."""
        return self._credential

    def __repr__(self) -> str:
        return HIDDEN

    def __bool__(self) -> bool:
        return bool(self._credential)

    def __eq__(self, other: object) -> bool:
        """Compare in a time that does not depend on where the credentials differ."""
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
        raise TypeError("a Secret is not pickled, because the result would contain the credential")


def conceal(credential: AnyStr | Secret[AnyStr]) -> Secret[AnyStr]:
    """Return the credential as a :class:`Secret`, which it may be already."""
    return credential if isinstance(credential, Secret) else Secret(credential)


def _bytes(credential: str | bytes) -> bytes:
    return credential.encode("utf-8", "surrogatepass") if isinstance(credential, str) else credential
