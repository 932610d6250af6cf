"""The commands of the tool, with one module for each command.

:mod:`trioformer.cli` lists the commands, and imports only the module of the command that is used.
"""

from __future__ import annotations
