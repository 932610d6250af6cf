"""Connections through proxies: which one, and how it is asked for a connection to the server.

The connections themselves are made by :mod:`..http._network`.

- ``_environment.py``: finds the proxy for a server: in the configuration, or in the environment as Go reads it
- ``_proxy.py``: a proxy, made of its URL, and the errors about it
- ``_route.py``: what connections and requests need of a proxy
- ``_tunnel.py``: CONNECT and SOCKS5
"""
