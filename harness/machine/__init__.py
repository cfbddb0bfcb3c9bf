"""What this machine is: processors, memory, GPUs, limits, topology, surroundings."""
