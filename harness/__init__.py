"""Bakeoff's harness: plan, run, observe and store deep-learning benchmarks."""
