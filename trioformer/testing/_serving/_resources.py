"""The handler of requests for resources, which returns a response or a stream for each verb.

The whole module is synchronous, so each request is atomic.
"""

from __future__ import annotations

from functools import partial
from typing import Any, TypeAlias, final
from urllib.parse import parse_qsl

import attrs

from ...client._internal import PROTOBUF
from ...errors import DecodeError
from ...models._internal import decode, message_to_json
from .._storage._admission import Admission, has_webhooks
from .._storage._apply import APPLY, check_options, is_forced, read_config
from .._storage._bodies import decode_body, decode_yaml
from .._storage._deletion import DeleteOptions
from .._storage._field_checks import FieldCheck, decode_fields
from .._storage._go_types import metadata_of
from .._storage._kinds import SCALE, ServedKind
from .._storage._locations import check_location
from .._storage._parts import PARTS, Part
from .._storage._patching import Change, read_patch
from .._storage._registry import Registry, WriteOptions
from .._storage._status import (
    APIStatusError,
    bad_request,
    conflict,
    deleted,
    forbidden,
    not_found,
    status_error,
    unknown_format,
)
from .._storage._storage import JSONObject, Stored, body_of
from .._storage._tracking import Writer
from .._storage._webhook_calls import Answers
from . import _subresources
from ._access import Caller
from ._listing import ListOptions, Page, list_page, minimum_revision
from ._logs import LogStream, request_log
from ._negotiation import MEDIA_TYPES, YAML
from ._not_served import missing
from ._pod_processes import ProcessRequest
from ._pod_scripts import PodScripts
from ._port_forwards import PortForwardRequest
from ._rendering import Rendering
from ._requests import RequestRecord
from ._responses import JSON_TYPE, Response, json_response, not_found_page
from ._reviews import answer
from ._watching import Watch, WatchSettings

Result: TypeAlias = Response | Watch | LogStream | ProcessRequest | PortForwardRequest
"""The result of a request."""

_CHILD_PODS = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them "
    "or set propagationPolicy=Orphan to suppress this warning"
)


@final
@attrs.frozen
class ResourceRequest:
    """A request for a resource, with its body and the relevant headers."""

    record: RequestRecord
    """The parsed path and query."""
    accept: str
    """The ``Accept`` header."""
    content_type: str
    """The media type of the body, without parameters."""
    body: bytes
    """The complete body."""
    caller: Caller
    """The user who sends the request."""
    query: bytes = b""
    """The query. A parameter may be repeated."""
    warnings: list[str] = attrs.field(factory=list, eq=False)
    """The warnings in the response, whether or not the response is an error."""
    admission: Admission | None = attrs.field(default=None, eq=False)
    """The admission, or None if no webhooks exist."""

    @property
    def name(self) -> str:
        """The name in the path, or an empty string if the path has no name."""
        return self.record.name or ""

    @property
    def namespace(self) -> str:
        """The namespace in the path, or an empty string if the path has no namespace."""
        return self.record.namespace or ""

    @property
    def part(self) -> Part:
        """The part of the object that the request may change."""
        return PARTS.get(self.record.subresource or "", "main")

    @property
    def dry_run(self) -> bool:
        """Whether the request is a dry run."""
        return self.record.query.get("dryRun") == "All"

    @property
    def is_apply(self) -> bool:
        """Whether the request is a server-side apply."""
        return self.record.verb == "patch" and self.content_type == APPLY

    def options(self, fields: FieldCheck | None = None) -> WriteOptions:
        """Return the arguments for a write."""
        writer = Writer(self.record.manager, self.record.subresource or "", is_applier=self.is_apply)
        return {"dry_run": self.dry_run, "writer": writer, "fields": fields, "admission": self.admission}

    def field_check(self) -> FieldCheck:
        """Return the check for unknown and duplicate fields that the request specifies."""
        return FieldCheck(self.record.verb, self.record.query.get("fieldValidation", ""), self.warnings)


