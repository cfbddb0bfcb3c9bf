"""What to run: studies, platforms, cells and plans, read from TOML."""
