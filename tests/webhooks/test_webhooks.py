"""The ASGI application: what the functions get, what the callers get, and what the log says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

import httpx
import pytest
import trio
import trio.testing
from starlette.applications import Starlette
from starlette.routing import Mount

from tests.support.webhooks import CONVERT, MUTATE, VALIDATE, Caller, OldShop, OldSpec, Shop, conversion, review, shop
from trioformer.webhooks import AdmissionRequest, Denied, Webhook, Webhooks

SECRET = "hunter2"


def calling(function: Callable[[AdmissionRequest[Any]], Awaitable[Any]], **options: Any) -> Caller:
    webhook = Webhook(function, **options)
    return Caller(Webhooks(validate={Shop: webhook}, mutate={Shop: webhook}))


async def allow(request: AdmissionRequest[Shop]) -> None:
    await trio.lowlevel.checkpoint()


WHOLE = httpx.Request("POST", "https://x", json=review(shop(owner=SECRET))).read()


async def status_of(webhooks: Webhooks, *parts: bytes, gone: trio.Event | None = None) -> int:
    """Send a body in parts, and disconnect when the event is set.  Return the status of the response."""
    left = [*parts]
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        if left:
            return {"type": "http.request", "body": left.pop(0), "more_body": bool(left)}
        await (trio.Event() if gone is None else gone).wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"content-type", b"application/json")]
    await webhooks({"type": "http", "method": "POST", "path": VALIDATE, "headers": headers}, receive, send)
    status: int = sent[0]["status"]
    return status


# --- admission --------------------------------------------------------------------------------------------------------


async def test_a_function_gets_the_typed_objects_and_the_user() -> None:
    seen: list[AdmissionRequest[Shop]] = []

    async def check(request: AdmissionRequest[Shop]) -> None:
        seen.append(request)

    user = {"username": "me", "groups": ["team:a"], "extra": {"x": ["1"]}}
    members = {"operation": "UPDATE", "userInfo": user, "dryRun": True, "namespace": "web", "name": "corner"}
    options = {"kind": "UpdateOptions", "fieldManager": "kubectl"}
    await calling(check).call(VALIDATE, review(shop(size=3), shop(size=2), **members, options=options))
    (request,) = seen
    assert request.old is not None
    assert (request.object.spec.size, request.old.spec.size) == (3, 2)
    assert (request.operation, request.dry_run) == ("UPDATE", True)
    assert (request.namespace, request.name, request.uid, request.subresource) == ("web", "corner", "u1", "")
    assert (request.user.username, request.user.groups, request.user.extra["x"]) == ("me", ("team:a",), ("1",))
    assert request.options == options


async def test_the_object_of_a_deletion_is_the_one_that_would_be_deleted() -> None:
    seen: list[AdmissionRequest[Shop]] = []

    async def check(request: AdmissionRequest[Shop]) -> None:
        seen.append(request)

    await calling(check).call(VALIDATE, review(None, shop(size=2), operation="DELETE"))
    assert seen[0].object is seen[0].old
    assert seen[0].object.spec.size == 2


@pytest.mark.parametrize(
    ("warnings", "answered"),
    [(None, None), ([], None), (["too small"], ["too small"]), (["too\n  small\n", "é"], ["too small", "é"])],
)
async def test_warnings_of_a_check_are_in_the_response(warnings: list[str] | None, answered: list[str] | None) -> None:
    async def check(request: AdmissionRequest[Shop]) -> list[str] | None:
        return warnings

    answer = await calling(check).call(VALIDATE, review(shop()))
    assert (answer["uid"], answer["allowed"], answer.get("warnings")) == ("u1", True, answered)


@pytest.mark.parametrize("path", [VALIDATE, MUTATE])
@pytest.mark.parametrize("in_a_nursery", [False, True])
async def test_a_refusal_has_its_causes_and_warnings(path: str, in_a_nursery: bool) -> None:
    async def refuse() -> None:
        raise Denied("too large", {"spec.size": "must be at most 10"}, warnings=["see the handbook"], code=422)

    async def check(request: AdmissionRequest[Shop]) -> None:
        if not in_a_nursery:
            await refuse()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(refuse)

    answer = await calling(check).call(path, review(shop(size=11)))
    assert answer == {
        "uid": "u1",
        "allowed": False,
        "status": {
            "status": "Failure",
            "message": "too large",
            "code": 422,
            "reason": "Invalid",
            "details": {
                "causes": [{"reason": "FieldValueInvalid", "message": "must be at most 10", "field": "spec.size"}]
            },
        },
        "warnings": ["see the handbook"],
    }


async def test_a_mutation_keeps_members_that_the_class_does_not_have() -> None:
    async def complete(request: AdmissionRequest[Shop]) -> Shop:
        return request.object.evolve(spec=request.object.spec.evolve(owner="me"))

    body = review(shop(deep={"a/b": [1, {"~": None}]}))
    assert await calling(complete).mutated(MUTATE, body) == shop(deep={"a/b": [1, {"~": None}]}, owner="me")


@pytest.mark.parametrize("is_same", [False, True])
async def test_a_mutation_without_changes_has_no_patch(is_same: bool) -> None:
    async def complete(request: AdmissionRequest[Shop]) -> Shop | None:
        return request.object if is_same else None

    assert await calling(complete).call(MUTATE, review(shop())) == {"uid": "u1", "allowed": True}


# --- functions that fail ----------------------------------------------------------------------------------------------


async def fail(request: AdmissionRequest[Shop]) -> None:
    raise ValueError(f"the password is {request.object.spec.owner}")


async def fail_in_a_nursery(request: AdmissionRequest[Shop]) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(fail, request)


async def return_text(request: AdmissionRequest[Shop]) -> Any:
    return request.object.spec.owner


async def return_numbers(request: AdmissionRequest[Shop]) -> Any:
    return [1]


async def return_another_kind(request: AdmissionRequest[Shop]) -> Any:
    return OldShop()


def not_async(request: AdmissionRequest[Shop]) -> Any:
    return request.object


async def misspell(request: AdmissionRequest[Shop]) -> Any:
    return request.object.spec.sizee  # type: ignore[attr-defined]  # the mistake


@pytest.mark.parametrize(
    ("path", "function", "problem"),
    [
        (VALIDATE, fail, "ValueError in fail, test_webhooks.py:"),
        (VALIDATE, fail_in_a_nursery, "ValueError in fail, test_webhooks.py:"),
        (MUTATE, fail, "ValueError in fail, test_webhooks.py:"),
        (VALIDATE, misspell, "AttributeError in misspell, test_webhooks.py:"),
        (VALIDATE, return_text, "warnings or None"),
        (VALIDATE, return_numbers, "warnings or None"),
        (MUTATE, return_text, "a changed Shop or None"),
        (MUTATE, return_another_kind, "a changed Shop or None"),
        (VALIDATE, not_async, "async function"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
async def test_a_function_that_fails_is_a_500_and_neither_answer_nor_log_quotes_the_object(
    path: str, function: Any, problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    answer = await calling(function).post(path, review(shop(owner=SECRET)))
    assert answer.status_code == 500
    assert answer.text.count("\n") == 1
    assert path in answer.text
    assert problem in answer.text
    assert SECRET not in answer.text
    (record,) = caplog.records
    assert record.levelname == "ERROR"
    assert path in record.getMessage()
    assert "trioformer/webhooks/_webhooks.py" in record.getMessage()  # the stack
    assert SECRET not in caplog.text


async def test_an_object_that_does_not_decode_is_a_500_that_names_the_field(caplog: pytest.LogCaptureFixture) -> None:
    async def check(request: AdmissionRequest[Shop]) -> None:
        assert request.object.spec.size > 0

    answer = await calling(check).post(VALIDATE, review(shop(size=SECRET)))
    assert (answer.status_code, "ShopSpec.size" in answer.text) == (500, True)
    assert SECRET not in answer.text + caplog.text
    # a field that the function does not read does not matter
    assert (await calling(allow).call(VALIDATE, review(shop(size=SECRET))))["allowed"]


async def test_a_deletion_cannot_be_mutated() -> None:
    async def complete(request: AdmissionRequest[Shop]) -> Shop:
        return request.object.evolve(spec=request.object.spec.evolve(owner="me"))

    answer = await calling(complete).post(MUTATE, review(None, shop(), operation="DELETE"))
    assert answer.status_code == 500


async def test_a_function_is_cancelled_half_a_second_before_the_timeout(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    ends: list[float] = []

    async def check(request: AdmissionRequest[Shop]) -> None:
        try:
            await trio.sleep_forever()
        finally:
            ends.append(trio.current_time())

    start = trio.current_time()
    answer = await calling(check, timeout_seconds=5).post(VALIDATE, review(shop()))
    assert ends == [start + 4.5]
    assert (answer.status_code, "4.5 s" in answer.text) == (500, True)
    assert "4.5 s" in caplog.text


async def test_the_same_failure_is_logged_once_a_minute(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caller = calling(fail)
    for _ in range(61):
        await caller.post(VALIDATE, review(shop()))
        await trio.sleep(1)
    assert len(caplog.records) == 2
    assert "(59 suppressed" in caplog.records[-1].getMessage()


async def test_a_client_that_disconnects_cancels_its_function() -> None:
    ends: list[str] = []

    async def check(request: AdmissionRequest[Shop]) -> None:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            ends.append("cancelled")
            raise

    gone = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(status_of, Webhooks(validate={Shop: check}), WHOLE, gone=gone))
        await trio.testing.wait_all_tasks_blocked()
        assert ends == []
        gone.set()
    assert ends == ["cancelled"]


async def test_a_cancellation_of_the_server_passes_through_the_application() -> None:
    async def check(request: AdmissionRequest[Shop]) -> None:
        await trio.sleep_forever()

    with trio.move_on_after(0) as scope, suppress(httpx.HTTPError):
        await calling(check).post(VALIDATE, review(shop()))
    assert scope.cancelled_caught


# --- bad requests -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "body", "problem"),
    [
        (400, b"", "cut off"),
        (400, WHOLE[:-20], "cut off"),
        (400, b"\xff" + WHOLE, "cut off"),
        (400, b"[" * 100_000, "cut off"),
        (400, [1], "cut off"),
        (400, {}, "without apiVersion"),
        (400, {**review(shop()), "apiVersion": "admission.k8s.io/v1beta1"}, "v1beta1"),
        (400, {**review(shop()), "kind": "ConversionReview"}, "AdmissionReview"),
        (400, {**review(shop()), "kind": {"a": SECRET}}, "string"),
        (400, {**review(shop()), "request": None}, "cut off"),
        (400, review(shop(), uid=""), "uid"),
        (400, review(shop(), uid=5), "uid"),
        (400, review(shop(), kind="Shop"), "another type"),
        (400, review(shop(), kind={"group": "", "version": "v1", "kind": "No/Kind"}), "another type"),
        (400, review(shop(), userInfo=[1]), "UserInfo"),
        (400, review(SECRET), "Shop"),
        (400, review([shop()]), "Shop"),
        (400, review(), "neither"),
    ],
)
async def test_a_body_that_is_not_a_review_is_a_400_that_quotes_nothing(code: int, body: Any, problem: str) -> None:
    answer = await calling(allow).post(VALIDATE, body)
    assert (answer.status_code, answer.text.count("\n")) == (code, 1)
    assert problem in answer.text
    assert SECRET not in answer.text


@pytest.mark.parametrize("path", ["/", "/validate", "/validate/example.com/pods", "/convert/example.com/shops", "*"])
async def test_an_unknown_path_is_a_404(path: str) -> None:
    assert (await calling(allow).post(path, review(shop()))).status_code == 404


@pytest.mark.parametrize("method", ["GET", "PUT", "HEAD"])
async def test_another_method_is_a_405(method: str) -> None:
    transport = httpx.ASGITransport(app=calling(allow).webhooks)
    async with httpx.AsyncClient(transport=transport, base_url="https://shops") as http:
        answer = await http.request(method, VALIDATE)
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    ("content_type", "code"),
    [
        ("application/json", 200),
        ("Application/JSON; charset=utf-8", 200),
        ("text/plain", 415),
        ("application/jsonp", 415),
        ("", 415),
    ],
)
async def test_another_content_type_is_a_415(content_type: str, code: int) -> None:
    answer = await calling(allow).post(VALIDATE, review(shop()), content_type=content_type)
    assert answer.status_code == code


async def test_a_body_that_is_too_large_is_a_413() -> None:
    assert await status_of(calling(allow).webhooks, *[b" " * 1024 * 1024] * 6, WHOLE) == 200
    assert await status_of(calling(allow).webhooks, *[b" " * 1024 * 1024] * 7, WHOLE) == 413


async def test_other_scopes_are_refused() -> None:
    with pytest.raises(ValueError, match="websocket"):
        await calling(allow).webhooks({"type": "websocket"}, None, None)  # type: ignore[arg-type]  # not used


# --- conversion -------------------------------------------------------------------------------------------------------


def up(old: OldShop) -> Shop:
    return Shop(metadata=old.metadata, spec=shop_spec(old.spec.rooms))


def down(new: Shop) -> OldShop:
    return OldShop(metadata=new.metadata, spec=OldSpec(rooms=new.spec.size))


def shop_spec(size: int) -> Any:
    return Shop().spec.evolve(size=size)


def old_shop(name: str, rooms: object = 1) -> dict[str, Any]:
    metadata = {"name": name, "uid": f"u-{name}", "unknown": [1]}
    return {"apiVersion": "example.com/v1alpha1", "kind": "Shop", "metadata": metadata, "spec": {"rooms": rooms}}


CONVERTING = Caller(Webhooks(convert={Shop: {OldShop: (up, down)}}))


async def test_objects_are_converted_in_their_order_and_keep_their_metadata() -> None:
    same = {**shop(size=7), "metadata": {"name": "c"}}
    answer = await CONVERTING.call(CONVERT, conversion("example.com/v1", old_shop("a", 2), old_shop("b", 3), same))
    assert answer["uid"] == "u2"
    assert answer["result"] == {"status": "Success"}
    first, second, third = answer["convertedObjects"]
    assert first["apiVersion"] == second["apiVersion"] == "example.com/v1"
    assert (first["metadata"], first["spec"]) == (old_shop("a")["metadata"], {"size": 2})
    assert second["spec"] == {"size": 3}
    assert third == same
    back = await CONVERTING.call(CONVERT, conversion("example.com/v1alpha1", first, second))
    assert back["convertedObjects"] == [old_shop("a", 2), old_shop("b", 3)]


async def test_versions_are_converted_to_each_other_through_the_hub() -> None:
    class Other(Shop):
        __resource__ = Shop.__resource__.__class__(
            group="example.com", version="v2", kind="Shop", plural="shops", namespaced=True
        )

    def to_hub(other: Other) -> Shop:
        return Shop(metadata=other.metadata, spec=other.spec)

    def from_hub(hub: Shop) -> Other:
        return Other(metadata=hub.metadata, spec=hub.spec)

    caller = Caller(Webhooks(convert={Shop: {OldShop: (up, down), Other: (to_hub, from_hub)}}))
    answer = await caller.call(CONVERT, conversion("example.com/v2", old_shop("a", 2)))
    assert answer["convertedObjects"][0]["apiVersion"] == "example.com/v2"
    assert answer["convertedObjects"][0]["spec"] == {"size": 2}


def fail_to_convert(old: OldShop) -> Shop:
    raise ValueError(SECRET)


def give_another_kind(old: OldShop) -> Any:
    return old


@pytest.mark.parametrize(
    ("function", "desired", "obj", "problem"),
    [
        (fail_to_convert, "example.com/v1", old_shop("a"), "ValueError in fail_to_convert"),
        (give_another_kind, "example.com/v1", old_shop("a"), "must return a Shop"),
        (up, "example.com/v1", old_shop("a", SECRET), "OldSpec.rooms"),
        (up, "example.com/v3", old_shop("a"), "LookupError"),
        (up, "example.com/v1", {**old_shop("a"), "apiVersion": "example.com/v3"}, "LookupError"),
        (up, "example.com/v1", 5, "Error"),
    ],
)
async def test_a_conversion_that_fails_says_so_and_quotes_nothing(
    function: Any, desired: str, obj: object, problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    caller = Caller(Webhooks(convert={Shop: {OldShop: (function, down)}}))
    answer = await caller.call(CONVERT, conversion(desired, old_shop("b") if obj == 5 else obj, obj))
    assert answer["result"]["status"] == "Failed"
    assert problem in answer["result"]["message"]
    assert answer["convertedObjects"] == []
    assert SECRET not in answer["result"]["message"] + caplog.text
    assert problem in caplog.text


@pytest.mark.parametrize(
    "body",
    [
        {**conversion("example.com/v1"), "apiVersion": "apiextensions.k8s.io/v1beta1"},
        review(shop()),
        conversion(""),
        {**conversion("example.com/v1"), "request": {"uid": "u", "desiredAPIVersion": "example.com/v1", "objects": 1}},
        b"{",
    ],
)
async def test_a_body_that_is_not_a_conversion_review_is_a_400(body: Any) -> None:
    assert (await CONVERTING.post(CONVERT, body)).status_code == 400


# --- mounted ----------------------------------------------------------------------------------------------------------


async def test_webhooks_can_be_mounted_in_another_application() -> None:
    app = Starlette(routes=[Mount("/hooks", app=Webhooks(validate={Shop: allow}))])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="https://shops") as http:
        answer = await http.post(f"/hooks{VALIDATE}", json=review(shop()))
        assert answer.json()["response"] == {"uid": "u1", "allowed": True}
        assert (await http.post(VALIDATE, json=review(shop()))).status_code == 404
