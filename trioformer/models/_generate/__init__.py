"""A developer tool that generates modules from the schema of a kube-apiserver.

::

    python tests/e2e/fetch_schema.py                          fetches a server's documents, writes _schema.json
    python -m trioformer.models._generate reduce DIRECTORY    writes _schema.json from saved documents
    python -m trioformer.models._generate write               writes core_v1.py, …, builtin_kinds.py from _schema.json
    python -m trioformer.models._generate check               compares the committed modules with _schema.json

- ``_schema.py``: the names and types from OpenAPI and discovery, and the file ``_schema.json``
- ``_naming.py``: converts API names and types to Python
- ``_emit.py``: writes the source of the modules
- ``_check.py``: compares the committed modules with generated ones, and handwritten classes with the schema
"""

from __future__ import annotations

from ._check import check as check
from ._emit import emit as emit
from ._schema import Schema as Schema
from ._schema import reduce as reduce

__all__ = ["Schema", "check", "emit", "reduce"]
