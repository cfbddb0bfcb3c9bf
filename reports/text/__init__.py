"""The answer in words, for the terminal and the page."""
