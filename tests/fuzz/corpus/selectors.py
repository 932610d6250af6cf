"""Selectors and quantities that raised something foreign, or were not exact."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.fuzz.selectors import Text

CASES: Mapping[str, Callable[[], Text]] = {
    "a quantity of 30 digits and a suffix": lambda: Text("quantity", "9" * 30 + "Ei"),
    "a quantity of 5,000 digits": lambda: Text("quantity", "9" * 5_000),
    "50,000 digits with a wrong end": lambda: Text("quantity", "9" * 50_000 + "µ"),
    "an exponent of 5,000 digits": lambda: Text("quantity", "1e" + "9" * 5_000),
    "an exponent of nine digits": lambda: Text("quantity", "1e999999999", "1"),
    "a negative exponent of nine digits": lambda: Text("quantity", "1e-999999999", "0"),
    "5,000 digits after the point": lambda: Text("quantity", "0." + "0" * 5_000 + "1m", "0"),
    "a text of 5,000 characters that is no quantity": lambda: Text("quantity", "1ee" + "9" * 5_000),
    "a quantity with escape sequences": lambda: Text("quantity", "1\x1b[2J"),
    "half a surrogate after a backslash": lambda: Text("field", "metadata.namespace!=\\\ud800"),
    "half a surrogate in a label": lambda: Text("label", "a=\ud800"),
    "5,000 brackets": lambda: Text("label", "(" * 5_000),
    "a comparison with 5,000 digits": lambda: Text("label", "a>" + "9" * 5_000),
    "a comparison with Arabic digits": lambda: Text("label", "a>٣"),
}
