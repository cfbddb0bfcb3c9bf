"""The observer: a drift-free recorder and one module per source of readings."""
