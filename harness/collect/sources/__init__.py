"""What can be read on a node, one module per source; found through `bakeoff.samplers`."""
