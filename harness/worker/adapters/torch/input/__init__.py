"""Files read for torch: its own DataLoader, pictures, batches of any loader."""
