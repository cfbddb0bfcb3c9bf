"""A study resolved into cells, holes, an order and a duration."""
