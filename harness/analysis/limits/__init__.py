"""What holds a cell back: its step divided by cause, against what its machine can do at most."""
