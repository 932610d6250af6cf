"""The command line tool: ``python -m trioformer``, with kubectl's commands, flags, wording and exit codes.

- ``_main.py``: :func:`main` finds the command, parses its flags, runs it, and reports what went wrong
- ``_commands.py``: the table of the commands; each is a module of ``commands/``, imported when it is used
- ``_arguments.py``: a parser that accepts flags as kubectl does, and the flags that all commands have
- ``_session.py``: :class:`Session`, what a command works with: its output, the configuration, the client
- ``_resources.py``: the resources that arguments name, such as ``deploy/web`` or ``pods,services``
- ``_manifests.py``: the files of ``-f``; ``_merging.py``: what an object becomes when its manifest has changed
- ``_dry_run.py``: ``--dry-run``, and what commands print that change objects
- ``_failures.py``: errors in kubectl's words
- ``_values.py``: durations and numbers, as Go reads them
- ``_complete.py``: what shells complete words to; ``_complete_names.py`` asks the cluster
- ``_streams.py``: standard input and outputs that are closed, full, or not UTF-8
- ``printing/``: tables, YAML, JSON, names, JSONPath and custom columns

A command is a module with ``add_flags(parser)`` and ``async def run(session, flags)``, which returns the exit code or
None for 0, and a row in the table; ``docs/howto/command-line.rst`` is for its users.
"""

from __future__ import annotations

from ._main import main as main

__all__ = ["main"]
