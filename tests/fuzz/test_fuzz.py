"""Random inputs of servers and tenants: nothing foreign, nothing that hangs, nothing wrong, no secret.

An ordinary run has a few hundred inputs of each fuzzer, the same ones in every run, and those of ``corpus/``, which have
found something once.  ``--long`` has 102,000.
"""

from __future__ import annotations

import base64

import pytest

from trioformer.testing._serving._resources import ResourceRequest, Resources
from trioformer.testing._serving._watching import Watch
from trioformer.testing._storage._status import status_error

from . import oracle
from .all_fuzzers import FUZZERS, INPUTS, LONG_SEED, cases_of
from .engine import generated, run
from .oracle import Finding, Oracle
from .secrets import CONTENT, PASSWORD, TOKEN
from .server import Server

NAMES = list(FUZZERS)
SHARE = 100
"""An ordinary run has one of so many inputs of a long one."""


@pytest.mark.parametrize("name", NAMES)
def test_inputs_of_one_seed_do_no_harm(name: str) -> None:
    fuzzer = FUZZERS[name]()
    report = run(fuzzer, generated(fuzzer, INPUTS[name] // SHARE))
    report.raise_findings()
    assert report.counts["returned"] > 0, "nothing is accepted"


@pytest.mark.parametrize("name", NAMES)
def test_inputs_that_did_harm_once_do_none(name: str) -> None:
    run(FUZZERS[name](), cases_of(name)).raise_findings()


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_a_hundred_thousand_inputs_do_no_harm(name: str) -> None:
    fuzzer = FUZZERS[name]()
    report = run(fuzzer, generated(fuzzer, INPUTS[name], seed=LONG_SEED))
    print(report)
    assert report.inputs == INPUTS[name]
    report.raise_findings()


def test_the_inputs_of_a_long_run_are_a_hundred_thousand() -> None:
    assert sum(INPUTS.values()) == 102_000
    assert set(INPUTS) == set(FUZZERS)


# --- the checks themselves can fail ---


def test_a_secret_in_a_text_is_found_whole_cut_and_in_base64() -> None:
    for secret in [TOKEN, PASSWORD, CONTENT]:
        encoded = [base64.b64encode((before + secret).encode()).decode() for before in ("", "a", "ab", "admin:")]
        for shown in (secret, secret[:10], secret[-10:], *encoded):
            with pytest.raises(Finding, match="shows a secret"):
                Oracle().text(f"cannot read {shown}", "a text")


def _leaking(token: str) -> None:
    raise ValueError("wrong")


def test_a_credential_in_a_local_variable_of_the_library_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle, "TESTS", "/none")
    with pytest.raises(Finding, match="local variable token of"):
        Oracle().call_sync(lambda: _leaking(TOKEN), (ValueError,))


def test_a_foreign_exception_and_a_long_or_coloured_text_are_found() -> None:
    def divide() -> float:
        return 1 / 0

    with pytest.raises(Finding, match="foreign exception ZeroDivisionError"):
        Oracle().call_sync(divide)
    with pytest.raises(Finding, match="too long"):
        Oracle().text("x" * 6_000, "a text")
    with pytest.raises(Finding, match="control characters"):
        Oracle().text("a\x1b[2J", "a text")


def test_a_refused_request_that_writes_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    handle = Resources.handle

    def write_and_refuse(self: Resources, request: ResourceRequest) -> None:
        handle(self, request)
        raise status_error(409)

    monkeypatch.setattr(Resources, "handle", write_and_refuse)
    with pytest.raises(AssertionError, match="changes something"):
        run(Server(), generated(Server(), 1)).raise_findings()


def test_a_watch_that_delivers_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Watch, "_frame", lambda self, change: b"")
    with pytest.raises(AssertionError, match="does not deliver"):
        run(Server(), generated(Server(), 1)).raise_findings()
