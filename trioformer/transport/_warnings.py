"""Warnings of an API server: the header ``Warning`` of its responses, with code 299.

kube-apiserver warns of deprecated APIs and of unknown or duplicate fields, and passes on the warnings of webhooks.
Source: client-go ``rest/warnings.go``, apimachinery ``pkg/util/net`` (``ParseWarningHeader``), RFC 7234 section 5.5,
whose texts are not encoded.
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
"""The code of a warning that is for the user; API servers send no other one."""
MAX_REMEMBERED: Final = 1024
"""Texts that are remembered so that each is logged once; the oldest is forgotten first."""

# warn-code SP warn-agent SP quoted warn-text [ quoted warn-date ], and a comma before the next one.
# Possessive: a quote that does not end must not be searched from each of its characters.
_WARNING: Final = re.compile(
    r'[ \t]*+([0-9]{3}) ([^ \t]++) "((?:[^"\\]|\\.)*+)"[ \t]*+(?:"[^"]*+"[ \t]*+)?(,|$)', re.DOTALL
)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)


@final
@attrs.frozen(kw_only=True)
class ServerWarning:
    """A warning in a response of the API server."""

    text: str
    """The text, as one printable line of at most 4,000 characters."""
    agent: str
    """Who added the warning; ``-`` if that is not known, as kube-apiserver has it."""
    where: str
    """The operation, such as ``create pods in namespace default``, or method and path."""
    server: str
    """The URL of the server."""

    def __str__(self) -> str:
        return f"{self.server}: {self.where}: {self.text}"


WarningHandler: TypeAlias = Callable[[ServerWarning], None]
"""Receives each warning, in the task that sent the request, when the server has executed it.

It must be quick, and sees a warning as often as the server sends it.
What it raises, the request raises instead of returning its response: so tests make errors of warnings.
"""


def parse_warnings(headers: Iterable[str]) -> Iterator[tuple[int, str, str]]:
    """Yield the code, the agent and the text of each warning in the values of the header.

    What follows something that is not a warning is ignored, up to the end of that value; so in client-go.
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
    """Logs each text once; the handler of a client that was not given another one."""

    _seen: dict[str, None] = attrs.field(factory=dict, init=False)
    """The texts, in the order in which they were last received."""

    def __call__(self, warning: ServerWarning) -> None:
        is_new = warning.text not in self._seen
        self._seen.pop(warning.text, None)
        self._seen[warning.text] = None
        if not is_new:
            return
        if len(self._seen) > MAX_REMEMBERED:
            del self._seen[next(iter(self._seen))]
        _log.warning("%s", warning)
