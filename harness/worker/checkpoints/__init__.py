"""Keep checkpoints: whole or not at all, on one tier or through a fast one."""
