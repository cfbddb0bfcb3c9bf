"""A result beside published figures and the roofline."""
