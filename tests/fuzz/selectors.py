"""Label and field selectors, and quantities: parsed and matched by a second implementation."""

from __future__ import annotations

import math
import random
import re
from fractions import Fraction
from typing import Any, Literal

import attrs

from trioformer.errors import SelectorError, TrioformerError
from trioformer.models import FieldSelector, LabelSelector, Quantity

from .engine import Fuzzer
from .oracle import Finding, Oracle

KEYS = ("app", "tier", "example.com/role", "a-b_c.d", "in", "notin", "exists", "x" * 63)
VALUES = ("web", "db", "", "1", "5", "-3", "007", "9223372036854775807", "9223372036854775808", "in", "a.b_c-d")
ODD = (
    "a/b/c", "/a", "a/", "-a", "a-", "é", "A/b", "x" * 64, "x" * 9_000, "\x00", "\u2028", "\ud800", "a b", "==", "=", "!", "(", ")", ",", ">", "<", "<=",
    "in(", "in (a", "notin", "a in b", "a in ()", "a in (,)", "!a=b", "!!a", "a=b=c", "a,,b", ",", " ", "\t", "\x1b[2J", "a!=", "a>x", "a<1.5", "a>" + "9" * 5_000,
    "(" * 5_000, "a," * 5_000 + "a", "a in (" + "b," * 5_000 + "b)", "٣", "a>٣", "a\u00a0b", "\ufeffa", "a\n=b",
)  # fmt: skip
LABELS: tuple[dict[str, str], ...] = (
    {},
    {"app": "web"},
    {"app": "db", "tier": "1", "example.com/role": ""},
    {"app": "", "tier": "5", "in": "notin", "x" * 63: "web"},
    {"tier": "-3", "a-b_c.d": "a.b_c-d", "notin": "007"},
    {"tier": "9223372036854775808", "exists": "9223372036854775807", "app": "no-number"},
)
PATHS = ("metadata.name", "metadata.namespace", "spec.nodeName", "status.phase", "a", "x[0].y")
FIELDS: tuple[dict[str, str], ...] = (
    {},
    {"metadata.name": "web", "status.phase": "Running"},
    {"metadata.name": "a,b=c\\d", "spec.nodeName": " "},
    {"metadata.name": "", "a": "\\", "x[0].y": "="},
)
NUMBERS = ("0", "1", "1.5", ".5", "5.", "-1", "+1", "--1", "", ".", "1..2", "1e", "9" * 30, "9" * 5_000, "0." + "0" * 5_000 + "1", "١", "0x1", "1_0", " 1", "1 ", "nan", "inf", "1" + "0" * 400)  # fmt: skip
SUFFIXES = ("", "", "m", "k", "Ki", "M", "Mi", "G", "E", "Ei", "n", "u", "K", "mi", "e3", "E3", "e-3", "e+3", "e999", "e-999", "e999999999", "E-999999999999", "e" + "9" * 5_000, "e1.5", "ei", "\n", "µ")  # fmt: skip


@attrs.frozen
class Text:
    """A selector or a quantity."""

    kind: Literal["label", "field", "quantity"]
    text: str
    other: str = "1"
    """Another quantity, to compare with."""


class Selectors(Fuzzer[Text]):
    """Parses, matches, and formats what was parsed."""

    name = "selectors"

    def generate(self, rng: random.Random) -> Text:
        kind: Any = rng.choice(("label", "label", "field", "field", "quantity"))
        if kind == "quantity":
            return Text(kind, _quantity(rng), _quantity(rng))
        text = ",".join(
            (_label_term if kind == "label" else _field_term)(rng) for _ in range(rng.choice((0, 1, 1, 2, 3)))
        )
        if rng.random() < 0.5:
            for _ in range(rng.choice((1, 1, 3))):
                at = rng.randrange(len(text) + 1)
                change = rng.choice(("", rng.choice(ODD), rng.choice("=!<>(),\\ \t\r\nab/é\x00")))
                text = text[:at] + change + text[at + rng.randrange(3) :]
        return Text(kind, text)

    async def check(self, given: Text, oracle: Oracle) -> None:
        if given.kind == "quantity":
            _check_quantity(given, oracle)
            return
        if given.kind == "label":
            self._check(given, LabelSelector.parse, read_labels, LABELS, label_matches, oracle)
        else:
            self._check(given, FieldSelector.parse, read_fields, FIELDS, field_matches, oracle)

    @staticmethod
    def _check(given: Text, parse: Any, model: Any, objects: Any, matches: Any, oracle: Oracle) -> None:
        parsed: Any = oracle.call_sync(lambda: parse(given.text), (SelectorError,))
        wanted = model(given.text)
        if isinstance(parsed, SelectorError):
            oracle.expect(wanted is None, "a valid selector is refused", (given.text, parsed))
            return
        oracle.expect(wanted is not None, "a selector is accepted that is not valid", given.text)
        for each in objects:
            found = (
                parsed.matches(each)
                if given.kind == "label"
                else parsed.matches(lambda path, each=each: each.get(path, ""))
            )
            oracle.expect(found is matches(wanted, each), "a selector matches other objects", (given.text, each, found))
        again: Any = oracle.call_sync(lambda: parse(str(parsed)), (SelectorError,))
        oracle.expect(again == parsed, "a selector that was formatted is another", (given.text, str(parsed)))


