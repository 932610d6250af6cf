"""The parsing of HTTP methods, paths and queries into verb, kind, namespace and name.

Source: apiserver ``pkg/endpoints/request/requestinfo.go``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import final
from urllib.parse import parse_qsl

import attrs

from ...models import FrozenMap
from ...models._internal import EMPTY_MAP
from .._storage._tracking import manager_of

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}
_WRITES = frozenset({*_VERBS.values(), "delete", "deletecollection"})
_ERROR = 300
_NAMESPACE_SUBRESOURCES = frozenset({"status", "finalize"})


@final
@attrs.frozen(kw_only=True)
class RequestRecord:
    """A parsed request to the embedded server."""

    verb: str
    """The verb as in RBAC: ``get``, ``list``, ``watch``, ``create``, ``update``, ``patch``, ``delete`` or
    ``deletecollection``. For paths that are not resources, it is the HTTP method in lower case."""
    path: str
    """The URL's path."""
    group: str = ""
    """The API group; empty for the core group."""
    version: str = ""
    """The API version. It is empty for paths that are not resources, such as ``/version``."""
    resource: str = ""
    """The plural, such as ``pods``. It is empty for paths that are not resources."""
    namespace: str | None = None
    """The namespace in the path, or None."""
    name: str | None = None
    """The object's name in the path, or None."""
    subresource: str | None = None
    """The subresource, such as ``status``, or None."""
    query: Mapping[str, str] = EMPTY_MAP
    """The query parameters."""
    user_agent: str = attrs.field(default="", eq=False)
    """The ``User-Agent`` header; ignored in comparisons."""
    time: float = attrs.field(default=0.0, eq=False)
    """When the request was received, on trio's clock in seconds; ignored in comparisons."""
    _outcome: list[int] = attrs.field(factory=list, eq=False, repr=False)

    @property
    def code(self) -> int | None:
        """The HTTP code of the response, or None if the response has not begun."""
        return self._outcome[0] if self._outcome else None

    @property
    def manager(self) -> str:
        """The field manager of a write: ``fieldManager`` in the query, or the beginning of the user agent."""
        return self.query.get("fieldManager") or manager_of(self.user_agent)

    @property
    def is_write(self) -> bool:
        """Whether the request changed an object: a write that succeeded and was not a dry run."""
        return self.verb in _WRITES and "dryRun" not in self.query and self.code is not None and self.code < _ERROR

    def set_code(self, code: int) -> None:
        """Record the code of the response, for the server."""
        self._outcome[:] = [code]

    @property
    def is_resource(self) -> bool:
        """Whether the path belongs to a resource, rather than, for example, to discovery or a health endpoint."""
        return bool(self.resource)


def parse_query(query: bytes) -> FrozenMap[str]:
    """Decode a query string.  If a parameter is repeated, its first value is used."""
    pairs = parse_qsl(query.decode("ascii", "replace"), keep_blank_values=True)
    return FrozenMap(reversed(pairs))


def read_request(method: str, path: str, query: bytes, *, user_agent: str, time: float) -> RequestRecord:
    """Parse the method, the path and the query of a request."""
    parameters = parse_query(query)
    record = partial(RequestRecord, path=path, query=parameters, user_agent=user_agent, time=time)
    match [part for part in path.split("/") if part]:
        case ["api", version, _, *_] as parts:
            group, rest = "", parts[2:]
        case ["apis", group, version, _, *_] as parts:
            rest = parts[3:]
        case _:
            return record(verb=method.lower())
    namespace: str | None = None
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in _NAMESPACE_SUBRESOURCES:
        namespace, rest = rest[1], rest[2:]
    name = rest[1] if len(rest) > 1 else None
    return record(
        verb=_verb(method, parameters, has_name=name is not None),
        group=group,
        version=version,
        resource=rest[0],
        namespace=namespace,
        name=name,
        subresource="/".join(rest[2:]) or None,
    )


def _verb(method: str, query: Mapping[str, str], *, has_name: bool) -> str:
    if method == "GET" and not has_name:
        # ListOptions.parse rejects values that are not booleans.
        return "list" if query.get("watch", "0") in ("0", "false") else "watch"
    if method == "GET":
        return "get"
    if method == "DELETE":
        return "delete" if has_name else "deletecollection"
    return _VERBS.get(method, method.lower())
