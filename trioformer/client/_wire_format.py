"""How the objects of a kind travel: what is asked for, what may come, and what is kept of it.

The check of the kind must cost nearly nothing: an object is scanned in 9 µs, and a scan for its kind costs as much
again.
But a server begins all objects of a kind with the same bytes, so that one comparison tells; only what begins otherwise
is looked into.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Generic, TypeVar, final

from ..errors import DecodeError, NotAcceptableError
from ..models import KubernetesObject, PartialObjectMetadata, builtin_resources, resource_of
from ..models._internal import (
    Head,
    decode,
    dumps,
    level_decoder,
    make_object,
    metadata_only,
    scan_whole,
    scan_without_managed_fields,
)
from ..transport._internal import ListHead, Scan, excerpt

T = TypeVar("T", bound=KubernetesObject)

JSON: Final = "application/json"
"""The media type of objects, lists and Status responses."""

_kind_of: Final = level_decoder(("kind",))

_PARTIAL: Final = "PartialObjectMetadata"
# As client-go's metadata client: a server that cannot leave the rest out sends whole objects.
_METADATA: Final = f"{JSON};as={_PARTIAL};g=meta.k8s.io;v=v1,{JSON}"
_METADATA_LIST: Final = f"{JSON};as={_PARTIAL}List;g=meta.k8s.io;v=v1,{JSON}"


@final
class WireFormat(Generic[T]):
    """How the objects of one kind travel.

    Attributes:
        kind: The model.
        name: The kind's name, such as ``Pod``.
        names: What its objects may call themselves.
        is_partial: Whether only the metadata is wanted.
        accept: What to ask for: one object, or a watch.
        accept_list: The same for a list.
        keep: Scans an object that was asked for alone, and whose kind has been looked at.
    """

    __slots__ = (
        "_api_versions",
        "_item_openings",
        "_openings",
        "_scan",
        "accept",
        "accept_list",
        "is_partial",
        "keep",
        "kind",
        "name",
        "names",
    )

    def __init__(self, kind: type[T], scan: Scan) -> None:
        resource = resource_of(kind)
        self.kind: type[T] = kind
        self.name: str = resource.kind
        self.is_partial: bool = issubclass(kind, PartialObjectMetadata)
        self.accept, self.accept_list = (_METADATA, _METADATA_LIST) if self.is_partial else (JSON, JSON)
        types = {self.name: resource.api_version}
        if self.is_partial:
            types = {_PARTIAL: "meta.k8s.io/v1", **types}
        self.names: tuple[str, ...] = tuple(types)
        self._api_versions = (*types.values(), "")
        self.keep: Scan = scan_whole
        self._scan = scan
        if issubclass(kind, PartialObjectMetadata):
            # Those of one object too: it cannot be stored, so that nothing is lost.
            keep, scan = (scan_whole, scan) if kind.has_managed_fields else (scan_without_managed_fields,) * 2
            self.keep, self._scan = _cut_down(keep), _cut_down(scan)
        # Built-in kinds begin as Go's structs do, custom ones as sorted maps; items of a typed list leave both out.
        members = [{"kind": name, "apiVersion": version} for name, version in types.items()]
        self._openings = tuple(
            dumps(spelling)[:-1] + b"," for both in members for spelling in (both, dict(reversed(both.items())))
        )
        self._item_openings = (b'{"metadata":', *self._openings)

    def scan(self, data: bytes) -> tuple[bytes, Head]:
        """Scan an object that says of what kind it is: what is to be kept of it, and its head.

        Raises:
            DecodeError: It is no JSON object with metadata, or of another kind.
        """
        if not data.startswith(self._openings):
            self._check_kind(data)
        return self._scan(data)

    def make_item(self, data: bytes) -> T:
        """Make an object out of an item of a list.

        Raises:
            DecodeError: It is no JSON object with metadata, has no name, or is of another kind.
        """
        if not data.startswith(self._item_openings):
            self._check_kind(data)
        kept, head = self._scan(data)
        if not head.metadata.name:
            raise nameless(self.name)
        return make_object(self.kind, kept, head)

    def check_list(self, head: ListHead, first: bytes | None) -> None:
        """Make sure that a list is one of this kind.

        A custom kind's list may have any name; but then its items say what they are, and have been checked already.

        Args:
            head: What the list says of itself.
            first: Its first object; None when there is none.

        Raises:
            DecodeError: It is a list of something else.
        """
        if head.kind in ("", *(f"{name}List" for name in self.names)):
            return
        if head.api_version not in self._api_versions:
            is_ours = False
        elif first is not None:
            is_ours = kind_in(first) in self.names
        else:
            gvk = resource_of(self.kind).gvk
            is_ours = all(builtin.gvk != gvk for builtin in builtin_resources())
        if not is_ours:
            found = excerpt(head.kind.encode())
            raise DecodeError(f"the server answered with a {found}, not with a list of {self.name}")

    def _check_kind(self, data: bytes) -> None:
        try:
            found = kind_in(data)
        except (ValueError, RecursionError):
            return  # the scan, which comes next, says it better
        if found not in ("", *self.names):
            raise DecodeError(f"the server sent a {excerpt(found.encode())}, not a {self.name}")

    @contextmanager
    def translate_errors(self) -> Iterator[None]:
        """Say what it means when the server does not have this wire_format."""
        try:
            yield
        except NotAcceptableError as exc:
            if not self.is_partial:
                raise
            what = f"the server cannot send the metadata of {resource_of(self.kind)} alone; use the kind itself"
            raise NotAcceptableError(
                f"{what}: {exc.status_message}", code=exc.code, reason=exc.reason, details=exc.details
            ) from exc


def _cut_down(scan: Scan) -> Scan:
    return lambda data: scan(metadata_only(data))


def kind_in(body: bytes) -> str:
    """The ``kind`` of a JSON object; empty when it has none.

    Raises:
        ValueError: It is not a JSON object.
    """
    (raw,) = _kind_of(body)
    kind: object = decode(raw) if bytes(raw) else ""
    return kind if isinstance(kind, str) else ""


def nameless(kind: str) -> DecodeError:
    """The error of an object without a name."""
    return DecodeError(f"the server sent a {kind} without a name")
