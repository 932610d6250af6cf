"""The types of patch: their media types, and the error when a kind does not support one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, Literal, TypeAlias

from ..errors import UnsupportedMediaTypeError
from ..models._internal import dumps, plain

PatchType: TypeAlias = Literal["merge", "strategic", "json"]
"""The type of a patch: JSON merge patch (RFC 7386), Kubernetes' strategic merge patch, or JSON patch (RFC 6902)."""

# client-go, apimachinery pkg/types/patch.go.
_MEDIA_TYPES: Final[Mapping[str, str]] = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
}


def patch_content(patch: object, patch_type: PatchType) -> tuple[bytes, str]:
    """Return the body of a patch, and its media type.

    Raises:
        ValueError: There is no such type.
        TypeError: The patch is not of this type.
    """
    media_type = _MEDIA_TYPES.get(patch_type)
    if media_type is None:
        raise ValueError(f"a patch type must be one of {', '.join(map(repr, _MEDIA_TYPES))}, not {patch_type!r}")
    if patch_type == "json":
        _check_operations(patch)
    elif not isinstance(patch, Mapping):
        given = type(patch).__name__
        raise TypeError(f"a {patch_type} patch must be a mapping, not a {given}; use patch_type='json' for operations")
    return dumps(plain(patch)), media_type


def _check_operations(patch: object) -> None:
    if not isinstance(patch, Sequence) or isinstance(patch, str | bytes | bytearray):
        given = type(patch).__name__
        hint = "use patch_type='merge' or 'strategic' for a mapping"
        raise TypeError(f"a JSON patch must be a sequence of operations, not a {given}; {hint}")
    for operation in patch:
        if not isinstance(operation, Mapping):
            raise TypeError(f"an operation of a JSON patch must be a mapping, not a {type(operation).__name__}")


@contextmanager
def translate_patch_errors(patch_type: PatchType, where: str) -> Iterator[None]:
    """Name the other types in the error of a kind that does not support strategic merge patches."""
    try:
        yield
    except UnsupportedMediaTypeError as exc:
        if patch_type != "strategic":
            raise
        text = "custom kinds do not support strategic merge patches; use patch_type='merge' or 'json'"
        raise UnsupportedMediaTypeError(
            f"{text}: {exc.status_message}", code=exc.code, reason=exc.reason, details=exc.details, where=where
        ) from exc
