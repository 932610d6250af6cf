"""Declarations that contradict themselves are refused when they are made."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.webhooks import OldShop, Shop
from trioformer.models import ObjectMeta
from trioformer.models.coordination_v1 import Lease
from trioformer.models.core_v1 import Pod
from trioformer.webhooks import AdmissionRequest, Denied, Webhook, Webhooks


async def allow(request: AdmissionRequest[Any]) -> None: ...


async def allow_all() -> None: ...


def refuse(request: AdmissionRequest[Any]) -> None:
    raise Denied("the function is not async")


def same(obj: Any) -> Any:
    return obj


@pytest.mark.parametrize(
    ("options", "error", "problem"),
    [
        ({"validate": {Lease: allow}}, ValueError, "leases"),
        ({"mutate": {Lease: Webhook(allow)}}, ValueError, "leases"),
        ({"validate": {Shop: allow, OldShop: allow}}, ValueError, "Shop and OldShop"),
        ({"validate": {Shop: Webhook(allow, reinvocation_policy="IfNeeded")}}, ValueError, "reinvocation_policy"),
        ({"validate": [allow]}, TypeError, "validate must be a mapping of kinds, .* not a list"),
        ({"mutate": allow}, TypeError, "mutate must be a mapping of kinds, .* not the function allow"),
        ({"convert": None}, TypeError, "convert must be a mapping of kinds, .* not None"),
        ({"validate": {ObjectMeta: allow}}, TypeError, "ObjectMeta is not a kind"),
        ({"mutate": {Shop: "allow"}}, TypeError, "async function"),
        ({"validate": {Shop: refuse}}, TypeError, "refuse is not one"),
        ({"validate": {Shop: allow_all}}, TypeError, "argument"),
        ({"convert": {Shop: {Pod: (same, same)}}}, ValueError, "Pod is not another version of Shop"),
        ({"convert": {Shop: {Shop: (same, same)}}}, ValueError, "Shop is not another version"),
        ({"convert": {Shop: {OldShop: (same, None)}}}, TypeError, "OldShop: two functions"),
    ],
)
def test_a_declaration_that_cannot_work_is_refused(options: Any, error: type[Exception], problem: str) -> None:
    with pytest.raises(error, match=problem):
        Webhooks(**options)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"timeout_seconds": 0}, ValueError),
        ({"timeout_seconds": 31}, ValueError),
        ({"operations": "CREATE"}, TypeError),
        ({"subresources": "status"}, TypeError),
    ],
)
def test_a_webhook_with_a_wrong_option_is_refused(options: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        Webhook(allow, **options)


def test_the_same_kind_can_be_validated_and_mutated() -> None:
    webhooks = Webhooks(validate={Shop: allow, Pod: allow}, mutate={Shop: allow})
    paths = "/validate/example.com/shops /validate/core/pods /mutate/example.com/shops"
    assert repr(webhooks) == f"<Webhooks {paths}>"
