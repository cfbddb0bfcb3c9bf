"""A result beside published figures, papers and the roofline."""
