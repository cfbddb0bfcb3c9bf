"""What each factor of a large study does by itself, and which factors depend on each other."""
