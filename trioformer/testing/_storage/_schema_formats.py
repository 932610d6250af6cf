"""The formats of strings that are validated in custom objects.  All other formats are ignored.

Unlike kube-apiserver, the server does not check ``bsonobjectid``, ``creditcard``, ``isbn``, ``isbn10``, ``isbn13``,
``rgbcolor`` and ``ssn``.

Source: kube-openapi ``pkg/validation/strfmt``, where the names of formats have no dashes, and the list in
apiextensions-apiserver ``pkg/apiserver/validation/formats.go``.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import re
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from ._object_meta import format_problems

_DURATION = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+|[+-]?0", re.ASCII)
_SCALA_DURATION = re.compile(r"\d+\s*([A-Za-zµ]+)", re.ASCII)
_SCALA_UNITS = frozenset({"ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"})
_SCALA_PREFIXES = ("nano", "micro", "milli", "sec", "min", "hour", "day", "week")
_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})")
_LEADING_ZEROS = re.compile(r"\b0+(?=[0-9]+(?:\.|\Z))")
"""Leading zeros in the numbers of IPv4 addresses, which Kubernetes still accepts."""
_MAC = (
    r"[0-9a-f]{2}(?P<one>[-:])[0-9a-f]{2}(?:(?P=one)[0-9a-f]{2}){4}(?:(?:(?P=one)[0-9a-f]{2}){2}|(?:(?P=one)[0-9a-f]{2}){14})?"
    r"|[0-9a-f]{12}|[0-9a-f]{16}|[0-9a-f]{40}|[0-9a-f]{4}(?:\.[0-9a-f]{4}){2}(?:\.[0-9a-f]{4}|(?:\.[0-9a-f]{4}){7})?"
)
_HOST = re.compile(r"[^\W_](?:-?[^\W_]{0,62})?|(?:[^\W_](?:(?:[^\W_]|-){0,61}[^\W_])?\.)+[^\W\d_]{2,63}")


def _matches(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern, re.ASCII | re.IGNORECASE)
    return lambda text: compiled.fullmatch(text) is not None


def _uuid(third: str, fourth: str) -> Callable[[str], bool]:
    return _matches(rf"[0-9a-f]{{8}}-?[0-9a-f]{{4}}-?{third}-?{fourth}-?[0-9a-f]{{12}}")


def _is_address(version: int) -> Callable[[str], bool]:
    def is_address(text: str) -> bool:
        try:
            return "%" not in text and ipaddress.ip_address(_LEADING_ZEROS.sub("", text)).version == version
        except ValueError:
            return False

    return is_address


def _is_network(text: str) -> bool:
    address, slash, length = text.partition("/")
    if not slash or not re.fullmatch("[0-9]+", length, re.ASCII) or "%" in address:
        return False
    try:
        found = ipaddress.ip_address(_LEADING_ZEROS.sub("", address))
    except ValueError:
        return False
    return int(length) <= found.max_prefixlen


def _is_date(text: str) -> bool:
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return False
    try:
        # Go has the year 0, which is a leap year, but Python does not.
        dt.date.fromisoformat(f"2000{text[4:]}" if text.startswith("0000") else text)
    except ValueError:
        return False
    return True


def _is_time(text: str) -> bool:
    date, separator, rest = text.lower().partition("t")
    found = _TIME.fullmatch(rest.partition("t")[0])
    if not separator or found is None or not _is_date(date):
        return False
    return found[1] <= "23" and found[2] <= "59" and found[3] <= "59"


def _is_duration(text: str) -> bool:
    if _DURATION.fullmatch(text):
        return True
    units = [unit.lower() for unit in _SCALA_DURATION.findall(text)]
    return any(unit in _SCALA_UNITS or unit.startswith(_SCALA_PREFIXES) for unit in units)


def _is_uri(text: str) -> bool:
    """Return whether Go's ``url.ParseRequestURI`` accepts a string: an absolute path, or a string with a scheme."""
    if not text or any(ord(character) < 0x21 or ord(character) == 0x7F for character in text) or " " in text:
        return False
    if text == "*" or text.startswith("/"):
        return not re.search("%(?![0-9A-Fa-f]{2})", text)
    scheme, colon, rest = text.partition(":")
    if not colon or not re.fullmatch(r"[A-Za-z][-A-Za-z0-9+.]*", scheme) or not rest:
        return False
    if re.search("%(?![0-9A-Fa-f]{2})", rest.partition("?")[0]):
        return False
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    return True


def _is_host(text: str) -> bool:
    if not _HOST.fullmatch(text) or len(text.encode()) > 255:
        return False
    return all(len(part.encode()) <= 63 for part in text.split("."))


def _is_email(text: str) -> bool:
    address = text.rpartition("<")[2].removesuffix(">") if text.endswith(">") else text
    atom = r"[\w!#$%&'*+/=?^`{|}~-]+"
    return re.fullmatch(rf"\s*{atom}(?:\.{atom})*@{atom}(?:\.{atom})*\s*", address) is not None


FORMATS: Mapping[str, Callable[[str], bool]] = {
    "byte": _matches("(?:[a-z0-9+/]{4})*(?:[a-z0-9+/]{2}==|[a-z0-9+/]{3}=|[a-z0-9+/]{4})"),
    "cidr": _is_network,
    "date": _is_date,
    "datetime": _is_time,
    "duration": _is_duration,
    "email": _is_email,
    "hexcolor": _matches("#?(?:[0-9a-f]{3}|[0-9a-f]{6})"),
    "hostname": _is_host,
    "ipv4": _is_address(4),
    "ipv6": _is_address(6),
    "k8slongname": lambda text: not any(format_problems("subdomain", text)),
    "k8sshortname": lambda text: not any(format_problems("label", text)),
    "mac": _matches(_MAC),
    "password": lambda _: True,
    "uri": _is_uri,
    "uuid": _uuid("[0-9a-f]{4}", "[0-9a-f]{4}"),
    "uuid3": _uuid("3[0-9a-f]{3}", "[0-9a-f]{4}"),
    "uuid4": _uuid("4[0-9a-f]{3}", "[89ab][0-9a-f]{3}"),
    "uuid5": _uuid("5[0-9a-f]{3}", "[89ab][0-9a-f]{3}"),
}
"""The functions that return whether a string has a format, by the name of the format without dashes."""


def text_format(raw_format: str) -> Callable[[str], bool] | None:
    """Return the function that checks a format, or None if the format is ignored."""
    return FORMATS.get(raw_format.replace("-", ""))
