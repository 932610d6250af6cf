"""HTTP/1.1 to one server: sockets and TLS, heads and bodies, connections and their pool.

- ``_sockets.py``: TCP and TLS; a watch that is silent is verified here
- ``_network.py``: opens connections, through proxies as well
- ``_tunnel.py``: opens a connection through a proxy, by CONNECT or SOCKS5
- ``_messages.py``: requests and their headers, the heads of responses, and complete responses
- ``_connection.py``: one connection, a request after the other
- ``_pool.py``: the connections of a client, and their generations
- ``_body.py``: the body of a response: its limit, its errors, and gzip in slices
- ``_upgraded.py``: a connection that has switched to another protocol
- ``_httpx_transport.py``: the same over a transport of httpx, such as that of a server in the same process

There is one `Request`, one `Head`, and one `ResponseStream`.
"""
