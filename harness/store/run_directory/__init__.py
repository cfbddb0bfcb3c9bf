"""A run directory: made and locked, known by its id, with its log and its trials' folders."""
