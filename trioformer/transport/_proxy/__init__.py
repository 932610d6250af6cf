"""Finds the proxy for a server; :mod:`..http._tunnel` opens connections through it.

- ``_environment.py``: finds the proxy for a server: in the configuration, or in the environment as Go reads it
- ``_proxy.py``: a proxy, made of its URL, and the errors about it
- ``_route.py``: what connections and requests need of a proxy
"""
