"""Which controllers a list enables: the rules of kube-controller-manager's ``--controllers``."""

from __future__ import annotations

import pytest

from trioformer.manager._enabled import enabled_controllers

NAMES = ("bravo", "alpha", "charlie")


@pytest.mark.parametrize(
    ("enabled", "expected"),
    [
        ("*", "bravo alpha"),  # charlie is disabled by default
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
        ("alpha,-alpha", "alpha"),  # the first item that names it decides
        ("-alpha,alpha,*", "bravo"),
    ],
)
def test_a_list_enables_and_disables_controllers(enabled: str, expected: str) -> None:
    """The cases of kube-controller-manager's ``TestIsControllerEnabled``, and more."""
    assert enabled_controllers(NAMES, enabled, disabled_by_default=("charlie",)) == tuple(expected.split())


@pytest.mark.parametrize("enabled", ["delta", "*,-delta", "alpha,delta"])
def test_an_unknown_name_raises_an_error_that_lists_the_known_ones(enabled: str) -> None:
    with pytest.raises(ValueError, match="known controllers: alpha, bravo, charlie") as caught:
        enabled_controllers(NAMES, enabled)
    assert f"unknown controllers in the list '{enabled}': 'delta'" in str(caught.value)


def test_unknown_names_in_disabled_by_default_raise() -> None:
    with pytest.raises(ValueError, match="unknown controllers in disabled_by_default: 'delta', 'echo'"):
        enabled_controllers(NAMES, "*", disabled_by_default=("echo", "delta"))


@pytest.mark.parametrize("name", ["", "-foo", "foo,bar", "foo/bar", "*", "f*", " foo", "foo "])
def test_invalid_controller_names_raise(name: str) -> None:
    with pytest.raises(ValueError, match="is not a valid controller name"):
        enabled_controllers([name])


@pytest.mark.parametrize("name", ["ping", "leaderElection", "informer-sync", "shutdown"])
def test_names_of_health_checks_are_reserved(name: str) -> None:
    with pytest.raises(ValueError, match="it is reserved for a health check"):
        enabled_controllers([name])
