"""Label and field selectors for stored objects."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import Final, cast, final

import attrs

from ...errors import SelectorError
from ...models import FieldSelector, LabelSelector
from ...models._internal import LabelOperator, LabelRequirement, Raw, decode, level_decoder
from ._kinds import ServedKind
from ._status import bad_request
from ._storage import JSONObject, Stored

_metadata: Callable[[bytes | Raw], tuple[Raw, ...]] = level_decoder(("metadata",))
_OPERATORS: Final[Mapping[str, LabelOperator]] = {
    "In": "in",
    "NotIn": "notin",
    "Exists": "exists",
    "DoesNotExist": "!",
}
_labels: Callable[[bytes | Raw], tuple[Raw, ...]] = level_decoder(("labels",))


def labels_of(stored: Stored) -> Mapping[str, str]:
    """Return the labels of an object, without decoding its other fields."""
    (raw,) = _labels(_metadata(b"{" + stored.body)[0])
    labels: Mapping[str, str] | None = decode(raw) if bytes(raw) else None
    return labels or {}


def selector_in(selector: object) -> LabelSelector:
    """Return the label selector for ``matchLabels`` and ``matchExpressions``.

    Raises:
        SelectorError: The selector is not valid.
    """
    try:
        labels, expressions = (selector.get(key) or {} for key in ("matchLabels", "matchExpressions"))  # type: ignore[attr-defined]  # checked below
        requirements = [LabelRequirement(key, "=", [value]) for key, value in labels.items()]
        requirements += [
            LabelRequirement(one["key"], _OPERATORS[one["operator"]], one.get("values") or ()) for one in expressions
        ]
        return LabelSelector(requirements)
    except (AttributeError, KeyError, TypeError) as exc:
        raise SelectorError(f"not a label selector: {exc!r}") from exc


def _no_field(obj: object, path: str) -> str:
    """Return an empty value for every field, for selections without a field selector."""
    raise LookupError(path)


_UNEXPECTED: Final = re.compile(r"label selector .*, position (\d+): found (the end|'.*'), expected (.+)", re.DOTALL)
_UNPARSED: Final = "unable to parse requirement: found {}, expected: "
_EXPECTED: Final[Mapping[str, str]] = {
    "a label key or '!'": "found {}, expected: identifier after ','",
    "a label key": f"{_UNPARSED}identifier",
    "',' or the end": "found {}, expected: ',' or 'end of string'",
    "=, ==, !=, in, notin, > or <": f"{_UNPARSED}in, notin, =, ==, !=, gt, lt",
    "a value": f"{_UNPARSED}identifier",
    "'('": "unable to parse requirement: found {} expected: '('",
    "a value, ',' or ')'": f"{_UNPARSED}',', ')' or identifier",
    "',' or ')'": f"{_UNPARSED}',' or ')'",
}
"""What kube-apiserver says of a label selector, by what this library expects there."""


def _syntax_problem(problem: str) -> str:
    found = _UNEXPECTED.fullmatch(problem)
    if not found:
        return f"unable to parse requirement: {problem}"
    position, token, expected = found.groups()
    known = _EXPECTED[expected] if position != "0" else "found {}, expected: !, identifier, or 'end of string'"
    return known.format("''" if token == "the end" else token)


@final
@attrs.frozen
class Selection:
    """The selectors of a list, watch or deletecollection request."""

    labels: LabelSelector = attrs.field(factory=LabelSelector)
    """The label selector."""
    fields: FieldSelector = attrs.field(factory=FieldSelector)
    """The field selector."""
    _read: Callable[[object, str], str] = attrs.field(default=_no_field, eq=False, repr=False)

    @classmethod
    def parse(cls, served: ServedKind, label_selector: str, field_selector: str) -> Selection:
        """Parse the two query parameters for selectors.

        Raises:
            APIStatusError: A selector is not valid, or the kind does not support a field selector for this field (400).
        """
        try:
            labels, fields = LabelSelector.parse(label_selector), FieldSelector.parse(field_selector)
        except SelectorError as exc:
            raise bad_request(_syntax_problem(str(exc))) from exc
        known = FieldSelector.selectable_fields(served.info)
        for path, *_ in fields.requirements:
            if path in known or path in served.selectable_fields:
                continue
            if known.is_default and not served.selectable_fields:
                only = '"metadata.name", "metadata.namespace"'
                raise bad_request(f'"{path}" is not a known field selector: only {only}')
            raise bad_request(f"field label not supported: {path}")
        if served.conversion is not None:
            return cls(labels, fields, lambda obj, path: known.read(served.from_stored(cast("JSONObject", obj)), path))
        return cls(labels, fields, known.read)

    @property
    def is_empty(self) -> bool:
        """Whether both selectors are empty."""
        return self.labels.is_empty and self.fields.is_empty

    def matches(self, stored: Stored) -> bool:
        """Return whether an object is selected."""
        if not self.fields.is_empty and not self.fields.matches(self._reader(stored)):
            return False
        return self.labels.is_empty or self.labels.matches(labels_of(stored))

    def _reader(self, stored: Stored) -> Callable[[str], str]:
        """Return a reader of an object's fields.  Reading its name or namespace does not decode the object."""
        known = {"metadata.name": stored.name, "metadata.namespace": stored.namespace}
        decoded = functools.cache(stored.decoded)
        return lambda path: known[path] if path in known else self._read(decoded(), path)
