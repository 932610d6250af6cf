"""The verbs on kinds: a request that was understood → an answer or a watch.

Everything here is plain code, so each request happens between two checkpoints.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, final

import attrs

from ...errors import DecodeError
from ...models._internal import decode
from .._storage._deletion import Preconditions
from .._storage._kinds import Served
from .._storage._metadata import metadata_of
from .._storage._patching import MERGE, Change, read_patch
from .._storage._registry import LINGERING, Part, Registry
from .._storage._status import bad_request, deleted, refusal
from .._storage._storage import JSONObject, Stored
from . import _subresources
from ._listing import ListOptions, list_page, minimum_revision
from ._rendering import Rendering
from ._requests import RequestRecord
from ._responses import Response, json_answer
from ._watching import Watch, WatchSettings

_UNKNOWN_FORMAT = "the body of the request was in an unknown format - accepted media types include: application/json"


@final
@attrs.frozen
class ResourceRequest:
    """A request for a kind, with what of its headers and body matters."""

    record: RequestRecord
    """What was asked."""
    accept: str
    """The ``Accept`` header."""
    content_type: str
    """The media type of the body, without parameters."""
    body: bytes
    """The body."""

    @property
    def name(self) -> str:
        """The object's name in the path; empty when there is none."""
        return self.record.name or ""

    @property
    def namespace(self) -> str:
        """The namespace in the path; empty when there is none."""
        return self.record.namespace or ""

    @property
    def dry_run(self) -> bool:
        """Whether nothing is to be written.

        Raises:
            RefusedError: 400: ``dryRun`` has a value that it cannot have.
        """
        value = self.record.query.get("dryRun", "")
        if value not in ("", "All"):
            raise bad_request(f'dryRun: Unsupported value: "{value}": supported values: "All"')
        return value == "All"


def read_object(asked: ResourceRequest, served: Served, types: Sequence[str] = ("", "application/json")) -> JSONObject:
    """Decode the object in a request's body, which has to be of one of the media types.

    Raises:
        RefusedError: 400 or 415.
    """
    if asked.content_type not in types:
        raise refusal(415, message=_UNKNOWN_FORMAT)
    try:
        obj: Any = decode(asked.body)
    except (DecodeError, RecursionError) as exc:
        problem = f"couldn't get version/kind; json parse error: {exc}"
        raise bad_request(
            f"the object provided is unrecognized (must be of type {served.info.kind}): {problem}"
        ) from exc
    if not isinstance(obj, dict):
        raise bad_request(f"the object provided is unrecognized (must be of type {served.info.kind}): no JSON object")
    return obj


