"""Which proxy connections go through; :mod:`..http._tunnel` asks it for one to the server.

- ``_environment.py``: finds the proxy for a server: in the configuration, or in the environment as Go reads it
- ``_proxy.py``: a proxy, made of its URL, and the errors about it
- ``_route.py``: what connections and requests need of a proxy
"""
