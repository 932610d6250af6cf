"""What requests are authenticated with, and what is read from files for it.

- ``_credentials.py``: tokens and passwords of the configuration, and the interface of all sources of credentials
- ``_tls.py``: certificates, and the TLS contexts that have them
- ``_file_changes.py``: when a file must be read again
- ``_exec_source.py``: the source of credentials that runs a plugin, a user's ``exec`` in a kubeconfig
- ``_exec_process.py``: its process
- ``_exec_credential.py``: what it is given, and what it prints
- ``_exec_policy.py``: :class:`~trioformer.transport.PluginPolicy`, and where a command is found

What runs plugins is imported when a client has one.

Source: client-go ``transport/token_source.go``, ``transport/cert_rotation.go`` and ``plugin/pkg/client/auth/exec``.
"""
