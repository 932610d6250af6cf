"""Load manifests from files or a string, and convert them to objects."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, cast, final

import attrs

from .._files import read_file
from .._secret import Secret
from .._text import quoted
from .._yaml import Mapping
from ..errors import ManifestError
from ..errors._internal import ManifestProblem
from ..models import KubernetesObject, ResourceInfo, from_json, resource_of, to_dict, unstructured_kind
from ..models._internal import (
    builtin_kind,
    dumps,
    find_undecodable,
    guess_plural,
    is_label,
    is_path_segment,
    is_subdomain,
    is_version,
    kind_problem,
    locate_undecodable,
)
from ._manifest import Manifest
from ._yaml import parse_documents, position_of

SUFFIXES: Final = (".json", ".yaml", ".yml")
"""The suffixes of the files that are read from a directory, as in kubectl."""

_STEP: Final = re.compile(r"\[(?:\.\.\.|([0-9]+))\]|\.(\w+)")
_CRD: Final = ("apiextensions.k8s.io", "CustomResourceDefinition")
_MAX_LISTS: Final = 10
"""The maximum nesting of lists."""


def load_manifests(
    *paths: str | os.PathLike[str],
    text: str | bytes | None = None,
    kinds: Iterable[type[KubernetesObject]] = (),
    recursive: bool = False,
) -> tuple[Manifest, ...]:
    """Load manifests from files and directories, or from a string.

    For example::

        manifests = load_manifests("deploy/", "extra.yaml")

    A file can contain any number of YAML or JSON documents.  Empty documents are skipped, and each list is replaced
    with its items.
    In a directory, the files ``*.yaml``, ``*.yml`` and ``*.json`` are read in the order of their names.

    An object of a built-in kind, or of a class in ``kinds``, is loaded as an instance of its class, and the types of
    all its fields are checked.  All other objects are loaded as :class:`~trioformer.models.Unstructured`.  Their
    resource is read from a CustomResourceDefinition among the manifests.  If there is no definition, the resource is
    guessed from the kind, and :func:`apply_manifests` later gets the real resource from the server.

    Args:
        paths: The files and directories to read.
        text: A YAML or JSON string to load instead of files.
        kinds: The classes of your own kinds.
        recursive: Whether to read subdirectories.

    Returns:
        The manifests in the order of the files.  The result contains at least one manifest.

    Raises:
        ManifestError: A file cannot be read, a file or an object is not valid, or there are no manifests.  The message
            lists every problem with file, line and column, and contains no values.
        TypeError: Both paths and ``text`` are given, or neither of them.

    Time:
        The function reads and parses without a checkpoint, which takes some seconds for 10 MB.  Use
        ``trio.to_thread.run_sync`` if other tasks must not be blocked.
    """
    if (text is None) is not bool(paths):
        raise TypeError("pass either paths of files and directories, or text=")
    classes = {resource_of(kind).gvk: kind for kind in kinds}
    loading = _Loading()
    if text is not None:
        loading.read(Secret(text.encode(errors="surrogatepass") if isinstance(text, str) else bytes(text)), None)
    for path in paths:
        for file in loading.files_of(path, recursive=recursive):
            loading.read_file(file)
    manifests = loading.manifests(classes)
    if not manifests and not loading.problems:
        place = ", ".join(os.fspath(path) for path in paths)
        loading.report("contains no manifests; write at least one document", place or None)
    if loading.problems:
        raise ManifestError(loading.in_order())
    return manifests


@final
@attrs.frozen
class _Raw:
    """A parsed object that is not converted to its class yet."""

    value: dict[str, Any] = attrs.field(repr=False)
    content: Secret[bytes]
    file: str | None
    line: int
    column: int
    document: int
    """The index of the document in the file."""
    path: tuple[str | int, ...]
    """The path of the object in the document."""


@final
@attrs.define(eq=False)
class _Loading:
    """The state of one call to :func:`load_manifests`."""

    problems: list[ManifestProblem] = attrs.field(factory=list)
    _raws: list[_Raw] = attrs.field(factory=list)
    _files: list[str | None] = attrs.field(factory=list)
    """The files in the order in which they were read; problems are sorted by this order."""

    def report(self, message: str, file: str | None, line: int | None = None, column: int | None = None) -> None:
        if file not in self._files:
            self._files.append(file)
        self.problems.append(ManifestProblem(message, file, line, column))

    def in_order(self) -> list[ManifestProblem]:
        """Return the problems sorted by file and line."""
        places = {file: index for index, file in enumerate(self._files)}
        return sorted(self.problems, key=lambda one: (places[one.file], one.line or 0, one.column or 0))

    # --- files ---

    def files_of(self, path: str | os.PathLike[str], *, recursive: bool) -> Iterator[str]:
        name = os.fspath(path)
        if not isinstance(name, str):
            raise TypeError(f"a path must be a string or a pathlib.Path, not {type(name).__name__}")
        if "\n" in name:
            raise TypeError("a path must not contain a line break; to load a string, pass text=")
        try:
            is_directory = stat.S_ISDIR(os.stat(name).st_mode)
            found = sorted(_files_in(Path(name), recursive=recursive)) if is_directory else [name]
        except ValueError:
            self.report("is not a valid path", quoted(name))
            return
        except OSError as exc:
            self.report(_cannot_read(exc), name)
            return
        if not found:
            hint = "" if recursive else ", or pass recursive=True for the directories in it"
            self.report(f"the directory contains no file {', '.join(f'*{each}' for each in SUFFIXES)}{hint}", name)
        yield from found

    def read_file(self, file: str) -> None:
        try:
            content = read_file(file)
        except OSError as exc:
            self.report(_cannot_read(exc), file)
        else:
            self.read(content, file)

    def read(self, content: Secret[bytes], file: str | None) -> None:
        self._files.append(file)
        parsed = parse_documents(content, file)
        self.problems += parsed.problems
        for index, document in enumerate(parsed.documents):
            if document.value is not None:
                whole = _Raw(document.value, content, file, document.line, document.column, index, ())
                self._raws += self._objects_in(whole, levels=_MAX_LISTS)

    def _objects_in(self, raw: _Raw, *, levels: int) -> Iterator[_Raw]:
        """Yield an object itself, or the items of a list."""
        value: object = raw.value
        if not isinstance(value, dict):
            found = "a list" if isinstance(value, list) else "a single value"
            self.report(f"a manifest must be a mapping, not {found}", raw.file, raw.line, raw.column)
            return
        kind = value.get("kind")
        if not isinstance(kind, str) or not kind.endswith("List") or "items" not in value:
            yield raw
            return
        items = value["items"]
        if items is None:
            return
        if not isinstance(items, list) or not levels:
            what = "must be a list" if levels else "contain too many nested lists"
            self.report(f"the items of a {kind} {what}", raw.file, raw.line, raw.column)
            return
        api_version = value.get("apiVersion")
        for index, item in enumerate(items):
            if kind != "List" and isinstance(item, dict):  # items of a typed list may omit both
                item.setdefault("kind", kind.removesuffix("List"))
                item.setdefault("apiVersion", api_version)
            line, column = (item.line, item.column) if isinstance(item, Mapping) else (raw.line, raw.column)
            inner = attrs.evolve(raw, value=item, line=line, column=column, path=(*raw.path, "items", index))
            yield from self._objects_in(inner, levels=levels - 1)

    # --- objects ---

    def manifests(self, classes: dict[Any, type[KubernetesObject]]) -> tuple[Manifest, ...]:
        """Convert the parsed objects to their classes, and record problems."""
        defined = {gvk: info for raw in self._raws for gvk, info in _defined_by(raw.value)}
        return tuple(made for raw in self._raws if (made := self._manifest(raw, classes, defined)) is not None)

    def _manifest(
        self, raw: _Raw, classes: dict[Any, type[KubernetesObject]], defined: dict[tuple[str, str], ResourceInfo]
    ) -> Manifest | None:
        if (problem := _problem_of(raw.value)) is not None:
            path, message = problem
            self._report_at(raw, path, message)
            return None
        api_version, kind = raw.value["apiVersion"], raw.value["kind"]
        cls = _class_of(api_version, kind, classes, defined)
        try:
            obj = from_json(cls, dumps(raw.value))
        except (ValueError, TypeError, OverflowError, RecursionError):
            self.report(f"the {kind} cannot be encoded as JSON", raw.file, raw.line, raw.column)
            return None
        if find_undecodable(obj) is not None and (found := locate_undecodable(obj)) is not None:
            where, error = found
            what, _, inner = str(error).partition(": ")[2].partition(" - at ")
            where = _inside(raw.value, where, inner)
            self._report_at(raw, where, f"the {_dotted(where)} of the {kind} is not valid: {what}")
            return None
        return Manifest(object=obj, file=raw.file, line=raw.line, column=raw.column)

    def _report_at(self, raw: _Raw, path: tuple[str | int, ...], message: str) -> None:
        place = position_of(raw.content, raw.document, (*raw.path, *path)) if path else None
        line, column = place or (raw.line, raw.column)
        self.report(message, raw.file, line, column)


def _files_in(directory: Path, *, recursive: bool) -> list[str]:
    if not recursive:
        return [str(path) for path in directory.iterdir() if path.suffix in SUFFIXES and not path.is_dir()]
    found: list[str] = []
    for folder, _, names in os.walk(directory):  # which does not follow links to directories
        found += [str(Path(folder, name)) for name in names if name.endswith(SUFFIXES)]
    return found


def _cannot_read(error: OSError) -> str:
    return "does not exist" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror}"


def _problem_of(value: dict[str, Any]) -> tuple[tuple[str | int, ...], str] | None:
    """Check an object's kind and name; return the path of the invalid field and the problem, or None."""
    for key, example in (("apiVersion", "apps/v1"), ("kind", "Deployment")):
        if not value.get(key):
            return (), f"a manifest has no {key}: add one, such as {example}"
        if not isinstance(value[key], str):
            return (key,), f"{key} must be a string, such as {example}"
    group, _, version = value["apiVersion"].rpartition("/")
    if not is_version(version) or ("/" in value["apiVersion"] and not is_subdomain(group)):
        return ("apiVersion",), f"apiVersion must look like v1 or apps/v1, not {quoted(value['apiVersion'])}"
    if kind_problem(value["kind"]):
        return ("kind",), f"kind must be a name such as Deployment, not {quoted(value['kind'])}"
    kind = value["kind"]
    metadata = value.get("metadata")
    if not isinstance(metadata, dict):
        if metadata is None:
            return (), f"the {kind} has no metadata; add one with a name"
        return ("metadata",), f"the metadata of the {kind} must be a mapping"
    if not metadata.get("name") and not metadata.get("generateName"):
        return (("metadata",) if metadata else ()), f"the {kind} has no name: add metadata.name"
    for key in ("name", "namespace", "generateName"):
        found = metadata.get(key)
        if found is None or found == "":
            continue
        if not isinstance(found, str):
            return ("metadata", key), f"metadata.{key} of the {kind} must be a string; put it in quotes"
        if not is_path_segment(found):
            return ("metadata", key), f"metadata.{key} of the {kind} is not valid: {quoted(found)}"
    return None