def read_object(
    request: ResourceRequest, kind: str, fields: FieldCheck | None = None, *, is_custom: bool = False
) -> JSONObject:
    """Decode the object in a request's body, which must be JSON or YAML, or protobuf for built-in kinds.

    Without a content type, the body is JSON.  Duplicate fields are recorded.

    Raises:
        APIStatusError: The body is not such an object (400), or its content type is not supported, as for the bodies
            of web forms, which any web page can send (415).
    """
    body, unrecognized = request.body, f"the object provided is unrecognized (must be of type {kind})"
    # For a custom object in protobuf, the handler of kube-apiserver v1.36 panics and closes the connection.
    if request.content_type == PROTOBUF and not is_custom:
        try:
            body = message_to_json(body)
        except DecodeError as exc:
            raise bad_request(f"{unrecognized}: {exc}") from exc
    elif request.content_type not in ("", JSON_TYPE, YAML):
        raise unknown_format(MEDIA_TYPES)
    try:
        obj: Any = decode_yaml(body) if request.content_type == YAML else decode_body(body)
    except ValueError as exc:
        raise bad_request(f"{unrecognized}: couldn't get version/kind; json parse error: {exc}") from exc
    if not isinstance(obj, dict):
        raise bad_request(f"{unrecognized}: not a JSON object")
    if fields is not None and request.content_type != YAML:
        fields.check_duplicates(body, obj)
    return obj


