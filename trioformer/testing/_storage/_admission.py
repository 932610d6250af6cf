"""Admission webhooks: which webhooks a request calls, in which order, and what their answers mean.

Only the requests of clients call webhooks, not the direct API or the controllers of the server.

Source: apiserver ``pkg/admission/plugin/webhook``.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias, final

import attrs

from ...errors import DecodeError, SelectorError
from ...models import ResourceInfo
from ...models._internal import decode, dumps
from ._conversion_webhooks import convert, view_of
from ._go_types import json_type
from ._kinds import SCALE, Kinds, ServedKind
from ._metadata import json_equal
from ._patching import apply_json_patch
from ._selection import labels_of, selector_in
from ._status import APIStatusError, bad_request, internal_error, not_found, status_error
from ._storage import JSONObject, Storage, Stored
from ._values import value_at
from ._webhook_calls import ADMISSION, Answers, CallsNeededError

Operation: TypeAlias = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]
Nullable: TypeAlias = JSONObject | None

_GROUP: Final = "admissionregistration.k8s.io"
_MUTATING: Final = f"mutatingwebhookconfigurations.{_GROUP}"
_VALIDATING: Final = f"validatingwebhookconfigurations.{_GROUP}"
_TYPES: Final = {"uid": str, "allowed": bool, "status": dict, "patch": str, "patchType": str, "warnings": list}
"""The types of the fields of a response."""
_OWN_KINDS: Final = (
    ("attach", "", "PodAttachOptions"),
    ("binding", "", "Binding"),
    ("eviction", "policy", "Eviction"),
    ("exec", "", "PodExecOptions"),
    ("portforward", "", "PodPortForwardOptions"),
    ("token", "authentication.k8s.io", "TokenRequest"),
)
_KINDS: Final = {"scale": SCALE.info} | {
    subresource: ResourceInfo(group=group, version="v1", kind=kind, plural=f"{kind.lower()}s", namespaced=True)
    for subresource, group, kind in _OWN_KINDS
}
"""The kinds of the objects in the requests for subresources that have their own kind."""


@final
@attrs.frozen
class _Review:
    """What a request does, as webhooks see it."""

    operation: Operation
    served: ServedKind
    info: ResourceInfo
    """The kind of the object, which may be the kind of a subresource."""
    name: str
    namespace: str
    """The namespace of the object, which is its name for a Namespace."""
    obj: Nullable
    old: Nullable
    options: JSONObject


class _CallError(Exception):
    """A webhook could not be called, or its response is not valid, so its failurePolicy decides."""


@final
@attrs.frozen(eq=False)
class Admission:
    """The admission of one request.

    Methods raise :exc:`CallsNeededError` if webhooks must be called, and ``APIStatusError`` if the request is denied.
    """

    _storage: Storage
    _kinds: Kinds
    _user: JSONObject
    _namespace: str
    _name: str
    _subresource: str
    _query: Mapping[str, str]
    _warnings: list[str]
    answers: Answers
    _is_internal: bool = False

    def internal(self) -> Admission:
        """Return the admission of a write that the server makes for this request.  It calls no admission webhooks."""
        return attrs.evolve(self, is_internal=True)

    def admit(self, operation: Operation, served: ServedKind, obj: JSONObject, old: Nullable = None) -> JSONObject:
        """Call the mutating and the validating webhooks for an object that is not stored itself."""
        obj = self.mutate(operation, served, obj, old)
        self.validate(operation, served, obj, old)
        return obj

    def delete(self, served: ServedKind, stored: Stored, options: JSONObject) -> JSONObject:
        """Call the webhooks for a delete, and return the object in the version of the kind."""
        old = served.from_stored(view_of(served, stored, self.answers).decoded())
        self.mutate("DELETE", served, None, old, options)
        self.validate("DELETE", served, None, old, options)
        return old

    def mutate(
        self, operation: Operation, served: ServedKind, obj: Nullable, old: Nullable = None, options: Nullable = None
    ) -> JSONObject:
        """Call the mutating webhooks one after the other, and return the changed object."""
        review = self._review(operation, served, obj, old, options)
        hooks = [*self._hooks(_MUTATING, review)]
        called, again = set[str](), set[str]()
        for turn in ("first", "second"):
            for uid, hook in hooks:
                target = self._target(hook, review)
                if target is None or (turn == "second" and uid not in again):
                    continue
                changed = self._mutated(f"{turn} {uid}", hook, review, target)
                if not json_equal(changed, review.obj):
                    review = attrs.evolve(review, obj=changed)
                    again |= called
                    called.clear()
                if hook.get("reinvocationPolicy") == "IfNeeded":
                    called.add(uid)
        return review.obj or {}

    def validate(
        self, operation: Operation, served: ServedKind, obj: Nullable, old: Nullable = None, options: Nullable = None
    ) -> None:
        """Call all validating webhooks at the same time.  The first one that denies the request decides."""
        review = self._review(operation, served, obj, old, options)
        needed, errors = [], []
        for uid, hook in self._hooks(_VALIDATING, review):
            target = self._target(hook, review)
            if target is None:
                continue
            try:
                self._response(uid, hook, review, target, may_patch=False)
            except CallsNeededError as exc:
                needed += exc.calls
            except APIStatusError as exc:
                errors.append(exc)
        if needed:
            raise CallsNeededError(needed)
        if errors:
            raise errors[0]

    def _review(
        self, operation: Operation, served: ServedKind, obj: Nullable, old: Nullable, options: Nullable
    ) -> _Review:
        info = _KINDS.get(self._subresource, served.info)
        named = {"kind": info.kind, "apiVersion": info.api_version}
        name = self._name or str(value_at(obj, "metadata", "name") or "")
        if options is None:
            options = {key: self._query[key] for key in ("fieldManager", "fieldValidation") if self._query.get(key)}
            options |= {"dryRun": [self._query["dryRun"]]} if self._query.get("dryRun") else {}
        options = {"kind": f"{operation.capitalize()}Options", "apiVersion": "meta.k8s.io/v1", **options}
        namespace = name if served.is_namespace else self._namespace
        new, old = (one and {**named, **one} for one in (obj, old))
        return _Review(operation, served, info, name, namespace, new, old, options)

    def _hooks(self, resource: str, review: _Review) -> Iterator[tuple[str, JSONObject]]:
        """Yield the webhooks of all configurations, ordered by the configuration's name."""
        # The configurations themselves are not reviewed, so that a bad one can be changed.
        if not self._is_internal and review.info.group != _GROUP:
            for stored in self._storage.snapshot(resource):
                yield from _webhooks_in(stored)

    # --- matching -----------------------------------------------------------------------------------------------------

    def _target(self, hook: JSONObject, review: _Review) -> ServedKind | None:
        """Return the version of the resource that a webhook is called with, or None if it is not called.

        Raises:
            APIStatusError: The namespace does not exist (404), a selector is not valid (500), or the webhook has
                conditions in CEL (501).
        """
        served, rules = review.served, hook.get("rules") or ()
        others = [one for one in self._kinds if one.resource == served.resource and one.info != served.info]
        versions = [served, *(others if hook.get("matchPolicy", "Equivalent") == "Equivalent" else ())]
        matching = (one for one in versions if any(self._applies(rule, review, one) for rule in rules))
        found: ServedKind | None = next(matching, None)
        if found is None or not self._is_selected(hook, review):
            return None
        if hook.get("matchConditions"):
            problem = f'the embedded API server does not evaluate the matchConditions of the webhook "{hook["name"]}"'
            raise status_error(501, reason="NotImplemented", message=problem, details={})
        return found

    def _applies(self, rule: JSONObject, review: _Review, served: ServedKind) -> bool:
        info, is_in_namespace = served.info, bool(review.namespace) and not served.is_namespace
        resources = [str(one).partition("/") for one in rule.get("resources") or ()]
        values = {"operations": review.operation, "apiGroups": info.group, "apiVersions": info.version}
        return (
            rule.get("scope", "*") in ("*", "Namespaced" if is_in_namespace else "Cluster")
            and all({"*", value} & {*(rule.get(name) or ())} for name, value in values.items())
            and any(one in ("*", info.plural) and sub in ("*", self._subresource) for one, _, sub in resources)
        )

    def _is_selected(self, hook: JSONObject, review: _Review) -> bool:
        try:
            of_namespace, of_object = (selector_in(hook.get(f"{one}Selector") or {}) for one in ("namespace", "object"))
        except SelectorError as exc:
            raise internal_error(str(exc)) from exc
        found = (value_at(one, "metadata", "labels") for one in (review.obj, review.old) if one is not None)
        labels: list[JSONObject] = [one if isinstance(one, dict) else {} for one in found]
        if not (of_object.is_empty or any(map(of_object.matches, labels))):
            return False
        if of_namespace.is_empty or not review.namespace:
            return True
        if review.served.is_namespace and not self._subresource and review.obj is not None:
            return of_namespace.matches(labels[0])
        stored = self._storage.get("namespaces", review.namespace)
        if stored is None:
            raise not_found(self._kinds.namespaces.info, review.namespace)
        return of_namespace.matches(labels_of(stored))

    # --- calls --------------------------------------------------------------------------------------------------------

    def _mutated(self, where: str, hook: JSONObject, review: _Review, target: ServedKind) -> JSONObject | None:
        """Call a webhook, and return the changed object in the version of the request."""
        response, obj = self._response(where, hook, review, target, may_patch=True)
        if not response.get("patch"):
            return review.obj
        if obj is None:
            problem = "attempted to modify the object, which is not supported for this operation"
            raise internal_error(f'admission webhook "{hook["name"]}" {problem}')
        try:
            patched = apply_json_patch(decode(dumps(obj)), response["patch"])
        except (APIStatusError, KeyError, TypeError) as exc:
            raise internal_error(f'the patch of the webhook "{hook["name"]}" cannot be applied') from exc
        return self._in_version(review, target, review.served, patched)

    def _response(
        self, where: str, hook: JSONObject, review: _Review, target: ServedKind, *, may_patch: bool
    ) -> tuple[JSONObject, JSONObject | None]:
        """Return the response of a webhook that allows the request, and the object that the webhook was given.

        Raises:
            APIStatusError: The webhook does not allow the request, or it failed (500), unless its failurePolicy is
                Ignore.
        """
        name, is_dry_run = hook["name"], bool(review.options.get("dryRun"))
        if is_dry_run and hook.get("sideEffects") not in ("None", "NoneOnDryRun"):
            raise bad_request(f'admission webhook "{name}" does not support dry run')
        obj, old = (one and self._in_version(review, review.served, target, one) for one in (review.obj, review.old))
        given = {"name": review.name, "namespace": review.namespace, "subResource": self._subresource}
        request = {
            "kind": _named(target.info if review.info is review.served.info else review.info, "kind"),
            "resource": _named(target.info, "resource"),
            "requestKind": _named(review.info, "kind"),
            "requestResource": _named(review.served.info, "resource"),
            **{key: value for key, value in {**given, "requestSubResource": self._subresource}.items() if value},
            "operation": review.operation,
            "userInfo": self._user,
            "object": obj,
            "oldObject": old,
            "dryRun": is_dry_run,
            "options": review.options if review.operation != "CONNECT" else None,
        }
        timeout = hook.get("timeoutSeconds", 10)
        try:
            answer = self.answers.find(where, hook["clientConfig"], timeout, ADMISSION, request)
            response = _verified(*answer, may_patch=may_patch)
        except _CallError as exc:
            if hook.get("failurePolicy", "Fail") == "Ignore":
                return {}, obj
            raise internal_error(f'failed calling webhook "{name}": {exc}') from exc
        # Warnings that cannot be in a header are dropped, as in kube-apiserver.
        texts = (str(text) for text in response.get("warnings") or ())
        self._warnings.extend(text for text in texts if text.isprintable())
        if not response.get("allowed"):
            raise _denied(name, response.get("status") or {})
        return response, obj

    def _in_version(self, review: _Review, source: ServedKind, target: ServedKind, obj: JSONObject) -> JSONObject:
        """Convert an object from one version of its kind to another."""
        if source is target or review.info is not review.served.info:
            return obj
        bare = {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}
        if source.is_builtin:
            bare = target.from_stored(source.to_stored(bare))
        else:
            bare = convert(self.answers, source, bare, source.info.version, target.info.version)
        return {"kind": target.info.kind, "apiVersion": target.info.api_version, **bare}


