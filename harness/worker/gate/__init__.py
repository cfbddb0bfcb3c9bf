"""The worker's part of the gate: a subject that answers with tensors."""
