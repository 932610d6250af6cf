"""What is a difference between the ends of two stories."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

import pytest
import trio

from tests.testing.simulation.operators import Maps
from trioformer import Client
from trioformer.models import from_dict
from trioformer.models.core_v1 import ConfigMap
from trioformer.testing.simulation._run import run_story
from trioformer.testing.simulation._scenario import Scenario
from trioformer.testing.simulation._states import State, differences
from trioformer.testing.simulation._story import Fault, Story


async def stamp(client: Client, form: str) -> None:
    """Write a ConfigMap with the time."""
    metadata = {"name": "stamp", "namespace": "default", "annotations": {"at": datetime.now(UTC).strftime(form)}}
    await client.api(ConfigMap).create(from_dict(ConfigMap, {"metadata": metadata}))
    await trio.sleep_forever()


def end_of(form: str, clock: float) -> State:
    story = Story(faults=(Fault(kind="clock", lasts=clock),))
    return run_story(partial(stamp, form=form), Scenario(Maps), story).state


@pytest.mark.parametrize("form", ["%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S.%fZ", "since %Y-%m-%dT%H:%M:%S+00:00"])
def test_another_time_is_no_difference(form: str) -> None:
    assert not list(differences(end_of(form, 0.0), end_of(form, 600.0)))


def test_another_number_is_a_difference() -> None:
    [(path, _)] = differences(end_of("%M", 0.0), end_of("%M", 600.0))
    assert path == "ConfigMap metadata.annotations.at"
