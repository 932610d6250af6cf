"""A complete response."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

import attrs


@final
@attrs.frozen
class Response:
    """A complete response."""

    code: int
    """The HTTP status code."""
    headers: Mapping[str, str]
    """The headers, with names in lower case."""
    body: bytes = attrs.field(repr=False)
    """The body, as it was sent."""
