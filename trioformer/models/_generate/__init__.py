"""Developers' tool: the schema of a running kube-apiserver → the generated modules.  The library never imports it.

::

    python tests/e2e/fetch_schema.py                                    a server's documents → _schema.json
    python -m trioformer.models._generate reduce DIRECTORY              saved documents → _schema.json
    python -m trioformer.models._generate write                         _schema.json → core_v1.py, …, builtin_kinds.py
    python -m trioformer.models._generate check                         do the committed modules still follow from it?

- ``_schema.py``: what is kept of OpenAPI and discovery (names and types, no prose), and its one-fact-a-line file
- ``_naming.py``: the API's names and types → Python's
- ``_emit.py``: the text of the modules
- ``_check.py``: committed against generated, and the hand-written classes against the schema
"""

from __future__ import annotations

from ._check import check as check
from ._emit import emit as emit
from ._schema import Schema as Schema
from ._schema import reduce as reduce
