"""Writes a schema of OpenAPI v3 as kubectl's template ``plaintext.tmpl`` does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, final

__all__ = ["UnknownFieldError", "explain", "wrap"]

_SHORT: Final = 4
"""How many values of an enumeration a list of fields shows."""

Schema = Mapping[str, Any]


@final
class UnknownFieldError(Exception):
    """The path has a field that the kind has not."""


def explain(schema: Schema, document: Schema, fields: Sequence[str], *, is_recursive: bool) -> str:
    """Return the documentation of a kind, or of a field of it.

    Raises:
        UnknownFieldError: There is no such field.
    """
    text = _Writer(document, is_recursive).output(schema, list(fields), frozenset())
    if not text:
        raise UnknownFieldError
    return text


@final
class _Writer:
    def __init__(self, document: Schema, is_recursive: bool) -> None:
        self._document = document
        self._is_recursive = is_recursive

    def output(self, schema: Schema, fields: list[str], history: frozenset[str]) -> str:
        """Follow the fields, and describe what they lead to; empty if they lead nowhere."""
        ref = schema.get("$ref") or ""
        resolved = self._resolve(ref) or schema
        after = history | {ref}
        if not fields:
            return self._described(resolved)
        if ref and ref in history:
            return ""
        properties = resolved.get("properties") or {}
        if fields[0] in properties:
            inner = properties[fields[0]]
            head = ""
            if len(fields) == 1:
                head = f"FIELD: {fields[0]} <{self._type(inner)}>\n{_enum(inner, '', None)}\n\n"
            return head + self.output(inner, fields[1:], frozenset())
        for each in self._inner(resolved):
            if text := self.output(each, fields, after):
                return text
        for each in resolved.get("allOf") or []:
            if text := self.output(each, fields, after):
                return text
        return ""

    def _described(self, resolved: Schema) -> str:
        text = "DESCRIPTION:\n" + _indent(4, wrap(76, self._description(resolved) or "<empty>")) + "\n"
        if docs := resolved.get("externalDocs"):
            text += "\nEXTERNAL DOCS:\n"
            text += _indent(4, wrap(76, docs["description"])) + "\n" if docs.get("description") else ""
            text += f"    URL: {docs['url']}\n" if docs.get("url") else ""
        listed = self._fields(resolved, 1, frozenset())
        return text + (f"FIELDS:\n{listed}" if listed else "")

    def _description(self, schema: Schema) -> str:
        resolved = self._resolve(schema.get("$ref") or "") or schema
        text = f"{resolved['description']}\n" if resolved.get("description") else ""
        for each in resolved.get("allOf") or []:
            text += self._description(each)
        return text + "".join(self._description(each) for each in self._inner(resolved))

    def _fields(self, schema: Schema, level: int, history: frozenset[str]) -> str:
        ref = schema.get("$ref") or ""
        if ref and ref in history:
            return ""
        resolved = self._resolve(ref) or schema
        after = history | {ref}
        text = ""
        properties = resolved.get("properties") or {}
        for name in sorted(properties):
            text += self._field(name, resolved, level)
            if self._is_recursive:
                text += self._fields(properties[name], level + 1, after)
        for each in [*(resolved.get("allOf") or []), *self._inner(resolved)]:
            text += self._fields(each, level, after)
        return text

    def _field(self, name: str, schema: Schema, level: int) -> str:
        field = schema["properties"][name]
        indent = level * 2
        text = " " * indent + f"{name}\t<{self._type(field)}>"
        if name in (schema.get("required") or []):
            text += " -required-"
        text += _enum(field, " " * indent, _SHORT) + "\n"
        if self._is_recursive:
            return text
        text += _indent(indent + 2, wrap(78 - indent, field.get("description") or "<no description>")) + "\n"
        if docs := field.get("externalDocs"):
            text += "\n" + _indent(indent + 2, "EXTERNAL DOCS:") + "\n"
            if docs.get("description"):
                text += _indent(indent + 4, wrap(76 - indent, docs["description"])) + "\n"
            if docs.get("url"):
                text += _indent(indent + 4, f"URL: {docs['url']}") + "\n"
        return text + "\n"

    def _type(self, schema: Schema) -> str:
        if schema.get("items"):
            return f"[]{self._type(schema['items'])}"
        values = schema.get("additionalProperties")
        if values and not isinstance(values, bool):
            return f"map[string]{self._type(values)}"
        all_of = schema.get("allOf") or []
        if len(all_of) == 1 and not schema.get("properties"):
            return self._type(all_of[0])
        if ref := schema.get("$ref"):
            resolved = self._resolve(ref)
            kind = str((resolved or {}).get("type") or "object")
            return kind if kind != "object" else str(ref).split("/")[-1].split(".")[-1] or "Object"
        kind = str(schema.get("type") or "Object")
        return "Object" if kind == "object" else kind

    @staticmethod
    def _inner(schema: Schema) -> list[Schema]:
        """Return the schemas of what a list or a map contains."""
        values = schema.get("additionalProperties")
        found = [schema["items"]] if schema.get("items") else []
        return found + ([values] if values and not isinstance(values, bool) else [])

    def _resolve(self, ref: str) -> Schema | None:
        if not ref.startswith("#"):
            return None
        found: Any = self._document
        for part in ref[1:].split("/"):
            if part:
                found = found.get(part) if isinstance(found, Mapping) else None
        return found if isinstance(found, Mapping) else None


def _enum(schema: Schema, indent: str, limit: int | None) -> str:
    values = schema.get("enum")
    if not values:
        return ""
    shown = ['""' if each == "" else str(each) for each in values]
    if limit is None:
        return "ENUM:" + "".join(f"\n    {each}" for each in shown)
    if len(shown) > limit:
        shown = [*shown[:limit], "...."]
    return f"\n{indent}enum: {', '.join(shown)}"


def _indent(amount: int, text: str) -> str:
    pad = " " * amount
    return pad + text.replace("\n", f"\n{pad}")


def wrap(limit: int, text: str) -> str:
    """Break the lines of a text at spaces, as ``mitchellh/go-wordwrap`` does."""
    done: list[str] = []
    current = 0
    word, space = "", ""
    for character in text:
        if character == "\n":
            if word:
                done += [space, word]
            elif current + len(space) <= limit:
                done.append(space)
            word, space = "", ""
            done.append("\n")
            current = 0
        elif character.isspace() and character != "\xa0":
            if not space or word:
                current += len(space) + len(word)
                done += [space, word]
                word, space = "", ""
            space += character
        else:
            word += character
            if current + len(word) + len(space) > limit and len(word) < limit:
                done.append("\n")
                current = 0
                space = ""
    if word:
        done += [space, word]
    elif current + len(space) <= limit:
        done.append(space)
    return "".join(done)
