"""What collectors wrote: the samples format, and series read from it."""
