"""One run against another, and the repeated runs that say how far two runs differ anyway."""
