"""Write a figure as PDF."""

from __future__ import annotations

from reports.figures.converted import converted
from reports.figures.figures import PaperFigure


def of_figure(figure: PaperFigure) -> bytes:
    """Have a program of this machine draw it."""
    return converted(figure.svg, "pdf")
