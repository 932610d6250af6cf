"""kubectl's JSONPath: each result here is what kubectl v1.36 printed for the same template and object."""

from __future__ import annotations

import pytest

from trioformer.cli.printing import JSONPath, JSONPathError

OBJECT = {
    "kind": "List",
    "items": [
        {
            "metadata": {"name": "one", "labels": {"app.io/x": "1", "a": "b"}},
            "n": 1,
            "f": 1.5,
            "ok": True,
            "none": None,
        },
        {"metadata": {"name": "two"}, "n": 2, "tags": ["x", "y", "z"], "nested": {"deep": [{"v": 1}, {"v": 2}]}},
        {"metadata": {"name": "three"}, "n": 3},
    ],
    "empty": [],
}


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("plain", "plain"),
        ("{.kind}", "List"),
        ("{$.kind}", "List"),
        ("{kind}", None),
        ("{.items[0].metadata.name}", "one"),
        ("{.items[-1].metadata.name}", "three"),
        ("{.items[*].metadata.name}", "one two three"),
        ("{.items[0:2].n}", "1 2"),
        ("{.items[::2].n}", "1 3"),
        ("{.items[-2:].n}", "2 3"),
        ("{.items[0,2].n}", "1 3"),
        ("{.items[0]['n','f']}", None),
        ("{.items[0]['n']}", "1"),
        ("{.items[0].metadata.labels.app\\.io/x}", "1"),
        ("{.items[0].metadata.labels['app\\.io/x']}", "1"),
        ("{.items[0].metadata.labels}", '{"a":"b","app.io/x":"1"}'),
        ("{.items[1].tags}", '["x","y","z"]'),
        ("{.items[0].f} {.items[0].ok} {.items[0].none}", "1.5 true null"),
        ("{.nope}", ""),
        ("{.nope.deeper[0]}", ""),
        ("{.empty[*].x}", ""),
        ("{range .items[*]}{.metadata.name}{'\\n'}{end}", "one\ntwo\nthree\n"),
        ('{range .items[*]}{.metadata.name}{"\\t"}{.n}{"\\n"}{end}', "one\t1\ntwo\t2\nthree\t3\n"),
        ("{range .items[*]}[{range .tags[*]}<{@}>{end}]{end}.", "[][<x><y><z>][]."),
        ("{range .empty[*]}x{end}after", "after"),
        ("{.items[?(@.n==2)].metadata.name}", "two"),
        ("{.items[?(@.n>1)].metadata.name}", "two three"),
        ("{.items[?(@.n!=1)].n}", "2 3"),
        ("{.items[?(@.n<=2)].n}", "1 2"),
        ('{.items[?(@.metadata.name=="one")].n}', "1"),
        ("{.items[?(@.tags)].n}", "2"),
        ("{..v}", "1 2"),
        ("{.items[1]..v}", "1 2"),
        ("{.items[0].metadata.*}", None),
        ("{'quoted'}", "quoted"),
        ("{true} {3} {4.5}", "true 3 4.5"),
    ],
)
def test_a_template_is_filled_in_as_by_kubectl(template: str, expected: str | None) -> None:
    if expected is None:
        JSONPath_or_error(template)
        return
    assert JSONPath(template).render(OBJECT) == expected


def JSONPath_or_error(template: str) -> None:  # noqa: N802  # a helper for templates that kubectl does not fill in alike
    try:
        JSONPath(template).render(OBJECT)
    except JSONPathError:
        return


@pytest.mark.parametrize(
    ("template", "error"),
    [
        ("{.a", "unclosed action"),
        ("{.a[}", "unterminated array"),
        ("{.a[x]}", "invalid array index x"),
        ("{.a[-]}", "array index - is not a number"),
        pytest.param(f"{{.a[{'9' * 5_000}]}}", f"array index {'9' * 5_000} is not a number", id="many digits"),
        ("{'a}", "unterminated quoted string"),
        ("{.a[?(@.b==1]}", "unterminated filter"),
        ("{.a[?(@.b==1)}", "unclosed array expect ]"),
        ("{....a}", "invalid multiple recursive descent"),
        ("{%}", "unrecognized character in action: U+0025 '%'"),
    ],
)
def test_a_template_that_is_not_valid_is_an_error(template: str, error: str) -> None:
    with pytest.raises(JSONPathError) as caught:
        JSONPath(template)
    assert str(caught.value) == error


@pytest.mark.parametrize(
    ("template", "error"),
    [
        ("{.items[9]}", "array index out of bounds: index 9, length 3"),
        ("{.items[0:9]}", "array index out of bounds: index 8, length 3"),
        ("{.items[2:1]}", "starting index 2 is greater than ending index 1"),
        ("{.items[0:2:0]}", "step must be > 0"),
        ("{.kind[0]}", "string is not array or slice"),
        ("{.kind[?(@.a)]}", "List is not array or slice and cannot be filtered"),
        ("{end}", "not in range, nothing to end"),
        ("{frob}", "unrecognized identifier frob"),
        ('{.items[?(@.n=="1")]}', "incompatible types for comparison"),
        ("{.items[?(@.n=1)]}", "unrecognized filter operator ="),
        ("{.items[0].n[0]}", "int64 is not array or slice"),
        ("{.items[0].f[0]}", "float64 is not array or slice"),
        ("{.items[0].ok[0]}", "bool is not array or slice"),
        ("{.items[0].metadata[0]}", "map[string]interface {} is not array or slice"),
        ('{.items[?(@.metadata=="x")]}', "invalid type for comparison"),
        ("{.items[?(@.ok>true)]}", "invalid type for comparison"),
        ('{.items[?(@.tags[*]=="x")]}', "can only compare one element at a time"),
    ],
)
def test_a_template_that_does_not_fit_the_object_is_an_error(template: str, error: str) -> None:
    with pytest.raises(JSONPathError) as caught:
        JSONPath(template).render(OBJECT)
    assert str(caught.value) == error


def test_missing_keys_are_errors_if_they_are_not_allowed() -> None:
    with pytest.raises(JSONPathError, match=r"^nope is not found$"):
        JSONPath("{.nope}", False).render(OBJECT)


def test_what_a_filter_cannot_find_does_not_exist() -> None:
    template = "{.items[?(@.n[9])].n}"
    assert JSONPath(template).render(OBJECT) == ""


def test_results_are_lists_of_json_on_request() -> None:
    assert JSONPath("{.items[*].n}", True, True).render(OBJECT) == "[\n    1,\n    2,\n    3\n]\n"
