"""Keras 3 on TensorFlow: the same networks as a Keras user writes them."""
