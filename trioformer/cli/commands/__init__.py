"""The commands, a module for each; :mod:`trioformer.cli` lists them and imports the one that is used."""

from __future__ import annotations
