"""Apache SINGA: the framework of the papers' era that is still built by its users."""
