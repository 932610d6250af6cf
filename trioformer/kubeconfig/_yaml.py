"""Parses YAML; imported when the first file is read."""

from __future__ import annotations

import io
from typing import Final

import yaml

from ..errors import ConfigError

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def parse_yaml(content: bytes, file: str) -> object:
    """Parse one YAML document.

    Raises:
        ConfigError: It is not YAML; names the file and the position, and quotes nothing.
    """
    try:
        # A stream, because errors about bytes quote them, and they may contain a token.
        return yaml.load(io.BytesIO(content), Loader=_LOADER)
    except yaml.MarkedYAMLError as exc:
        what = ", ".join(part for part in (exc.context, exc.problem) if part)
        mark = exc.problem_mark
        where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
        raise ConfigError(f"is not YAML: {what}{where}", file=file) from exc
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, RecursionError):
        # PyYAML raises all but the first for a value that does not match its tag, or for too many levels.
        # From None, because some of them quote the value.
        raise ConfigError("is not valid YAML", file=file) from None
