"""HTTP/1.1 to one server: sockets and TLS, heads and bodies, connections and their pool.

- ``_sockets.py``: TCP and TLS, and the verification of silent watches
- ``_network.py``: opens connections, directly or through a proxy
- ``_tunnel.py``: opens a connection through a proxy, with CONNECT or SOCKS5
- ``_messages.py``: requests and their headers, the heads of responses, and complete responses
- ``_connection.py``: one connection, for one request after the other
- ``_pool.py``: the connections of a client, and their generations
- ``_body.py``: the body of a response: its limit, its errors, and gzip in slices
- ``_upgraded.py``: a connection that has switched to another protocol
- ``_httpx_transport.py``: the same with an httpx transport, for example for a server in the same process

All these modules use the same `Request`, `Head` and `ResponseStream`.
"""
