"""Two runs that were not measured together: how far they differ, and what that says."""
