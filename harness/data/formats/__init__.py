"""Write made samples in each file format, one module a format."""
