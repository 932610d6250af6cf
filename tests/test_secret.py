"""A credential in an object that does not show it."""

from __future__ import annotations

import copy
import pickle
import traceback
from typing import Any

import attrs
import pytest

from trioformer._secret import Secret, conceal

TOKEN = "s3cr3t-t0k3n"


@pytest.mark.parametrize("credential", [TOKEN, TOKEN.encode()])
def test_no_representation_shows_the_credential(credential: Any) -> None:
    secret: Secret[Any] = conceal(credential)
    shown = [repr(secret), str(secret), f"{secret}", f"{secret!s:>20}", repr([secret]), format(secret)]
    assert [each for each in shown if TOKEN in each] == []
    assert repr(secret) == "<hidden>"
    assert not hasattr(secret, "__dict__")


def test_the_credential_is_revealed_on_request() -> None:
    assert Secret(TOKEN).reveal() == TOKEN
    assert Secret(b"key").reveal() == b"key"


def test_a_secret_is_concealed_once() -> None:
    secret = Secret(TOKEN)
    assert conceal(secret) is secret


def test_secrets_are_compared_by_their_credentials() -> None:
    assert Secret(TOKEN) == Secret(TOKEN)
    assert hash(Secret(TOKEN)) == hash(Secret(TOKEN))
    assert Secret(TOKEN) != Secret(TOKEN[:-1])
    assert Secret("é\udcff") == Secret("é\udcff")
    different: list[object] = [Secret(b"a"), "a", b"a"]
    assert [each for each in different if each == Secret("a")] == []


def test_an_empty_credential_is_false() -> None:
    assert not Secret("")
    assert Secret(TOKEN)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_secret_is_not_pickled(protocol: int) -> None:
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps([Secret(TOKEN)], protocol)


def test_a_copy_is_the_same_secret() -> None:
    secret = Secret(TOKEN)
    assert copy.copy(secret) is secret
    assert copy.deepcopy([secret]) == [secret]


def test_an_attrs_class_shows_and_converts_no_secret() -> None:
    def to_secret(token: str | Secret[str]) -> Secret[str]:
        return conceal(token)

    @attrs.frozen
    class User:
        token: Secret[str] = attrs.field(converter=to_secret)

    user = User(TOKEN)
    assert attrs.evolve(user) == user
    assert TOKEN not in f"{user!r} {attrs.asdict(user)}"


def test_a_traceback_with_locals_does_not_show_the_credential() -> None:
    def fail(secret: Secret[str]) -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no") as caught:
        fail(Secret("".join(TOKEN)))
    shown = "".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format())
    assert "secret = <hidden>" in shown
    assert TOKEN not in shown.replace('Secret("".join(TOKEN))', "")
