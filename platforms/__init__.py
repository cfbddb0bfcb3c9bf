"""The platform profiles that ship with Bakeoff, one TOML file each."""
