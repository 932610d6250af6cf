"""The age of what happened, as kubectl prints it."""

from __future__ import annotations

from datetime import UTC, datetime

from .printing import human_duration

__all__ = ["age_of", "now", "parse_time"]


def now() -> datetime:
    """Return the time."""
    return datetime.now(UTC)


def parse_time(text: object) -> datetime | None:
    """Return the time of a timestamp of the API; None for none."""
    if not isinstance(text, str) or not text:
        return None
    try:
        then = datetime.fromisoformat(text)
    except ValueError:
        return None
    return then if then.tzinfo is not None else then.replace(tzinfo=UTC)


def age_of(text: object) -> str:
    """Return the age of a timestamp, such as ``5m``; ``<unknown>`` without one."""
    then = parse_time(text)
    return "<unknown>" if then is None else human_duration((now() - then).total_seconds())
