"""Write a figure as SVG that needs no style sheet."""

from __future__ import annotations

from reports.figures.figures import PaperFigure


def of_figure(figure: PaperFigure) -> str:
    """Give it as it is."""
    return figure.svg
