"""A rank in a container: what it needs inside, and the command that enters it."""
