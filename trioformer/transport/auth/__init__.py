"""The credentials of requests, and the files that contain them.

- ``_credentials.py``: tokens and passwords of the configuration, and the interface of all sources of credentials
- ``_tls.py``: certificates and their TLS contexts
- ``_exec_source.py``: the source of credentials that runs a plugin, a user's ``exec`` in a kubeconfig
- ``_exec_process.py``: the process of the plugin
- ``_exec_credential.py``: the input and the output of the plugin
- ``_exec_policy.py``: :class:`~trioformer.transport.PluginPolicy`, and the search for a command

The modules for plugins are imported only if a client has one.

Source: client-go ``transport/token_source.go``, ``transport/cert_rotation.go`` and ``plugin/pkg/client/auth/exec``.
"""
