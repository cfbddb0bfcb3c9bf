"""Which layer and pass took which share of a step of torch, compiled or not."""
