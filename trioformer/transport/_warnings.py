"""Parse and log the warnings from an API server, which are ``Warning`` headers with code 299.

kube-apiserver warns about deprecated APIs and about unknown or duplicate fields, and forwards the warnings of webhooks.
Source: client-go ``rest/warnings.go``, apimachinery ``pkg/util/net`` (``ParseWarningHeader``), RFC 7234 section 5.5
(the texts are not encoded).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeAlias, final

import attrs

from .._text import one_line

_log: Final = logging.getLogger("trioformer.transport")

CODE: Final = 299
"""The code of a warning for the user; API servers do not send other codes."""
MAX_REMEMBERED: Final = 1024
"""The number of texts to remember, so that each is logged only once. The oldest text is forgotten first."""

# warn-code SP warn-agent SP quoted warn-text [ quoted warn-date ], and a comma before the next one.
# Possessive: a quote that does not end must not be searched from each of its characters.
_WARNING: Final = re.compile(
    r'[ \t]*+([0-9]{3}) ([^ \t]++) "((?:[^"\\]|\\.)*+)"[ \t]*+(?:"[^"]*+"[ \t]*+)?(,|$)', re.DOTALL
)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)


@final
@attrs.frozen(kw_only=True)
class ServerWarning:
    """A warning in a response from the API server."""

    text: str
    """The text, as one printable line of at most 4,000 characters."""
    agent: str
    """The program that added the warning, or ``-`` if the program is unknown, as in kube-apiserver."""
    where: str
    """The operation, such as ``create pods in namespace default``, or the method and the path."""
    server: str
    """The URL of the server."""

    def __str__(self) -> str:
        return f"{self.server}: {self.where}: {self.text}"


WarningHandler: TypeAlias = Callable[[ServerWarning], None]
"""Receives each warning in the task that sent the request, after the server has executed it.

The handler must be quick, and receives repeated warnings each time. If the handler raises an exception, the request
raises this exception instead of returning its response, so tests can turn warnings into errors.
"""


def parse_warnings(headers: Iterable[str]) -> Iterator[tuple[int, str, str]]:
    """Yield the code, the agent and the text of each warning in the values of the ``Warning`` headers.

    After an invalid warning, the rest of that value is ignored, as in client-go.
    """
    for header in headers:
        position = 0
        while position < len(header) and (found := _WARNING.match(header, position)) is not None:
            code, agent, text, _ = found.groups()
            yield int(code), agent, _ESCAPED.sub(r"\1", text)
            position = found.end()


def report_warnings(handler: WarningHandler, headers: Iterable[str], *, where: str, server: str) -> None:
    """Call the handler with each warning of a response."""
    for code, agent, text in parse_warnings(headers):
        line = one_line(text)
        if code == CODE and line:
            handler(ServerWarning(text=line, agent=one_line(agent, longest=253), where=where, server=server))


@final
@attrs.define(eq=False)
class WarningLog:
    """The default warning handler of a client, which logs each text once."""

    _seen: dict[str, None] = attrs.field(factory=dict, init=False)
    """The texts, least recently received first."""

    def __call__(self, warning: ServerWarning) -> None:
        is_new = warning.text not in self._seen
        self._seen.pop(warning.text, None)
        self._seen[warning.text] = None
        if not is_new:
            return
        if len(self._seen) > MAX_REMEMBERED:
            del self._seen[next(iter(self._seen))]
        _log.warning("%s", warning)
