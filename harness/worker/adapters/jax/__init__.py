"""JAX: pure functions, compiled as a whole by XLA."""
