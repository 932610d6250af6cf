"""YAML as kubectl reads it, without recursion, for kubeconfigs and manifests.

- ``_events.py``: the decoding of a text, the events of PyYAML's parser, and what a scalar is
- ``_composer.py``: documents of plain values, with the lines and columns of mappings and of problems

Imported when the first file is read: PyYAML is a fifth of this library's import time.
"""

from __future__ import annotations

from ._composer import MAX_LEVELS as MAX_LEVELS
from ._composer import Document as Document
from ._composer import Mapping as Mapping
from ._composer import Marks as Marks
from ._composer import compose as compose
from ._events import YamlError as YamlError
from ._events import decode_text as decode_text
from ._events import resolve_scalar as resolve_scalar
