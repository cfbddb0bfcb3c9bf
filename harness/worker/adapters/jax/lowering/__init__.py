"""The network vocabulary in JAX's operations."""
