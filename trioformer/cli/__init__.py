"""The command line tool: ``python -m trioformer``.

- ``_main.py``: :func:`main` runs the command, and reports its errors
- ``_commands.py``: the table of the commands; each is a module of ``commands/``, imported when it is used
- ``_arguments.py``: the parser, and the common flags
- ``_session.py``: :class:`Session`: the output, the configuration and the client of a command
- ``_resources.py``: finds and requests the objects that arguments name
- ``_printing.py``: tables, YAML, JSON and names
- ``_complete.py``: completes words for shells; ``_complete_names.py`` asks the cluster
- ``_streams.py``: standard streams that are closed, full or not UTF-8
- ``_failures.py``: the errors of commands

A command is a module with ``add_flags(parser)`` and ``async def run(session, flags)``, and a row in the table.
"""

from __future__ import annotations

from ._main import main as main
