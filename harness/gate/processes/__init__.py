"""Run what is heavy in processes of its own, which end with the one that asked."""
