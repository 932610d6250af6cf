"""Connections through proxies: which one, and how it is asked for a connection to the server.

The connections themselves are made by :mod:`.._network`.

- ``_find.py``: finds the proxy for a server, in the configuration or in the environment
- ``_environment.py``: HTTPS_PROXY, HTTP_PROXY and NO_PROXY, as Go reads them
- ``_proxy.py``: a proxy, made of its URL
- ``_route.py``: what connections need of a proxy
- ``_tunnel.py``: CONNECT and SOCKS5
- ``_forward.py``: requests that need no tunnel
- ``_failure.py``: what is said of a proxy that fails
"""
