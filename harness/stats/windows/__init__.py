"""The windows of a trial: where they are steady, and what they look like then."""
