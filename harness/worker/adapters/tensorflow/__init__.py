"""TensorFlow: 2.x and, from the same source, 1.15 under Python 3.7."""
