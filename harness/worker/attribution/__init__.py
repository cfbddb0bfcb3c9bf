"""Which layer and pass took which share of a step: marks, traces and their account."""
