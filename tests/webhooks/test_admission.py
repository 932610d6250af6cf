"""Requests that a test makes itself, and refusals."""

from __future__ import annotations

import pytest

from tests.support.webhooks import Shop
from trioformer.webhooks import AdmissionRequest, Denied


def test_a_test_can_make_a_request_with_only_an_object() -> None:
    request = AdmissionRequest(object=Shop())
    assert (request.operation, request.old, request.dry_run, request.user.groups) == ("CREATE", None, False, ())


@pytest.mark.parametrize(("code", "reason"), [(403, "Forbidden"), (409, "Conflict"), (422, "Invalid"), (418, "")])
def test_the_reason_of_a_refusal_follows_from_its_code(code: int, reason: str) -> None:
    assert Denied("no", code=code).reason == reason
    assert Denied("no", code=code, reason="Teapot").reason == "Teapot"


@pytest.mark.parametrize("code", [200, 399, 600])
def test_the_code_of_a_refusal_must_be_that_of_an_error(code: int) -> None:
    with pytest.raises(ValueError, match=str(code)):
        Denied("no", code=code)


def test_the_text_of_a_refusal_is_its_message() -> None:
    refusal = Denied("no", {"spec.size": "too small"}, warnings=["careful"])
    assert (str(refusal), refusal.causes, refusal.warnings) == ("no", {"spec.size": "too small"}, ("careful",))
