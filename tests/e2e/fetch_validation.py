"""Record how kube-apiserver validates the fields of built-in kinds: the table ``validation.txt``.

::

    python -m tests.e2e.fetch_validation      # kube-apiserver and etcd of the binaries in KUBEBUILDER_ASSETS

The valid objects of the end-to-end tests are sent with one field changed at a time.  A field gets a rule if the server
refuses the change in all objects and reports this field for most of them.  Then all fields are changed at once, and the
order of the causes becomes the order of the rules.  The results of the contract tests are recorded as well, in
``contract/builtin_validation_results.json``.
"""

from __future__ import annotations

import copy
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, Final

import trio
import yaml

from tests.e2e.contract.builtin_validation_cases import OBJECTS, RESULTS, observed_created, observed_updated
from tests.e2e.manifest_set import BUILTIN, NAMESPACE
from tests.e2e.workloads import make_namespace
from trioformer import open_client
from trioformer.client import Client
from trioformer.models._internal import WireType, builtin_resources, find_wire_type
from trioformer.models._protobuf._tables import find_type
from trioformer.testing import ControlPlane
from trioformer.testing._storage._field_rules import TEXTS
from trioformer.testing._storage._object_meta import key_problems
from trioformer.testing._storage._release import INSTALLED

LEAVES: Final = frozenset("sbideyTUDFQIRABC")
RESOURCES: Final = {(each.api_version, each.kind): each for each in builtin_resources()}
SKIPPED: Final = {"CustomResourceDefinition", "APIService", "Namespace"}
CONDITIONAL: Final = re.compile(r"\b(when|if|exactly|one of|unless|handler|volume type|valid values|default)\b")
BOUNDS: Final = (
    (re.compile(r"must be greater than or equal to (\d+)$"), lambda found: [int(found[1]), None]),
    (re.compile(r"must be greater than (\d+)$"), lambda found: [int(found[1]) + 1, None]),
    (re.compile(r"must be between (\d+) and (\d+), inclusive$"), lambda found: [int(found[1]), int(found[2])]),
    (re.compile(r"must be a number between 0 and 0777"), lambda _: [0, 0o777]),
    (re.compile(r"must be a non-negative integer$"), lambda _: [0, None]),
)
Path_ = tuple[str | int, ...]
Change = tuple[str, str, Path_, str, Any]


def fields(type_: WireType) -> Iterator[tuple[Any, WireType]]:
    for field in type_.fields.values():
        if field.is_inline:
            yield from fields(type_.type_of(field.element))
        else:
            yield field, type_


def changes(value: dict[str, Any], type_: WireType, path: Path_, nodes: dict[Path_, str]) -> Iterator[Change]:
    """Yield the changes of each field of an object: the type, the field, the path, what is changed, and the value."""
    nodes[path] = f"{type_.module}.{type_.name}"
    for field, owner in fields(type_):
        name, kind, here = field.json, field.kind.removeprefix("*"), (*path, field.json)
        if not path and name in ("metadata", "status", "kind", "apiVersion"):
            continue
        wrong: dict[str, Any] = {}
        if not field.shape and kind in "se":
            wrong = {"text": "_!", "upper": "Ab_c", "empty": ""}
        elif not field.shape and kind in "iI":
            wrong = {"-1": -1, "0": 0, "70000": 70_000}
        member = value.get(name)
        if isinstance(member, list) and member:
            wrong = {"again": [*member, copy.deepcopy(member[0])], "none": []}
            if isinstance(member[0], str):
                wrong["item"] = ["_!", *member[1:]]
        elif isinstance(member, dict) and member and isinstance(next(iter(member.values())), str) and field.shape:
            wrong = {"key": {"_!": next(iter(member.values()))}}
        if name in value:
            wrong["gone"] = ...
        for what, changed in wrong.items():
            yield nodes[path], name, here, what, changed
        if member and field.element not in LEAVES and not field.element.startswith(("[", "{")):
            below = owner.type_of(field.element)
            parts = (
                enumerate(member) if isinstance(member, list) else member.items() if field.shape else ((None, member),)
            )
            for key, one in parts:
                if isinstance(one, dict):
                    yield from changes(one, below, here if key is None else (*here, key), nodes)


