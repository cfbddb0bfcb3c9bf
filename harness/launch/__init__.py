"""Pure functions from a job to the command, files and environment that start it."""
