"""How ranks train together in TensorFlow."""
