"""Rules by which a point of a matrix cannot run, one file a subject, and what they complete."""
