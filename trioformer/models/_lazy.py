"""Immutable objects whose fields are decoded when they are read.

An informer often holds tens of thousands of objects, while the program reads only two or three fields of each.
Decoding a whole Pod takes 0.4 ms and 49 KB.  Scanning a Pod takes 9 µs and no memory besides its bytes.
So an object stores the bytes of its JSON, and decodes a field when the field is read:

- The generated classes are slotted attrs classes.  An object made by :func:`make` has empty slots, and Python calls
  ``__getattr__`` only for an empty slot.  So every later read of a field is as fast as in any attrs class.
- The first read of an empty slot decodes only that field.  The second read decodes all fields of the object, because
  code that reads two fields often reads more.  Nested objects are made from slices of the same bytes.
- ``_origin`` is the bytes of an unchanged object, which encodes to the same bytes.  In a new or changed object,
  ``_origin`` is an :class:`Edits` with bytes and the names of the fields that the program set.  The encoder merges
  these fields into the bytes.  All other members keep their bytes, even if the class does not have them or they cannot
  be decoded.
- :func:`evolve` copies the origin and the filled slots, without decoding any field.
"""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, cast, get_args, get_origin

import attrs

from ..errors import DecodeError
from . import _serde
from ._definitions import check_class, fields_for_subclasses, keep_methods
from ._evolve import ALL, Edits, Evolve, Slots, convert, freeze_fields, set_once
from ._fields import MADE, Codec
from ._fields import Field as _Field
from ._hints import check_annotations, check_hint, check_names, has_float, is_scalar, without_none, without_notes
from ._mistakes import arguments_of, missing_attribute, refuse_change, refuse_item, wrong_argument
from ._parts import model_in, part_of
from ._repr import show
from ._serde import Raw
from ._values import EMPTY_MAP, FrozenMap, freeze

__all__ = [
    "Edits",
    "Model",
    "canonical",
    "check_made",
    "encode",
    "encode_applied",
    "encode_given",
    "evolve",
    "field_names",
    "from_json",
    "make",
]

M = TypeVar("M", bound="Model")


def _new_edits(model: Slots) -> Edits:
    names = cast("frozenset[str]", model._once)
    set_once(model, ALL)  # a field that is read later is decoded alone, and does not overwrite those that were given
    return Edits(None, names)


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
    The functions of the ``copy`` module return the object itself, and a pickle contains the object's JSON.

    Raises:
        DecodeError: The program reads a field whose JSON does not have the type of the field.
        TypeError: A subclass has an invalid ``_always``, or a field whose type is mutable or has no form in JSON. The
            constructor also raises this error if an argument is a dict or another value where a model is required.
    """

    _origin: Any = attrs.field(
        default=attrs.Factory(_new_edits, takes_self=True), eq=False, repr=False, alias="_origin"
    )
    _json_names: ClassVar[Mapping[str, str]] = EMPTY_MAP
    """The JSON names of fields that are not the camelCase form of the Python names, by Python name."""
    _deferred: ClassVar[frozenset[str]] = frozenset()
    """The fields that are only decoded when they are read themselves."""
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
            if not given.keys() <= arguments_of(cls):
                raise wrong_argument(cls, given, _plan_of(cls).parts)
            made = object.__new__(cls)
            if "_origin" in given:
                raise TypeError(
                    "attrs.evolve() does not support models; call obj.evolve(...) or trioformer.models.evolve(obj, ...)"
                )
            names = list(given)
            if args:
                known = [a.alias for a in attrs.fields(cls) if a.init and not a.kw_only]
                if len(args) > len(known):
                    raise TypeError(f"{cls.__name__}() takes {len(known) or 'no'} arguments without a name")
                names += known[: len(args)]
            set_once(made, frozenset(names))
            return made

    def __attrs_post_init__(self) -> None:
        _check_parts(self, self._origin.names)
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
            a class with required fields, mypy checks only the arguments of the function, and accepts any keyword in
            the method.

            Raises:
                TypeError: The class has no such field, or a value does not have the type of its field; see
                    :class:`Model`.
            """
            return _evolved(self, changes)

        __replace__ = evolve

    if not TYPE_CHECKING:  # a visible __getattr__ would make type checkers accept every name

        def __getattr__(self, name: str) -> Any:
            plan = _plan_of(type(self))
            if name not in plan.fields:
                raise missing_attribute(type(self), name, plan.parts)
            return plan.read(self, name)

        __getitem__, __iter__ = refuse_item, None

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Model) or type(self) is not type(other):
            return NotImplemented
        mine, theirs = encode(self), encode(other)
        return mine == theirs or canonical(self, mine) == canonical(other, theirs)

    def __hash__(self) -> int:
        return hash((type(self), canonical(self, encode(self))))

    def __repr__(self) -> str:
        fields = _plan_of(type(self)).fields
        return show(self, [field for name, field in fields.items() if name not in type(self)._deferred])

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    def __reduce__(self) -> tuple[Callable[..., Model], tuple[object, ...]]:
        return from_json, (type(self), encode(self))

    def _complete(self, data: bytes) -> bytes:
        """Return this object's JSON, given as ``data``, with omitted members such as ``kind`` added."""
        return data


