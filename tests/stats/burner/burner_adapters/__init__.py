"""Adapters of a third party: a framework whose true speed is known."""
