"""What a plugin writes to its standard error, for errors and logs: bounded, in lines, and with secrets hidden.

Plugins write tokens to it: with ``--debug``, in the error of an HTTP library, or by mistake.
What is known to be secret is hidden wherever it is, and so is what has the form of a credential.
That hides too much at times, but what remains still says what to do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, final

from ..._secret import HIDDEN, Secret
from ..._text import one_line

MAX_KEPT: Final = 16 * 1024
"""Bytes of the standard error that are kept: the last ones."""
MAX_SHOWN: Final = 1_000
"""Characters of it in an error, and in a line of the log."""
MAX_LINES: Final = 20
"""Lines of it in the log, for each run."""
SHORTEST: Final = 5
"""Characters of a known secret that is hidden; a shorter one, such as ``dev``, is in many words."""

_PRIVATE: Final = re.compile(r"-----BEGIN [A-Z0-9 ]+-----.*?(?:-----END [A-Z0-9 ]+-----|\Z)", re.DOTALL)
_NAMES: Final = re.compile(
    r"token|passw(?:or)?d|passphrase|secret|credential|api[-_]?key|private[-_]?key|access[-_]?key|key[-_]?data"
    r"|authorization|cookie|signature|assertion",
    re.IGNORECASE,
)
# Each expression that is searched for takes linear time: a word is taken whole, and looked at by a function.
_PAIRS: Final = (
    re.compile(r"""(?<![\w-])([\w-]++)["']?\s*+[:=]\s*+(?:(?:bearer|basic)\s++)?""", re.IGNORECASE),
    re.compile(r""""[^"\n]*+"?|'[^'\n]*+'?|[^\s,;]++"""),
)
"""A name and what separates it from its value, and the value."""
_FLAGS: Final = (re.compile(r"(?<!\S)(-[\w-]++)\s++"), re.compile(r"[^\s-]\S*+"))
_BETWEEN_WORDS: Final = re.compile(r"""[\s"',;{}\[\]]+|:(?!//)""")
_LONG: Final = 8
"""Characters of a word that is hidden because it was printed."""
_PROTOCOL: Final = frozenset(
    {
        *(
            "apiVersion",
            "ExecCredential",
            "expirationTimestamp",
            "clientCertificateData",
            "clientKeyData",
            "interactive",
        ),
        *("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"),
    }
)
_SCHEMES: Final = re.compile(r"\b((?:bearer|basic)\s+)([\w.~+/=-]{8,})", re.IGNORECASE)
_USER_INFO: Final = re.compile(r"(://)[^/@\s]+(@)")
_TOKEN: Final = re.compile(r"\b(?:eyJ[\w-]{6,}|k8s-aws-v1|ya29|gh[a-z]_\w+)(?:\.[\w-]*)*")
"""A JWT, and the tokens of EKS, Google and GitHub."""
_RUN: Final = re.compile(r"(?<![\w+/=.~-])[A-Za-z0-9_+=-][A-Za-z0-9_+/=-]{19,}")
_HEX: Final = re.compile(r"\b[0-9a-fA-F]{32,}\b")
_MIXED: Final = (re.compile("[a-z]"), re.compile("[A-Z]"), re.compile("[0-9]"))
_ACCESS_KEY: Final = re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}\b")


def hide_secrets(text: str, known: Iterable[Secret[str]] = ()) -> str:
    """Return a text in which known secrets, and what has the form of a credential, are replaced.

    Args:
        text: The text, of any number of lines.
        known: Secrets; of one with several lines, each line is hidden.
    """
    lines = {line for each in known for line in _lines_of(each) if len(line) >= SHORTEST}
    for line in sorted(lines, key=len, reverse=True):
        text = text.replace(line, HIDDEN)
    text = _PRIVATE.sub(HIDDEN, text)
    text = _USER_INFO.sub(rf"\1{HIDDEN}\2", text)
    text = _SCHEMES.sub(rf"\1{HIDDEN}", text)
    for names, value in (_PAIRS, _FLAGS):
        text = _without_secret_values(text, names, value)
    for form in (_TOKEN, _HEX, _ACCESS_KEY):
        text = form.sub(HIDDEN, text)
    return _RUN.sub(_hidden_if_mixed, text)


