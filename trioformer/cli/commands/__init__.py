"""The commands of the tool, each in its own module.

:mod:`trioformer.cli` lists the commands, and imports only the module of the command that is used.
"""

from __future__ import annotations
