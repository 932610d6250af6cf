"""The selection of controllers by a list such as ``"*,-foo"``, as in kube-controller-manager's ``--controllers``."""

from __future__ import annotations

from collections.abc import Collection, Iterable

FORBIDDEN_CHARACTERS = (",", "/", "*")
"""The characters that a name must not contain, because they have a meaning in the list or in the path of a health
check."""
RESERVED_NAMES = ("ping", "informer-sync", "leaderElection", "shutdown")
"""The names of the manager's own health checks."""


def enabled_controllers(
    names: Collection[str], enabled: str = "*", *, disabled_by_default: Collection[str] = ()
) -> tuple[str, ...]:
    """Return the names of the controllers that are enabled by a list.

    The first item of the list that names a controller decides: ``foo`` enables the controller ``foo``, and ``-foo``
    disables it.  If no item names a controller, ``*`` enables this controller, unless it is disabled by default.

    Source: ``IsControllerEnabled`` of kube-controller-manager (``controller-manager/app/helper.go``).

    Args:
        names: The names of all controllers.
        enabled: A comma-separated list of the enabled and disabled controllers.
        disabled_by_default: The names of controllers that ``*`` does not enable.

    Returns:
        The names of the enabled controllers, in the order of ``names``.

    Raises:
        ValueError: ``enabled`` or ``disabled_by_default`` contains an unknown name, or a name is not valid.
    """
    for name in names:
        check_controller_name(name)
    items = [item for item in map(str.strip, enabled.split(",")) if item]
    check_known((item.removeprefix("-") for item in items if item != "*"), names, f"the list {enabled!r}")
    check_known(disabled_by_default, names, "disabled_by_default")
    return tuple(name for name in names if _is_enabled(name, items, disabled_by_default))


def _is_enabled(name: str, items: Iterable[str], disabled_by_default: Collection[str]) -> bool:
    has_star = False
    for item in items:
        if item == name:
            return True
        if item == f"-{name}":
            return False
        has_star |= item == "*"
    return has_star and name not in disabled_by_default


def check_known(requested: Iterable[str], names: Collection[str], where: str) -> None:
    unknown = sorted({name for name in requested if name not in names})
    if unknown:
        known = ", ".join(sorted(names)) or "none"
        raise ValueError(f"unknown controllers in {where}: {', '.join(map(repr, unknown))}; known controllers: {known}")


def check_controller_name(name: str, what: str = "controller name") -> None:
    """Check that a name is valid for a controller or a health check.

    Raises:
        ValueError: The name is not valid or is reserved.
    """
    is_malformed = not name or name != name.strip() or name.startswith("-")
    if is_malformed or any(character in name for character in FORBIDDEN_CHARACTERS):
        raise ValueError(
            f"{name!r} is not a valid {what}: it must not be empty, begin with '-', begin or end with a space, or "
            f"contain one of {' '.join(FORBIDDEN_CHARACTERS)}"
        )
    if name in RESERVED_NAMES:
        raise ValueError(f"{name!r} is not a valid {what}: it is reserved for a health check")