@final
@attrs.define(eq=False)
class Resources:
    """The handler of requests for resources."""

    _registry: Registry
    _settings: WatchSettings
    _scripts: PodScripts

    @property
    def may_call_webhooks(self) -> bool:
        """Whether a request may need the answer of a webhook."""
        return self._registry.kinds.has_conversions or has_webhooks(self._registry.storage)

    def admission(self, record: RequestRecord, user: JSONObject, warnings: list[str], answers: Answers) -> Admission:
        """Return the admission of a request of this user."""
        storage, kinds, query = self._registry.storage, self._registry.kinds, record.query
        names = record.namespace or "", record.name or "", record.subresource or ""
        return Admission(storage, kinds, user, *names, query, warnings, answers)

    def handle(self, request: ResourceRequest) -> tuple[Result, ServedKind | None]:
        """Handle a request.  Return the response, or the stream to send instead, and the kind if it is served."""
        record = request.record
        served = self._registry.kinds.find(record.group, record.version, record.resource)
        if served is None or not _has_path(served, record):
            if not self._registry.kinds.has_builtin(record.group):
                return not_found_page(), served
            raise status_error(404, details={}) if served else missing(self._registry.kinds.release, record)
        if not served.is_stored:
            return self._answer(request, served), served
        if served.is_builtin and "AdmissionPolicy" in served.info.kind and record.verb in ("create", "update", "patch"):
            # They would have no effect, because the server has no CEL.  A garbage collector must be able to list them.
            raise missing(served.release, record)
        if served.resource == "pods" and record.subresource == "log" and record.verb == "get":
            return request_log(self._scripts, record), served
        if served.resource == "pods" and record.subresource in ("exec", "attach", "portforward"):
            if record.verb not in ("get", "create"):
                raise status_error(405, details={})
            if record.verb == "get":  # since v1.35, a WebSocket needs both verbs
                try:
                    request.caller.check(record, "create")
                except APIStatusError:
                    raise forbidden(served.info, request.name, "") from None
            if request.admission is not None:
                request.admission.admit("CONNECT", served, _connect_options(request.query))
            if record.subresource == "portforward":
                return PortForwardRequest.parse(self._scripts, record), served
            return ProcessRequest.parse(self._scripts, record, request.query), served
        if record.subresource is not None and record.subresource not in served.info.subresources:
            raise missing(served.release, record) if served.is_builtin else not_found(served.info, request.name)
        if record.subresource is not None and record.subresource not in PARTS:
            return self._act_on_subresource(request, served), served
        if record.verb == "watch":
            return self._watch(request, served), served
        return self._act(request, served), served

    def _act_on_subresource(self, request: ResourceRequest, served: ServedKind) -> Response:
        apply = partial(read_config, request.body) if request.is_apply else None
        rendering = self._rendering(request, served)
        fields = request.field_check()
        response = _subresources.handle(
            self._registry,
            served,
            request.record,
            body=partial(read_object, request, served.info.kind, fields),
            patch=partial(read_patch, served, request.content_type, request.body, fields),
            apply=apply,
            options=request.options(),
            fields=fields,
        )
        if request.record.subresource == "scale" and rendering.accepted.format:
            scale = decode(b"".join(response.chunks))
            del scale["kind"], scale["apiVersion"]
            return _one(rendering, SCALE, Stored("", int(scale["metadata"]["resourceVersion"]), body_of(scale)))
        return attrs.evolve(response, encoding=rendering.accepted.encoding)

    def _answer(self, request: ResourceRequest, served: ServedKind) -> Response:
        """Handle a request for a kind that is not stored: a Binding or a review."""
        record = request.record
        if record.name is not None or (record.namespace is None) == served.info.namespaced:
            raise status_error(404, details={})
        if record.verb != "create":
            raise status_error(405, details={})
        rendering = self._rendering(request, served)
        fields = request.field_check()
        obj = read_object(request, served.info.kind, fields)
        self._registry.read(served, request.namespace, obj, fields)
        if request.admission is not None:
            obj = request.admission.admit("CREATE", served, obj)
        if served.info.kind == "Binding":
            response = _subresources.create_binding(self._registry, request.namespace, obj, dry_run=request.dry_run)
            return attrs.evolve(response, encoding=rendering.accepted.encoding)
        answered = answer(self._registry, served, request.namespace, obj, request.caller)
        return _one(rendering, served, Stored("", 0, body_of(answered)), code=201)

    def _rendering(self, request: ResourceRequest, served: ServedKind) -> Rendering:
        """Negotiate the format of the response, warn of a deprecated version, and check the options of a write."""
        rendering = Rendering.negotiate(request.accept, served, request.record, self._registry.clock)
        if served.deprecation:
            request.warnings.append(served.deprecation)
        check_options(request.record.verb, request.record.query, is_apply=request.is_apply)
        return rendering

    def _watch(self, request: ResourceRequest, served: ServedKind) -> Watch:
        rendering = self._rendering(request, served)
        options = ListOptions.parse(served, request.record.query)
        prefix = f"{request.namespace}/" if request.namespace else ""
        return Watch(self._registry.storage, served, prefix, options, rendering, self._settings)

    def _act(self, request: ResourceRequest, served: ServedKind) -> Response:
        record = request.record
        verbs = ("update",) if request.part == "finalize" else served.info.verbs
        if record.verb not in verbs:
            raise status_error(405, details={})
        # Both are for paths without a name, so never for a subresource; namespaced kinds also need the namespace.
        is_complete = record.namespace is not None or not served.info.namespaced
        may_create, has_object = record.name is None and is_complete, record.name is not None and is_complete
        rendering, fields = self._rendering(request, served), request.field_check()
        match record.verb:
            case "list":
                options = ListOptions.parse(served, record.query)
                return _page(rendering, served, list_page(self._registry.storage, served, request.namespace, options))
            case "get" if has_object:
                minimum_revision(self._registry.storage, record.query.get("resourceVersion", ""))
                return _one(
                    rendering, served, self._registry.get(served, request.namespace, request.name, request.admission)
                )
            case "create" if may_create:
                obj = read_object(request, served.info.kind, fields, is_custom=not served.is_builtin)
                return self._create(request, served, rendering, obj, request.options(fields))
            case "update" if has_object:
                obj = read_object(request, served.info.kind, fields, is_custom=not served.is_builtin)
                if not self._registry.has(served, request.namespace, request.name):
                    metadata = decode_fields(served, obj, fields)
                    check_location(served, request.namespace, request.name, metadata)
                    if request.part == "main" and served.is_created_by_updates:
                        _forget_version(served, request, metadata)
                        return self._create(request, served, rendering, obj, request.options(fields))
                return self._update(request, served, rendering, lambda _: obj, request.options(fields))
            case "patch" if has_object and request.is_apply:
                return self._apply(request, served, rendering)
            case "patch" if has_object:
                change = read_patch(served, request.content_type, request.body, fields)
                return self._update(request, served, rendering, change, request.options(fields))
            case "delete" if has_object and record.subresource is None:
                return self._delete(request, served, rendering)
            case "deletecollection" if may_create:
                return self._delete_collection(request, served, rendering)
            case _:
                raise status_error(405, details={})

    def _create(
        self, request: ResourceRequest, served: ServedKind, rendering: Rendering, obj: JSONObject, options: WriteOptions
    ) -> Response:
        if request.record.verb != "create":
            request.caller.check(request.record, "create")
        stored = self._registry.create(served, request.namespace, obj, **options)
        return _one(rendering, served, stored, code=201)

    def _update(
        self, request: ResourceRequest, served: ServedKind, rendering: Rendering, change: Change, options: WriteOptions
    ) -> Response:
        part: Part = request.part
        stored = self._registry.update(served, request.namespace, request.name, change, part=part, **options)
        return _one(rendering, served, stored)

    def _apply(self, request: ResourceRequest, served: ServedKind, rendering: Rendering) -> Response:
        """Apply a configuration, which updates the object or creates it if it does not exist."""
        force, config = is_forced(request.record.query), read_config(request.body)
        options = request.options()

        def applied(live: JSONObject | None) -> JSONObject:
            return self._registry.tracker.apply(served, live, config, options["writer"], force=force)

        if request.part != "main" or self._registry.has(served, request.namespace, request.name):
            return self._update(request, served, rendering, applied, options)
        obj = applied(None)
        metadata = metadata_of(obj)
        check_location(served, request.namespace, request.name, metadata)
        _forget_version(served, request, metadata)
        return self._create(request, served, rendering, obj, options)

    def _delete(self, request: ResourceRequest, served: ServedKind, rendering: Rendering) -> Response:
        options = _delete_options(request, served)
        deletion = self._registry.delete(served, request.namespace, request.name, options, request.admission)
        if deletion.is_done and not served.is_returned_by_delete:
            uid = deletion.last.decoded()["metadata"]["uid"]
            status = deleted(served.info, request.name, uid)
            return json_response(status, encoding=rendering.accepted.encoding)
        return _one(rendering, served, deletion.last)

    def _delete_collection(self, request: ResourceRequest, served: ServedKind, rendering: Rendering) -> Response:
        options = ListOptions.parse(served, request.record.query)
        # The response is the list before the deletion; it does not show whether an object waits for finalizers.
        page = list_page(self._registry.storage, served, request.namespace, options)
        self._registry.delete_all(served, page.items, _delete_options(request, served), request.admission)
        return _page(rendering, served, page)


