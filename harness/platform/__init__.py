"""The claim about a machine: hardware, launcher, frameworks there."""
