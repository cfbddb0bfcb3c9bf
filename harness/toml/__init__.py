"""TOML read with line numbers and all faults at once."""
