"""Immutable objects whose fields are decoded when they are read.

An informer often holds tens of thousands of objects, while the program reads only two or three fields of each.
Decoding a whole Pod takes 0.4 ms and 49 KB.  Scanning a Pod takes 9 µs and no memory besides its bytes.
So an object stores the received bytes, and decodes a field when the field is read:

- All classes have slots.  An object made by :func:`make` has empty slots, and Python calls ``__getattr__`` only for
  an empty slot.  So every later read of a field is as fast as in any attrs class.  A new object of a built-in kind has
  empty slots for the fields that the program did not set.
- The first read of an empty slot decodes only that field.  The second read decodes all fields of the object, because
  code that reads two fields often reads more.  Nested objects are made from slices of the same bytes.
- The ``_origin`` of an unchanged object is its bytes, as JSON or a protobuf :class:`Message`.  In a changed object,
  ``_origin`` is an :class:`Edits` with bytes and the names of the fields that the program set.  The encoder merges
  these fields into the bytes.  All other members keep their bytes, even if they are unknown or cannot be decoded.
- :func:`evolve` copies the origin and the filled slots, without decoding any field.
"""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, cast

import attrs

from ..errors import DecodeError
from . import _serde
from ._classes import Signature
from ._definitions import check_class, fields_for_subclasses, keep_methods
from ._evolve import (
    ALL,
    Edits,
    Evolve,
    Received,
    Slots,
    check_parts,
    evolved,
    freeze_fields,
    new_edits,
    raw_of,
    set_once,
)
from ._fields import MADE, Codec, encode_members, json_of, model_codec, value_codec
from ._fields import Field as _Field
from ._hints import check_annotations, check_hint, check_names, without_none, without_notes
from ._mistakes import arguments_of, missing_attribute, refuse_change, refuse_item, wrong_argument
from ._parts import model_in, part_of
from ._protobuf._places import place_of, source_of
from ._protobuf._wire import Message, Unknown
from ._serde import Raw
from ._values import EMPTY_MAP

__all__ = [
    "Edits",
    "Model",
    "canonical",
    "check_made",
    "encode",
    "encode_for_request",
    "evolve",
    "from_json",
    "make",
]

if TYPE_CHECKING:
    from ._protobuf._fields import WireLevel

M = TypeVar("M", bound="Model")


