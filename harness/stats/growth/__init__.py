"""How a step's time grows with the devices, and what more of them would take."""
