"""What would spoil a study's run, looked for before anything is queued."""
