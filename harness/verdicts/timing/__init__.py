"""What the times of a trial say: its start, its steps, its turns."""