def _inside(whole: object, path: tuple[str | int, ...], inner: str) -> tuple[str | int, ...]:
    """Convert the path in a decode error, such as ``$[0]``; ``[...]`` stands for a map value of the wrong type."""
    value: Any = whole
    try:
        for step in path:
            value = value[step]
        for index, key in _STEP.findall(inner):
            step = int(index) if index else key
            if not step:
                step = next(each for each, found in value.items() if not isinstance(found, str))
            value = value[step]
            path = (*path, step)
    except (LookupError, TypeError, AttributeError, StopIteration):
        pass  # what is known is still true
    return path


def _dotted(path: tuple[str | int, ...]) -> str:
    """Format a path as kubectl does, such as ``spec.ports[0].port``."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".") or "content"


def _class_of(
    api_version: str,
    kind: str,
    classes: dict[Any, type[KubernetesObject]],
    defined: dict[tuple[str, str], ResourceInfo],
) -> type[KubernetesObject]:
    group, _, version = api_version.rpartition("/")
    for gvk, cls in classes.items():
        if (gvk.group, gvk.version, gvk.kind) == (group, version, kind):
            return cls
    try:
        return builtin_kind(api_version, kind)
    except LookupError:
        pass
    info = defined.get((group, kind))
    if info is None:
        return unstructured_kind(api_version, kind, plural=guess_plural(kind), namespaced=True)
    return unstructured_kind(attrs.evolve(info, version=version))


def kinds_defined_by(obj: KubernetesObject) -> Iterator[tuple[tuple[str, str], ResourceInfo]]:
    """If an object is a CustomResourceDefinition, yield each defined resource with its group and kind."""
    if obj.kind == _CRD[1]:
        yield from _defined_by(to_dict(obj))


def _defined_by(value: dict[str, Any]) -> Iterator[tuple[tuple[str, str], ResourceInfo]]:
    """Yield each resource that the JSON of a CustomResourceDefinition defines, with its group and kind."""
    api_version = value.get("apiVersion")
    if not isinstance(api_version, str) or (api_version.partition("/")[0], value.get("kind")) != _CRD:
        return
    spec = value.get("spec")
    names = spec.get("names") if isinstance(spec, dict) else None
    if not isinstance(names, dict):
        return
    group, kind, plural = (
        found if isinstance(found, str) else ""
        for found in (cast("dict[str, object]", spec).get("group"), names.get("kind"), names.get("plural"))
    )
    if is_subdomain(group) and not kind_problem(kind) and is_label(plural):
        namespaced = cast("dict[str, object]", spec).get("scope") != "Cluster"
        info = ResourceInfo(group=group, version="v1", kind=kind, plural=plural, namespaced=namespaced)
        yield (group, kind), info
