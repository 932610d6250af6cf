"""Generate Python classes from CustomResourceDefinitions: ``python -m trioformer.models generate crd.yaml``.

This package does the reverse of :mod:`trioformer.crds`. The generated classes use the decorators of that package, and
:func:`trioformer.crds.crd_of` converts these classes back to an equivalent definition.

- ``_generate.py``: the function :func:`generate`, which returns the source of a module and notes on omitted parts
- ``_classes.py``: writes the classes for one version of a kind and for its nested objects
- ``_types.py``: converts schemas to types and constraints
- ``_defaults.py``: converts JSON defaults to Python expressions
- ``_names.py``: converts API names to Python names
- ``_source.py``: writes expressions and statements in the format of ruff and black
- ``_read.py``: reads definitions from YAML
"""

from __future__ import annotations

from ._generate import Generated as Generated
from ._generate import generate as generate
from ._read import read_definitions as read_definitions

__all__ = ["Generated", "generate", "read_definitions"]