# --- labels: apimachinery pkg/labels/selector.go ---

_WORD = r"[^ \t\r\n=!<>(),]+"
_SPACE = r"[ \t\r\n]*"
_VALUE_SET = re.compile(rf"{_SPACE}\({_SPACE}((?:{_WORD})?{_SPACE}(?:,{_SPACE}(?:{_WORD})?{_SPACE})*)\){_SPACE}")
_TERM = re.compile(rf"{_SPACE}(!?){_SPACE}({_WORD}){_SPACE}")
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_DNS = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*")


def _is_key(text: str) -> bool:
    prefix, slash, name = text.rpartition("/")
    return bool(_NAME.fullmatch(name)) and (not slash or (len(prefix) <= 253 and bool(_DNS.fullmatch(prefix))))


def _is_value(text: str) -> bool:
    return text == "" or bool(_NAME.fullmatch(text))


def _int64(text: str) -> int | None:
    if not re.fullmatch(r"[+-]?[0-9]+", text) or len(text) > 4_000:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def read_labels(text: str) -> list[tuple[str, str, list[str]]] | None:
    """Parse a label selector; None if it is not valid."""
    if not text.strip(" \t\r\n"):
        return []
    terms = []
    at = 0
    while True:
        found = _TERM.match(text, at)
        if found is None or not _is_key(found[2]):
            return None
        at = found.end()
        values: list[str] = []
        operator = "absent" if found[1] else "exists"
        if not found[1] and at < len(text) and text[at] != ",":
            symbol = re.compile(r"==|!=|=|<|>|(?:notin|in)(?![^ \t\r\n=!<>(),])").match(text, at)
            if symbol is None:
                return None
            operator, at = symbol[0], symbol.end()
            if operator in ("in", "notin"):
                listed = _VALUE_SET.match(text, at)
                if listed is None:
                    return None
                values, at = [value.strip(" \t\r\n") for value in listed[1].split(",")], listed.end()
            else:
                word = re.compile(rf"{_SPACE}({_WORD})?{_SPACE}").match(text, at)
                assert word is not None
                values, at = [word[1] or ""], word.end()
                if operator in "<>" and _int64(values[0]) is None:
                    return None
        if not all(map(_is_value, values)):
            return None
        terms.append((found[2], operator, values))
        if at == len(text):
            return terms
        if text[at] != ",":
            return None
        at += 1


def label_matches(terms: list[tuple[str, str, list[str]]], labels: dict[str, str]) -> bool:
    for key, operator, values in terms:
        value = labels.get(key)
        if operator == "absent":
            good = value is None
        elif operator == "exists":
            good = value is not None
        elif operator in ("=", "==", "in"):
            good = value in values
        elif operator in ("!=", "notin"):
            good = value not in values
        else:
            number, bound = _int64(value or ""), _int64(values[0])
            good = number is not None and bound is not None and (number > bound if operator == ">" else number < bound)
        if not good:
            return False
    return True


# --- fields: apimachinery pkg/fields/selector.go ---


def read_fields(text: str) -> list[tuple[str, bool, str]] | None:
    """Parse a field selector into path, whether it must be equal, and value; None if it is not valid."""
    terms: list[str] = [""]
    is_escaped = False
    for character in text:
        if character == "," and not is_escaped:
            terms.append("")
            continue
        terms[-1] += character
        is_escaped = character == "\\" and not is_escaped
    found = []
    for term in terms:
        if not term:
            continue
        split = re.match(r"(.*?)(!=|==|=)(.*)\Z", term, re.DOTALL)
        if split is None or not split[1] or re.search(r"[\s,=!\\]", split[1]):
            return None
        value = _unescaped(split[3])
        if value is None:
            return None
        found.append((split[1], split[2] != "!=", value))
    return found


