"""Input and checkpoints: what reading and saving cost."""
