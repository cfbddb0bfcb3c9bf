"""One reader per file format, each importing its one library lazily."""
