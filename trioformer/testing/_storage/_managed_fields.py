"""The managers in ``metadata.managedFields``, which own the fields of an object.

An applier owns the fields that it has applied, and an updater owns the fields that it has changed.
An apply that changes a field of another manager fails with a conflict.  With force, the applier takes the field
instead.
If a manager no longer applies a field, the field is removed unless another manager owns it.

Source: apimachinery ``pkg/util/managedfields``, structured-merge-diff ``merge/update.go``, and the error messages of
v1.36.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, final

import attrs

from ._field_sets import MEMBER, FieldSet, difference, encode, intersection, paths, read, union, without
from ._field_types import DEDUCED, FieldType
from ._status import APIStatusError, status_error
from ._storage import JSONObject
from ._typed_values import Comparison, compare, fields_of, merge, remove, same, with_named_fields

MAX_UPDATERS: Final = 10
"""The maximum number of updaters. If there are more, the oldest are merged into ``ancient-changes``."""
NOT_OWNED: Final = frozenset(
    {
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    }
)
"""The metadata fields that have no owners."""
_STRIPPED: Final[FieldSet] = {
    "f:apiVersion": MEMBER,
    "f:kind": MEMBER,
    "f:metadata": {".": MEMBER, **{f"f:{name}": MEMBER for name in NOT_OWNED}},
}
_LONGEST_CONFLICTS: Final = 1_000

TypeOf: TypeAlias = Callable[[str], FieldType | None]
"""A function that returns the type of a kind in another apiVersion, or None if this version is no longer served."""


@final
@attrs.frozen(order=True)
class ManagerKey:
    """The key that identifies a manager of an object."""

    name: str
    """The manager's name."""
    operation: str
    """``Apply`` or ``Update``."""
    api_version: str
    """The apiVersion of an updater.  It is empty for an applier, which has one entry for all versions."""
    subresource: str
    """The subresource that the manager writes, or an empty string for the object itself."""

    @property
    def text(self) -> str:
        """The manager in the format of error messages, without the time of an updater."""
        name = json.dumps(self.name, ensure_ascii=False)  # as Go quotes it
        if self.subresource:
            name += f' with subresource "{self.subresource}"'
        return f"{name} using {self.api_version}" if self.operation == "Update" else name


@final
@attrs.define(eq=False)
class Owned:
    """The fields that one manager owns."""

    fields: FieldSet
    """The owned fields."""
    api_version: str
    """The apiVersion of these fields."""
    time: str | None
    """The timestamp of the manager's last change."""
    entry: JSONObject | None = None
    """The stored entry of the manager, if it is still valid."""


Managers: TypeAlias = dict[ManagerKey, Owned]
"""The managers of an object."""


# --- entries ----------------------------------------------------------------------------------------------------------


def read_entries(entries: object, *, is_stored: bool = False) -> Managers:
    """Return the managers in ``managedFields``.

    Args:
        entries: The list in ``managedFields``, or None.
        is_stored: Whether the list was made by :func:`write_entries`, and is therefore known to be valid.

    Raises:
        ValueError: An entry in the list is not valid.
    """
    managers: Managers = {}
    if entries is not None and not isinstance(entries, list):
        raise ValueError("managedFields is not a list")
    for entry in entries or ():
        if not isinstance(entry, dict):
            raise ValueError("an entry is not an object")  # noqa: TRY004  # bad input
        operation, version = entry.get("operation"), entry.get("apiVersion")
        if operation not in ("Apply", "Update") or not version or entry.get("fieldsType") != "FieldsV1":
            raise ValueError("an entry has no operation, apiVersion or fieldsType")
        name, subresource = str(entry.get("manager") or ""), str(entry.get("subresource") or "")
        key = ManagerKey(name, operation, version if operation == "Update" else "", subresource)
        fields = entry["fieldsV1"] if is_stored else read(entry.get("fieldsV1") or {})
        managers[key] = Owned(fields, version, entry.get("time"), entry if is_stored else None)
    return managers


def write_entries(managers: Managers) -> list[JSONObject]:
    """Return ``managedFields`` in kube-apiserver's order: first the appliers, then the updaters, oldest first.

    Raises:
        TooDeepError: The fields of a manager have too many levels.
    """
    ordered = sorted(
        managers.items(),
        key=lambda item: (
            item[0].operation,
            item[1].time or "",
            item[0].name,
            item[1].api_version,
            item[0].subresource,
        ),
    )
    entries = []
    for key, owned in ordered:
        if owned.entry is not None:
            entries.append(owned.entry)
            continue
        entry: JSONObject = {"manager": key.name, "operation": key.operation, "apiVersion": owned.api_version}
        if owned.time is not None:
            entry["time"] = owned.time
        entry |= {"fieldsType": "FieldsV1", "fieldsV1": encode(owned.fields)}
        if key.subresource:
            entry["subresource"] = key.subresource
        entries.append({name: value for name, value in entry.items() if value != ""})
    return entries


