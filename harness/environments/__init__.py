"""Lock files of the framework environments."""
