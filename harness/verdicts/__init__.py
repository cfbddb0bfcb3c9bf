"""One trial judged: may its number be believed, and on what evidence."""
