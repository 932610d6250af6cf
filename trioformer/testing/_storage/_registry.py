"""The rules by which objects are created, updated and deleted in the storage.

Names, uids, timestamps, generations, conflicts, the status subresource, finalizers and namespaces behave as in
kube-apiserver.  There are three differences from a cluster:

- Objects of built-in kinds that the direct API stores are not validated, except for their ``metadata``.
- No kubelet runs, so a deleted pod is removed immediately, without a grace period.
- If no garbage collector runs (``_garbage.py``), owner references have no effect, and an object that is deleted with
  the policy ``Orphan`` or ``Foreground`` keeps the finalizer of the garbage collector.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Concatenate, ParamSpec, TypedDict, TypeVar, final

import attrs

from . import _custom
from ._admission import Admission
from ._bootstrap import bootstrap_objects
from ._clock import Clock, timestamp
from ._conversion_webhooks import convert, keep_view, view_of
from ._defaults import new_object, set_builtin_defaults
from ._deletion import BACKGROUND, DeleteOptions, Deletion, finalizers_after
from ._field_checks import FieldCheck, decode_fields
from ._kinds import Kinds, ServedKind
from ._locations import check_identity, check_namespace
from ._metadata import json_equal, ordered, stored_numbers, without_server_fields
from ._namespaces import PROTECTED_NAMESPACES, SYSTEM_NAMESPACES, labelled, namespaced, remove_empty_namespace
from ._object_meta import name_causes
from ._parts import Part, merged
from ._services import allocation_causes
from ._status import APIStatusError, already_exists, cause, forbidden, internal_error, invalid, not_found, status_error
from ._storage import JSONObject, Storage, Stored, body_of
from ._strategies import prepare_create, prepare_update
from ._tracking import FieldTracker, Writer
from ._validation import check_object

_DELETED_GRACEFULLY = frozenset({"pods", _custom.DEFINITIONS})
"""The kinds that kube-apiserver deletes gracefully, so that the last state of the object has a deletionTimestamp."""
_SUFFIX_LENGTH = 5
_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_LONGEST_GENERATED = 63
_GENERATE_ATTEMPTS = 8
_UID_VERSION = 0x00000000_0000_4000_8000_000000000000
_UID_BITS = 0xFFFFFFFF_FFFF_0FFF_3FFF_FFFFFFFFFFFF
"""The random bits of a uid, which is a UUID of version 4."""


P = ParamSpec("P")
T = TypeVar("T")


class WriteOptions(TypedDict):
    """The common arguments of :meth:`Registry.create` and :meth:`Registry.update`."""

    dry_run: bool
    writer: Writer
    fields: FieldCheck | None
    admission: Admission | None


def _writes(method: Callable[Concatenate[Registry, P], T]) -> Callable[Concatenate[Registry, P], T]:
    """Call ``after_write`` at the end of a method, unless another such method has called the method."""

    @functools.wraps(method)
    def call(registry: Registry, /, *args: P.args, **kwargs: P.kwargs) -> T:
        registry._depth += 1
        try:
            result = method(registry, *args, **kwargs)
        finally:
            registry._depth -= 1
        if registry.after_write is not None and not registry._depth:
            registry.after_write()
        return result

    return call


@final
@attrs.define(eq=False)
class Registry:
    """The registry that creates, updates and deletes objects.  Every method is atomic."""

    storage: Storage
    kinds: Kinds
    clock: Clock
    _random: random.Random
    sets_defaults: bool = True
    """Whether the defaults of built-in kinds are set."""
    tracker: FieldTracker = attrs.field(
        kw_only=True,
        default=attrs.Factory(
            lambda self: FieldTracker(self.storage, lambda: self.clock()),  # noqa: PLW0108  # replaced later
            takes_self=True,
        ),
    )
    """The tracker of the objects' managers."""
    after_write: Callable[[], None] | None = attrs.field(init=False, default=None)
    """A function that is called at the end of each method that writes, for controllers."""
    _depth: int = attrs.field(init=False, default=0)

    @contextmanager
    def replaying(self, now: datetime, seed: int) -> Iterator[None]:
        """Use this time and this seed while the block runs, so that a repeated request creates the same uids."""
        before = self.clock, self._random
        self.clock, self._random = (lambda: now), random.Random(seed)
        try:
            yield
        finally:
            self.clock, self._random = before

    def new_seed(self) -> int:
        """Return a new seed for :meth:`replaying`."""
        return self._random.getrandbits(64)

    # --- reading ------------------------------------------------------------------------------------------------------

    @staticmethod
    def key(served: ServedKind, namespace: str, name: str) -> str:
        """Return the key of an object in the storage."""
        return f"{namespace}/{name}" if served.info.namespaced else name

    def get(self, served: ServedKind, namespace: str, name: str, admission: Admission | None = None) -> Stored:
        """Return the stored state of an object, which is in the version of the kind if there is an admission."""
        stored = self.storage.get(served.resource, self.key(served, namespace, name))
        if stored is None:
            raise not_found(served.info, name)
        return stored if admission is None else view_of(served, stored, admission.answers)

    def has(self, served: ServedKind, namespace: str, name: str) -> bool:
        """Return whether an object exists."""
        return self.storage.get(served.resource, self.key(served, namespace, name)) is not None

    @_writes
    def write_all(self, write: Callable[[], None]) -> None:
        """Call a function that makes several writes, which the controllers see as one."""
        write()

    @_writes
    def restore(self, kinds: Kinds, objects: Mapping[str, Mapping[str, Stored]], revision: int) -> None:
        """Restore the kinds and objects of an earlier revision of this server or of another server."""
        self.kinds.replace(kinds)
        self.storage.restore(objects, revision)
        # Start another sequence of uids, because the server of the snapshot may have used the rest of this one.
        # Servers that restore one after the other begin with the same seed, but not at the same revision.
        self._random.seed(self._random.getrandbits(128) + self.storage.revision)

    # --- creating -----------------------------------------------------------------------------------------------------

    def create_system_objects(self) -> None:
        """Create the namespaces that every new cluster has, and its other objects when their kinds are first used."""
        if self.sets_defaults:
            self.storage.bootstrap = bootstrap_objects(self.kinds.release, self.storage.revision, timestamp(self.clock))
        for name in SYSTEM_NAMESPACES:
            self.create(self.kinds.namespaces, "", {"metadata": {"name": name}})

    @_writes
    def create(
        self,
        served: ServedKind,
        namespace: str,
        obj: JSONObject,
        *,
        part: Part = "main",
        dry_run: bool = False,
        fields: FieldCheck | None = None,
        writer: Writer | None = None,
        admission: Admission | None = None,
    ) -> Stored:
        """Create an object from ``obj``, which is modified in place.

        The status is kept only if ``part`` is ``whole``.  Unknown fields are removed, and ``fields`` collects them.
        Without a writer, the object has no managers.

        Raises:
            APIStatusError: The namespace does not exist (404), the object has a resourceVersion (500, except in a dry
                run), or the object is not valid.
        """
        given = self.read(served, namespace, obj, fields, keeps_nulls=writer is not None and writer.is_applier)
        version = given.get("resourceVersion")
        self._check_lifecycle(served, namespace, given.get("name") or "")
        obj["metadata"] = ordered(
            {**without_server_fields(given), "namespace": namespace if served.info.namespaced else None}
        )
        if served.is_namespace and given.get("name"):
            obj["metadata"] = labelled(obj["metadata"])
        before = new_object(served) if served.is_builtin and self.sets_defaults else {"metadata": {}}
        managers = self.tracker.created(served, obj, writer, before)
        if managers != obj["metadata"].get("managedFields"):
            obj["metadata"] = ordered({**obj["metadata"], "managedFields": managers})
        if admission is not None:
            obj, given = self._decode_again(served, namespace, admission.mutate("CREATE", served, obj))
        name = given.get("name") or self._generated_name(served, namespace, given.get("generateName") or "")
        if not name:
            raise invalid(served.info.group, served.info.kind, name, name_causes(served, name))
        key = self.key(served, namespace, name)
        metadata = {
            **obj["metadata"],
            "name": name,
            "uid": self.new_uid(),
            "creationTimestamp": timestamp(self.clock),
            # "0" reserves the place in the order of fields; see Storage.put.
            "resourceVersion": version if dry_run else "0",
            "generation": 1 if served.has_generation else None,
        }
        obj["metadata"] = ordered(metadata)
        if served.is_namespace:
            obj["metadata"] = labelled(obj["metadata"])
        prepare_create(self.storage, served, obj, keep_status=part == "whole", sets_defaults=self.sets_defaults)
        self._check(served, key, obj, None, part, fields, dry_run=dry_run)
        if admission is not None:
            seen = ordered({**obj["metadata"], "resourceVersion": version})
            admission.validate("CREATE", served, {**obj, "metadata": seen})
        if not dry_run and _is_revision(version):
            raise status_error(500, reason="", message="resourceVersion should not be set on objects to be created")
        if (existing := self.storage.get(served.resource, key)) is not None:
            is_deleting = "deletionTimestamp" in existing.decoded()["metadata"]
            raise already_exists(served.info, name, is_deleting=is_deleting)
        return self._write(served, key, obj, None, writer, admission, dry_run=dry_run)

    def _decode_again(self, served: ServedKind, namespace: str, obj: JSONObject) -> tuple[JSONObject, JSONObject]:
        """Return an object that webhooks have changed, without unknown fields and with defaults, and its metadata."""
        try:
            return obj, self.read(served, namespace, obj, FieldCheck("", "Ignore", []))
        except APIStatusError as exc:
            raise internal_error(str(exc)) from exc

    def _write(
        self,
        served: ServedKind,
        key: str,
        obj: JSONObject,
        raw: Stored | None,
        writer: Writer | None,
        admission: Admission | None,
        *,
        dry_run: bool,
    ) -> Stored:
        """Store an object, which was ``raw``, in the version of the storage, and return its new state."""
        obj = served.to_stored(obj) if served.is_builtin else stored_numbers(obj)
        given, version, view = served.info.version, served.storage_version or served.info.version, None
        if served.is_builtin or dry_run:
            version = "" if served.is_builtin else given
        elif admission is not None:
            obj = convert(admission.answers, served, obj, given, version)
            view = convert(admission.answers, served, obj, version, given) if version != given else None
        elif served.conversion_webhook is not None:
            version = given if raw is None else raw.version
        if dry_run:
            return Stored(key, raw.revision if raw is not None else 0, body_of(obj), version)
        stored = self.storage.put(served.resource, key, obj, "" if writer is None else writer.manager, version)
        if served.resource == _custom.DEFINITIONS:
            _custom.update_kinds(self.kinds, obj)
        return stored if view is None else keep_view(served, stored, view)

    def read(
        self,
        served: ServedKind,
        namespace: str,
        obj: JSONObject,
        fields: FieldCheck | None,
        *,
        keeps_nulls: bool = False,
    ) -> JSONObject:
        """Check the kind, the namespace and the types of the fields of a new object, and return its metadata.

        Unknown fields are removed, and ``fields`` collects them.
        """
        given = self._decode(served, obj, fields, keeps_nulls=keeps_nulls)
        check_namespace(served, namespace, given)
        return given

    def _decode(
        self, served: ServedKind, obj: JSONObject, fields: FieldCheck | None, *, keeps_nulls: bool
    ) -> JSONObject:
        """Check the kind and the types of the fields, remove unknown fields, set defaults, and return the metadata."""
        metadata = decode_fields(served, obj, fields, keeps_nulls=keeps_nulls)
        if served.is_builtin and self.sets_defaults:
            set_builtin_defaults(served, obj)
        return metadata

    def new_uid(self) -> str:
        """Return a new uid.  The sequence of uids is the same in every run."""
        digits = f"{self._random.getrandbits(128) & _UID_BITS | _UID_VERSION:032x}"
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"

    def _generated_name(self, served: ServedKind, namespace: str, prefix: str) -> str:
        name = ""
        for _ in range(_GENERATE_ATTEMPTS if prefix else 0):
            suffix = "".join(self._random.choices(_SUFFIX_LETTERS, k=_SUFFIX_LENGTH))
            name = prefix[: _LONGEST_GENERATED - _SUFFIX_LENGTH] + suffix
            if self.storage.get(served.resource, self.key(served, namespace, name)) is None:
                break
        return name

    def _check_lifecycle(self, served: ServedKind, namespace: str, name: str) -> None:
        """Check that the namespace exists and is not being deleted, as the admission plugin NamespaceLifecycle does."""
        if not served.info.namespaced:
            return
        found = self.get(self.kinds.namespaces, "", namespace)
        if b'"deletionTimestamp"' in found.body and found.decoded()["metadata"].get("deletionTimestamp"):
            problem = f"unable to create new content in namespace {namespace} because it is being terminated"
            why = cause("NamespaceTerminating", f"namespace {namespace} is being terminated", "metadata.namespace")
            raise forbidden(served.info, name, problem, [why])

    # --- updating -----------------------------------------------------------------------------------------------------

    @_writes
    def update(
        self,
        served: ServedKind,
        namespace: str,
        name: str,
        change: Callable[[JSONObject], JSONObject],
        *,
        part: Part = "main",
        dry_run: bool = False,
        fields: FieldCheck | None = None,
        writer: Writer | None = None,
        admission: Admission | None = None,
    ) -> Stored:
        """Update a part of an object.  ``change`` takes the old state, which it may modify, and returns the new state.

        Unknown fields are removed, and ``fields`` collects them.  Without a writer, the managers do not change.

        Returns:
            The new state. If nothing has changed, there is no new revision or event, and the old state is returned.
        """
        current, raw = self.get(served, namespace, name, admission), self.get(served, namespace, name)
        old = served.from_stored(current.decoded())
        named = {"kind": served.info.kind, "apiVersion": served.info.api_version}
        new = change({**named, **served.from_stored(current.decoded())})
        # In a patch, another uid is a change of an immutable field, and not a conflict.
        is_applied = writer is not None and writer.is_applier
        is_patch = is_applied or (fields is not None and fields.verb == "patch")
        given = self._decode(served, new, fields, keeps_nulls=is_applied)
        check_identity(served, current, old["metadata"], given, checks_uid=not is_patch)
        obj = merged(part, served, old, new, given, is_applied=is_applied)
        managed = self.tracker.updated(served, old, obj, given, writer)
        if admission is not None:
            # The webhooks are called when the fields already have their managers, so the writer owns no other fields.
            new = {**new, "metadata": ordered({**given, "managedFields": managed})}
            new, given = self._decode_again(served, namespace, admission.mutate("UPDATE", served, new, old))
            obj = merged(part, served, old, new, given, is_applied=is_applied)
        if served.is_builtin and self.sets_defaults:
            prepare_update(self.storage, served, old, obj)
        metadata = obj["metadata"]
        wanted = stored_numbers(obj) if is_applied and not served.is_builtin else obj
        is_changed = not json_equal(_desired_state(wanted), _desired_state(old))
        if part == "main" and (counted := served.counted_metadata):
            is_changed |= (metadata.get(counted) or {}) != (old["metadata"].get(counted) or {})
        if served.has_generation and part != "binding" and is_changed:
            metadata = {**metadata, "generation": metadata.get("generation", 0) + 1}
        obj["metadata"] = ordered({**metadata, "managedFields": managed})
        is_same = json_equal(obj, old) and raw.version in ("", served.storage_version or raw.version)
        if not is_same:
            self._check(served, current.key, obj, old, part, fields, dry_run=dry_run)
        if admission is not None:
            admission.validate("UPDATE", served, obj, old)
        if is_same:
            return current
        if not dry_run and obj["metadata"].get("deletionTimestamp") and not obj["metadata"].get("finalizers"):
            return self._remove_finalized(served, current, obj)
        return self._write(served, current.key, obj, raw, writer, admission, dry_run=dry_run)

    def _check(
        self,
        served: ServedKind,
        key: str,
        obj: JSONObject,
        old: JSONObject | None,
        part: Part,
        fields: FieldCheck | None,
        *,
        dry_run: bool,
    ) -> None:
        """Check a new object, or an object that was ``old``, in the form in which it is stored."""
        is_checked = self.sets_defaults and part == "main"
        check_object(served, obj, old, status_only=part == "status", checks_fields=is_checked, fields=fields)
        if is_checked and served.resource == "services":
            for why in allocation_causes(self.storage, key, obj, old, dry_run=dry_run):
                raise invalid("", served.info.kind, obj["metadata"]["name"], [why])

    def _remove_finalized(self, served: ServedKind, current: Stored, obj: JSONObject) -> Stored:
        """Remove an object whose finalizers were removed.  As in kube-apiserver, the response has the old revision."""
        version = "" if served.is_builtin else served.info.version
        obj = served.to_stored(obj) if served.is_builtin else stored_numbers(obj)
        response = Stored(current.key, current.revision, body_of(obj), version)
        if served.is_namespace:
            self.storage.put(served.resource, current.key, obj)
            remove_empty_namespace(self.storage, self.kinds, current.name)
        else:
            self._remove(served, current, obj, version)
        return response

    # --- deleting -----------------------------------------------------------------------------------------------------

    @_writes
    def delete(
        self, served: ServedKind, namespace: str, name: str, options: DeleteOptions, admission: Admission | None = None
    ) -> Deletion:
        """Delete an object, or only set its deletionTimestamp if it has finalizers.

        Raises:
            APIStatusError: The object is a system namespace (403), does not exist (404), or does not meet a
                precondition (409).
        """
        current = self.get(served, namespace, name)
        obj = current.decoded()
        metadata = obj["metadata"]
        options.check(served, current, metadata["uid"])
        if served.is_namespace and name in PROTECTED_NAMESPACES:
            raise forbidden(served.info, name, "this namespace may not be deleted")
        seen = {} if admission is None else admission.delete(served, current, options.as_object())
        finalizers = metadata.get("finalizers") or []
        if not served.is_namespace:
            finalizers = finalizers_after(served, metadata, options.policy)
        waits = served.is_namespace or bool(finalizers)
        is_deleted = bool(metadata.get("deletionTimestamp"))
        if waits and is_deleted and finalizers == (metadata.get("finalizers") or []):
            return Deletion(keep_view(served, current, seen) if seen else current, is_done=False)
        if waits:
            metadata["finalizers"] = finalizers
        if (waits or served.resource in _DELETED_GRACEFULLY) and not is_deleted:
            metadata["deletionTimestamp"] = timestamp(self.clock)
            if not served.is_namespace and served.resource != _custom.DEFINITIONS:
                metadata["deletionGracePeriodSeconds"] = 0
            if "generation" in metadata:
                metadata["generation"] += 1
        obj["metadata"] = ordered(metadata)
        if served.is_namespace:
            obj["status"] = {**obj.get("status", {}), "phase": "Terminating"}
        if options.dry_run:
            last = Stored(current.key, current.revision, body_of(obj), current.version)
        elif waits:
            last = self.storage.put(served.resource, current.key, obj, version=current.version)
        else:
            last = self._remove(served, current, obj, current.version)
        if seen and not served.is_builtin:
            last = keep_view(served, last, seen)
        if options.dry_run or not waits:
            return Deletion(last, is_done=not waits)
        if served.is_namespace:
            self._delete_content(name)
            remove_empty_namespace(self.storage, self.kinds, name)
        return Deletion(last, is_done=False)

    def delete_all(
        self, served: ServedKind, chosen: Iterable[Stored], options: DeleteOptions, admission: Admission | None
    ) -> None:
        """Delete all selected objects in order, with the same options.

        Raises:
            APIStatusError: An object does not meet a precondition (409).  The objects before this one have been
                deleted.
        """
        chosen = [one for one in chosen if self.storage.get(served.resource, one.key) is not None]
        if admission is not None:
            # No object may be deleted before the answers for all objects are known.
            with suppress(APIStatusError):  # which is raised again, after the objects before this one are deleted
                for stored in (one for one in chosen if one not in admission.answers.reviewed):
                    admission.delete(served, stored, options.as_object())
                    admission.answers.reviewed.add(stored)
        for stored in chosen:
            if self.storage.get(served.resource, stored.key) is not None:  # not removed with its owner
                self.delete(served, stored.namespace, stored.name, options, admission)

    def _remove(self, served: ServedKind, current: Stored, last: JSONObject, version: str) -> Stored:
        stored = self.storage.remove(served.resource, current.key, last, version)
        if served.info.namespaced:
            remove_empty_namespace(self.storage, self.kinds, current.namespace)
        elif served.resource == _custom.DEFINITIONS:
            for removed in _custom.remove_kinds(self.kinds, last):
                for custom_object in self.storage.snapshot(removed.resource):
                    last_state = custom_object.decoded()
                    self.storage.remove(removed.resource, custom_object.key, last_state, custom_object.version)
        return stored

    def _delete_content(self, name: str) -> None:
        for served in namespaced(self.kinds):
            for stored in self.storage.snapshot(served.resource, f"{name}/"):
                self.delete(served, name, stored.name, BACKGROUND)


def _is_revision(version: str | None) -> bool:
    """Return whether a resourceVersion is a number other than 0."""
    return bool(version and version.isascii() and version.isdecimal() and int(version[:20]))


def _desired_state(obj: JSONObject) -> JSONObject:
    """Return the part of an object whose changes increment the generation."""
    return {key: value for key, value in obj.items() if key not in ("kind", "apiVersion", "metadata", "status")}
