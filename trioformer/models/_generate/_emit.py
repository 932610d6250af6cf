"""Write the source of the generated modules in ruff's format."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from ._naming import (
    BY_HAND,
    EMPTY,
    LEAVES,
    PythonType,
    class_of,
    label_of,
    module_of,
    module_of_version,
    needs_map,
    python_type,
    snake_case,
)
from ._schema import Resource, Schema, is_beta

LINE = 120

_GENERATED = "GENERATED from _schema.json, do not edit: nox -s models"
_DECORATOR = "@frozen_model(kw_only=True)"
_TYPE_META = ("apiVersion", "kind", "metadata")
_OF_KUBERNETES_OBJECT = frozenset({"name", "namespace", "uid", "resource_version"})
_STORED_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")

_VALUE_NAMES = ("EMPTY_MAP", "JSON", "MicroTime", "Time")


def emit(schema: Schema) -> dict[str, str]:
    """Return the source of all modules, by file name.

    Raises:
        ValueError: The schema contains something that the generator does not support.
    """
    kinds = {one.definition: one for one in schema.resources if one.definition is not None and "/" not in one.name}
    bodies = {
        one.definition: one.kind
        for one in schema.resources
        if one.definition is not None and one.definition not in kinds
    }
    modules: dict[str, list[str]] = defaultdict(list)
    for name, fields in schema.definitions.items():
        if isinstance(fields, str) and name not in LEAVES and name not in EMPTY:
            raise ValueError(f"{name} has no fields and is {fields!r}: list it in LEAVES or EMPTY of _naming.py")
        if name not in LEAVES and name not in BY_HAND:
            modules[module_of(name)].append(name)
    texts = {f"{module}.py": _Module(schema, kinds, bodies, module, names).text() for module, names in modules.items()}
    texts["builtin_kinds.py"] = _registry(schema)
    return dict(sorted(texts.items()))


class _Module:
    """One generated module: its classes and fields."""

    def __init__(
        self,
        schema: Schema,
        kinds: Mapping[str, Resource],
        bodies: Mapping[str, str],
        module: str,
        names: Iterable[str],
    ) -> None:
        self.kinds = kinds
        self.bodies = bodies
        self.module = module
        self.fields: dict[str, dict[str, PythonType]] = {}
        self.json_names: dict[str, dict[str, str]] = {}
        for name in sorted(names):
            fields = schema.definitions[name]
            types = {} if isinstance(fields, str) else {key: python_type(type_) for key, type_ in fields.items()}
            if name in kinds:
                types = {key: type_ for key, type_ in types.items() if key not in _TYPE_META}
            self.fields[name] = {snake_case(key): type_ for key, type_ in types.items()}
            self.json_names[name] = {snake_case(key): key for key in types if needs_map(key)}
            if len(self.fields[name]) != len(types) or (name in kinds and _OF_KUBERNETES_OBJECT & {*self.fields[name]}):
                raise ValueError(f"{name} has fields with the same Python name: {sorted(types)}")

    def text(self) -> str:
        """Return the source of the module."""
        order = self._order()
        exported = sorted(map(class_of, order), key=_isort_key)
        classes = [self._class(name) for name in order]
        docstring = f'"""{label_of(next(iter(self.fields)))}.  {_GENERATED}."""'
        body = "\n\n\n".join(classes) + "\n"
        head = [docstring, "", "from __future__ import annotations", "", *self._imports(body), ""]
        return "\n".join([*head, _assigned("__all__", "[", exported, "]"), "", "", body])

    def _break_cycles(self) -> None:
        """Use None as the default of a field if an instance would otherwise contain itself."""

        def visit(name: str, path: tuple[str, ...]) -> None:
            for field, type_ in self.fields.get(name, {}).items():
                if type_.is_value and type_.definition in path:
                    self.fields[name][field] = PythonType(f"{type_.hint} | None", "None", type_.definition)
                elif type_.is_value and type_.definition is not None:
                    visit(type_.definition, (*path, type_.definition))

        for name in self.fields:
            visit(name, (name,))

    def _needs(self, name: str, *, values: bool) -> list[str]:
        types = self.fields.get(name, {}).values()
        return [type_.definition for type_ in types if type_.definition in self.fields and type_.is_value is values]

    def _values_below(self, name: str) -> set[str]:
        below = self._needs(name, values=True)
        return {name, *below}.union(*map(self._values_below, below))

    def _order(self) -> list[str]:
        """Sort classes by name, but put each class after the classes that it refers to.

        A class that is used in a default must be defined first. For other classes, the order avoids false reports of
        cycles from pyright.
        """
        self._break_cycles()
        ordered: list[str] = []
        path: set[str] = set()

        def visit(name: str) -> None:
            if name in ordered:
                return
            path.add(name)
            for needed in self._needs(name, values=True):
                visit(needed)
            for named in self._needs(name, values=False):
                if path.isdisjoint(self._values_below(named)):
                    visit(named)
            path.remove(name)
            ordered.append(name)

        for name in self.fields:
            visit(name)
        return ordered

    def _imports(self, body: str) -> Iterator[str]:
        used = {*re.findall(r"\w+", body)}
        if "Mapping" in used:
            yield "from collections.abc import Mapping"
        if "ClassVar" in used:
            yield "from typing import ClassVar"
        if used & {"Mapping", "ClassVar"}:
            yield ""
        members: dict[str, set[str]] = defaultdict(set)
        members["_classes"].add("frozen_model")
        if "__resource__" in used:
            members["_kinds"].add("builtin")
            members["_meta"].add("KubernetesObject")
            members["_resources"].add("ResourceInfo")
        if "(Model)" in body:
            members["_lazy"].add("Model")
        if "Quantity" in used:
            members["_quantity"].add("Quantity")
        members["_values"] |= used & {*_VALUE_NAMES}
        for types in self.fields.values():
            for type_ in types.values():
                if type_.definition is not None and module_of(type_.definition) != self.module:
                    members[module_of(type_.definition)].add(class_of(type_.definition))
        for module in sorted(filter(members.__getitem__, members)):
            yield _imported(module, sorted(members[module], key=_isort_key))

    def _class(self, name: str) -> str:
        base, statements = "Model", []
        doc = f"{label_of(name)} {class_of(name)}."
        if name in self.kinds:
            base = "KubernetesObject"
            api_version, _, kind = self.kinds[name].kind.rpartition(" ")
            target = "    __resource__: ClassVar[ResourceInfo]"
            statements.append(_assigned(target, "builtin(", [api_version, kind], ")", together=True))
        if self.json_names[name]:
            target = "    _json_names: ClassVar[Mapping[str, str]]"
            pairs = [f'"{ours}": "{theirs}"' for ours, theirs in sorted(self.json_names[name].items())]
            statements.append(_assigned(target, "{", pairs, "}", quoted=False))
        fields = {field: f"{type_.hint} = {type_.default}" for field, type_ in self.fields[name].items()}
        if name in self.bodies:
            doc = f"{label_of(name)} {class_of(name)}: the request body of a subresource."
            api_version, _, kind = self.bodies[name].rpartition(" ")
            statements.append('    _always: ClassVar[frozenset[str]] = frozenset({"api_version", "kind"})')
            fields |= {"api_version": f'str = "{api_version}"', "kind": f'str = "{kind}"'}
        lines = [_DECORATOR, f"class {class_of(name)}({base}):", f'    """{doc}"""']
        if statements:
            lines += ["", *statements]
        if fields:
            lines += ["", *(f"    {field}: {fields[field]}" for field in fields)]
        return "\n".join(lines)


def _registry(schema: Schema) -> str:
    top = [one for one in schema.resources if "/" not in one.name]
    below: dict[tuple[str, str], list[str]] = defaultdict(list)
    for one in schema.resources:
        resource, _, subresource = one.name.partition("/")
        if subresource:
            below[one.api_version, resource].append(subresource)
    modules = {one.api_version: module_of_version(one.api_version) for one in top}
    wrong = [one.definition for one in top if module_of(one.definition or "") != modules[one.api_version]]
    if wrong:
        raise ValueError(f"these kinds are defined outside the module of their group: {wrong}")
    entries = {
        beta: [
            _resource_info(one, tuple(below[one.api_version, one.name]))
            for one in top
            if is_beta(one.api_version) is beta
        ]
        for beta in (False, True)
    }
    return "\n".join(
        [
            f'"""The built-in resources of Kubernetes {schema.kubernetes}.  {_GENERATED}."""',
            "",
            "from __future__ import annotations",
            "",
            "from collections.abc import Mapping",
            "",
            "from ._resources import ResourceInfo",
            "",
            '__all__ = ["BETA_RESOURCES", "KUBERNETES", "MODULES", "RESOURCES"]',
            "",
            f'KUBERNETES = "{schema.kubernetes}"',
            "",
            "MODULES: Mapping[str, str] = {",
            *(f'    "{api_version}": "{module}",' for api_version, module in modules.items()),
            "}",
            "",
            "RESOURCES: tuple[ResourceInfo, ...] = (",
            *entries[False],
            ")",
            "",
            "BETA_RESOURCES: tuple[ResourceInfo, ...] = (",
            *entries[True],
            ")",
            "",
        ]
    )


def _resource_info(one: Resource, subresources: tuple[str, ...]) -> str:
    group, _, version = one.api_version.rpartition("/")
    kind = one.kind.rpartition(" ")[2]
    values: dict[str, object] = {
        "group": group,
        "version": version,
        "kind": kind,
        "plural": one.name,
        "namespaced": one.namespaced,
    }
    if one.singular != kind.lower():
        values["singular"] = one.singular
    optional = {"short_names": one.short_names, "categories": one.categories, "subresources": subresources}
    values |= {name: value for name, value in optional.items() if value}
    if one.verbs != _STORED_VERBS:
        values["verbs"] = one.verbs
    arguments = [f"{name}={_literal(value)}" for name, value in values.items()]
    line = f"    ResourceInfo({', '.join(arguments)}),"
    if len(line) <= LINE:
        return line
    lines = (_argument(f"        {name}", value) for name, value in values.items())
    return "\n".join(["    ResourceInfo(", *lines, "    ),"])


# --- ruff's format ----------------------------------------------------------------------------------------------------


def _literal(value: object) -> str:
    if isinstance(value, tuple):
        items = ", ".join(map(_literal, value))
        return f"({items},)" if len(value) == 1 else f"({items})"
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _argument(target: str, value: object) -> str:
    line = f"{target}={_literal(value)},"
    if len(line) <= LINE or not isinstance(value, tuple):
        return line
    indent = " " * (len(target) - len(target.lstrip()))
    items = (f"{indent}    {_literal(item)}," for item in value)
    return "\n".join([f"{target}=(", *items, f"{indent}),"])


def _assigned(
    target: str, opening: str, items: list[str], closing: str, *, quoted: bool = True, together: bool = False
) -> str:
    texts = [f'"{item}"' for item in items] if quoted else items
    line = f"{target} = {opening}{', '.join(texts)}{closing}"
    if len(line) <= LINE:
        return line
    indent = " " * (len(target) - len(target.lstrip()))
    # ruff puts the arguments of a call on one line when they fit, other items each on its own.
    inner = [f"{indent}    {', '.join(texts)}"] if together else [f"{indent}    {text}," for text in texts]
    return "\n".join([f"{target} = {opening}", *inner, f"{indent}{closing}"])


def _imported(module: str, names: list[str]) -> str:
    line = f"from .{module} import {', '.join(names)}"
    if len(line) <= LINE:
        return line
    return "\n".join([f"from .{module} import (", *(f"    {name}," for name in names), ")"])


def _isort_key(name: str) -> tuple[int, tuple[str | int, ...], str]:
    """Return a sort key for imported names: first constants, then classes, then other names."""
    rank = 0 if name.isupper() else 1 if name[0].isupper() else 2
    parts = tuple(int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name))
    return rank, parts, name
