"""What really ran: threads, operations, compiled code, the node's surroundings."""