@fields_for_subclasses
@attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
class Model(Slots):
    """The base class of API objects and their parts: immutable, lazily decoded, and encoded without loss.

    To create a model, call its class with keyword arguments, or decode JSON with :func:`from_json`.  To change a
    model, make a changed copy with :meth:`evolve`.
    An absent list or map reads as empty, and every other absent field reads as its default.

    Two models of the same class are equal if their JSON is equal; the order of members does not matter.  The
    comparison includes JSON members that the class does not have, and ``1``, ``1.0`` and ``true`` differ.  So
    ``old.spec != new.spec`` detects every change.
    Functions of the ``copy`` module return the object itself, and a pickle contains its JSON or its protobuf message.

    Raises:
        DecodeError: The program reads a field whose JSON value does not have the type of the field.
        TypeError: A subclass has an invalid ``_always``, or a field whose type is mutable or has no form in JSON. The
            constructor also raises this error if an argument is a dict or another value where a model is required.
    """

    _origin: Any = attrs.field(default=attrs.Factory(new_edits, takes_self=True), eq=False, repr=False, alias="_origin")
    _json_names: ClassVar[Mapping[str, str]] = EMPTY_MAP
    """The JSON names of fields that are not the camelCase form of the Python names, by Python name."""
    _deferred: ClassVar[frozenset[str]] = frozenset()
    """The fields that are decoded only when the program reads the field itself."""
    _always: ClassVar[frozenset[str]] = frozenset()
    """The fields that a new object encodes even if the program does not set them."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if not _is_builtin(cls):
            check_annotations(cls, Model)

    @classmethod
    def __attrs_init_subclass__(cls) -> None:  # attrs calls it when it has made the class
        for method in ("__setattr__", "__delattr__"):  # attrs has set its own
            setattr(cls, method, refuse_change)
        type.__setattr__(cls, "__replace__", Model.__replace__)
        if not _is_builtin(cls):
            check_made(cls)
            check_names(cls)
            keep_methods(cls, Model)

    if not TYPE_CHECKING:  # type checkers take the signature from the fields

        def __new__(cls, *args: object, **given: object) -> Self:
            check_made(cls)
            if given and not given.keys() <= arguments_of(cls):
                raise wrong_argument(cls, given, plan_of(cls).parts)
            made = object.__new__(cls)
            if "_origin" in given:
                raise TypeError(
                    "attrs.evolve() does not support models; call obj.evolve(...) or trioformer.models.evolve(obj, ...)"
                )
            names = list(given)
            if args:
                known = [a.alias for a in attrs.fields(cls) if a.init and not a.kw_only]
                if len(args) > len(known):
                    raise TypeError(f"{cls.__name__}() takes {len(known) or 'no'} positional arguments")
                names += known[: len(args)]
            set_once(made, frozenset(names))
            return made

        def __init__(self, /, **given: object) -> None:  # attrs makes the constructors of programs' classes
            set_origin(self, new_edits(self))
            if given:
                plan = plan_of(type(self))
                for name, value in given.items():
                    plan.fields[name].set(self, value)
                check_parts(self, given, plan)
                freeze_fields(self, given)
            if type(self).__attrs_post_init__ is not Model.__attrs_post_init__:
                self.__attrs_post_init__()

        __signature__ = Signature(__init__)

    def __attrs_post_init__(self) -> None:
        names = self._origin.names
        check_parts(self, names, _find_plan(type(self)) if names else None)
        freeze_fields(self, [attribute.name for attribute in attrs.fields(type(self))])

    if TYPE_CHECKING:
        evolve: ClassVar[Evolve]

        def __replace__(self, /, **changes: Any) -> Self: ...

    else:

        def evolve(self, /, **changes):
            """Return a copy with new values for the given fields, like ``copy.replace``.

            For example, ``pod.evolve(spec=pod.spec.evolve(node_name="n"))`` changes a nested field.  The method
            decodes nothing, and all other members of the JSON stay unchanged; see :func:`encode`.

            Call the function :func:`trioformer.models.evolve` instead if the class has a field named ``evolve``.  For
            a class with required fields, mypy checks the arguments of the function, but not those of the method.

            Raises:
                TypeError: The class has no such field, or a value does not have the type of its field; see
                    :class:`Model`.
            """
            return evolved(self, changes, plan_of(type(self)))

        __replace__ = evolve

    if not TYPE_CHECKING:  # a visible __getattr__ would make type checkers accept every name

        def __getattr__(self, name: str) -> Any:
            plan = plan_of(type(self))
            if name not in plan.fields:
                raise missing_attribute(type(self), name, plan.parts)
            return plan.read(self, name)

        __getitem__, __iter__ = refuse_item, None

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Model) or type(self) is not type(other):
            return NotImplemented
        are_messages = type(self._origin) is type(other._origin) is Message
        if are_messages and self._origin == other._origin:
            return True
        (mine, newer), (theirs, others) = _compared(self), _compared(other)
        if are_messages and newer != others:
            return False
        return mine == theirs or canonical(self, mine) == canonical(other, theirs)

    def __hash__(self) -> int:
        return hash((type(self), canonical(self, _compared(self)[0])))

    def __repr__(self) -> str:
        from ._repr import show  # noqa: PLC0415  # only for logs and a prompt

        fields = plan_of(type(self)).fields
        return show(self, [field for name, field in fields.items() if name not in type(self)._deferred])

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    def __reduce__(self) -> tuple[Callable[..., Model], tuple[object, ...]]:
        cls, origin = type(self), self._origin
        if type(origin) is Message:
            return make, (cls, Message(origin.data))  # without the object that this is a part of
        unknown: Unknown = []
        if isinstance(origin, Edits) and encode_for_request(self, unknown=unknown) and unknown:
            # Neither JSON nor a message contains all fields.
            names = {field.argument: name for name, field in plan_of(cls).fields.items()}
            again = cls if origin.raw is None else functools.partial(evolve, make(cls, origin.raw))
            return functools.partial(again, **{each: getattr(self, names[each]) for each in origin.names}), ()
        return from_json, (cls, encode(self))

    def _complete(self, data: bytes) -> bytes:
        """Return this object's JSON, which is ``data`` with omitted members such as ``kind`` added."""
        return data


if TYPE_CHECKING:
    from attrs import evolve as evolve  # mypy checks its arguments
else:

    def evolve(obj, /, **changes):
        """Return a copy of a model with new values for the given fields; see :meth:`Model.evolve`."""
        return evolved(obj, changes, plan_of(type(obj)))


def _compared(model: Model) -> tuple[bytes, Unknown]:
    """Return what is compared of a model: its JSON, or a message that cannot be decoded, and its newer fields."""
    unknown: Unknown = []
    origin = model._origin
    if type(origin) is not Message:
        return encode(model), unknown
    try:
        return json_of(model, origin, unknown), unknown
    except DecodeError:
        return origin.data, []


