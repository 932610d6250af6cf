"""``auth whoami``: the user as the server sees it, in the forms that kubectl prints."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.fixed_answers import failure, run_with
from trioformer.testing import APIServer

REVIEW: dict[str, Any] = {
    "apiVersion": "authentication.k8s.io/v1",
    "kind": "SelfSubjectReview",
    "metadata": {"creationTimestamp": None},
    "status": {
        "userInfo": {
            "username": "jane",
            "uid": "u-1",
            "groups": ["dev", "system:authenticated"],
            "extra": {"reason": ["b"], "example.com/id": ["1", "2"]},
        }
    },
}
V1 = "/apis/authentication.k8s.io/v1/"
V1BETA1 = "/apis/authentication.k8s.io/v1beta1/"


TABLE = """\
ATTRIBUTE               VALUE
Username                jane
UID                     u-1
Groups                  [dev system:authenticated]
Extra: example.com/id   [1 2]
Extra: reason           [b]
"""


@pytest.mark.parametrize(("flags", "printed"), [([], TABLE), (["-o", "jsonpath={.status.userInfo.username}"], "jane")])
async def test_the_user_is_printed(api_server: APIServer, flags: list[str], printed: str) -> None:
    result, bodies = await run_with(api_server, {V1: (201, REVIEW)}, "auth", "whoami", *flags)
    assert (result.code, result.out, result.err) == (0, printed, "")
    assert bodies == [{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}]


async def test_the_whole_review_is_printed_as_json(api_server: APIServer) -> None:
    result, _ = await run_with(api_server, {V1: (201, REVIEW)}, "auth", "whoami", "-o", "json")
    assert result.code == 0
    assert json.loads(result.out) == REVIEW


async def test_an_older_version_is_asked_where_v1_is_not_served(api_server: APIServer) -> None:
    review = {"status": {"userInfo": {"username": "jane"}}}
    result, bodies = await run_with(api_server, {V1BETA1: (201, review)}, "auth", "whoami")
    assert (result.code, result.out) == (0, "ATTRIBUTE   VALUE\nUsername    jane\n")
    assert [body["apiVersion"] for body in bodies] == ["authentication.k8s.io/v1beta1"]


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (
            failure(403, "Forbidden", "not you"),
            "the selfsubjectreviews API is not enabled in the cluster or you do not have permission to call it",
        ),
        ((201, []), "unexpected response: not a SelfSubjectReview"),
    ],
)
async def test_an_answer_without_user_is_an_error(
    api_server: APIServer, answer: tuple[int, object], error: str
) -> None:
    result, _ = await run_with(api_server, {V1: answer}, "auth", "whoami")
    assert (result.code, result.out, result.err) == (1, "", f"error: {error}\n")
