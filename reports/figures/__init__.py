"""Figures for papers: charts as files of their own, with captions."""
