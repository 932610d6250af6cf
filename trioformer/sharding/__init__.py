"""Shares of a cache by lease: several processes divide the objects of a kind among them.

- ``_plan.py``: decides which ranges a member takes, asks for and gives up
- ``_ownership.py``: holds the Leases of a member and of its ranges
"""
