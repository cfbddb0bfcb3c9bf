"""Published figures, one file per source or kind of source."""
