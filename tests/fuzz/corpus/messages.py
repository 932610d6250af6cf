"""Messages that have led to exceptions of other libraries."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.fuzz.http_memory import Reply
from tests.fuzz.messages import HEADERS, Exchange
from trioformer.models._internal import envelope_of, tagged


def number_of(value: bytes) -> Exchange:
    """A list of a schema whose maximum has these bytes."""
    schema = tagged(4, tagged(1, tagged(9, value)))
    crd = tagged(1, tagged(1, b"bad")) + tagged(2, tagged(1, b"x.io") + tagged(7, tagged(1, b"v1") + schema))
    listed = tagged(1, tagged(2, b"77")) + tagged(2, crd)
    body = envelope_of("apiextensions.k8s.io/v1", "CustomResourceDefinitionList", listed)
    reply = Reply(200, HEADERS, (body,))
    return Exchange("CustomResourceDefinition", "list", ((crd, False),), reply, is_changed=False)


CASES: Mapping[str, Callable[[], Exchange]] = {
    "a number without bytes": lambda: number_of(b""),
    "a number of three bytes": lambda: number_of(b"abc"),
}
