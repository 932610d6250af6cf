"""Find the proxy for a server. The module :mod:`..http._tunnel` opens connections through the proxy.

- ``_environment.py``: finds the proxy for a server in the configuration, or in the environment with Go's rules
- ``_proxy.py``: a proxy, parsed from its URL, and its errors
- ``_route.py``: the interface between a proxy and connections and requests
"""