def managers_after(
    live: Mapping[str, Any], given: Mapping[str, Any], *, is_builtin: bool, is_subresource: bool
) -> Managers:
    """Return the managers before a write.

    They are taken from the request if it contains any, and otherwise from the stored object.

    If the request contains one empty entry, all managers are removed.  For built-in kinds, an empty list has the same
    effect.
    """
    if not is_subresource and "managedFields" in given:
        entries = given["managedFields"]
        if entries == [{}] or (entries == [] and is_builtin):
            return {}
        try:
            if managers := read_entries(entries):
                return managers
        except ValueError:
            pass
    return read_entries(live.get("managedFields"), is_stored=True)


# --- update -----------------------------------------------------------------------------------------------------------


@final
@attrs.define(eq=False)
class Ownership:
    """The changes that a request makes to the managers of an object."""

    type: FieldType
    """The type of the kind."""
    type_of: TypeOf
    """The types of the kind's other versions."""
    api_version: str
    """The apiVersion of the request."""
    reset: FieldSet
    """The fields that the request cannot change, such as the status."""
    may_change: bool
    """Whether the types of fields may have changed since the managers were written."""

    def updated(
        self, managers: Managers, old: JSONObject, new: JSONObject, key: ManagerKey, now: str | None
    ) -> Managers:
        """Return the managers after an update.  The writer becomes the only owner of each changed field.

        The objects must not contain their kind, their apiVersion, or the metadata fields that have no owners.
        """
        managers, differences = self._changed(self._served(managers), old, new, None, force=True)
        if fields := union(differences.modified, differences.added):
            previous = managers.get(key)
            if previous is not None:
                fields = union(fields, previous.fields)
            managers[key] = Owned(fields, self.api_version, now)
        return _capped(managers)

    def applied(  # as SMD's
        self, managers: Managers, live: JSONObject, config: JSONObject, key: ManagerKey, *, force: bool, now: str | None
    ) -> tuple[JSONObject, Managers]:
        """Return the object after an apply, and its managers.

        Raises:
            APIStatusError: The apply changes fields of other managers without force (409).
        """
        managers = self._served(managers)
        merged = merge(self.type, live, config)
        previous = managers.get(key)
        fields = without(fields_of(self.type, config), self.reset)
        managers[key] = Owned(fields, self.api_version, None if previous is None else previous.time)
        result = self._pruned(merged, managers, previous)
        managers, _ = self._changed(managers, live, result, key, force=force)
        if (own := managers.get(key)) is not None:
            own.fields = difference(own.fields, _STRIPPED)
            if not same(live, result):
                own.time = now
            if not own.fields:
                del managers[key]
        return result, managers

    def _served(self, managers: Managers) -> Managers:
        """Return the managers whose API versions are still served, with their fields adapted to the current types."""
        if not self.may_change:
            return managers
        served = {}
        for key, owned in managers.items():
            of = self._type(owned.api_version)
            if of is not None:
                fields = reconciled(of, owned.fields)
                served[key] = owned if fields == owned.fields else Owned(fields, owned.api_version, owned.time)
        return served

    def _type(self, api_version: str) -> FieldType | None:
        return self.type if api_version == self.api_version else self.type_of(api_version)

    def _changed(
        self, managers: Managers, old: JSONObject, new: JSONObject, applier: ManagerKey | None, *, force: bool
    ) -> tuple[Managers, Comparison]:
        """Remove the changed fields from all managers except the applier, and return the managers and the changes."""
        compared = {self.api_version: compare(self.type, old, new).without(self.reset)}
        conflicts: dict[ManagerKey, FieldSet] = {}
        kept: Managers = {}
        for key, owned in managers.items():
            if key == applier:
                kept[key] = owned
                continue
            differences = compared.get(owned.api_version)
            if differences is None:
                of = self._type(owned.api_version) or self.type
                differences = compared[owned.api_version] = compare(of, old, new).without(self.reset)
            changed = union(differences.modified, differences.added)
            taken = intersection(owned.fields, changed)
            lost = union(taken, intersection(owned.fields, differences.removed))
            if taken:
                conflicts[key] = taken
            if not lost:
                kept[key] = owned
            elif rest := difference(owned.fields, lost):
                kept[key] = Owned(rest, owned.api_version, owned.time)
        if conflicts and not force:
            raise ApplyConflict(conflicts)
        return kept, compared[self.api_version]

    def _pruned(self, merged: JSONObject, managers: Managers, previous: Owned | None) -> JSONObject:
        """Remove the fields from a merged object that the manager no longer applies and no other manager owns."""
        if previous is None or not previous.fields:
            return merged
        of = self._type(previous.api_version)
        if of is None:
            return merged
        last = with_named_fields(of, previous.fields)
        pruned = remove(of, merged, last) or {}
        by_version: dict[str, FieldSet] = {previous.api_version: {}}
        for owned in managers.values():
            by_version[owned.api_version] = union(by_version.get(owned.api_version, {}), owned.fields)
        for version, owned_fields in by_version.items():
            type_then = self._type(version)
            if owned_fields and type_then is not None:
                everything = with_named_fields(type_then, fields_of(type_then, merged))
                left = with_named_fields(type_then, fields_of(type_then, pruned))
                owned_by_some = with_named_fields(type_then, owned_fields)
                pruned = remove(type_then, merged, difference(everything, union(left, owned_by_some))) or {}
        everything = with_named_fields(of, fields_of(of, merged))
        left = with_named_fields(of, fields_of(of, pruned))
        result: JSONObject = remove(of, merged, intersection(difference(everything, left), last)) or {}
        return result


