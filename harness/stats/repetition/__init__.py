"""When a study has been repeated often enough."""
