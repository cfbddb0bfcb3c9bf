"""What the hardware did while trials ran."""
