"""Which layer and pass took which share of a step of TensorFlow or Keras."""
