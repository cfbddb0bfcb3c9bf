"""What ranks wrote: event files whole, by rank, or only their ends."""
