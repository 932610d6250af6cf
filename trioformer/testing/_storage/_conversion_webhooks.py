"""The conversion of custom objects between versions by a webhook.

Source: apiextensions-apiserver ``pkg/apiserver/conversion/webhook_converter.go``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ._go_types import metadata_problem
from ._kinds import ConversionWebhook, ServedKind
from ._metadata import ordered
from ._object_meta import metadata_causes
from ._schemas import prune
from ._status import APIStatusError, status_error
from ._storage import JSONObject, Stored, body_of
from ._webhook_calls import CONVERSION, Answer, Answers, Call, CallsNeededError

_TIMEOUT: Final = 30
_CONVERTED: Final = ("labels", "annotations")
"""The metadata that a webhook may change."""


def views_of(served: ServedKind, states: Iterable[Stored]) -> list[Stored]:
    """Return stored states in the version of the kind.

    Raises:
        CallsNeededError: A webhook must convert some of the states.
    """
    states = list(states)
    webhook = served.conversion_webhook
    if webhook is None:
        return states
    if missing := [one for one in states if _differs(served, one) and one not in served.views]:
        raise CallsNeededError([_reading(served, webhook, one) for one in missing])
    return [served.views.get(one, one) for one in states]


def view_of(served: ServedKind, stored: Stored, answers: Answers) -> Stored:
    """Return a stored state in the version of the kind.  As in kube-apiserver, each request converts the state again.

    Raises:
        APIStatusError: The webhook did not convert the state (500).
        CallsNeededError: The webhook must convert the state.
    """
    if served.conversion_webhook is None or not _differs(served, stored):
        return stored
    obj = convert(answers, served, stored.decoded(), stored.version, served.info.version)
    return Stored(stored.key, stored.revision, body_of(obj), served.info.version)


def keep_view(served: ServedKind, stored: Stored, obj: JSONObject) -> Stored:
    """Keep an object as the view of a stored state, from which it takes the metadata that only the server sets."""
    labels = {name: obj["metadata"].get(name) for name in _CONVERTED}
    body = body_of({**obj, "metadata": ordered({**stored.decoded()["metadata"], **labels})})
    view = served.views[stored] = Stored(stored.key, stored.revision, body, served.info.version)
    return view


def convert(answers: Answers, served: ServedKind, obj: JSONObject, source: str, target: str) -> JSONObject:
    """Convert an object from one version of a custom kind to another, and return it without kind and apiVersion.

    Raises:
        APIStatusError: The webhook did not convert the object (500).
        CallsNeededError: The webhook must be called.
    """
    webhook = served.conversion_webhook
    if source == target or webhook is None:
        return obj
    request = _request(served, obj, source, target)
    answer = answers.find(source, webhook.client, _TIMEOUT, CONVERSION, request)
    return _converted(served, webhook, obj["metadata"], source, target, answer)


def _differs(served: ServedKind, stored: Stored) -> bool:
    return stored.version not in ("", served.info.version)


def _reading(served: ServedKind, webhook: ConversionWebhook, stored: Stored) -> Call:
    """Return the call that converts a stored state to the version of the kind."""
    obj, source, target = stored.decoded(), stored.version, served.info.version

    def keep(answer: Answer) -> None:
        keep_view(served, stored, _converted(served, webhook, obj["metadata"], source, target, answer))

    return Call(webhook.client, _TIMEOUT, CONVERSION, _request(served, obj, source, target), keep)


def _request(served: ServedKind, obj: JSONObject, source: str, target: str) -> JSONObject:
    info = served.info
    # etcd does not store the resourceVersion either.
    metadata = {key: value for key, value in obj["metadata"].items() if key != "resourceVersion"}
    versioned = {**obj, "apiVersion": f"{info.group}/{source}", "kind": info.kind, "metadata": metadata}
    return {"desiredAPIVersion": f"{info.group}/{target}", "objects": [versioned]}


def _converted(
    served: ServedKind, webhook: ConversionWebhook, original: JSONObject, source: str, target: str, answer: Answer
) -> JSONObject:
    """Check the answer of a webhook, and return the converted object without kind and apiVersion.

    All metadata except for labels and annotations is the original metadata.
    """
    info, desired = served.info, f"{served.info.group}/{target}"
    who = f"conversion webhook for {info.group}/{source}, Kind={info.kind}"
    uid, review = answer
    if isinstance(review, str):
        raise _failed(f"{who} failed: {review}")
    response = review.get("response")
    if not isinstance(response, dict):
        raise _failed(f"{who} failed: no response provided")
    if (given := response.get("uid", "")) != uid:
        raise _failed(f'{who} failed: expected response.uid="{uid}", got "{given}"')
    result: Any = response.get("result") if isinstance(response.get("result"), dict) else {}
    if (status := result.get("status", "")) != "Success":
        problem = result.get("message") or f"response.result.status was '{status}', not 'Success'"
        raise _failed(f"{who} failed: {problem}")
    given = response.get("convertedObjects")
    objects = given if isinstance(given, list) else []
    if len(objects) != 1:
        raise _failed(f"{who} returned {len(objects)} objects, expected 1")
    obj = objects[0] if isinstance(objects[0], dict) else {}
    for name, expected, shown in (("apiVersion", desired, "groupVersion"), ("kind", info.kind, "kind")):
        if (received := obj.get(name) or "") != expected:
            problem = f"invalid {shown} (expected {expected}, received {received})"
            raise _failed(f"{who} returned invalid object at index 0: {problem}")
    metadata: Any = obj.get("metadata") if isinstance(obj.get("metadata"), dict) else {}
    for name, shown in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        before, after = (one.get(name) or "" for one in (original, metadata))
        if before != after:
            raise _failed(f"{who} returned invalid object: must have the same {shown}: {before} != {after}")
    labels = {name: metadata.get(name) for name in _CONVERTED}
    has_null = any(None in each.values() for each in labels.values() if isinstance(each, dict))
    if problem := metadata_problem(labels) or ("a label or an annotation is null" if has_null else ""):
        raise _failed(f"{who} returned invalid metadata: {problem}")
    if causes := metadata_causes(labels):
        raise _failed(f"{who} returned invalid metadata: {causes[0]['field']}: {causes[0]['message']}")
    rest = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata")}
    prune(rest, webhook.schemas.get(target), lambda _: None)
    return {"metadata": ordered({**original, **labels}), **rest}


def _failed(message: str) -> APIStatusError:
    return status_error(500, reason="", message=message)
