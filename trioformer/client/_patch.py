"""Patch types and their media types, and the error for a kind that does not support a patch type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias

from .._suggestions import describe
from ..errors import StatusError
from ..models._internal import dumps, find_model, plain

PatchType: TypeAlias = Literal["merge", "strategic", "json"]
"""The type of a patch: JSON merge patch (RFC 7386), Kubernetes' strategic merge patch, or JSON patch (RFC 6902)."""

MERGE: Final = "application/merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"
"""The media type of server-side apply. The client sends JSON, which is also valid YAML."""
UNSUPPORTED_MEDIA_TYPE: Final = 415
"""The code with which a server rejects a type of patch."""

# client-go, apimachinery pkg/types/patch.go.
_MEDIA_TYPES: Final[Mapping[str, str]] = {
    "merge": MERGE,
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
}


def patch_content(patch: object, patch_type: PatchType) -> tuple[bytes, str]:
    """Return the body and the media type of a patch.

    Raises:
        ValueError: The patch type is unknown.
        TypeError: The patch does not have the form that its patch type requires.
    """
    media_type = _MEDIA_TYPES.get(patch_type)
    if media_type is None:
        raise ValueError(f"a patch type must be one of {', '.join(map(repr, _MEDIA_TYPES))}, not {patch_type!r}")
    if patch_type == "json":
        _check_operations(patch)
    else:
        _check_merged(patch, patch_type)
        if not isinstance(patch, Mapping):
            hint = "use patch_type='json' for operations"
            raise TypeError(f"a {patch_type} patch must be a mapping, not {describe(patch)}; {hint}")
    return dumps(plain(patch)), media_type


def _check_merged(patch: object, patch_type: PatchType) -> None:
    found = find_model(patch, merges_lists=patch_type == "strategic")
    if found is None:
        return
    where, model = found
    what = f"{where!r} of a {patch_type} patch" if where else f"a {patch_type} patch"
    call = "replace_status()" if where.partition(".")[0] == "status" else "replace()"
    raise TypeError(
        f"{what} must be a mapping, not {describe(model)}, because a model cannot mark a field as removed; "
        f"call {call} with the object, or pass a mapping with None for each field to remove"
    )


def _check_operations(patch: object) -> None:
    if not isinstance(patch, Sequence) or isinstance(patch, str | bytes | bytearray):
        hint = "use patch_type='merge' or 'strategic' for a mapping"
        raise TypeError(f"a JSON patch must be a sequence of operations, not {describe(patch)}; {hint}")
    for operation in patch:
        if not isinstance(operation, Mapping):
            raise TypeError(f"an operation of a JSON patch must be a mapping, not {describe(operation)}")


def unsupported_strategic_patch(error: StatusError, where: str) -> StatusError:
    """Return the error for a kind that does not support strategic merge patches.

    The message recommends the other patch types.
    """
    text = "custom kinds do not support strategic merge patches; use patch_type='merge' or 'json'"
    return StatusError(
        f"{text}: {error.status_message}", code=error.code, reason=error.reason, details=error.details, where=where
    )
