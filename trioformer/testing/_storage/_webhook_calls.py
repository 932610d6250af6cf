"""The calls of webhooks that a request needs, and their answers.

The code that handles a request is synchronous, so each request is atomic.  If this code needs an answer that is not
known yet, it raises :exc:`CallsNeededError` before it writes anything.  The server then calls the webhook and handles
the request again from the beginning.  If another request has changed the object in the meantime, the webhook is called
again, with the new object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias, final

import attrs

from ...models._internal import dumps
from ._storage import JSONObject, Stored

ADMISSION: Final = ("admission.k8s.io/v1", "AdmissionReview")
CONVERSION: Final = ("apiextensions.k8s.io/v1", "ConversionReview")
Answer: TypeAlias = tuple[str, JSONObject | str]
"""The uid of a review, and the review in the response or the reason why there is none."""


@final
@attrs.frozen(eq=False)
class Call:
    """A call of a webhook."""

    client: Mapping[str, Any]
    """The ``clientConfig`` of the webhook."""
    timeout: int
    """Seconds after which the call fails."""
    review: tuple[str, str]
    """The apiVersion and the kind of the review."""
    request: JSONObject
    """The ``request`` of the review, without its uid."""
    keep: Callable[[Answer], None]
    """A function that is called with the answer."""


class CallsNeededError(Exception):
    """The request must be handled again after these calls."""

    def __init__(self, calls: list[Call]) -> None:
        super().__init__("a webhook must be called, which only the requests of clients do")
        self.calls = calls


@final
@attrs.frozen(eq=False)
class Answers:
    """The answers to one request's calls."""

    _known: dict[bytes, Answer] = attrs.field(factory=dict)
    reviewed: set[Stored] = attrs.field(factory=set)
    """The states in a collection that webhooks allow to delete.  They are not reviewed again after each other call."""

    def find(
        self, where: str, client: Mapping[str, Any], timeout: int, review: tuple[str, str], request: JSONObject
    ) -> Answer:
        """Return the answer to a call, or raise :exc:`CallsNeededError`.

        ``where`` distinguishes calls with the same request.
        """
        key = f"{where}\n".encode() + dumps(request)
        if key not in self._known:
            raise CallsNeededError([Call(client, timeout, review, request, partial(self._known.__setitem__, key))])
        return self._known[key]
