"""What a study can tell, and what a budget makes of it."""
