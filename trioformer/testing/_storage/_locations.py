"""The checks that the object in a request matches the path of the request and the stored object."""

from __future__ import annotations

from ._field_errors import invalid_value
from ._kinds import ServedKind
from ._status import bad_request, conflict, excerpt, invalid, status_error
from ._storage import JSONObject, Stored


def check_namespace(served: ServedKind, namespace: str, metadata: JSONObject) -> None:
    """Check that an object's namespace, if present and relevant, matches the path of the request."""
    if served.info.namespaced and (metadata.get("namespace") or "") not in ("", namespace):
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")


def check_location(served: ServedKind, namespace: str, name: str, metadata: JSONObject) -> None:
    """Check that an object's name, and its namespace if it is present, match the path of the request."""
    given = metadata.get("name")
    if not given:
        problem = "was undeterminable: name must be provided"
        raise bad_request(f"the name of the object ({name} based on URL) {problem}")
    if given != name:
        raise bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")
    check_namespace(served, namespace, metadata)


def check_identity(
    served: ServedKind, current: Stored, old: JSONObject, given: JSONObject, *, checks_uid: bool
) -> None:
    """Check that the metadata in an update belongs to the stored object, and is up to date."""
    check_location(served, current.namespace, current.name, given)
    uid, version = given.get("uid"), given.get("resourceVersion")
    if checks_uid and uid and uid != old["uid"]:
        problem = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old['uid']}"
        group = "" if served.is_builtin else f"{served.info.group}/"
        where = f"Key: /registry/{group}{served.info.plural}/{current.key}, ResourceVersion: 0"
        message = f"StorageError: invalid object, Code: 4, {where}, AdditionalErrorMsg: {problem}"
        raise conflict(served.info, current.name, message)
    if version and not (version.isascii() and version.isdecimal()):
        problem = f'strconv.ParseUint: parsing "{excerpt(version)}": invalid syntax'
        raise status_error(500, reason="", message=problem)
    if version and version != str(current.revision):
        raise conflict(served.info, current.name)
    if not version and served.needs_resource_version:
        why = invalid_value("metadata.resourceVersion", 0, "must be specified for an update")
        # kube-apiserver uses the plural here.
        raise invalid(served.info.group, served.info.plural, current.name, [why])
