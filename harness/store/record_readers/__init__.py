"""Runs and their trials, read from the small files of a run directory into records."""
