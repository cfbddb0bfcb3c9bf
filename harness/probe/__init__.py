"""Platform profiles written from a machine, and compared with it."""
