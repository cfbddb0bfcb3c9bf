"""The studies that ship with Bakeoff, one TOML file each."""
