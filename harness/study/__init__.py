"""What a person asks for: a study's tables, factors and measure."""
