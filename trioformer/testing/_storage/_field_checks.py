"""The removal of unknown and duplicate fields from the objects in requests.

kube-apiserver decodes objects of built-in kinds into Go structs, and objects of custom kinds by their schema.
For all kinds, unknown fields are removed, and null fields are treated as unset.
With ``fieldValidation=Strict``, requests with unknown or duplicate fields are rejected.  With ``Warn``, the default,
the response has warnings.

Source: apiserver ``pkg/endpoints/handlers``, ``sigs.k8s.io/json``.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, final

import attrs

from ...models._internal import dumps
from . import _go_types
from ._definitions import DEFINITIONS, set_definition_defaults
from ._field_errors import invalid_value, json_text, shown
from ._field_types import builtin_type
from ._go_formats import go_text
from ._kinds import ServedKind
from ._schemas import META_FIELDS, OnUnknown, Schema, drop_nulls, embedded_objects, prune, set_defaults
from ._status import APIStatusError, bad_request, invalid
from ._storage import JSONObject

_OPERATION: Final = frozenset({"op", "path", "from", "value"})
_MOST_PROBLEMS: Final = 100


@final
@attrs.define(eq=False)
class FieldCheck:
    """The unknown and duplicate fields in a request, and how to report them to the client."""

    verb: str
    """The verb, which is ``create``, ``update`` or ``patch``.  Other verbs are not checked."""
    directive: str
    """``Ignore``, ``Warn``, ``Strict``, or empty for the default."""
    warnings: list[str]
    """The list to which warnings are added."""
    strategic: JSONObject | None = attrs.field(init=False, default=None)
    """The strategic merge patch that the request contains, if any."""
    _problems: list[str] = attrs.field(init=False, factory=list)

    @property
    def is_active(self) -> bool:
        """Whether unknown and duplicate fields are reported."""
        return self.directive != "Ignore"

    def check_duplicates(self, body: bytes, decoded: Any, *, prefix: str = "") -> None:
        """Find duplicate fields in a body.  The last value of a duplicate field is used."""
        # Most bodies are JSON as this library and Go encode it, where a duplicate would make the body longer.
        if self.is_active and len(body.rstrip()) != len(dumps(decoded)):
            self._problems += [f'{prefix}duplicate field "{path}"' for path in _duplicates(body)]

    def on_unknown(self, path: str) -> None:
        """Record an unknown field that was removed."""
        if self.is_active:
            self._problems.append(f'unknown field "{path}"')

    def check_operations(self, operations: Iterable[Mapping[str, Any]]) -> None:
        """Find unknown members in the operations of a JSON patch."""
        if self.is_active:
            for i, operation in enumerate(operations):
                unknown = [name for name in operation if name not in _OPERATION]
                self._problems += [f'json patch unknown field "[{i}].{name}"' for name in unknown]

    def report(self, served: ServedKind, obj: JSONObject, original: JSONObject | None = None) -> None:
        """Add warnings for unknown and duplicate fields, or reject the request.

        Args:
            served: The kind.
            obj: The decoded object.
            original: The result of the patch before unknown fields were removed, if the request is a patch.

        Raises:
            APIStatusError: There are unknown or duplicate fields, and the validation is strict (400, or 422 for a
                patch).
        """
        problems, self._problems = self._problems[:_MOST_PROBLEMS], []
        if not problems:
            return
        if self.directive != "Strict":
            self.warnings += problems
            return
        text = f"strict decoding error: {', '.join(problems)}"
        if self.verb == "patch":
            shown = dumps(original if original is not None else obj).decode()
            raise invalid("", "", "", [invalid_value("patch", shown, text)])
        raise undecodable(served, text)


def undecodable(served: ServedKind, problem: str) -> APIStatusError:
    """Return a 400 error for an object that cannot be decoded as its kind."""
    info = served.info
    return bad_request(f'{info.kind} in version "{info.version}" cannot be handled as a {info.kind}: {problem}')


def decode_fields(
    served: ServedKind, obj: JSONObject, check: FieldCheck | None = None, *, keeps_nulls: bool = False
) -> JSONObject:
    """Check an object's kind and types, remove its unknown fields, and set the defaults of a custom kind.

    Without a check, as in the direct API, only the types in the metadata and in definitions are checked.

    Args:
        served: The kind.
        obj: The object, which is modified.
        check: The check that collects the removed fields, or None to ignore them.
        keeps_nulls: Whether to keep null fields of a custom kind, as for a server-side apply.

    Returns:
        The metadata.

    Raises:
        APIStatusError: The object has another kind, a value has the wrong type, or the object has an unknown or
            duplicate field and the request asks for strict validation (400 or 422).
    """
    strange: list[str] = []
    if problem := _problem(served, obj, check, strange):
        if check is None or check.verb != "patch":
            raise undecodable(served, problem)
        patched = dumps(obj).decode() if check.strategic is None else go_text(check.strategic)
        raise invalid("", "", "", [invalid_value("patch", patched, problem)])
    is_strict_patch = check is not None and check.verb == "patch" and check.directive == "Strict"
    original = json.loads(dumps(obj)) if is_strict_patch else None
    on_unknown: OnUnknown = check.on_unknown if check is not None else lambda _: None
    if served.wire_type is not None and strange:
        _go_types.remove_unknown(obj, served.wire_type, "", on_unknown)
    metadata = _go_types.metadata_of(obj)
    for name in ("spec", "status"):
        if served.is_builtin and not isinstance(obj.get(name, {}), dict):  # in the direct API
            raise bad_request(f"the object provided is unrecognized: {name} must be an object")
    if served.resource == DEFINITIONS:
        set_definition_defaults(obj)
    elif served.resource == "secrets":
        _encode_texts(obj)
    elif not served.is_builtin:
        _go_types.remove_unknown_metadata(metadata, "metadata", on_unknown)
        if served.schema is not None:
            _decode_custom(served, obj, served.schema, on_unknown, keeps_nulls=keeps_nulls)
    if check is not None:
        check.report(served, obj, original)
    return metadata


def _problem(served: ServedKind, obj: JSONObject, check: FieldCheck | None, strange: list[str]) -> str:
    """Return the decoder's message for an object of another kind or with a value of the wrong type, or an empty string.

    The names of unknown fields and of null fields are added to ``strange``.

    Raises:
        APIStatusError: The object has another kind (400 or 422).
    """
    is_patch = check is not None and check.verb == "patch"
    is_strategic = check is not None and check.strategic is not None
    for name in ("apiVersion", "kind"):
        if not isinstance(given := obj.get(name), str | None):
            what = f"json: cannot unmarshal {_go_types.json_type(given)} into Go struct field .{name} of type string"
            problem = f"couldn't get version/kind; json parse error: {what}"
            if is_patch:
                return problem
            raise bad_request(f"the object provided is unrecognized (must be of type {served.info.kind}): {problem}")
    if not served.is_builtin:
        if is_patch and not obj.get("kind"):
            return f"Object 'Kind' is missing in '{json_text(obj)}'"
        if check is not None and (problem := _go_types.metadata_problem(obj.get("metadata"))):
            return problem
    if not is_strategic and (problem := _kind_problem(served, obj, is_patch=is_patch)):
        return problem
    if served.wire_type is None:
        return ""
    message = _go_types.unconverted if is_strategic else _go_types.undecoded
    if check is None and served.resource != DEFINITIONS:
        message = _go_types.ignored
    return _go_types.find_problem(obj, served.wire_type, message, strange)


def _kind_problem(served: ServedKind, obj: JSONObject, *, is_patch: bool) -> str:
    """Check that an object's kind and apiVersion, if present, match the path of the request.

    Returns:
        The decoder's message for another kind in a patch, or an empty string.

    Raises:
        APIStatusError: The object has another kind (400 or 422).
    """
    info = served.info
    kind, version = obj.get("kind") or info.kind, obj.get("apiVersion") or info.api_version
    group = version.rpartition("/")[0]
    if (kind, version) == (info.kind, info.api_version):
        return ""
    if not served.is_builtin and (is_patch or version == info.api_version):
        given = (("apiVersion", version, info.api_version), ("kind", kind, info.kind))
        causes = [invalid_value(name, one, f"must be {wanted}") for name, one, wanted in given if one != wanted]
        raise invalid(group, kind, (obj.get("metadata") or {}).get("name") or "", causes)
    internal = info.group.partition(".")[0] or "core"
    into = f"converting (v1.{kind}) to ({internal}.{info.kind}): unknown conversion"
    if served.is_builtin and builtin_type(served.release, version, kind) is None:
        into = f'no kind "{kind}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
    elif kind == info.kind:
        expected = f"does not match the expected API version ({info.api_version})"
        raise bad_request(f"the API version in the data ({version}) {expected}")
    if is_patch:
        return into
    shown_version = version.rpartition("/")[2] if served.is_builtin else version
    raise bad_request(f'{kind} in version "{shown_version}" cannot be handled as a {info.kind}: {into}')


def _encode_texts(secret: JSONObject) -> None:
    """Move the ``stringData`` of a Secret into its ``data``, as kube-apiserver does."""
    texts, data = secret.get("stringData"), secret.get("data") or {}
    if not (isinstance(texts, dict) and isinstance(data, dict)):
        return
    if all(isinstance(text, str | None) for text in texts.values()):
        del secret["stringData"]
        encoded = {name: base64.b64encode((text or "").encode()).decode() for name, text in texts.items()}
        if encoded:
            secret["data"] = {**data, **encoded}


def _decode_custom(
    served: ServedKind, obj: JSONObject, schema: Schema, on_unknown: OnUnknown, *, keeps_nulls: bool
) -> None:
    unknown: list[str] = []
    meta = {name: obj[name] for name in META_FIELDS if name in obj}
    prune(obj, attrs.evolve(schema, is_embedded=True), unknown.append)
    for path in sorted(unknown):
        on_unknown(path)
    if not keeps_nulls:
        drop_nulls(obj, schema)
    obj.update(meta)
    for path, embedded in embedded_objects(obj, schema):
        for name in ("apiVersion", "kind"):
            text = embedded.get(name, "")
            if not isinstance(text, str):
                raise undecodable(served, f"{path}.{name}: Invalid value: {shown(text)}: must be a string")
        if problem := _go_types.metadata_problem(embedded.get("metadata")):
            raise undecodable(served, f"{path}.metadata: {problem}")
        _go_types.remove_unknown_metadata(embedded.get("metadata"), f"{path}.metadata", on_unknown)
    set_defaults(obj, schema)


# --- duplicates -------------------------------------------------------------------------------------------------------


class _Pairs(list[tuple[str, Any]]):
    """The members of an object, including duplicates."""


def _duplicates(body: bytes) -> Iterable[str]:
    """Return the paths of the duplicate fields in a body, in order."""
    return dict.fromkeys(_duplicates_in(json.loads(body, object_pairs_hook=_Pairs), ""))


def _duplicates_in(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for name, member in value:
            where = f"{path}.{name}" if path else name
            if name in seen:
                yield where
            seen.add(name)
            yield from _duplicates_in(member, where)
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _duplicates_in(item, f"{path}[{i}]")


def warning_headers(warnings: list[str]) -> tuple[tuple[str, str], ...]:
    """Return the response headers for the warnings, without duplicates."""
    return tuple(("warning", f"299 - {_quoted(text)}") for text in dict.fromkeys(warnings))


def _quoted(text: str) -> str:
    escaped = re.sub(r'(["\\])', r"\\\1", "".join(one if one.isprintable() else " " for one in text))
    return f'"{escaped}"'
