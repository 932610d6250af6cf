"""The exceptions: texts, classes, copies."""

from __future__ import annotations

import ast
import builtins
import copy
import importlib
import pickle
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import trioformer
from trioformer import errors
from trioformer.errors import (
    AlreadyExistsError,
    ConfigError,
    ConflictError,
    ConnectionFailedError,
    ExpiredError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    ServerError,
    ServerTimeoutError,
    StatusError,
    TooManyRequestsError,
    TrioformerError,
    UnauthorizedError,
    UnexpectedResponseError,
)
from trioformer.errors._status import StatusCause, StatusDetails

STATUS = {
    "kind": "Status",
    "code": 422,
    "reason": "Invalid",
    "message": 'Pod "a" is invalid:\n spec.containers: Required value',
    "details": {
        "name": "a",
        "kind": "Pod",
        "causes": [{"reason": "FieldValueRequired", "message": "Required value", "field": "spec.containers"}, 7],
        "retryAfterSeconds": 3,
    },
}


def test_a_status_becomes_an_error_with_its_message_and_details() -> None:
    error = StatusError.from_status(STATUS, where="create pods/a")
    assert type(error) is InvalidError
    assert str(error) == 'create pods/a: Pod "a" is invalid: spec.containers: Required value (HTTP 422, Invalid)'
    assert (error.code, error.reason) == (422, "Invalid")
    cause = StatusCause("FieldValueRequired", "Required value", "spec.containers")
    assert error.details == StatusDetails(name="a", kind="Pod", causes=(cause,), retry_after_seconds=3)


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        ({"reason": "AlreadyExists", "code": 409}, 0, AlreadyExistsError),
        ({"reason": "Conflict", "code": 409}, 0, ConflictError),
        ({"reason": "Gone", "code": 410}, 0, ExpiredError),
        ({"reason": "Unheard", "code": 404}, 0, NotFoundError),
        ({}, 429, TooManyRequestsError),
        ({"reason": "Timeout", "code": 500}, 0, ServerTimeoutError),
        ({}, 599, ServerError),
        ({}, 418, StatusError),
        ({"details": 7, "code": "many"}, 0, errors.InternalServerError),
        ({"details": {"causes": "none", "retryAfterSeconds": -1}}, 401, UnauthorizedError),
    ],
)
def test_the_class_is_chosen_by_reason_and_then_by_code(
    status: dict[str, object], code: int, expected: type[StatusError]
) -> None:
    error = StatusError.from_status(status, code=code)
    assert type(error) is expected
    assert error.details == StatusDetails()


def test_an_error_with_a_hint_shows_it() -> None:
    what = "token, token file, plugin or client certificate"
    assert str(UnauthorizedError("", code=401)).endswith(f"; check the credential of the configuration: {what}")
    text = 'users "jane" is forbidden: User "bob" cannot impersonate resource "users" in API group ""'
    assert str(ForbiddenError(text, code=403)).endswith("; give the user a role with the verb impersonate")


def test_a_refusal_of_a_webhook_has_no_hint_about_roles() -> None:
    text = 'admission webhook "check.example.com" denied the request: too many replicas'
    assert str(ForbiddenError(text, code=403)).endswith("too many replicas (HTTP 403)")


@pytest.mark.parametrize(
    "error",
    [
        StatusError.from_status(STATUS, where="create pods/a"),
        ConfigError("is missing", file="config", key="users[a].user"),
        ConnectionFailedError("no", refused=True),
        UnexpectedResponseError("html", code=200),
        errors.SelectorError("what?"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_survives_copying_and_pickling(error: TrioformerError) -> None:
    for again in (copy.copy(error), copy.deepcopy(error), pickle.loads(pickle.dumps(error))):
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert vars(again) == vars(error)


def test_every_error_is_in_the_tree_of_the_module_and_in_its_exports() -> None:
    names = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}
    assert names - set((errors.__doc__ or "").split()) == set()
    assert names <= set(errors.__all__)


MISUSE_AND_LIFETIME = {
    *("AssertionError", "AttributeError", "ImportError", "IndexError", "KeyError", "LookupError"),
    *("ModuleNotFoundError", "RuntimeError", "TypeError", "ValueError"),
    *("trio.BrokenResourceError", "trio.BusyResourceError", "trio.ClosedResourceError", "trio.EndOfChannel"),
    *("trio.WouldBlock", "StopAsyncIteration"),
}
FOR_PROGRAMS = {"Denied", "RetryAfter", "TerminalError"}
"""What a reconcile or a webhook raises, or is logged as the failure of one; none leaves the library."""
INTERNAL_CAUSES = {"OSError", "RecursionError", "cattrs.IterableValidationError"}


def exceptions_of(module: ModuleType) -> Iterator[type[Exception]]:
    for name in getattr(module, "__all__", ()):
        found = getattr(module, name)
        if isinstance(found, type) and issubclass(found, Exception):
            yield found


def test_every_public_exception_class_is_a_trioformer_error() -> None:
    packages = [name for _, name, is_package in pkgutil.iter_modules(trioformer.__path__) if is_package]
    modules = [importlib.import_module(f"trioformer.{name}") for name in packages if not name.startswith("_")]
    found = {each for module in (trioformer, *modules) for each in exceptions_of(module)}
    assert len(found) > 30
    others = {each.__name__ for each in found if not issubclass(each, TrioformerError)}
    assert others <= FOR_PROGRAMS


def raised_in(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield ast.unparse(node.exc.func)


def test_no_exception_class_of_python_reports_what_went_wrong_in_the_world() -> None:
    """Such as OSError and TimeoutError; those of httpx are mapped in the transport."""
    root = Path(trioformer.__path__[0])
    raised = {name for path in root.rglob("*.py") for name in raised_in(path)}
    foreign = {
        name
        for name in raised
        if (name.startswith(("trio.", "ssl.", "cattrs.", "msgspec.")) and name.split(".")[-1][0].isupper())
        or (isinstance(found := getattr(builtins, name, None), type) and issubclass(found, Exception))
    }
    assert foreign - MISUSE_AND_LIFETIME - INTERNAL_CAUSES - {"ExceptionGroup"} == set()


def test_a_port_that_is_in_use_is_an_error_of_the_library_and_of_the_system() -> None:
    error = errors.ListenError("cannot listen on :8080: Address already in use", errno=98)
    assert isinstance(error, OSError)
    assert (str(error), error.errno) == ("cannot listen on :8080: Address already in use", 98)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.errno) == (errors.ListenError, str(error), 98)
    assert f"{errors.ListenError.__module__}" == "trioformer.errors"


@pytest.mark.parametrize(
    "error",
    [
        ConfigError("\x1b[2J", file="a\nb", key="\u202e"),
        errors.SelectorError("\x1b[2J" * 100_000),
        UnexpectedResponseError("\ud800", code=200),
        errors.QuarantinedError("\x07", key="a/\x1b", reason="\x1b", since=0.0),
        NotFoundError("\x9b31m", code=404, where="get pods/\x1b[31m"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_the_text_of_an_error_is_one_printable_line(error: TrioformerError) -> None:
    assert str(error).isprintable()
    assert len(str(error)) <= 4_000
    assert str(error) == error.message == pickle.loads(pickle.dumps(error)).message
