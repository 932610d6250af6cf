"""The states of the rotation: what the Secret contains in each, and what the documentation says of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.webhook_replicas import HOST
from trioformer.webhooks._issue import issue
from trioformer.webhooks._secret_states import (
    KEYS,
    STATE,
    Contents,
    RotationState,
    begin,
    first,
    proceed,
    secret_with,
)

NOW = 1_800_000_000.0
PAGE = Path(__file__).parents[2] / "docs" / "howto" / "webhook-certificates.rst"


def states() -> list[Contents]:
    """The contents of the Secret through a rotation, from one stable state to the next."""
    written = first(issue(HOST, NOW))
    found = [Contents.read(secret_with(None, written, name="x", namespace="y"), HOST)]
    for write in (lambda contents: begin(contents, issue(HOST, NOW)), proceed, proceed):
        secret = secret_with(None, write(found[-1]), name="x", namespace="y")
        found.append(Contents.read(secret, HOST))
    return found


def test_a_rotation_goes_through_all_states_in_the_order_of_the_table() -> None:
    found = states()
    assert [each.state for each in found] == [*RotationState, RotationState.STABLE]
    assert [set(each.data) for each in found] == [set(KEYS[each.state]) for each in found]
    assert all({"tls.crt", "tls.key", "ca.crt"} <= set(each.data) for each in found)


def test_both_cas_are_trusted_while_replicas_may_serve_either_certificate() -> None:
    stable, publishing, switching, again = states()
    assert publishing.data["tls.crt"] == stable.data["tls.crt"] != switching.data["tls.crt"] == again.data["tls.crt"]
    assert publishing.authorities == switching.authorities == stable.authorities + again.authorities


@pytest.mark.parametrize("index", range(4))
def test_an_incomplete_secret_is_invalid_in_every_state(index: int) -> None:
    contents = states()[index]
    for key in contents.data:
        data = {name: value for name, value in contents.data.items() if name != key}
        with pytest.raises(ValueError, match=re.escape(key)):
            Contents.read(secret_with(None, (contents.state, data), name="x", namespace="y"), HOST)


@pytest.mark.parametrize("index", range(4))
def test_every_key_of_the_secret_is_checked(index: int) -> None:
    contents = states()[index]
    other = states()[1].data
    for key in contents.data:
        for value in (b"rubbish", other[key]):
            data = {**contents.data, key: value}
            with pytest.raises(ValueError, match=r"\w") as caught:
                Contents.read(secret_with(None, (contents.state, data), name="x", namespace="y"), HOST)
            assert "BEGIN" not in str(caught.value)


def test_an_unknown_state_is_invalid() -> None:
    contents = states()[0]
    secret = secret_with(None, (contents.state, contents.data), name="x", namespace="y")
    secret = secret.evolve(metadata=secret.metadata.evolve(annotations={STATE: "done"}))
    with pytest.raises(ValueError, match=STATE):
        Contents.read(secret, HOST)


def test_the_table_in_the_documentation_is_the_table_in_the_code() -> None:
    rows = re.findall(r"^   \* - ``(.*)``\n     - .*\n     - .*\n     - (.*)$", PAGE.read_text(), re.MULTILINE)
    assert rows == [(state.name.lower(), state.value) for state in RotationState]
