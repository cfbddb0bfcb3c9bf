"""Which nodes of a machine differ from the others."""