def _capped(managers: Managers) -> Managers:
    """If there are too many updaters, merge the oldest ones. Return all managers."""
    updaters = [key for key in managers if key.operation == "Update"]
    count = len(updaters)
    if count <= MAX_UPDATERS:
        return managers
    first: dict[str, ManagerKey] = {}
    for key in sorted(updaters, key=lambda key: (managers[key].time or "", key)):
        if count <= MAX_UPDATERS:
            break
        version = managers[key].api_version
        bucket = ManagerKey("ancient-changes", "Update", version, "")
        if version not in first:
            first[version] = key
            continue
        owned = managers.pop(key)
        if bucket not in managers:
            managers[bucket] = managers.pop(first[version])
        managers[bucket] = Owned(union(owned.fields, managers[bucket].fields), version, owned.time)
        count -= 1
    return managers


def reconciled(of: FieldType, fields: FieldSet) -> FieldSet:
    """Adapt a set of fields to a new schema. Fields that have become leaves are owned as a whole."""
    result: FieldSet = {}
    for element, child in fields.items():
        inner = _member_type(of, element)
        result[element] = child if inner is None or not child else _reconciled(inner, child)
    return result


def _reconciled(of: FieldType, child: FieldSet) -> FieldSet:
    """Return the adapted set of the fields below a field that is not a leaf."""
    is_atomic = of.map.is_atomic if of.map is not None else of.items is not None and of.items.is_atomic
    if of is DEDUCED or (of.scalar is not None and of.map is None):
        return child
    return MEMBER if is_atomic else reconciled(of, child)


def _member_type(of: FieldType, element: str) -> FieldType | None:
    """Return the type of a field or an item, or None if the type has no such field."""
    if of.map is not None:
        field = of.map.fields.get(element[2:])
        return field.type if field is not None else of.map.element
    return None if of.items is None else of.items.item


# --- errors -----------------------------------------------------------------------------------------------------------


class ApplyConflict(Exception):  # noqa: N818  # not an error yet: it may be allowed for kubectl
    """An error for an apply that changes fields of other managers.

    Attributes:
        conflicts: The conflicting fields by manager.
    """

    def __init__(self, conflicts: Mapping[ManagerKey, FieldSet]) -> None:
        super().__init__(len(conflicts))
        self.conflicts = conflicts


def conflict_error(conflicts: Mapping[ManagerKey, FieldSet]) -> APIStatusError:
    """Return kube-apiserver's error for an apply with conflicts."""
    found = [(key, path) for key in sorted(conflicts) for path in paths(conflicts[key])]
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {key.text}", "field": path} for key, path in found
    ]
    if len(found) == 1:
        message = f"Apply failed with 1 conflict: conflict with {found[0][0].text}: {found[0][1]}"
    else:
        lines = []
        for key in sorted(conflicts):
            lines.append(f"conflicts with {key.text}:")
            lines += [f"- {path}" for path in paths(conflicts[key])]
        message = f"Apply failed with {len(found)} conflicts: " + "\n".join(lines)
    return status_error(409, message=message, details={"causes": causes[:_LONGEST_CONFLICTS]})