if TYPE_CHECKING:
    from attrs import evolve as evolve  # mypy checks its arguments
else:

    def evolve(obj, /, **changes):
        """Return a copy of a model with new values for the given fields; see :meth:`Model.evolve`."""
        return _evolved(obj, changes)


def _evolved(model: M, changes: Mapping[str, Any]) -> M:
    cls, origin = type(model), model._origin
    plan = _plan_of(cls)
    if not changes.keys() <= plan.arguments:
        raise wrong_argument(cls, changes, plan.parts)
    raw, names = (origin.raw, origin.names) if isinstance(origin, Edits) else (origin, frozenset())
    made: M = object.__new__(cls)
    set_origin(made, Edits(raw, names | changes.keys()))
    set_once(made, ALL)
    for name, field in plan.fields.items():
        if field.argument in changes:
            field.set(made, convert(changes[field.argument], made, field.attribute))
            continue
        try:
            field.set(made, object.__getattribute__(model, name))
        except AttributeError:  # an empty slot
            continue
    if plan.has_validators:
        attrs.validate(made)
    _check_parts(made, changes)
    freeze_fields(made, [name for name, field in plan.fields.items() if field.argument in changes])
    if plan.has_post_init:
        made.__attrs_post_init__()
    return made


def _check_parts(model: Model, names: Collection[str]) -> None:
    """Check the types of the fields that the program set."""
    if not names:
        return
    try:
        parts = _plan_of(type(model)).parts
    except NameError:  # a default that is made while the module of its class defines the other classes
        return
    for argument in names:
        part = parts.get(argument)
        if part is not None:
            part.check(getattr(model, part.name))


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
set_origin: Callable[[Model, bytes | Raw | Edits], None] = Model.__dict__["_origin"].__set__


def make(cls: type[M], raw: bytes | Raw) -> M:
    """Make an object of ``cls`` from its JSON, without any check."""
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


def _codec(hint: Any) -> Codec:
    """Return the codec for a field type."""
    hint = without_none(hint)
    origin, args = get_origin(hint), get_args(hint)
    container, model = model_in(hint, Model)
    if model is not None:
        check_made(model)
        if container is None:
            return Codec(functools.partial(make, model), encode, lambda value, encode_one: encode_one(value))
        if container is tuple:
            return Codec(
                lambda raw: tuple([make(model, one) for one in _serde.list_items(raw)]),
                lambda value: _encoded_items(value, encode),
                _encoded_items,
            )
        return Codec(
            lambda raw: FrozenMap({key: make(model, one) for key, one in _serde.map_items(raw).items()}),
            lambda value: _encoded_map(value, encode),
            _encoded_map,
        )
    if origin is Mapping and is_scalar(args[1]):
        decode_map = _serde.plain_decoder(dict[str, args[1]])  # type: ignore[valid-type]  # a run-time type
        dumps = _serde.dumps_finite if has_float(args[1]) else _serde.dumps
        return Codec(lambda raw: FrozenMap(decode_map(raw)), dumps)
    if is_scalar(hint):
        return Codec(_serde.plain_decoder(hint), _serde.dumps_finite if has_float(hint) else _serde.dumps)
    return Codec(
        lambda raw: freeze(_serde.structure(raw, hint)),
        lambda value: _serde.dumps(_serde.unstructure(value, hint)),
        is_merged=True,
    )


def _encoded_items(value: Iterable[Model], encode_one: Callable[[Model], bytes]) -> bytes:
    return b"[" + b",".join(map(encode_one, value)) + b"]"


def _encoded_map(value: Mapping[str, Model], encode_one: Callable[[Model], bytes]) -> bytes:
    return _object([_serde.dumps(key) + b":" + encode_one(one) for key, one in value.items()])


class _Plan:
    """The decoder and encoder of one class, created when the class is first used."""

    __slots__ = ("arguments", "fields", "find_all", "has_post_init", "has_validators", "level", "parts")

    def __init__(self, cls: type[Model]) -> None:
        check_made(cls)
        hints = typing.get_type_hints(cls, include_extras=True)
        declared = [a for a in attrs.fields(cls) if a.name != "_origin"]
        if not _is_builtin(cls):
            for attribute in declared:
                check_hint(cls, attribute.name, hints[attribute.name], Model)
                hints[attribute.name] = without_notes(hints[attribute.name])
        builtin = _is_builtin(cls)
        self.fields = {a.name: _Field(cls, a, _codec(hints[a.name]), is_builtin=builtin) for a in declared}
        parts = ((a.alias, part_of(cls, a.name, without_none(hints[a.name]), Model)) for a in declared)
        self.parts = {argument: part for argument, part in parts if part is not None}
        self.arguments = arguments_of(cls) - {"_origin"}
        self.has_validators = any(a.validator is not None for a in declared)
        self.has_post_init = cls.__attrs_post_init__ is not Model.__attrs_post_init__
        self.level = [field for name, field in self.fields.items() if name not in cls._deferred]
        self.find_all = _serde.level_decoder(tuple(field.json for field in self.level))

    def read(self, model: Model, name: str) -> Any:
        """Decode the field ``name``; if it is the second field that is read, decode all fields.

        The slot of a field that cannot be decoded stays empty.  So every read of this field raises an error, and reads
        of other fields work.
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
            DecodeError: The JSON of the field does not have the field's type.
        """
        try:
            value = field.value_of(field.find_in(_raw_of(model)) if raw is None else raw)
            if value is MADE:
                value = field.make_default(model)
        except _serde.FAULTS as error:
            problem = _serde.decode_error(error, f"{type(model).__name__}.{field.name}")
        else:
            field.set(model, value)
            return value
        raise problem  # not in the except clause: what a class of the program has raised may quote the value

    def _read_all(self, model: Model) -> None:
        # The field that was decoded first keeps its value: each read of an attribute returns the same object.
        try:
            raws = self.find_all(model._origin)
        except _serde.FAULTS as error:
            raise _serde.decode_error(error, type(model).__name__) from error
        for field, raw in zip(self.level, raws, strict=True):
            if field.name == model._once:
                continue
            try:
                value = field.value_of(raw)
                field.set(model, field.make_default(model) if value is MADE else value)
            except _serde.FAULTS:
                continue
        set_once(model, ALL)