def has_webhooks(storage: Storage) -> bool:
    """Return whether any admission webhooks are configured."""
    return storage.has_objects(_VALIDATING) or storage.has_objects(_MUTATING)


@lru_cache(64)
def _webhooks_in(stored: Stored) -> tuple[tuple[str, JSONObject], ...]:
    hooks = stored.decoded().get("webhooks") or ()
    return tuple((f"{stored.name}/{index}/{hook['name']}", hook) for index, hook in enumerate(hooks))


def _named(info: ResourceInfo, key: str) -> JSONObject:
    return {"group": info.group, "version": info.version, key: info.kind if key == "kind" else info.plural}


def _verified(uid: str, review: JSONObject | str, *, may_patch: bool) -> JSONObject:
    """Return the response in a review, with its decoded patch.

    Raises:
        _CallError: The webhook could not be called, or the review is not valid.
    """
    if isinstance(review, str):
        raise _CallError(f"failed to call webhook: {review}")
    response, invalid = review.get("response"), "received invalid webhook response:"
    if not isinstance(response, dict):
        raise _CallError(f"{invalid} webhook response was absent")
    for name, type_ in _TYPES.items():
        if not isinstance(value := response.get(name), type_ | None):
            field = f"Go struct field AdmissionResponse.response.{name}"
            raise _CallError(f"failed to call webhook: json: cannot unmarshal {json_type(value)} into {field}")
    if (given := response.get("uid") or "") != uid:
        raise _CallError(f'{invalid} expected response.uid="{uid}", got "{given}"')
    patch, patch_type = response.get("patch") or "", response.get("patchType")
    if not may_patch and (patch or patch_type is not None):
        raise _CallError(f"{invalid} validating webhook may not return response.{'patch' if patch else 'patchType'}")
    if bool(patch) != (patch_type is not None):
        pair = ("patch", "patchType") if patch else ("patchType", "patch")
        raise _CallError("{} webhook returned response.{} but not response.{}".format(invalid, *pair))
    try:
        operations: Any = decode(base64.b64decode(patch)) if patch else []
    except (DecodeError, binascii.Error) as exc:
        raise _CallError(f"received undecodable patch in webhook response: {exc}") from exc
    if not isinstance(operations, list) or (operations and patch_type != "JSONPatch"):
        problem = f"json: cannot unmarshal {json_type(operations)} into Go value of type jsonpatch.Patch"
        unsupported = f'unsupported patch type "{patch_type}"'
        wrong = f"received undecodable patch in webhook response: {problem}"
        raise _CallError(unsupported if isinstance(operations, list) else wrong)
    return {**response, "patch": operations}


def _denied(name: str, status: JSONObject) -> APIStatusError:
    """Return the error for a request that a webhook denies, from the status in its response."""
    code, why = status.get("code"), status.get("message") or status.get("reason")
    what = f'admission webhook "{name}" denied the request'
    code = code if isinstance(code, int) and code >= 400 else 400
    error = status_error(code, reason="", message=f"{what}: {why}" if why else f"{what} without explanation")
    error.status |= {key: status[key] for key in ("reason", "details") if status.get(key)}
    return error
