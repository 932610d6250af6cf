"""What a user of a kubeconfig may have besides tokens and certificates: a credential plugin, and impersonation."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import final

import attrs

from .._secret import HIDDEN


class InteractiveMode(enum.Enum):
    """Whether a credential plugin may read from the terminal (client-go ``ExecInteractiveMode``)."""

    NEVER = "Never"
    IF_AVAILABLE = "IfAvailable"
    ALWAYS = "Always"


def _hidden_values(values: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{name!r}: {HIDDEN}" for name in values) + "}"


def _hidden_items(items: tuple[str, ...]) -> str:
    return f"<{len(items)} arguments>"


def _hidden(value: object) -> str:
    return "None" if value is None else HIDDEN


@final
@attrs.frozen(kw_only=True)
class ExecConfig:
    """A credential plugin: a program that prints the user's credentials (a user's ``exec`` in a kubeconfig).

    ``repr()`` shows neither arguments nor values of variables, which may be secrets.
    """

    api_version: str
    """``client.authentication.k8s.io/v1`` or ``…/v1beta1``."""
    command: str
    """The program: a name that is looked up in ``$PATH``, or an absolute path."""
    args: tuple[str, ...] = attrs.field(default=(), repr=_hidden_items)
    """Its arguments."""
    env: Mapping[str, str] = attrs.field(factory=dict[str, str], hash=False, repr=_hidden_values)
    """Variables that are added to the environment of this process."""
    install_hint: str | None = None
    """What to do if the program is not installed."""
    interactive_mode: InteractiveMode = InteractiveMode.IF_AVAILABLE
    """Whether it may read from the terminal."""
    provide_cluster_info: bool = False
    """Whether the plugin gets the cluster in ``$KUBERNETES_EXEC_INFO``."""
    cluster_config: object = attrs.field(default=None, hash=False, repr=_hidden)
    """The cluster's extension ``client.authentication.k8s.io/exec``, as JSON values; part of that."""


@final
@attrs.frozen(kw_only=True)
class Impersonation:
    """The user that a request is made for, instead of the authenticated one, who must be allowed to impersonate."""

    user: str
    """The name of the user, such as ``system:serviceaccount:default:web``."""
    uid: str | None = None
    """The UID of the user, or None."""
    groups: tuple[str, ...] = ()
    """The groups of the user; without any, the server adds those that it knows of."""
    extra: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict[str, tuple[str, ...]], hash=False)
    """Further attributes, by lower-case key."""
