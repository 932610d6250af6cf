"""How the benchmarks are run: environments, processes, workloads, tables."""
