"""What other packages of trioformer need of this one, and users do not: it imports PyYAML."""

from __future__ import annotations

from ._checks import CheckError as CheckError
from ._values import Number as Number
from ._yaml import YamlError as YamlError
from ._yaml import decode_text as decode_text
from ._yaml import parse_events as parse_events
from ._yaml import resolve_scalar as resolve_scalar