def changed(obj: dict[str, Any], path: Path_, value: Any) -> dict[str, Any]:
    obj = part = copy.deepcopy(obj)
    for key in path[:-1]:
        part = part[key]  # type: ignore[index]
    if value is ...:
        del part[path[-1]]  # type: ignore[arg-type]
    else:
        part[path[-1]] = value  # type: ignore[index]
    return obj


def text_of(path: Path_) -> str:
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).removeprefix(".")


def rule_of(found: dict[str, list[list[tuple[str, str, str]]]]) -> dict[str, Any]:
    """Return the rule of a field, given the causes for each change: the field relative to the changed one, …"""

    def same(what: str, below: str = "") -> str:
        """Return the message about the field itself that most objects have, or nothing if some are valid."""
        every = [[one[2] for one in causes if one[0] == below] for causes in found.get(what, ())]
        if not every or not all(found[what]):
            return ""  # some objects are valid with this change
        counts = Counter(message for messages in every for message in dict.fromkeys(messages))
        message, count = max(counts.items(), key=lambda one: one[1], default=("", 0))
        return message if count * 2 >= len(every) else ""

    rule: dict[str, Any] = {}
    for what in ("gone", "none"):
        message = same(what)
        if message.startswith("Required value") and not CONDITIONAL.search(message):
            rule["required"] = message.removeprefix("Required value").removeprefix(": ")
        elif message.startswith(('Unsupported value: ""', "Invalid value: 0")):
            rule["absent"] = True
    for what in ("text", "item"):
        every = list(found.get(what, ()))
        message = same(what)
        if message.startswith('Unsupported value: "') and "supported values: " in message:
            rule["enum"] = json.loads(f"[{message.split('supported values: ')[1]}]")
            if same("empty").startswith("Unsupported"):
                rule["empty"] = True
        elif message and what == "text":
            details = [one[2].removeprefix('Invalid value: "_!": ') for one in every[0] if not one[0]]
            uppers = [
                one[2].removeprefix('Invalid value: "Ab_c": ') for one in (found.get("upper") or [[]])[0] if not one[0]
            ]
            for name, problems in TEXTS.items():
                if details == list(problems("_!")) and uppers == list(problems("Ab_c")):
                    rule["text"] = name
    for name, problems in TEXTS.items():
        if same("key", "[_!]") == f'Invalid value: "_!": {next(iter(problems("_!")), None)}':
            rule["keys"] = name
    if same("key") == f'Invalid value: "_!": {next(iter(key_problems("_!")))}':
        rule["labels"] = True
    for what in ("-1", "0"):
        detail = (same(what)).partition(f"Invalid value: {what}: ")[2]
        for pattern, bounds in BOUNDS:
            if match := pattern.match(detail):
                rule |= {"range": bounds(match), "detail": detail}
    if rule.get("range") and rule["range"][0] > 0 and not same("0") and found.get("0"):
        rule["zero"] = True
    if not {"enum", "range"} & rule.keys():
        rule.pop("absent", None)
    duplicates = [causes[0] for causes in found.get("again", ()) if causes and causes[0][1] == "FieldValueDuplicate"]
    if duplicates and len(duplicates) == len(found["again"]):
        keys = {re.sub(r"^\[\d+\]\.?", "", one[0]) for one in duplicates}
        if len(keys) == 1 and not CONDITIONAL.search(duplicates[0][2]) and "{" not in duplicates[0][2]:
            rule["unique"] = keys.pop()
    return rule


def vote(
    causes: list[tuple[str, str, str]], nodes: dict[Path_, str], before: dict[str, Counter[tuple[str, str]]]
) -> None:
    """Note the order of the fields in the causes of one response, for the type of each level of the object."""
    seen: dict[Path_, list[str]] = defaultdict(list)
    for cause in causes:
        path = tuple(int(each[1:-1]) if each[0] == "[" else each for each in re.findall(r"\[\d+\]|[^.\[\]]+", cause[0]))
        for i, key in enumerate(path):
            if isinstance(key, str) and path[:i] in nodes and key not in seen[path[:i]]:
                before[nodes[path[:i]]].update((one, key) for one in seen[path[:i]])
                seen[path[:i]].append(key)


async def causes_of(client: Client, obj: dict[str, Any]) -> tuple[dict[str, Any], list[tuple[str, str, str]]]:
    path = RESOURCES[obj["apiVersion"], obj["kind"]].path(namespace="default")
    content = json.dumps(obj).encode()
    params = {"dryRun": "All"}
    response = await client._transport.request(
        "POST", path, params=params, content=content, content_type="application/json"
    )
    body = json.loads(response.body)
    causes = (body.get("details") or {}).get("causes") or ()
    return body, [(one.get("field", ""), one["reason"], one["message"]) for one in causes]


