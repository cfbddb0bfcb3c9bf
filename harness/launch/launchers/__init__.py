"""One launcher per engine; each is a module with one pure function, ``launch``."""