def canonical(model: Model, data: bytes) -> bytes:
    """Return the canonical form of a model's JSON, or the unchanged JSON if it cannot be decoded."""
    try:
        data = model._complete(data)
    except DecodeError:
        return data
    return _serde.canonical(data)


def _is_builtin(cls: type[object]) -> bool:
    return cls.__module__.startswith(_BUILTIN)


check_made = cast("Callable[[type[Any]], None]", functools.cache(functools.partial(check_class, model=Model)))
"""Checks a class after attrs has processed it, or at the first use of the class."""

_BUILTIN = __name__.rpartition(".")[0] + "."
set_origin: Callable[[Model, Received | Edits], None] = Model.__dict__["_origin"].__set__


def make(cls: type[M], raw: Received) -> M:
    """Make an object of ``cls`` from its JSON or its message without checking the bytes."""
    made: M = object.__new__(cls)  # the __new__ of models is for those that the program makes
    set_origin(made, raw)
    set_once(made, None)
    return made


def from_json(cls: type[M], data: bytes | str) -> M:
    """Make an object of ``cls`` from JSON; each field is decoded when it is read.

    Raises:
        DecodeError: ``data`` is not a JSON object.
    """
    check_made(cls)
    raw = data.encode() if isinstance(data, str) else bytes(data)
    _serde.check_object(raw, cls.__name__)
    return make(cls, raw)


# --- plans: how the fields of a class are decoded and encoded ---------------------------------------------------------


def codec_of(hint: Any) -> Codec:
    """Return the codec for a field type."""
    hint = without_none(hint)
    container, model = model_in(hint, Model)
    if model is None:
        return value_codec(hint)
    check_made(model)
    return model_codec(container, model, functools.partial(make, model), encode)


class _Plan:
    """The decoder and encoder of one class, created when the class is first used."""

    __slots__ = ("_wire", "arguments", "fields", "find_all", "has_post_init", "has_validators", "level", "parts")

    def __init__(self, cls: type[Model]) -> None:
        check_made(cls)
        hints = typing.get_type_hints(cls, include_extras=True)
        declared = [a for a in attrs.fields(cls) if a.name != "_origin"]
        builtin = _is_builtin(cls)
        for attribute in () if builtin else declared:
            check_hint(cls, attribute.name, hints[attribute.name], Model)
            hints[attribute.name] = without_notes(hints[attribute.name])
        self.fields = {a.name: _Field(cls, a, codec_of(hints[a.name]), is_builtin=builtin) for a in declared}
        parts = ((a.alias, part_of(cls, a.name, without_none(hints[a.name]), Model)) for a in declared)
        self.parts = {argument: part for argument, part in parts if part is not None}
        self.arguments = arguments_of(cls) - {"_origin"}
        self.has_validators = any(a.validator is not None for a in declared)
        self.has_post_init = cls.__attrs_post_init__ is not Model.__attrs_post_init__
        self.level = [field for name, field in self.fields.items() if name not in cls._deferred]
        self.find_all = _serde.level_decoder(tuple(field.json for field in self.level))
        self._wire: WireLevel | None = None

    def read(self, model: Model, name: str) -> Any:
        """Decode the field ``name``; if it is the second field that is read, decode all fields.

        The slot of a field that cannot be decoded stays empty.  So every read of this field raises an error, but all
        other fields can still be read.
        """
        field = self.fields[name]
        deferred = name in type(model)._deferred
        if model._once in (None, ALL) or deferred:
            value = self.read_one(model, field)
            if model._once is None and not deferred:
                set_once(model, name)
            return value
        self._read_all(model)
        try:
            return object.__getattribute__(model, name)
        except AttributeError:
            return self.read_one(model, field)

    def read_one(self, model: Model, field: _Field, raw: Raw | None = None) -> Any:
        """Decode one field, optionally from a raw value that has already been found.

        Raises:
            DecodeError: The value does not have the type of the field.
        """
        try:
            data = raw_of(model) if raw is None else raw
            if data is None:  # a new object
                value = field.default
            elif type(data) is Message:
                value = self._reader_of(model, data)(field, field)
            else:
                value = field.value_of(field.find_in(data) if raw is None else raw)
            if value is MADE:
                value = field.make_default(model)
        except _serde.FAULTS as error:
            problem = _serde.decode_error(error, _place_of(model, field))
        else:
            field.set(model, value)
            return value
        raise problem  # not in the except clause: what a class of the program has raised may quote the value

    def _read_all(self, model: Model) -> None:
        # The field that was decoded first keeps its value: each read of an attribute returns the same object.
        origin = model._origin
        read: Callable[[_Field, Any], Any] = _Field.value_of
        found: Iterable[Any]
        try:
            if type(origin) is Message:
                read, found = self._reader_of(model, origin), cast("Iterable[Any]", self.level)
            else:
                found = self.find_all(origin)
        except _serde.FAULTS as error:
            raise _serde.decode_error(error, type(model).__name__) from error
        for field, raw in zip(self.level, found, strict=True):
            if field.name == model._once:
                continue
            try:
                value = read(field, raw)
                field.set(model, field.make_default(model) if value is MADE else value)
            except _serde.FAULTS:
                continue
        set_once(model, ALL)

    def _reader_of(self, model: Model, data: Message) -> Callable[[_Field, Any], Any]:
        """Return a function that reads a field of a message, as ``_Field.value_of`` does."""
        if self._wire is None:
            from ._protobuf._fields import WireLevel  # noqa: PLC0415  # which JSON does not need

            models = {field.json: field.model for field in self.fields.values() if field.model}
            self._wire = WireLevel(type(model), models, make)
        return self._wire.reader(data.data, source_of(model, data))


