"""The package index: what it would send, how large, for which Python."""
