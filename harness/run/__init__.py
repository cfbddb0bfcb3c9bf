"""Carry a plan out: payload, environments, provenance, trials, sessions."""
