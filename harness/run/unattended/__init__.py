"""Runs that nobody sits beside: handed to a queue, or left to a session without a terminal."""
