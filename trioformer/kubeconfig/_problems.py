"""Collects all that is wrong with a configuration: one error lists it (client-go's ``clientcmd/validation.go``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar, final

from ..errors import ConfigError, ConfigProblem

T = TypeVar("T")

MAX_SHOWN: Final = 20
"""Problems in the text of an error; all are in its ``problems``."""


@final
class Problems:
    """The problems that were found.

    An error is taken apart and not kept: its traceback has frames whose variables may be credentials.
    """

    __slots__ = ("_problems",)

    def __init__(self) -> None:
        self._problems: dict[ConfigProblem, None] = {}  # no problem twice

    def __bool__(self) -> bool:
        return bool(self._problems)

    def add(self, error: ConfigError) -> None:
        """Add the problems of an error."""
        self._problems.update(dict.fromkeys(error.problems))

    def attempt(self, check: Callable[[], T]) -> T | None:
        """Return what ``check`` returns; if it raises a ConfigError, add its problems and return None."""
        try:
            return check()
        except ConfigError as exc:
            self.add(exc)
            return None

    def raise_if_any(self) -> None:
        """Raise one error with all problems, if there are any.

        Raises:
            ConfigError: There is at least one.
        """
        if self._problems:
            raise _joined(list(self._problems))


def _joined(problems: list[ConfigProblem]) -> ConfigError:
    """Return one error with all of the problems, of which there is at least one."""
    first = problems[0]
    if len(problems) == 1:
        return ConfigError(first.message, file=first.file, key=first.key)
    file = first.file if all(problem.file == first.file for problem in problems) else None
    shown = [str(ConfigProblem(p.message, None if file else p.file, p.key)) for p in problems[:MAX_SHOWN]]
    more = f"; and {len(problems) - MAX_SHOWN} more" if len(problems) > MAX_SHOWN else ""
    error = ConfigError(f"{len(problems)} problems: {'; '.join(shown)}{more}", file=file)
    error.problems = tuple(problems)
    return error