def _connect_options(query: bytes) -> JSONObject:
    """Return the options of a connection to a pod, such as PodExecOptions."""
    pairs = parse_qsl(query.decode("ascii", "replace"), keep_blank_values=True)
    flags = {
        key: True for key, value in pairs if key in ("stdin", "stdout", "stderr", "tty") and value in ("true", "1")
    }
    command = [value for key, value in pairs if key == "command"]
    texts = {key: value for key, value in pairs if key == "container"}
    return {**flags, **texts, **({"command": command} if command else {})}


def _has_path(served: ServedKind, record: RequestRecord) -> bool:
    """Return whether a path belongs to a kind.  Paths with or without a namespace belong to different kinds."""
    if not served.info.namespaced:
        return record.namespace is None
    if record.namespace is not None or not served.is_stored:
        return True
    return record.name is None if served.is_builtin else record.verb in ("list", "watch")


def _forget_version(served: ServedKind, request: ResourceRequest, metadata: JSONObject) -> None:
    """Prepare the metadata of an object that an update or a configuration creates."""
    if uid := metadata.get("uid"):
        problem = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        raise conflict(served.info, request.name, problem)
    metadata.pop("resourceVersion", None)


def _one(rendering: Rendering, served: ServedKind, stored: Stored, *, code: int = 200) -> Response:
    chunks = [rendering.one(served, stored) + b"\n"]
    return Response(code=code, chunks=chunks, encoding=rendering.accepted.encoding)


def _page(rendering: Rendering, served: ServedKind, page: Page) -> Response:
    return Response(chunks=rendering.page(served, page), encoding=rendering.accepted.encoding)


def _delete_options(request: ResourceRequest, served: ServedKind) -> DeleteOptions:
    """Parse the DeleteOptions of a delete request from its body, or from the query if the body is empty."""
    if not request.body.strip():
        parsed = DeleteOptions.parse(None, request.record.query)
        if served.resource == "jobs.batch" and parsed.policy is None:
            request.warnings.append(_CHILD_PODS)
        return parsed
    options = read_object(request, "DeleteOptions")
    if (kind := options.get("kind")) not in (None, "", "DeleteOptions"):
        raise bad_request(f"the object provided is unrecognized (must be of type DeleteOptions): its kind is {kind}")
    return DeleteOptions.parse(options, request.record.query)
