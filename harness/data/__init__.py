"""Seeded data made on the host: datasets, gate weights and batches."""
