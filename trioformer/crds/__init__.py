"""Generate CustomResourceDefinitions from Python classes, and install them in a cluster.

The class of a custom resource describes everything in its definition, including defaults, bounds, rules and versions::

    from trioformer.crds import Schema, crd_of, custom_resource, install_crds, resource_part

- ``_decorators.py``: the decorators :func:`custom_resource` and :func:`resource_part`
- ``_facts.py``: the classes :class:`Schema`, :class:`Rule`, :class:`PrinterColumn` and others, which are arguments to
  the decorators
- ``_schemas.py``: builds the structural schema for a class
- ``_constraints.py``: adds bounds and rules to a schema, and checks defaults against them
- ``_sources.py``: finds the line numbers and descriptions of fields in the source of their class
- ``_definition.py``: the function :func:`crd_of`, which makes the definition of a kind
- ``_install.py``: the function :func:`install_crds`, which installs definitions and waits until the server serves their
  kinds
- ``__main__.py``: the command ``python -m trioformer.crds module:Class``, which prints manifests
"""

from __future__ import annotations

from ._decorators import custom_resource as custom_resource
from ._decorators import resource_part as resource_part
from ._definition import crd_of as crd_of
from ._facts import PrinterColumn as PrinterColumn
from ._facts import Rule as Rule
from ._facts import ScaleSubresource as ScaleSubresource
from ._facts import Schema as Schema
from ._install import install_crds as install_crds

__all__ = [
    "PrinterColumn",
    "Rule",
    "ScaleSubresource",
    "Schema",
    "crd_of",
    "custom_resource",
    "install_crds",
    "resource_part",
]
