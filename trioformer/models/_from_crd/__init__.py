"""Makes the source of classes from CustomResourceDefinitions: ``python -m trioformer.models generate crd.yaml``.

It is the reverse of :mod:`trioformer.crds`, whose decorators the source uses: :func:`trioformer.crds.crd_of` makes a
definition of the classes that says the same.

- ``_generate.py``: :func:`generate`, the text of a module, and what of a definition it does not say
- ``_classes.py``: the classes of one version, and of the objects in it
- ``_types.py``: schemas to types, and what is said about their values
- ``_defaults.py``: defaults in JSON to Python's
- ``_names.py``: the API's names to Python's
- ``_source.py``: expressions and statements, in the format of ruff and black
- ``_read.py``: the definitions in YAML
"""

from __future__ import annotations

from ._generate import Generated as Generated
from ._generate import generate as generate
from ._read import read_definitions as read_definitions

__all__ = ["Generated", "generate", "read_definitions"]
