"""Read AdmissionReviews and ConversionReviews, and write their responses.

Only the parts that decide on the response are decoded here.  Objects keep the bytes in which they have arrived, and a
function decodes the fields that it reads.  The texts of errors contain no values.

Source: ``admission/v1`` and ``apiextensions/v1`` of Kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, final

import attrs

from .._text import one_line
from ..errors import DecodeError
from ..models import FrozenMap, KubernetesObject, ResourceInfo, from_json, resource_of, unstructured_kind
from ..models._internal import FAULTS, Raw, builtin_kind, dumps, encode_for_server, level_decoder, list_items, loads
from ..models.authentication_v1 import UserInfo
from ._admission import AdmissionRequest, Denied
from ._declarations import Converters, Kind
from ._json_patch import json_patch

ADMISSION: Final = ("admission.k8s.io/v1", "AdmissionReview")
CONVERSION: Final = ("apiextensions.k8s.io/v1", "ConversionReview")

_REVIEW: Final = level_decoder(("apiVersion", "kind", "request"))
_MEMBERS: Final = "uid kind operation object oldObject name namespace subResource userInfo dryRun options"
_ADMISSION: Final = level_decoder(tuple(_MEMBERS.split()))
_CONVERSION: Final = level_decoder(("uid", "desiredAPIVersion", "objects"))
_GVK: Final = level_decoder(("group", "version", "kind"))
_API_VERSION: Final = level_decoder(("apiVersion",))


class ResultError(TypeError):
    """The result of a function is not what its webhook can return.  The text contains no part of an object."""


class ReviewError(Exception):
    """A body is not a review that can be answered.  The text is the body of the response."""


@final
@attrs.frozen
class Admission:
    """A call of an admission webhook."""

    request: AdmissionRequest[KubernetesObject]
    raw: Raw
    """The JSON of the object, or an empty ``Raw`` if the operation has no object."""


# --- admission --------------------------------------------------------------------------------------------------------


def read_admission(kind: Kind, body: bytes) -> Admission:
    """Read an AdmissionReview for a declared kind.

    Raises:
        ReviewError: The body is not a complete ``admission.k8s.io/v1 AdmissionReview``, or its object is not an object.
    """
    try:
        found = _ADMISSION(_request_in(body, *ADMISSION))
        uid, gvk, operation, new, old, name, namespace, subresource, user, dry_run, options = found
        cls = _class_of(kind, gvk)
        before = None if _is_absent(old) else from_json(cls, bytes(old))
        obj = before if _is_absent(new) else from_json(cls, bytes(new))
        if obj is None:
            raise ReviewError("the AdmissionReview has neither an object nor an oldObject")
        request: AdmissionRequest[KubernetesObject] = AdmissionRequest(
            object=obj,
            old=before,
            operation=_text(operation, "operation"),
            user=UserInfo() if _is_absent(user) else from_json(UserInfo, bytes(user)),
            dry_run=bytes(dry_run) == b"true",
            namespace=_text(namespace, "namespace") or None,
            name=_text(name, "name"),
            uid=_text(uid, "uid", is_required=True),
            subresource=_text(subresource, "subResource"),
            options=FrozenMap() if _is_absent(options) else loads(options),
        )
    except FAULTS as error:
        raise _review_error(error, *ADMISSION) from error
    return Admission(request, Raw(b"") if _is_absent(new) else new)


def _class_of(kind: Kind, raw: Raw) -> Kind:
    """Return the class of the objects in a review, which have another kind if the review is for a subresource."""
    info = resource_of(kind)
    group, version, name = (_text(each, "kind") for each in _GVK(raw))
    if (group, version, name) == (info.group, info.version, info.kind):
        return kind
    try:
        return builtin_kind(f"{group}/{version}" if group else version, name)
    except LookupError:
        other = ResourceInfo(group=group, version=version, kind=name, plural=info.plural, namespaced=info.namespaced)
        return unstructured_kind(other)


def allowed(admission: Admission, warnings: Iterable[str] = (), changed: object = None) -> bytes:
    """Return the AdmissionReview that allows a request, and may replace its object by a changed one.

    An object that cannot be encoded is a DecodeError.  Another class, or an operation without object, is a ResultError.
    """
    response: dict[str, object] = {"uid": admission.request.uid, "allowed": True}
    if changed is not None:
        kind = type(admission.request.object)
        if _is_absent(admission.raw) or not isinstance(changed, kind):
            given = type(changed).__name__
            raise ResultError(f"the function must return a changed {kind.__name__} or None, not a {given}")
        if patch := [*json_patch(admission.raw, encode_for_server(changed))]:
            response |= {"patchType": "JSONPatch", "patch": dumps(patch)}
    return _admission_review(response, warnings)


def denied(admission: Admission, refusal: Denied) -> bytes:
    """Return the AdmissionReview that refuses a request."""
    status: dict[str, object] = {"status": "Failure", "message": refusal.message, "code": refusal.code}
    if refusal.reason:
        status["reason"] = refusal.reason
    causes = [{"reason": "FieldValueInvalid", "message": text, "field": key} for key, text in refusal.causes.items()]
    if causes:
        status["details"] = {"causes": causes}
    return _admission_review({"uid": admission.request.uid, "allowed": False, "status": status}, refusal.warnings)


def _admission_review(response: dict[str, object], warnings: Iterable[str]) -> bytes:
    # kube-apiserver drops a warning with a line end, because a warning is an HTTP header.
    if listed := [one_line(each) for each in warnings]:
        response["warnings"] = listed
    return _review(ADMISSION, response)


# --- conversion -------------------------------------------------------------------------------------------------------


@final
@attrs.frozen
class Conversion:
    """A call of a conversion webhook."""

    uid: str
    desired: str
    """The apiVersion that all objects must get."""
    objects: list[Raw]


def read_conversion(body: bytes) -> Conversion:
    """Read a ConversionReview.

    Raises:
        ReviewError: The body is not a complete ``apiextensions.k8s.io/v1 ConversionReview``.
    """
    try:
        uid, desired, objects = _CONVERSION(_request_in(body, *CONVERSION))
        return Conversion(
            _text(uid, "uid", is_required=True),
            _text(desired, "desiredAPIVersion", is_required=True),
            [] if _is_absent(objects) else list_items(objects),
        )
    except FAULTS as error:
        raise _review_error(error, *CONVERSION) from error


def convert(hub: Kind, converters: Converters, raw: Raw, desired: str) -> bytes | Raw:
    """Convert one object to another version, through the hub.  The functions may raise any exception."""
    kinds: dict[str, Kind] = {resource_of(kind).api_version: kind for kind in (hub, *converters)}
    source = _text(_API_VERSION(raw)[0], "apiVersion")
    if source == desired:
        return raw
    for version in (source, desired):
        if version not in kinds:
            raise LookupError(f"there is no conversion for {one_line(version, longest=100)}")
    obj = from_json(kinds[source], bytes(raw))
    steps = [(converters[kinds[source]][0], hub)] if kinds[source] is not hub else []
    steps += [(converters[kinds[desired]][1], kinds[desired])] if kinds[desired] is not hub else []
    for function, kind in steps:
        obj = function(obj)
        if not isinstance(obj, kind):
            raise ResultError(f"a conversion must return a {kind.__name__}, not a {type(obj).__name__}")
    # A function that copies the whole mapping of an object also copies its apiVersion.
    return encode_for_server(obj if obj.api_version == desired else obj.evolve(api_version=desired))


def converted(conversion: Conversion, objects: Iterable[bytes | Raw] = (), *, problem: str = "") -> bytes:
    """Return the ConversionReview with converted objects, or with a problem that kube-apiserver shows to the user."""
    result = {"status": "Failed", "message": problem} if problem else {"status": "Success"}
    raw = [Raw(bytes(each)) for each in objects]
    return _review(CONVERSION, {"uid": conversion.uid, "result": result, "convertedObjects": raw})


# --- both -------------------------------------------------------------------------------------------------------------


def _request_in(body: bytes, api_version: str, kind: str) -> Raw:
    found, name, request = _REVIEW(body)
    given = _text(found, "apiVersion"), _text(name, "kind")
    if given != (api_version, kind):
        shown = one_line(" ".join(given), longest=100) or "without apiVersion and kind"
        raise ReviewError(f"the body must be {api_version} {kind}, but is {shown}")
    return request


def _review(names: tuple[str, str], response: dict[str, object]) -> bytes:
    return dumps({"apiVersion": names[0], "kind": names[1], "response": response})


def _review_error(error: Exception, api_version: str, kind: str) -> ReviewError:
    # The texts of DecodeErrors name paths and positions, and no values.
    problem = str(error) if isinstance(error, DecodeError) else "it is cut off, or a field has another type"
    return ReviewError(f"the body is not a complete {api_version} {kind}: {problem}")


def _is_absent(raw: Raw) -> bool:
    return bytes(raw) in (b"", b"null")


def _text(raw: Raw, name: str, *, is_required: bool = False) -> str:
    value = "" if _is_absent(raw) else loads(raw)
    if not isinstance(value, str) or (is_required and not value):
        raise DecodeError(f"{name} must be a string")
    return value
