"""The command line tool: ``python -m trioformer``.

- ``_main.py``: :func:`main`, which runs the command and reports errors
- ``_commands.py``: the table of commands
- ``_arguments.py``: the parser and the common flags
- ``_session.py``: :class:`Session`, which contains the output, the configuration and the client of a command
- ``_request_log.py``: logs the requests for ``-v=6`` and above
- ``_resources.py``: finds and requests the objects that arguments name
- ``_printing.py``: prints tables, YAML, JSON and names
- ``_complete.py``: completes words for shells
- ``_complete_names.py``: requests names from the cluster for completion
- ``_streams.py``: handles standard streams that are closed, full or not UTF-8
- ``_failures.py``: the errors of commands

Each command has a row in the table, and a module in ``commands/`` with ``add_flags(parser)`` and
``async def run(session, flags)``.  The module is imported when the command is used.
"""

from __future__ import annotations

from ._main import main as main
