"""Immutable objects whose fields are decoded when they are read.

The problem: an informer holds tens of thousands of objects, and its user reads two or three fields of each.
Decoding a whole Pod costs 0.4 ms and 49 KB; scanning it costs 9 µs and its own bytes.
So an object consists of the bytes of its level, a JSON object, and a field is decoded when it is read:

- The generated classes are slotted attrs classes.  An object made by :func:`make` has empty slots, and Python calls
  ``__getattr__`` only for an empty slot, so a field that was read once is as fast as in any attrs class.
- The first read of an empty slot decodes that field; the second decodes all fields of the level, because code that
  reads two fields often reads more.  Objects in it are again made from raw slices of the same bytes.
- ``_origin`` is the bytes of the level, or :class:`Edits`: bytes with the names of the fields that the program gave.
  Bare bytes mean that the object is unchanged and encodes to them.  Edits mean that these fields are merged into the
  bytes.  All other members keep their bytes, even if the class does not have them or they cannot be decoded.
- :func:`evolve` copies the origin and the slots that are filled, so a copy decodes nothing.
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
    """The base of API objects and their parts: immutable, lazily decoded, encoded without loss.

    Make one with keyword arguments, decode one with :func:`from_json`, and make a changed copy with :meth:`evolve`.
    Absent lists and maps read as empty, other absent fields as their default.

    Two models of a class are equal if their JSON is equal, in any order of members.  Fields that the class does not
    have count, and ``1``, ``1.0`` and ``true`` differ.  So ``old.spec != new.spec`` detects every change.
    A copy is the object itself; a pickle has its JSON.

    Raises:
        DecodeError: From reading an attribute whose JSON is not of its type.
        TypeError: From the definition of a subclass with a field of a mutable type, a type that JSON does not have, or
            a wrong ``_always``; from making an object with a dict, or another value that is not a model, in a field of
            models.
    """

    _origin: Any = attrs.field(
        default=attrs.Factory(_new_edits, takes_self=True), eq=False, repr=False, alias="_origin"
    )
    _json_names: ClassVar[Mapping[str, str]] = EMPTY_MAP
    """The API's names that are not the camelCase of the Python names."""
    _deferred: ClassVar[frozenset[str]] = frozenset()
    """Fields that are not decoded with the others of their level."""
    _always: ClassVar[frozenset[str]] = frozenset()
    """Fields that a new object encodes even if the program did not give them."""

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
            """Return a copy with other values of the given fields; ``copy.replace`` does the same.

            ``pod.evolve(spec=pod.spec.evolve(node_name="n"))`` changes a nested field.  The copy decodes nothing, and
            encodes all other members as they are; see :func:`encode`.

            If the class has a field of this name, call :func:`trioformer.models.evolve`.  So that type checkers check
            the arguments, call it also for a class with fields that must be given: mypy accepts any keyword here.

            Raises:
                TypeError: There is no such field, or its value is not of its type; see :class:`Model`.
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
        """Return this object's JSON with the members that may be omitted."""
        return data


if TYPE_CHECKING:
    from attrs import evolve as evolve  # mypy checks its arguments
else:

    def evolve(obj, /, **changes):
        """Return a copy of a model with other values of the given fields; see :meth:`Model.evolve`."""
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
    """Refuse a dict for a model; fields that the program did not give need no check."""
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
    """Return the canonical form of a model's JSON; JSON that cannot be decoded is returned unchanged."""
    try:
        data = model._complete(data)
    except DecodeError:
        return data
    return _serde.canonical(data)


def _is_builtin(cls: type[object]) -> bool:
    return cls.__module__.startswith(_BUILTIN)


check_made = cast("Callable[[type[Any]], None]", functools.cache(functools.partial(check_class, model=Model)))
"""Checks a class after attrs has made it, or at its first use if attrs has not seen it."""

_BUILTIN = __name__.rpartition(".")[0] + "."
set_origin: Callable[[Model, bytes | Raw | Edits], None] = Model.__dict__["_origin"].__set__


def make(cls: type[M], raw: bytes | Raw) -> M:
    """Make an object of ``cls`` from the bytes of its level, without a check."""
    made: M = object.__new__(cls)  # the __new__ of models is for those that the program makes
    set_origin(made, raw)
    set_once(made, None)
    return made


def from_json(cls: type[M], data: bytes | str) -> M:
    """Make an object of ``cls`` from JSON; its fields are decoded when they are read.

    Raises:
        DecodeError: It is not a JSON object.
    """
    check_made(cls)
    raw = data.encode() if isinstance(data, str) else bytes(data)
    _serde.check_object(raw, cls.__name__)
    return make(cls, raw)


# --- plans: how the fields of a class are decoded and encoded ---------------------------------------------------------


def _codec(hint: Any) -> Codec:
    """Return the codec of a type."""
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
    """Decodes and encodes the objects of one class; made at the first use of the class."""

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
        """Decode the field ``name``, and with the second field of a level all the others.

        A field that cannot be decoded keeps its slot empty, so that only reading it raises, and raises every time.
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
        """Decode one field, from its raw value if that is known.

        Raises:
            DecodeError: Its JSON is not of its type.
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
    """Encode a value as the fields of a type are encoded."""
    return _codec(without_notes(hint)).unstructure(value)


def field_names(cls: type[Model]) -> tuple[str, ...]:
    """Return the Python names of a model's fields, in the order of its schema."""
    return tuple(_plan_of(cls).fields)


def json_names(cls: type[Model]) -> dict[str, str]:
    """Return the JSON names of the fields of a class, by their names."""
    return {name: field.json for name, field in _plan_of(cls).fields.items()}


# --- encoding ---------------------------------------------------------------------------------------------------------


def _object(members: list[bytes]) -> bytes:
    return b"{" + b",".join(members) + b"}"


def encode(model: Model) -> bytes:
    """Encode a model as JSON.

    An object that was decoded and not changed encodes to the same bytes.

    A new object has the fields that the program gave, also those that equal the default of the class.  The others are
    absent, so the server sets their defaults.
    In a changed object, all other members keep their bytes, even if the class does not have them.
    ``None`` removes a member.
    An empty list or map is encoded as such, but the classes of built-in kinds omit it, as their Go types do;
    requests of a client have it nevertheless.

    Raises:
        DecodeError: A part that was changed is not a JSON object.
        ValueError: A value that the program gave cannot be encoded, such as NaN.
    """
    origin = model._origin
    return _encoded(model, origin, encode) if isinstance(origin, Edits) else bytes(origin)


def encode_given(model: Model) -> bytes:
    """Encode a model for a request, with all that the program gave.

    Unlike :func:`encode`, it never omits an empty list or map that the program gave.  For built-in kinds, empty and
    absent are the same, because their Go types drop it.  But a custom kind with a part of such a class may require the
    member, and server-side apply owns an empty one.
    """
    origin = model._origin
    return _encoded(model, origin, encode_given) if isinstance(origin, Edits) else bytes(origin)


def encode_applied(model: Model) -> bytes:
    """Encode a model for server-side apply, as :func:`encode_given`, but without values of default factories.

    The field manager owns every field that it applies, so only fields that the program gave are sent.
    """
    origin = model._origin
    return _encoded(model, origin, encode_applied) if isinstance(origin, Edits) else bytes(origin)


def _encoded(model: Model, origin: Edits, encode_part: Callable[[Model], bytes]) -> bytes:
    """Encode a model that the program has made, and with ``encode_part``, one of the three functions, its parts."""
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
