"""How ranks train together in torch: one module a strategy."""
