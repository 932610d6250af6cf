"""The faults: what each of them does to an operator, and to others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pytest
import trio

from tests.testing.simulation.operators import Maps, operate
from trioformer import Client
from trioformer.models.core_v1 import ConfigMap
from trioformer.testing._recording import Recorder
from trioformer.testing._serving._access import operator_actions
from trioformer.testing.simulation import Fault, Step, Story
from trioformer.testing.simulation._run import Outcome, run_story
from trioformer.testing.simulation._scenario import Scenario
from trioformer.testing.simulation._story import FaultKind

CREATE: Final = (Step(name="create", arguments={"count": 2}),)
AT: Final = "create secrets"


def outcome_of(**fault: object) -> Outcome:
    """Run a story with one fault at the first request for a Secret."""
    found = Fault(at=AT, **fault)  # type: ignore[arg-type]
    return run_story(operate, Scenario(Maps), Story(steps=CREATE, faults=(found,)))


def lines(outcome: Outcome, what: str) -> list[tuple[float, str]]:
    return [(one.time, one.outcome.partition(":")[0]) for one in outcome.entries if one.what.startswith(what)]


EFFECTS: Final[Mapping[FaultKind, str]] = {
    "answer": "500",
    "cut": "no response",
    "silent": "no response",
    "slow": "201",
    "kill": "cancelled",
    "rewind": "cancelled",
    "outage": "no response",
    "partition": "no response",
}


@pytest.mark.parametrize(("kind", "expected"), EFFECTS.items())
@pytest.mark.parametrize("after", [False, True])
def test_the_request_has_the_outcome_of_the_fault(kind: FaultKind, expected: str, *, after: bool) -> None:
    outcome = outcome_of(kind=kind, code=500, lasts=20.0, after=after)
    assert outcome.problem is None
    codes = [code for _, code in lines(outcome, AT)]
    assert codes[0] == expected
    # The operator learns from the server, and not from the response, that the first Secret exists.
    assert codes.count("201") == (1 if after and expected != "201" else 2)
    assert sum("Secret" in name for name in outcome.state) == 2


def test_the_trace_has_the_message_of_the_server_in_one_short_line() -> None:
    entries = outcome_of(kind="answer", code=403).entries
    assert "403: the simulation refuses this request" in [one.outcome for one in entries]
    name = "n" * 200
    entries = run_story(getting, Scenario(Maps), Story()).entries
    (outcome,) = [one.outcome for one in entries if one.what.endswith(name)]
    assert outcome.startswith('404: configmaps "nnn')
    assert len(outcome) <= 110


async def getting(client: Client) -> None:
    await client.api(ConfigMap, namespace="default").get_or_none("n" * 200)
    await trio.sleep_forever()


def test_a_killed_replica_starts_again_and_finishes_its_work() -> None:
    outcome = outcome_of(kind="kill", lasts=20.0)
    assert [int(time) for time, _ in lines(outcome, "list secrets")] == [0, 20]
    assert sum("Secret" in name for name in outcome.state) == 2


def test_caches_stay_behind_after_a_rewind() -> None:
    outcome = outcome_of(kind="rewind", after=True, lasts=20.0)
    assert "409" in [code for _, code in lines(outcome, AT)]  # the new life did not see the first Secret


def test_a_rewind_kills_all_replicas() -> None:
    fault = Fault(kind="rewind", at=AT, after=True, lasts=20.0)
    outcome = run_story(operate, Scenario(Maps), Story(steps=CREATE, faults=(fault,), replicas=2))
    starts = [(one.who, int(one.time)) for one in outcome.entries if one.what == "list secrets"]
    assert sorted(starts) == [("replica 0", 0), ("replica 0", 20), ("replica 1", 0), ("replica 1", 20)]


def test_a_silent_request_fails_after_a_minute() -> None:
    outcome = outcome_of(kind="silent")
    assert lines(outcome, AT)[1][0] >= 60.0


def test_a_compaction_makes_the_replica_list_again() -> None:
    assert len(lines(outcome_of(kind="compact"), "list secrets")) == 2


def test_a_stopped_replica_starts_again() -> None:
    outcome = outcome_of(kind="stop", after=True, lasts=20.0)
    assert [int(time) for time, _ in lines(outcome, "list secrets")] == [0, 20]


def test_a_rival_changes_the_object_of_a_request() -> None:
    fault = Fault(kind="rival", at="patch configmaps")
    outcome = run_story(operate, Scenario(Maps), Story(steps=CREATE, faults=(fault,)))
    assert "a rival" in {one.who for one in outcome.entries}
    assert outcome.problem is None


def test_a_watch_that_does_not_arrive_is_closed() -> None:
    faults = (
        Fault(kind="slow", at="watch secrets", after=True, lasts=20.0),
        Fault(kind="outage", at=AT, lasts=40.0),
    )
    assert run_story(operate, Scenario(Maps), Story(steps=CREATE, faults=faults)).problem is None


def test_all_requests_of_a_replica_are_those_of_an_operator() -> None:
    recorder = Recorder()
    token = operator_actions.set(recorder.observer("test"))
    try:
        assert outcome_of(kind="cut").problem is None
    finally:
        operator_actions.reset(token)
    used = {str(permission) for permission in recorder.permissions()}
    assert used >= {"list configmaps", "watch configmaps", "create secrets"}
    assert "create configmaps" not in used  # the user creates them
