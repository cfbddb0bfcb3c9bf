"""Prove that what was timed trains: updates of the timed activity against float64."""
