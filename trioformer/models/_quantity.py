"""Kubernetes quantities: ``100m``, ``1.5Gi``, ``2e3``."""

from __future__ import annotations

import functools
import re
from decimal import Decimal
from typing import final

import attrs

_SUFFIX = {
    "": Decimal(1),
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "k": Decimal(10**3),
    "M": Decimal(10**6),
    "G": Decimal(10**9),
    "T": Decimal(10**12),
    "P": Decimal(10**15),
    "E": Decimal(10**18),
    "Ki": Decimal(2**10),
    "Mi": Decimal(2**20),
    "Gi": Decimal(2**30),
    "Ti": Decimal(2**40),
    "Pi": Decimal(2**50),
    "Ei": Decimal(2**60),
}
_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))([numkMGTPE]|[KMGTPE]i|[eE][+-]?\d+)?", re.ASCII)


@final
@functools.total_ordering
@attrs.frozen(eq=False, repr=False)
class Quantity:
    """An amount of a resource, which keeps its text and is compared by its value.

    Source: apimachinery ``pkg/api/resource``.

    Raises:
        ValueError: From :attr:`value` and comparisons, if the text is not a quantity.
    """

    text: str
    """The text, such as ``1500m``."""

    @property
    def value(self) -> Decimal:
        """The exact amount in base units, such as cores or bytes."""
        match = _QUANTITY.fullmatch(self.text)
        if match is None:
            raise ValueError(f"{self.text!r} is not a quantity; examples: 100m, 1.5, 2Gi, 1e3")
        number, suffix = match[1], match[2] or ""
        if suffix not in _SUFFIX:
            return Decimal(number + suffix)
        return Decimal(number) * _SUFFIX[suffix]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Quantity):
            return NotImplemented
        return self.text == other.text or self.value == other.value

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Quantity):
            return NotImplemented
        return self.value < other.value

    def __hash__(self) -> int:
        return hash(self.value)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Quantity({self.text!r})"
