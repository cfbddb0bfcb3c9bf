"""What a page says beside the ranking, one file a section."""
