"""Adapters of a third party: what any plug-in may do to a harness."""