@final
@attrs.define(eq=False)
class Resources:
    """Answers requests for kinds."""

    _registry: Registry
    _settings: WatchSettings

    def answer(self, asked: ResourceRequest) -> tuple[Response | Watch, Served]:
        """Response a request.

        Raises:
            RefusedError: The answer is a Status.
        """
        record = asked.record
        served = self._registry.kinds.find(record.group, record.version, record.resource)
        if served is None:
            raise refusal(404, details={})
        if record.namespace is not None and not served.info.namespaced:
            raise refusal(404, details={})
        if record.subresource is not None and record.subresource != "status":
            types = ("", "application/json", *([MERGE] if record.verb == "patch" else []))
            body = partial(read_object, asked, served, types)
            return _subresources.answer(self._registry, served, record, body), served
        if record.subresource == "status" and not served.has_status:
            raise refusal(404, details={})
        if record.verb == "watch":
            return self._watch(asked, served), served
        return self._act(asked, served), served

    def _rendering(self, asked: ResourceRequest, *, is_list: bool = False) -> Rendering:
        include = asked.record.query.get("includeObject", "")
        return Rendering.negotiate(asked.accept, self._registry.clock, include, is_list=is_list)

    def _watch(self, asked: ResourceRequest, served: Served) -> Watch:
        rendering = self._rendering(asked)
        options = ListOptions.parse(served, asked.record.query)
        prefix = f"{asked.namespace}/" if asked.namespace else ""
        return Watch(self._registry.storage, served, prefix, options, rendering, self._settings)

    def _act(self, asked: ResourceRequest, served: Served) -> Response:
        record = asked.record
        if record.subresource is None and record.verb not in served.info.verbs:
            raise refusal(405, details={})
        # A subresource is only read and written; new objects of namespaced kinds need their namespace in the path.
        may_create = record.name is None and (record.namespace is not None or not served.info.namespaced)
        has_object = record.name is not None and (record.namespace is not None or not served.info.namespaced)
        match record.verb:
            case "list":
                return self._list(asked, served)
            case "get" if has_object:
                return self._get(asked, served)
            case "create" if may_create:
                return self._create(asked, served)
            case "update" if has_object:
                obj = read_object(asked, served)
                self._registry.check_place(served, asked.namespace, asked.name, metadata_of(obj))
                return self._update(asked, served, lambda _: obj)
            case "patch" if has_object:
                return self._update(asked, served, read_patch(served, asked.content_type, asked.body))
            case "delete" if has_object and record.subresource is None:
                return self._delete(asked, served)
            case "deletecollection" if may_create:
                return self._delete_collection(asked, served)
            case _:
                raise refusal(405, details={})

    def _list(self, asked: ResourceRequest, served: Served) -> Response:
        rendering = self._rendering(asked, is_list=True)
        options = ListOptions.parse(served, asked.record.query)
        page = list_page(self._registry.storage, served, asked.namespace, options)
        return Response(chunks=rendering.page(served, page))

    def _get(self, asked: ResourceRequest, served: Served) -> Response:
        rendering = self._rendering(asked)
        minimum_revision(self._registry.storage, asked.record.query.get("resourceVersion", ""))
        return _one(rendering, served, self._registry.get(served, asked.namespace, asked.name))

    def _create(self, asked: ResourceRequest, served: Served) -> Response:
        rendering = self._rendering(asked)
        obj = read_object(asked, served)
        stored = self._registry.create(served, asked.namespace, obj, dry_run=asked.dry_run)
        return _one(rendering, served, stored, code=201)

    def _update(self, asked: ResourceRequest, served: Served, change: Change) -> Response:
        rendering = self._rendering(asked)
        part: Part = "status" if asked.record.subresource == "status" else "main"
        stored = self._registry.update(served, asked.namespace, asked.name, change, part=part, dry_run=asked.dry_run)
        return _one(rendering, served, stored)

    def _delete(self, asked: ResourceRequest, served: Served) -> Response:
        rendering = self._rendering(asked)
        options = _delete_options(asked)
        wanted = options.get("preconditions") or {}
        preconditions = Preconditions(wanted.get("uid"), wanted.get("resourceVersion"))
        dry_run = asked.dry_run or options.get("dryRun") == ["All"]
        deletion = self._registry.delete(
            served, asked.namespace, asked.name, preconditions=preconditions, dry_run=dry_run
        )
        if deletion.is_done and served.resource not in LINGERING:
            uid = decode(b"{" + deletion.last.body)["metadata"]["uid"]
            return json_answer(deleted(served.info, asked.name, uid))
        return _one(rendering, served, deletion.last)

    def _delete_collection(self, asked: ResourceRequest, served: Served) -> Response:
        rendering = self._rendering(asked, is_list=True)
        options = ListOptions.parse(served, asked.record.query)
        dry_run = asked.dry_run or _delete_options(asked).get("dryRun") == ["All"]
        chosen = self._registry.delete_collection(served, asked.namespace, options.selection, dry_run=dry_run)
        page = attrs.evolve(list_page(self._registry.storage, served, "", ListOptions(options.selection)), items=chosen)
        return Response(chunks=rendering.page(served, page))


def _one(rendering: Rendering, served: Served, stored: Stored, *, code: int = 200) -> Response:
    return Response(code=code, chunks=[rendering.one(served, stored) + b"\n"])


def _delete_options(asked: ResourceRequest) -> Mapping[str, Any]:
    """Decode the DeleteOptions in a delete's body; an empty body has none."""
    if not asked.body.strip():
        return {}
    try:
        options: Any = decode(asked.body)
    except (DecodeError, RecursionError) as exc:
        raise bad_request(f"the object provided is unrecognized (must be of type DeleteOptions): {exc}") from exc
    if not isinstance(options, dict) or not isinstance(options.get("preconditions") or {}, dict):
        raise bad_request("the object provided is unrecognized (must be of type DeleteOptions)")
    return options