def _place_of(model: Model, field: _Field) -> str:
    """Return the name of a field for an error."""
    data = raw_of(model)
    if type(data) is not Message:
        return f"{type(model).__name__}.{field.name}"
    return place_of(source_of(model, data), field.json)


plan_of = cast("Callable[[type[Any]], _Plan]", functools.cache(_Plan))


def _find_plan(cls: type[Model]) -> _Plan | None:
    """Return the plan of a class, or None while the types of its fields are not all defined."""
    try:
        return plan_of(cls)
    except NameError:
        return None


# --- encoding ---------------------------------------------------------------------------------------------------------


def encode(model: Model) -> bytes:
    """Encode a model as JSON.

    A decoded object that was not changed encodes to the same bytes.

    The JSON of a new object contains the fields that the program set, even if a value equals the default of the class.
    All other fields are absent, so the server sets their defaults.
    In a changed object, the unchanged members keep their bytes, even if the class does not have fields for them.
    A field set to ``None`` is removed from the JSON.
    The classes of built-in kinds omit empty lists and maps, as their Go types do.  Other classes encode empty lists
    and maps, and a client's requests always contain them.

    Raises:
        DecodeError: A changed part of the model is not a JSON object.
        ValueError: A value that the program set, such as NaN, cannot be encoded.
    """
    origin = model._origin
    return _encoded(model, origin) if isinstance(origin, Edits) else json_of(model, origin)


def encode_for_request(model: Model, *, is_applied: bool = False, unknown: Unknown | None = None) -> bytes:
    """Encode a model for a request, with every value that the program set.

    Unlike :func:`encode`, this function never omits an empty list or map that the program set.  For built-in kinds,
    empty and absent are the same, because their Go types omit empty values.  But a custom kind may contain an object
    of such a class and require the member.  In server-side apply, a manager can own an empty member.

    Args:
        model: The model.
        is_applied: Whether to omit the values of default factories.  A field manager owns every field that it applies,
            so an apply request contains only fields that the program set.
        unknown: A list that collects the protobuf fields that are not in the table of types.
    """

    def encode_part(part: Model) -> bytes:
        origin = part._origin
        if not isinstance(origin, Edits):
            return json_of(part, origin, unknown)
        return _encoded(part, origin, encode_part, unknown, with_factories=not is_applied)

    return encode_part(model)


def _encoded(
    model: Model,
    origin: Edits,
    encode_part: Callable[[Model], bytes] | None = None,
    unknown: Unknown | None = None,
    *,
    with_factories: bool = True,
) -> bytes:
    """Encode a new or changed model; ``encode_part``, by default :func:`encode`, encodes the models in it."""
    members: dict[str, bytes | Raw] = {}
    if origin.raw is not None:
        data = json_of(model, origin.raw, unknown)
        try:
            members |= _serde.map_items(data)
        except _serde.FAULTS as error:
            raise _serde.decode_error(error, type(model).__name__) from error
    always, is_new = type(model)._always, origin.raw is None
    for name, field in plan_of(type(model)).fields.items():
        if field.argument in origin.names:
            field.write(members, getattr(model, name), encode_part)
        elif is_new and (name in always or (field.factory is not None and with_factories)):
            value = getattr(model, name)
            # The value of a factory belongs to this object, but an empty list only expresses the default.
            if name in always or (value is not None and value not in ((), EMPTY_MAP)):
                members[field.json] = field.encode(value, encode_part)
    return encode_members(members)


# An attrs class of a custom kind may have models as fields, such as a PodTemplateSpec.
_serde.register_hooks(Model, lambda value, cls: make(cls, _serde.dumps(value)), lambda model: Raw(encode(model)))