def _unescaped(text: str) -> str | None:
    value, characters = "", iter(text)
    for character in characters:
        if character in "=,":
            return None
        plain = next(characters, "") if character == "\\" else character
        if character == "\\" and plain not in ("\\", ",", "="):
            return None
        value += plain
    return value


def field_matches(terms: list[tuple[str, bool, str]], fields: dict[str, str]) -> bool:
    return all((fields.get(path, "") == value) is is_equal for path, is_equal, value in terms)


def _label_term(rng: random.Random) -> str:
    key, operator = rng.choice(KEYS), rng.choice(("", "!", "=", "==", "!=", " in ", " notin ", ">", "<"))
    if operator in ("", "!"):
        return operator + key
    if "in" in operator:
        return f"{key}{operator}({','.join(rng.choice(VALUES) for _ in range(rng.choice((1, 2, 3))))})"
    space = rng.choice(("", "", " ", "\t"))
    return f"{space}{key}{space}{operator}{space}{rng.choice(VALUES)}{space}"


def _field_term(rng: random.Random) -> str:
    value = rng.choice(("web", "", "Running", r"a\,b\=c\\d", " ", r"\\", r"\=", "a b", "\\", "a=b", r"\x", "é"))
    return f"{rng.choice(PATHS)}{rng.choice(('=', '==', '!='))}{value}"


# --- quantities: apimachinery pkg/api/resource ---

_SCALES = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_QUANTITY = re.compile(r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))([numkMGTPE]?|[KMGTPE]i|[eE][+-]?[0-9]+)")


def _quantity(rng: random.Random) -> str:
    text = rng.choice(NUMBERS) + rng.choice(SUFFIXES)
    return text if rng.random() < 0.9 else text.replace(rng.choice("01eEi."), rng.choice(("", " ", "e", "\x1b")), 1)


MAX_INT64 = 2**63 - 1


def read_quantity(text: str) -> Fraction | None:
    """Return the value, rounded up to 1e-9 as in apimachinery; None if it is not a quantity, or longer than allowed."""
    found = _QUANTITY.fullmatch(text)
    if found is None or len(text) > 256:
        return None
    exact = _exact(found)
    if exact is None:
        return None
    nanos = exact * 10**9
    rounded = Fraction(math.ceil(nanos) if nanos > 0 else math.floor(nanos), 10**9)
    return min(max(rounded, Fraction(-MAX_INT64)), Fraction(MAX_INT64)) if text.endswith("i") else rounded


def _exact(found: re.Match[str]) -> Fraction | None:
    whole, _, part = found[1].partition(".")
    number = Fraction(int((whole.lstrip("+-") or "0") + part), 10 ** len(part)) * (-1 if whole.startswith("-") else 1)
    suffix = found[2]
    if suffix in _SCALES:
        return number * Fraction(10) ** _SCALES[suffix]
    if suffix.endswith("i"):
        return number * 1024 ** ("KMGTPE".index(suffix[0]) + 1)
    exponent = int(suffix[1:])  # a text of 256 characters
    if exponent < -1_000:
        return number * Fraction(1, 10**1_000)  # rounded up as well
    return number * Fraction(10) ** exponent if exponent <= 256 else None


def _check_quantity(given: Text, oracle: Oracle) -> None:
    documented = (ValueError, TrioformerError)
    one, other = Quantity(given.text), Quantity(given.other)
    value: Any = oracle.call_sync(lambda: one.value, documented)
    wanted = read_quantity(given.text)
    if isinstance(value, Exception):
        oracle.expect(wanted is None, "a quantity is refused", (given.text, value))
    elif wanted is not None:
        oracle.expect(Fraction(value) == wanted, "a quantity is not exact", (given.text, value))
    else:
        raise Finding(f"a text is accepted that is not a quantity\n{given.text[:100]} {value}")
    oracle.call_sync(lambda: (hash(one), repr(one), str(one)), documented)
    less: Any = oracle.call_sync(lambda: (one < other, one == other), documented)
    second = read_quantity(given.other)
    if not isinstance(less, Exception) and wanted is not None and second is not None:
        oracle.expect(less == (wanted < second, wanted == second), "quantities compare otherwise", (given, less))