def objects() -> Iterator[dict[str, Any]]:
    text = "---\n".join(
        file.read_text() for file in (*sorted(BUILTIN.glob("*.yaml")), OBJECTS.with_name("rich_objects.yaml"), OBJECTS)
    )
    for each in yaml.safe_load_all(text.replace(NAMESPACE, "default")):
        if each and (each["apiVersion"], each["kind"]) in RESOURCES and each["kind"] not in SKIPPED:
            obj = json.loads(json.dumps(each, default=str))
            obj["metadata"]["name"] += "" if obj["kind"] == "IPAddress" else "x"
            (obj.get("spec") or {}).pop("priorityClassName", None)
            yield obj


async def main() -> None:
    found: dict[str, dict[str, dict[str, list[Any]]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    absent: dict[str, set[str]] = defaultdict(set)
    before: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    async with ControlPlane() as control_plane, open_client(kubeconfig=control_plane.kubeconfig) as client:
        for obj in objects():
            type_ = find_wire_type(obj["apiVersion"], obj["kind"])
            valid = (await causes_of(client, obj))[0]
            if type_ is None or valid["kind"] == "Status":
                print("skipped:", obj["kind"], obj["metadata"]["name"])
                continue
            nodes: dict[Path_, str] = {}
            present = {path for _, _, path, what, _ in changes(valid, type_, (), nodes) if what == "gone"}
            for path, name in nodes.items():
                absent[name] |= {
                    field.json for field, _ in fields(find_type(*name.split("."))) if (*path, field.json) not in present
                }
            nodes.clear()
            alone: dict[str, list[tuple[Path_, Any]]] = defaultdict(list)
            for name, field, path, what, value in [*changes(obj, type_, (), nodes)]:
                body, causes = await causes_of(client, changed(obj, path, value))
                if body.get("code", 422) == 422:
                    here = text_of(path)
                    relative = [
                        (one[0].removeprefix(here) if one[0].startswith(here) else "…", *one[1:]) for one in causes
                    ]
                    found[name][field][what].append(relative)
                vote(causes, nodes, before)
                if causes and causes[0][0] == text_of(path):
                    alone[what].append((path, value))
            for first in (("key", "text", "-1", "item"), ("empty", "-1"), ("gone", "-1"), ("none", "-1", "text")):
                alone_first: set[str] = set()  # the server validates these before all others
                while True:
                    broken, used = obj, dict[str, Path_]()
                    for what in first:
                        for path, value in alone[what]:
                            is_apart = all(
                                path[: len(one)] != one and one[: len(path)] != path for one in used.values()
                            )
                            if is_apart and text_of(path) not in alone_first:
                                broken = changed(broken, path, value)
                                used[text_of(path)] = path
                    causes = (await causes_of(client, broken))[1]
                    vote(causes, nodes, before)
                    if len(causes) != 1 or causes[0][0] not in used:
                        break
                    alone_first.add(causes[0][0])
        namespace = await make_namespace(client, "validation")
        results = {
            "created": await observed_created(client, namespace),
            "updated": await observed_updated(client, namespace),
        }
    RESULTS.write_text(f"{json.dumps(results, indent=1, ensure_ascii=False)}\n", encoding="utf-8")
    lines = []
    for name in sorted(found):
        rules = {field: rule_of(details) for field, details in found[name].items()}
        for field in rules.keys() & absent[name]:
            rules[field].pop("required", None)
            rules[field].pop("absent", None)
        rest, order = list(rules), list[str]()
        while rest:
            free = [one for one in rest if not any(before[name][o, one] > before[name][one, o] for o in rest)]
            order.append((free or rest)[0])
            rest.remove(order[-1])
        known = {one for pair in before[name] for one in pair}
        line = {field: rules[field] for field in order if rules[field] or field in known}
        if line:
            lines.append(f"{name} {json.dumps(line, ensure_ascii=False)}\n")
    (INSTALLED.directory / "validation.txt").write_text("".join(lines), encoding="utf-8")
    print(len(lines), "types", sum(line.count('": {"') for line in lines), "rules")


if __name__ == "__main__":
    trio.run(main)
