"""What a hostile server, tenant, file or client can send, and what it costs; ``benchmarks/bombs.py`` runs it."""
