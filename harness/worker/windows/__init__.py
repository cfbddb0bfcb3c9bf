"""The windows of the timed loop, and the turns in which a trial takes them."""
