"""The parsers of what others write, each with valid examples to be damaged."""
