"""What is missing, what spoils numbers, and what a machine can do at most."""
