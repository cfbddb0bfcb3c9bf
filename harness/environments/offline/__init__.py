"""One archive of Bakeoff and its frameworks for a machine without a network."""
