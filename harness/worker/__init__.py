"""The worker side: standard library only, Python 3.7 and later."""
