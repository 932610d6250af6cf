"""Which controllers run: ``"*,-foo"``, by the rules of kube-controller-manager's ``--controllers``."""

from __future__ import annotations

from collections.abc import Collection, Iterable

FORBIDDEN = (",", "/", "*")
"""What no name may contain: the list is written with two of them, and a health check's path with the third."""
RESERVED = ("ping", "informer-sync", "leaderElection", "shutdown")
"""What no controller may be named: health checks that are there anyway."""


def enabled_controllers(
    names: Collection[str], enabled: str = "*", *, disabled_by_default: Collection[str] = ()
) -> tuple[str, ...]:
    """Choose from the controllers that there are.

    The list's items are looked through in turn, and the first that speaks of a controller decides: ``foo`` turns it on,
    ``-foo`` off.  If none does, ``*`` turns on all but those that are off by default.

    Source: ``IsControllerEnabled`` of kube-controller-manager (``controller-manager/app/helper.go``).

    Args:
        names: The names of all.
        enabled: The list, with commas.
        disabled_by_default: Names of those that ``*`` leaves off.

    Returns:
        The names of those that are on, in the order of ``names``.

    Raises:
        ValueError: The list, or ``disabled_by_default``, has a name that there is none of; or a name cannot be one.
    """
    for name in names:
        if not name or name != name.strip() or name.startswith("-") or any(part in name for part in FORBIDDEN):
            raise ValueError(
                f"{name!r} cannot be the name of a controller: it must not be empty, begin with '-', begin or end with "
                f"a space, or contain one of {' '.join(FORBIDDEN)}"
            )
        if name in RESERVED:
            raise ValueError(f"a controller cannot be named {name!r}: a health check of the manager's own is")
    items = [item for item in map(str.strip, enabled.split(",")) if item]
    _refuse_unknown((item.removeprefix("-") for item in items if item != "*"), names, f"in the list {enabled!r}")
    _refuse_unknown(disabled_by_default, names, "among those that are off by default")
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


def _refuse_unknown(asked: Iterable[str], names: Collection[str], where: str) -> None:
    unknown = sorted({name for name in asked if name not in names})
    if unknown:
        known = ", ".join(sorted(names)) or "none"
        raise ValueError(f"no controller named {', '.join(map(repr, unknown))}, {where}; there are: {known}")
