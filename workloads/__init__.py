"""The workloads that ship with Bakeoff, one module each."""
