"""Take secrets out of what is written down: the only place that knows what one looks like."""
