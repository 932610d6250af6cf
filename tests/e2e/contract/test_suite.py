"""The contract suite: each kind, verb and subresource, on an embedded server and on kube-apiserver.

``suite_results.json.xz`` has the responses of the supported releases of kube-apiserver.  A real server must respond as
its release; an embedded server as v1.36, apart from the differences in ``trioformer/testing/_serving/differences.csv``.
"""

from __future__ import annotations

import csv
import json
import lzma
import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

import pytest

import trioformer.testing
from tests.e2e.contract.suite_cases import Flow, Run, flows
from tests.e2e.contract.test_builtin_defaults import flat
from tests.e2e.workloads import make_namespace
from trioformer.client import Client

RESULTS: Final = Path(__file__).with_name("suite_results.json.xz")
LIST: Final = Path(trioformer.testing.__file__).with_name("_serving") / "differences.csv"
RECORDED: Final[dict[str, Any]] = json.loads(lzma.decompress(RESULTS.read_bytes()))
DIFFERENCES: Final = [
    {name: cell.strip("`") for name, cell in row.items()}
    for row in csv.DictReader(LIST.read_text(encoding="utf-8").splitlines())
]
FOLLOWED: Final = "1.36"
FLOWS: Final = {flow.kind: flow for flow in flows(RECORDED[FOLLOWED]["discovery"])}


def allowed(flow: Flow, case: str, path: str) -> list[int]:
    """Return the rows of the list that allow a difference."""
    return [
        row
        for row, each in enumerate(DIFFERENCES)
        if any(fnmatchcase(flow.resource, one.partition("/")[0]) for one in each["Resources"].split())
        and any(fnmatchcase(case, one) for one in each["Requests"].split("; "))
        and re.match(each["Fields"], path)
    ]


def compare(flow: Flow, found: dict[str, Any]) -> tuple[dict[str, list[str]], set[int]]:
    """Return the differences from the followed release that are not in the list, and the rows that allow the others."""
    unlisted: dict[str, list[str]] = {}
    used: set[int] = set()
    recorded = RECORDED[FOLLOWED]["answers"][flow.kind]
    assert found.keys() <= recorded.keys()  # objects of a kind that is not served cannot be changed
    for case, expected in recorded.items():
        for difference in sorted(flat(expected) ^ flat(found.get(case, {}))):
            rows = allowed(flow, case, difference.partition(": ")[0])
            used.update(rows)
            if not rows:
                unlisted.setdefault(case, []).append(difference)
    return unlisted, used


@pytest.mark.parametrize("kind", FLOWS)
async def test_the_requests_for_a_kind_have_the_responses_of_kube_apiserver(server_client: Client, kind: str) -> None:
    version = (await server_client.request("GET", "/version")).json()
    assert isinstance(version, dict)
    is_embedded, release = "trioformer" in version["gitVersion"], f"{version['major']}.{version['minor']}"
    recorded = RECORDED[FOLLOWED if is_embedded else release]
    of_release = {flow.kind: flow for flow in flows(recorded["discovery"])}
    if kind not in of_release:  # an older release
        return
    found = await Run(server_client, await make_namespace(server_client, "suite")).run(of_release[kind])
    if not is_embedded:
        assert found == recorded["answers"][kind]
        return
    unlisted, used = compare(FLOWS[kind], found)
    assert unlisted == {}
    resource = FLOWS[kind].resource
    rows = {row for row, each in enumerate(DIFFERENCES) if resource in each["Resources"].split()}
    assert [DIFFERENCES[row] for row in sorted(rows - used)] == []  # differences that are no more


def test_the_suite_has_each_kind_verb_and_subresource() -> None:
    assert sum(len(flow.cases) for flow in FLOWS.values()) > 5000
    assert len(FLOWS) == len(RECORDED[FOLLOWED]["discovery"])


def test_a_difference_that_is_not_in_the_list_is_found() -> None:
    flow = FLOWS["v1 ConfigMap"]
    found = json.loads(json.dumps(RECORDED[FOLLOWED]["answers"][flow.kind]))
    found["get"]["body"]["data"] = {}
    assert compare(flow, found)[0].keys() == {"get"}
