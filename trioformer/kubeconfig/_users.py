"""What a user of a kubeconfig may have besides tokens and certificates: a credential plugin, and impersonation."""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping
from typing import final

import attrs

from .._secret import HIDDEN
from .._suggestions import describe
from ._fields import check_mapping, check_types, hide_arguments, show_hidden, strings


class InteractiveMode(enum.Enum):
    """Whether a credential plugin may read from the terminal (client-go ``ExecInteractiveMode``)."""

    NEVER = "Never"
    IF_AVAILABLE = "IfAvailable"
    ALWAYS = "Always"


def _hidden_values(values: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{name!r}: {HIDDEN}" for name in values) + "}"


def _hidden_items(items: tuple[str, ...]) -> str:
    return f"<{len(items)} arguments>"


def _args(given: Collection[str]) -> tuple[str, ...]:
    return strings("args", given)


def _env(given: Mapping[str, str]) -> Mapping[str, str]:
    check_mapping("env", given, "strings")
    for value in given.values():
        if not isinstance(value, str):
            raise TypeError(f"the values of env must be strings, but one is {describe(value)}")
    return given


def _groups(given: Collection[str]) -> tuple[str, ...]:
    return strings("groups", given)


def _extra(given: Mapping[str, Collection[str]]) -> dict[str, tuple[str, ...]]:
    check_mapping("extra", given, "lists of strings")
    return {key: strings(f"extra[{key!r}]", values) for key, values in given.items()}


@final
@attrs.frozen(kw_only=True)
class ExecConfig:
    """A credential plugin: a program that prints the user's credentials (a user's ``exec`` in a kubeconfig).

    ``repr()`` shows neither arguments nor values of variables, which may be secrets.

    Raises:
        TypeError: A field has another type, such as a command line in place of ``args``.
    """

    api_version: str
    """``client.authentication.k8s.io/v1`` or ``…/v1beta1``."""
    command: str
    """The program: a name that is looked up in ``$PATH``, or an absolute path."""
    args: tuple[str, ...] = attrs.field(default=(), converter=_args, repr=_hidden_items)
    """Its arguments."""
    env: Mapping[str, str] = attrs.field(factory=dict[str, str], converter=_env, hash=False, repr=_hidden_values)
    """Variables that are added to the environment of this process."""
    install_hint: str | None = None
    """What to do if the program is not installed."""
    interactive_mode: InteractiveMode = InteractiveMode.IF_AVAILABLE
    """Whether it may read from the terminal."""
    provide_cluster_info: bool = False
    """Whether the plugin gets the cluster in ``$KUBERNETES_EXEC_INFO``."""
    cluster_config: object = attrs.field(default=None, hash=False, repr=show_hidden)
    """The cluster's extension ``client.authentication.k8s.io/exec``, as JSON values; part of that."""

    def __attrs_post_init__(self) -> None:
        check_types(self)


ExecConfig.__init__ = hide_arguments(ExecConfig.__init__)  # type: ignore[method-assign]  # the same arguments


@final
@attrs.frozen(kw_only=True)
class Impersonation:
    """The user that a request is made for, instead of the authenticated one, who must be allowed to impersonate.

    Raises:
        TypeError: A field has another type, such as a string in place of ``groups``.
    """

    user: str
    """The name of the user, such as ``system:serviceaccount:default:web``."""
    uid: str | None = None
    """The UID of the user, or None."""
    groups: tuple[str, ...] = attrs.field(default=(), converter=_groups)
    """The groups of the user; without any, the server adds those that it knows of."""
    extra: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict[str, tuple[str, ...]], converter=_extra, hash=False)
    """Further attributes, by lower-case key."""

    def __attrs_post_init__(self) -> None:
        check_types(self)
