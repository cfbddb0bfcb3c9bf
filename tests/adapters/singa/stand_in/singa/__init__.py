"""A stand-in for Apache SINGA: its Python API, faults included, over small numpy loops.

It is written from the interface of SINGA 5.0 for tests of an adapter. Its version says what it is.
"""

__version__ = "5.0.0-stand-in"
