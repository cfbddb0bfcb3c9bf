"""Trials of a block that live at the same time and take turns."""
