"""What decides whether two environments are the same to a trial: files, variables, programs."""
