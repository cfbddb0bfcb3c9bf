"""Judge one trial: may its number be believed, and on what evidence."""
