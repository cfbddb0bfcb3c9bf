"""One trial through its life: what it is given, how it is carried out, how it ended."""
