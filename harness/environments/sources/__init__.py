"""What no index carries ready-made, and how it is built here."""
