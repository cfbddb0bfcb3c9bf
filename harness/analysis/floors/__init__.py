"""What this machine needs at best for each layer that was timed alone."""
