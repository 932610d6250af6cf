"""How a schema is written: the fields behind lists, maps and references, documents elsewhere, and where lines end."""

from __future__ import annotations

from typing import Any

import pytest

from trioformer.cli.commands._explain_text import UnknownFieldError, explain, wrap

DOCS = {"description": "More of it.", "url": "https://x.example"}
REF = "#/components/schemas/"
SCHEMAS: dict[str, Any] = {
    "x.Thing": {
        "description": "Thing is a thing.",
        "externalDocs": DOCS,
        "allOf": [{"properties": {"first": {"type": "string"}}}, {"properties": {"second": {"type": "boolean"}}}],
        "properties": {
            "any": {"type": "object", "additionalProperties": True, "externalDocs": DOCS},
            "parts": {
                "type": "array",
                "items": {"$ref": f"{REF}x.Thing"},
                "externalDocs": {"url": "https://y.example"},
            },
            "sizes": {"additionalProperties": {"$ref": f"{REF}x.Size"}, "externalDocs": {"description": "Sizes."}},
            "mode": {"type": "string", "enum": ["A", "B"]},
            "lost": {"$ref": f"{REF}x.Nothing"},
            "elsewhere": {"$ref": "https://z.example/Far"},
        },
    },
    "x.Size": {"type": "string", "description": "Size is a text.", "externalDocs": {"url": "https://x.example"}},
    "x.Loop": {"allOf": [{"$ref": f"{REF}x.Loop"}]},
}
DOCUMENT = {"components": {"schemas": SCHEMAS}}


def explained(name: str, *fields: str, is_recursive: bool = False) -> str:
    """Return the documentation, without the spaces that end lines."""
    text = explain(SCHEMAS[name], DOCUMENT, fields, is_recursive=is_recursive)
    return "\n".join(line.rstrip() for line in text.split("\n"))


WHOLE = """\
DESCRIPTION:
    Thing is a thing.


EXTERNAL DOCS:
    More of it.
    URL: https://x.example
FIELDS:
  any\t<Object>
    <no description>

    EXTERNAL DOCS:
      More of it.
      URL: https://x.example

  elsewhere\t<Far>
    <no description>

  lost\t<Nothing>
    <no description>

  mode\t<string>
  enum: A, B
    <no description>

  parts\t<[]Thing>
    <no description>

    EXTERNAL DOCS:
      URL: https://y.example

  sizes\t<map[string]string>
    <no description>

    EXTERNAL DOCS:
      Sizes.

  first\t<string>
    <no description>

  second\t<boolean>
    <no description>

"""


def test_documents_elsewhere_are_named_with_kinds_and_fields() -> None:
    assert explained("x.Thing") == WHOLE


@pytest.mark.parametrize(
    ("fields", "first"),
    [
        (["parts", "mode"], "FIELD: mode <string>"),
        (["parts", "parts", "sizes"], "FIELD: sizes <map[string]string>"),
        (["second"], "FIELD: second <boolean>"),
        (["parts", "second"], "FIELD: second <boolean>"),
        (["any"], "FIELD: any <Object>"),
        (["elsewhere"], "FIELD: elsewhere <Far>"),
    ],
)
def test_a_field_is_found_behind_lists_and_parts_of_a_schema(fields: list[str], first: str) -> None:
    assert explained("x.Thing", *fields).split("\n")[0] == first


@pytest.mark.parametrize(
    ("name", "fields"),
    [("x.Thing", ["nope"]), ("x.Thing", ["mode", "a"]), ("x.Thing", ["parts", "nope"]), ("x.Loop", ["nope"])],
)
def test_a_field_that_is_nowhere_is_an_error(name: str, fields: list[str]) -> None:
    with pytest.raises(UnknownFieldError):
        explained(name, *fields)


def test_documents_elsewhere_may_have_a_url_alone() -> None:
    text = explained("x.Thing", "sizes")
    assert "Size is a text." in text
    assert text.endswith("EXTERNAL DOCS:\n    Sizes.\n")
    assert explained("x.Size").endswith("EXTERNAL DOCS:\n    URL: https://x.example\n")


@pytest.mark.parametrize(
    ("text", "wrapped"),
    [
        ("", ""),
        ("ab cd ef", "ab cd\nef"),
        ("ab\ncd", "ab\ncd"),
        ("ab \ncd", "ab \ncd"),
        ("abcde  \nx", "abcde\nx"),
        ("a  b", "a  b"),
        (" a", " a"),
        ("ab ", "ab "),
        ("abcde ", "abcde"),
        ("abcdefgh", "abcdefgh"),
        ("a bcdefgh", "a\nbcdefgh"),
        ("ab\xa0c de", "ab\xa0c\nde"),
    ],
)
def test_lines_end_at_spaces(text: str, wrapped: str) -> None:
    assert wrap(5, text) == wrapped
