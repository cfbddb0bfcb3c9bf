"""Many ranks: how far a cell scales, and what its messages cost."""
