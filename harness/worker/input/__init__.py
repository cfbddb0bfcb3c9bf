"""Read input: made files or a user's own, in epochs that are audited and proved."""
