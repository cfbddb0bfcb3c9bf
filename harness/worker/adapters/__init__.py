"""One adapter per framework, each importing its framework lazily."""
