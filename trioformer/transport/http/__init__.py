"""HTTP/1.1 to one server: sockets and TLS, heads and bodies, connections and their pool.

- ``_sockets.py``: TCP and TLS; a watch that is silent is verified here
- ``_network.py``: opens connections, through proxies as well
- ``_messages.py``: requests, the heads of responses, and complete responses
- ``_connection.py``: one connection, a request after the other
- ``_pool.py``: the connections of a client
- ``_httpx_transport.py``: the same over a transport of httpx, such as that of a server in the same process

There is one `Request`, one `Head`, and one `ResponseStream`.
"""
