"""``explain``: which document of the server has the kind, and what is printed where it or a field is missing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.cli import run
from tests.support.fixed_answers import run_with
from trioformer.testing import APIServer

KIND = "x-kubernetes-group-version-kind"

NO_RESOURCE = "error: couldn't find resource for " + '"apps/v9, Resource=deployments"'


def document(group: str, version: str, kind: str) -> dict[str, Any]:
    """Return a document of OpenAPI v3 with a kind, behind one of another group."""
    spec = {"description": "What is wanted.", "properties": {"replicas": {"type": "integer", "description": "Many."}}}
    schema = {
        "description": f"{kind} is a kind.",
        "properties": {"spec": spec},
        KIND: [
            {"group": "other", "kind": kind, "version": version},
            {"group": group, "kind": kind, "version": version},
        ],
    }
    return {"components": {"schemas": {"a.Other": {"type": "object"}, f"b.{kind}": schema}}}


APPS = {"/openapi/v3/apis/apps/v1": (200, document("apps", "v1", "Deployment"))}
CORE = {"/openapi/v3/api/v1": (200, document("", "v1", "ConfigMap"))}
HEAD = "GROUP:      apps\nKIND:       Deployment\nVERSION:    v1\n\n"
OF_KIND = f"""{HEAD}DESCRIPTION:
    Deployment is a kind.
    \n\
FIELDS:
  spec\t<Object>
    What is wanted.


"""
OF_FIELD = f"""{HEAD}FIELD: replicas <integer>


DESCRIPTION:
    Many.
    \n\

"""


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (["deploy"], OF_KIND),
        (["Deployment."], OF_KIND),
        (["deployments.apps"], OF_KIND),
        (["deployments.apps."], OF_KIND),
        (["deploy", "--api-version=apps/v1"], OF_KIND),
        (["deploy.spec.replicas"], OF_FIELD),
        (["deployments.apps.spec.replicas"], OF_FIELD),
        (["deploy", "-R"], OF_KIND[: OF_KIND.index("    What is wanted.")] + "    replicas\t<integer>\n\n"),
    ],
)
async def test_a_kind_or_a_field_of_it_is_explained(api_server: APIServer, arguments: list[str], printed: str) -> None:
    result, _ = await run_with(api_server, APPS, "explain", *arguments)
    assert (result.code, result.err) == (0, "")
    assert result.out == printed


@pytest.mark.parametrize("arguments", [["cm"], ["configmaps", "--api-version=v1"]])
async def test_a_kind_of_the_core_has_no_line_for_its_group(api_server: APIServer, arguments: list[str]) -> None:
    result, _ = await run_with(api_server, CORE, "explain", *arguments)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("KIND:       ConfigMap\nVERSION:    v1\n\nDESCRIPTION:\n    ConfigMap is a kind.\n")


async def test_a_field_that_does_not_exist_is_an_error(api_server: APIServer) -> None:
    result, _ = await run_with(api_server, APPS, "explain", "deploy.spec.nope")
    assert (result.code, result.out, result.err) == (1, HEAD, 'error: field "nope" does not exist\n')


@pytest.mark.parametrize("answer", [{}, [], {"components": {}}, document("apps", "v1", "Other")])
async def test_a_document_without_the_kind_is_an_error(api_server: APIServer, answer: object) -> None:
    result, _ = await run_with(api_server, {"/openapi/v3/apis/apps/v1": (200, answer)}, "explain", "deploy")
    assert (result.code, result.out) == (1, HEAD)
    assert result.err == "error: GVK map[group:apps kind:Deployment version:v1] not found in OpenAPI schema\n"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["a", "b"], "error: We accept only this format: explain RESOURCE"),
        (["cm", "-o", "html"], 'error: unrecognized format: html: only "plaintext" is supported'),
        (["cm", "--api-version=a/b/c/"], "error: unexpected GroupVersion string: a/b/c/"),
        (["deploy", "--api-version=apps/v9"], NO_RESOURCE),
        (["foos.spec"], "the server doesn't have a resource type " + '"foos"'),
    ],
)
async def test_what_cannot_be_explained_is_an_error(api_server: APIServer, arguments: list[str], error: str) -> None:
    result = await run(api_server, "explain", *arguments)
    assert (result.code, result.out, result.err) == (1, "", f"{error}\n")