def secret_arguments(arguments: Iterable[str]) -> list[Secret[str]]:
    """Return the values among a plugin's arguments that their names call secret: ``--token x``, ``--token=x``."""
    found: list[Secret[str]] = []
    is_secret = False
    for argument in arguments:
        name, _, value = argument.partition("=")
        if is_secret:
            found.append(Secret(argument))
        is_secret = name.startswith("-") and bool(_NAMES.search(name))
        if is_secret and value:
            found.append(Secret(value))
            is_secret = False
    return found


def printed_words(output: Secret[bytes]) -> list[Secret[str]]:
    """Return what a plugin has printed in words: any may be a part of a credential."""
    words = set(_BETWEEN_WORDS.split(output.reveal()[:MAX_KEPT].decode("utf-8", "replace").replace("\\n", "\n")))
    return [Secret(word) for word in words if len(word) >= _LONG and word not in _PROTOCOL]


def _lines_of(secret: Secret[str]) -> list[str]:
    return [line.strip() for line in secret.reveal().splitlines()]


def _without_secret_values(text: str, names: re.Pattern[str], value: re.Pattern[str]) -> str:
    pieces: list[str] = []
    end = 0
    for name in names.finditer(text):
        found = value.match(text, name.end())
        if found is not None and name.start() >= end and _NAMES.search(name[1]):
            pieces += [text[end : name.end()], HIDDEN]
            end = found.end()
    return "".join([*pieces, text[end:]])


def _hidden_if_mixed(run: re.Match[str]) -> str:
    is_mixed = all(kind.search(run[0]) for kind in _MIXED)
    return HIDDEN if is_mixed else run[0]


@final
class ErrorOutput:
    """Collects the standard error of one run; ``repr()`` shows only how much there is."""

    __slots__ = ("_is_cut", "_kept", "_lines_left", "_shown")

    def __init__(self) -> None:
        self._kept = bytearray()
        self._shown = 0
        self._lines_left = MAX_LINES
        self._is_cut = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self._kept)} bytes>"

    def add(self, data: bytes | bytearray) -> None:
        """Add what was read; if there is too much, the first lines are forgotten."""
        self._kept += data
        if len(self._kept) <= MAX_KEPT:
            return
        # At the end of a line, since a part of a secret would not be recognized.
        end = self._kept.find(b"\n", len(self._kept) - MAX_KEPT)
        forgotten = len(self._kept) if end < 0 else end + 1
        del self._kept[:forgotten]
        self._shown = max(0, self._shown - forgotten)
        self._is_cut = True

    def has_lines(self) -> bool:
        """Whether there are complete lines that were not taken yet."""
        return self._kept.find(b"\n", self._shown) >= 0

    def take_lines(self, known: Iterable[Secret[str]], *, has_ended: bool) -> list[str]:
        """Return the lines that were not taken yet, for a log, with secrets hidden.

        Args:
            known: What is to be hidden in any case.
            has_ended: Whether a last line without an end is complete.
        """
        end = len(self._kept) if has_ended else self._kept.rfind(b"\n") + 1
        text = hide_secrets(self._kept[self._shown : end].decode("utf-8", "replace"), known)
        self._shown = max(end, self._shown)
        lines = [one_line(line, longest=MAX_SHOWN) for line in text.splitlines() if line.strip()]
        taken = lines[: self._lines_left]
        if len(lines) > self._lines_left > 0:
            taken.append("(further lines are not shown)")
        self._lines_left -= min(len(lines), self._lines_left)
        return taken

    def text(self, known: Iterable[Secret[str]]) -> str:
        """Return the last lines as one, with secrets hidden; empty if nothing was written."""
        text = " ".join(hide_secrets(self._kept.decode("utf-8", "replace"), known).split())
        if len(text) > MAX_SHOWN:
            text = text[-MAX_SHOWN:].partition(" ")[2] or text[-MAX_SHOWN:]
            return f"… {text}"
        return f"… {text}" if self._is_cut and text else text
