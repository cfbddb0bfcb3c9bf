"""Many trials compared: estimates, rankings, differences."""
