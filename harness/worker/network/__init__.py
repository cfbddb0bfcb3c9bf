"""A network's layers and what a workload is: the vocabulary that every adapter lowers."""
