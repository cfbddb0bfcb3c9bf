"""The network vocabulary written in TensorFlow's operations."""
