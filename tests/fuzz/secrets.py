"""The secrets that are planted in every input, and where they have shown.

A secret has a mark at its beginning and one at its end, so that a part of it is found as well, also in base64.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable

TOKEN = "q7TOKEN4f1d9a03b2TOKENz9"
PASSWORD = "q7PASSW8c52e7610dPASSWz9"
KEY = "q7KEYPEMb70316fa94KEYPEMz9"
"""A line of a private key."""
CONTENT = "q7CONTN29ae5581c3CONTNz9"
"""A value in an object: of a Secret's data, of an environment variable, or of a field that no class has."""

KEY_PEM = f"-----BEGIN PRIVATE KEY-----\n{KEY}\n-----END PRIVATE KEY-----\n"


def _forms(*secrets: str) -> tuple[str, ...]:
    """List what shows a secret: its marks, as they are and in base64."""
    forms: set[str] = set()
    for secret in secrets:
        for mark in (secret[:8], secret[-8:]):
            forms.add(mark)
            for shift in range(3):  # in base64 it looks different for each place in a group of three bytes
                encoded = base64.b64encode(b"\0" * shift + mark.encode()).decode()
                forms.add(encoded[shift + 1 : -4] if shift else encoded[:-4])
    return tuple(sorted(forms))


CREDENTIALS = _forms(TOKEN, PASSWORD, KEY)
OBJECT_CONTENT = _forms(CONTENT)
EVERYTHING = CREDENTIALS + OBJECT_CONTENT


def find(forms: Iterable[str], text: str) -> int:
    """Return where a secret shows, or -1."""
    return max(text.find(form) for form in forms)