def _raw_of(model: Model) -> bytes | Raw:
    origin = model._origin
    return cast("bytes | Raw", origin.raw if isinstance(origin, Edits) else origin)


_plan_of = cast("Callable[[type[Any]], _Plan]", functools.cache(_Plan))


def encode_as(hint: Any, value: object) -> bytes:
    """Encode a value like the value of a field with the type ``hint``."""
    return _codec(without_notes(hint)).unstructure(value)


def field_names(cls: type[Model]) -> tuple[str, ...]:
    """Return the Python names of a model's fields, in the order of its schema."""
    return tuple(_plan_of(cls).fields)


def json_names(cls: type[Model]) -> dict[str, str]:
    """Map the Python names of a model's fields to their JSON names."""
    return {name: field.json for name, field in _plan_of(cls).fields.items()}


# --- encoding ---------------------------------------------------------------------------------------------------------


def _object(members: list[bytes]) -> bytes:
    return b"{" + b",".join(members) + b"}"


def encode(model: Model) -> bytes:
    """Encode a model as JSON.

    A decoded object that was not changed encodes to the same bytes.

    The JSON of a new object contains the fields that the program set, even if a value equals the default of the class.
    All other fields are absent, so the server sets their defaults.
    In a changed object, the unchanged members keep their bytes, even if the class does not have fields for them.
    A field set to ``None`` is removed from the JSON.
    The classes of built-in kinds omit empty lists and maps, as their Go types do.  Other classes encode empty lists
    and maps, and requests of a client always contain them.

    Raises:
        DecodeError: A changed part of the model is not a JSON object.
        ValueError: A value that the program set, such as NaN, cannot be encoded.
    """
    origin = model._origin
    return _encoded(model, origin, encode) if isinstance(origin, Edits) else bytes(origin)


def encode_given(model: Model) -> bytes:
    """Encode a model for a request, with every value that the program set.

    Unlike :func:`encode`, this function never omits an empty list or map that the program set.  For built-in kinds,
    empty and absent are the same, because their Go types omit empty values.  But a custom kind may contain an object
    of such a class and require the member.  In server-side apply, a manager can own an empty member.
    """
    origin = model._origin
    return _encoded(model, origin, encode_given) if isinstance(origin, Edits) else bytes(origin)


def encode_applied(model: Model) -> bytes:
    """Encode a model for server-side apply: like :func:`encode_given`, but without the values of default factories.

    A field manager owns every field that it applies, so the request contains only fields that the program set.
    """
    origin = model._origin
    return _encoded(model, origin, encode_applied) if isinstance(origin, Edits) else bytes(origin)


def _encoded(model: Model, origin: Edits, encode_part: Callable[[Model], bytes]) -> bytes:
    """Encode a new or changed model, and encode the models in it with ``encode_part``."""
    members: dict[str, bytes | Raw] = {}
    if origin.raw is not None:
        try:
            members |= _serde.map_items(origin.raw)
        except _serde.FAULTS as error:
            raise _serde.decode_error(error, type(model).__name__) from error
    always, is_new, is_plain = type(model)._always, origin.raw is None, encode_part is encode
    for name, field in _plan_of(type(model)).fields.items():
        if field.argument in origin.names:
            field.write(members, getattr(model, name), None if is_plain else encode_part)
        elif is_new and (name in always or (field.factory is not None and encode_part is not encode_applied)):
            value = getattr(model, name)
            # The value of a factory belongs to this object, but an empty list only expresses the default.
            if name in always or (value is not None and value not in ((), EMPTY_MAP)):
                members[field.json] = field.encode(value, None if is_plain else encode_part)
    return _object([_serde.dumps(key) + b":" + bytes(value) for key, value in members.items()])


# An attrs class of a custom kind may have models as fields, such as a PodTemplateSpec.
_serde.register_hooks(Model, lambda value, cls: make(cls, _serde.dumps(value)), lambda model: Raw(encode(model)))
