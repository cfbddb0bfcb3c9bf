"""Is the network fed what the files hold: every sample, its numbers, its label, the order."""
