"""Which controllers a list turns on: the rules of kube-controller-manager's ``--controllers``."""

from __future__ import annotations

import pytest

from trioformer.manager import enabled_controllers

NAMES = ("bravo", "alpha", "charlie")


@pytest.mark.parametrize(
    ("enabled", "expected"),
    [
        ("*", "bravo alpha"),  # charlie is off by default
        ("", ""),
        ("alpha", "alpha"),
        ("charlie", "charlie"),
        ("*,charlie", "bravo alpha charlie"),
        ("charlie,*", "bravo alpha charlie"),
        ("*,-alpha", "bravo"),
        ("-alpha,*", "bravo"),
        ("-alpha", ""),
        ("*,-charlie", "bravo alpha"),
        ("alpha,bravo", "bravo alpha"),
        (" * , -alpha ,", "bravo"),
        ("alpha,-alpha", "alpha"),  # the first that speaks of it decides
        ("-alpha,alpha,*", "bravo"),
    ],
)
def test_a_list_turns_controllers_on_and_off(enabled: str, expected: str) -> None:
    """The cases of kube-controller-manager's ``TestIsControllerEnabled``, and more."""
    assert enabled_controllers(NAMES, enabled, disabled_by_default=("charlie",)) == tuple(expected.split())


@pytest.mark.parametrize("enabled", ["delta", "*,-delta", "alpha,delta"])
def test_a_name_that_there_is_none_of_is_told_with_those_that_there_are(enabled: str) -> None:
    with pytest.raises(ValueError, match="there are: alpha, bravo, charlie") as caught:
        enabled_controllers(NAMES, enabled)
    assert f"no controller named 'delta', in the list '{enabled}'" in str(caught.value)


def test_what_is_off_by_default_must_exist_too() -> None:
    with pytest.raises(ValueError, match="no controller named 'delta', 'echo', among those that are off by default"):
        enabled_controllers(NAMES, "*", disabled_by_default=("echo", "delta"))


@pytest.mark.parametrize("name", ["", "-foo", "foo,bar", "foo/bar", "*", "f*", " foo", "foo "])
def test_a_name_that_the_list_could_not_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be the name of a controller"):
        enabled_controllers([name])


@pytest.mark.parametrize("name", ["ping", "leaderElection", "informer-sync", "shutdown"])
def test_a_name_that_a_health_check_has_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="a health check of the manager's own is"):
        enabled_controllers([name])
