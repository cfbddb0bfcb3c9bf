"""What turns a Dataset into a page, a file or lines in a terminal."""
