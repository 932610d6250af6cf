"""The command line tool: ``python -m trioformer``.

- ``_main.py``: :func:`main` finds the command, runs it, and reports its errors
- ``_commands.py``: the table of the commands; each is a module of ``commands/``, imported when it is used
- ``_arguments.py``: the parser, and the flags that all commands have
- ``_session.py``: :class:`Session`: the output, the configuration and the client of a command
- ``_resources.py``: finds the resources that arguments name, and requests them
- ``_printing.py``: tables, YAML, JSON and names
- ``_complete.py``: completes words for shells; ``_complete_names.py`` asks the cluster
- ``_streams.py``: standard input and outputs that are closed, full, or not UTF-8
- ``_failures.py``: the errors of commands

A command is a module with ``add_flags(parser)`` and ``async def run(session, flags)``, and a row in the table.
"""

from __future__ import annotations

from ._main import main as main
