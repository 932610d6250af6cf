"""Log the requests of a command, as ``kubectl -v=6`` to ``-v=9`` does, without its secrets."""

from __future__ import annotations

import logging
import re
import shlex
from collections.abc import Iterable
from http import HTTPStatus
from typing import Final, final
from urllib.parse import unquote

import attrs

from .._text import for_terminal
from ..transport import ObservedRequest
from ..transport._internal import messages_of

_log: Final = logging.getLogger("trioformer.cli")

_BODY_LENGTH: Final = 1024
"""The number of bytes of a body that level 8 shows, as in kubectl."""
_SHOWN_HEADERS: Final = re.compile(
    "accept|accept-encoding|audit-id|cache-control|connection|content-(encoding|length|type)|date|retry-after|"
    "transfer-encoding|upgrade|user-agent|x-kubernetes-pf-(flowschema|prioritylevel)-uid"
)
"""The headers that are shown. Others may contain credentials."""
_HIDDEN_VALUE: Final = re.compile(
    r"([?&](?!(?:allowWatchBookmarks|container|continue|dryRun|exclude|field(?:Manager|Selector|Validation)|follow|"
    r"force|includeObject|labelSelector|limit|limitBytes|ports|previous|propagationPolicy|resourceVersion(?:Match)?|"
    r"sendInitialEvents|since(?:Seconds|Time)|std(?:err|in|out)|stream|tailLines|timeout(?:Seconds)?|timestamps|tty|"
    r"verbose|watch)=)(?:[^=&]*=)?)[^&]+"
)
"""The values in a query that are not shown: others than these may contain passwords, as the ``command`` of exec."""
_SECRET_PATH: Final = re.compile(r"/([a-z]*secrets|token|proxy|log|exec|attach|[a-z]*reviews)(/|$)")
"""The paths whose bodies are never shown: Secrets, tokens, reviews of tokens, and the output of containers.

An error of ``exec`` may quote the command, and resources such as ``stringsecrets`` are Secrets of an operator."""


@final
@attrs.frozen(eq=False)
class RequestLog:
    """A request observer that logs requests.

    Level 6 shows the URL, the status and the duration, level 7 also the headers of the request, level 8 the headers of
    the response and the beginnings of the bodies, and level 9 complete bodies and a command for curl.
    As in kubectl, streamed bodies, such as those of watches and logs, are not shown.
    """

    server: str
    level: int

    def request_started(self, request: ObservedRequest) -> None:
        """Log the head and the body of the request."""
        if self.level >= 7:
            sent, _ = messages_of(request)
            headers = _shown((name.decode(), value.decode()) for name, value in sent.headers.items)
            self._log(request, "")
            if self.level >= 9:
                words = [
                    f"-X{request.method}",
                    *(word for each in headers for word in ("-H", each)),
                    self._url(request),
                ]
                _debug(shlex.join(["curl", "-v", *words]))
            _debug("\n    ".join(["Request Headers:", *headers]))
            self._log_body("Request Body", request, sent.content)

    def request_responded(self, request: ObservedRequest) -> None:
        """Log the head of the response."""
        _, received = messages_of(request)
        assert received is not None
        phrase = HTTPStatus(received.code).phrase if received.code in set(HTTPStatus) else ""
        self._log(request, f" {received.code} {phrase} in {request.duration * 1000:.0f} milliseconds")
        if self.level >= 8:
            _debug("\n    ".join(["Response Headers:", *_shown(received.head.headers.items())]))

    def request_ended(self, request: ObservedRequest) -> None:
        """Log the body of the response, or why no response arrived."""
        _, received = messages_of(request)
        if received is None:
            self._log(request, f" {request.reason} in {request.duration * 1000:.0f} milliseconds")
        else:
            self._log_body("Response Body", request, received.content)

    def _log(self, request: ObservedRequest, result: str) -> None:
        _debug(f"{request.method} {self._url(request)}{result}")

    def _url(self, request: ObservedRequest) -> str:
        sent, _ = messages_of(request)
        return self.server + _HIDDEN_VALUE.sub(r"\1…", sent.target().decode())

    def _log_body(self, what: str, request: ObservedRequest, body: bytes | None) -> None:
        if self.level >= 8 and body:
            sent, _ = messages_of(request)
            end, more = len(body), ""
            if _SECRET_PATH.search(unquote(sent.path.partition("?")[0])):
                end, more = 0, f"<{len(body)} bytes, not shown>"
            elif self.level == 8 and len(body) > _BODY_LENGTH:
                end, more = _BODY_LENGTH, f" [truncated {len(body) - _BODY_LENGTH} bytes]"
            _debug(f"{what}: {body[:end].decode(errors='replace').rstrip()}{more}")


def _debug(text: str) -> None:
    _log.debug("%s", for_terminal(text))


def _shown(headers: Iterable[tuple[str, str]]) -> list[str]:
    return [f"{name.title()}: {value}" for name, value in headers if _SHOWN_HEADERS.fullmatch(name.lower())]
