"""The OpenAPI documents, for ``kubectl explain`` and for clients that read schemas.

The documents of built-in kinds are those of kube-apiserver, which ``tests/e2e/fetch_openapi.py`` writes to
``openapi.xz``.  The file also has documents of two custom kinds, from which those of other custom kinds are made.
The file is read at the first request.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Final

from ...models._internal import decode, dumps
from .._storage._kinds import Kinds, ServedKind
from .._storage._release import Release
from .._storage._storage import JSONObject
from ._negotiation import clauses_of
from ._responses import JSON_TYPE, Response, text_response

_PROTOBUF: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_EXAMPLE: Final = ".example.com/v7"
"""The end of the paths of the examples."""


def _documents(kinds: Kinds) -> Mapping[str, bytes]:
    return kinds.release.table("openapi.xz")


def openapi_paths(kinds: Kinds) -> JSONObject:
    """Return the list of the documents, with a hash of each document, by which clients know whether it has changed."""
    custom = {path: _hash(openapi_document(kinds, path)) for path in {*map(_path_of, kinds)} - _documents(kinds).keys()}
    hashes = _hashes(kinds.release).items()
    builtin = {path: digest for path, digest in hashes if path != "v2" and not path.endswith(_EXAMPLE)}
    found = sorted({**builtin, **custom}.items())
    return {"paths": {path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"} for path, digest in found}}


def openapi_document(kinds: Kinds, path: str) -> bytes:
    """Return the document with a path such as ``apis/apps/v1``, or an empty text if there is none."""
    custom = [_custom_document(served) for served in kinds if not served.is_builtin and _path_of(served) == path]
    if not custom or path in _documents(kinds):
        return _documents(kinds).get(path, b"") if path != "v2" else b""
    document = custom[0]
    for other in custom[1:]:
        document["paths"] |= other["paths"]
        document["components"]["schemas"] |= other["components"]["schemas"]
    return dumps(document)


def openapi_v2(release: Release, accept: str) -> Response:
    """Return the document of OpenAPI v2, which has only the built-in kinds.  kubectl needs protobuf."""
    documents = {JSON_TYPE: lambda: release.table("openapi.xz")["v2"], _PROTOBUF: lambda: _older_document(release)}
    return openapi_response(accept, documents)


def openapi_response(accept: str, documents: Mapping[str, Callable[[], bytes]]) -> Response:
    """Return the document in the media type that the client prefers, or the code 406."""
    for media_type, _ in clauses_of(accept or "*/*"):
        known = JSON_TYPE if media_type in ("application/*", "*/*") else media_type.replace("@", ".")
        if known in documents:
            return Response(chunks=[documents[known]()], content_type=known)
    return text_response("", code=406)


@functools.cache
def _older_document(release: Release) -> bytes:
    return release.read("openapi_v2.xz")


def _path_of(served: ServedKind) -> str:
    return f"{'apis' if served.info.group else 'api'}/{served.info.api_version}"


@functools.cache
def _hashes(release: Release) -> dict[str, str]:
    return {path: _hash(document) for path, document in release.table("openapi.xz").items()}


def _hash(document: bytes) -> str:
    return hashlib.sha512(document).hexdigest().upper()


def _custom_document(served: ServedKind) -> JSONObject:
    """Return the document of an example, with the names and the schema of a custom kind."""
    info = served.info
    group = f"{'namespaced' if info.namespaced else 'cluster'}.example.com"
    text = served.release.table("openapi.xz")[f"apis/{group}/v7"].decode()
    names = {form(group): form(info.group) for form in (str, _reversed, _camel, _lower_camel)}
    names |= {"V7": info.version.capitalize(), "v7": info.version, "Gadget": info.kind, "gadgets": info.plural}
    text = re.sub("|".join(map(re.escape, names)), lambda found: names[found[0]], text)
    document: JSONObject = decode(text.encode())
    for path in list(document["paths"]):
        _, _, subresource = path.partition("{name}/")
        if subresource and subresource not in info.subresources:
            del document["paths"][path]
    schemas = document["components"]["schemas"]
    if "scale" not in info.subresources:
        for name in [name for name in schemas if name.startswith("io.k8s.api.autoscaling.")]:
            del schemas[name]
    example = schemas[f"{_reversed(info.group)}.{info.version}.{info.kind}"]
    schema = {} if served.schema is None else served.schema.raw
    example["properties"] = {**(schema.get("properties") or {}), **example["properties"]}
    example |= {name: value for name, value in schema.items() if name != "properties"}
    if served.selectable_fields:
        selectable = [{"fieldPath": path} for path in served.selectable_fields]
        for listed in (example, schemas[f"{_reversed(info.group)}.{info.version}.{info.kind}List"]):
            listed["x-kubernetes-selectable-fields"] = selectable
    return document


def _reversed(group: str) -> str:
    return ".".join(reversed(group.split(".")))


def _camel(group: str) -> str:
    return "".join(part.capitalize() for part in group.replace("-", ".").split("."))


def _lower_camel(group: str) -> str:
    name = _camel(group)
    return name[:1].lower() + name[1:]
