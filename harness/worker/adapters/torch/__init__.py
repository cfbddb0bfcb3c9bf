"""The torch adapter: networks lowered, trained, examined and probed."""
