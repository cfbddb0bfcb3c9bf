"""A study's findings: what a paper found, and which of its cells answer the same question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from harness.errors import nearest
from harness.study.claims import CLAIMS, PAPERS
from harness.toml.document import Document, Place
from harness.toml.tables import Table

Measured = Literal[
    "rate",
    "waited",
    "calls",
    "blocked",
    "input_s",
    "overhead_s",
    "efficiency",
    "utilisation",
    "memory",
    "disk",
    "start_s",
    "epoch_s",
    "energy",
    "loss",
]
NEED_OVER = ("overhead_s", "efficiency")
"""What is of two cells only."""


class FindingTable(Table):
    """What a paper found, and what in this study answers the same question."""

    claim: str = ""
    """The paper's claim that it answers, PAPER/WHAT."""
    question: str = Field(min_length=1)
    """The question, in one sentence."""
    paper: str = Field(min_length=1)
    """What the paper found, or that its figure is not available."""
    measure: Measured = "rate"
    """What is compared; each word is explained in docs/studies.md."""
    of: dict[str, Any] = Field(min_length=1)
    """The cell in question, by factors, of which a list names several values."""
    over: dict[str, Any] | None = None
    """The cell that it is held against; absent: its own figure is given."""
    stand_in: str = ""
    """What its cells are, where they only stand for what the claim is of."""


def check_claims(
    document: Document, claims: Sequence[str], findings: Sequence[FindingTable]
) -> None:
    """Refuse claims that no paper makes or no finding answers, and figures that lack a cell."""
    answered = set()
    for number, finding in enumerate(findings):
        at: Place = ("finding", number)
        if finding.measure in NEED_OVER and finding.over is None:
            document.fault((*at, "measure"), f"'{finding.measure}' is of two cells: say over")
        if not finding.claim:
            continue
        answered.add(finding.claim)
        if _known(document, finding.claim, (*at, "claim")) and finding.claim not in claims:
            document.fault((*at, "claim"), f"'{finding.claim}' is not among the study's claim")
    for number, claim in enumerate(claims):
        if _known(document, claim, ("claim", number)) and claim not in answered:
            document.fault(("claim", number), f"no finding answers '{claim}'")


def _known(document: Document, claim: str, at: Place) -> bool:
    if claim in CLAIMS:
        return True
    paper = claim.partition("/")[0]
    allowed = [one for one in CLAIMS if one.startswith(f"{paper}/")] or sorted(PAPERS)
    document.fault(at, f"no paper claims '{claim}'.{nearest(claim, CLAIMS)}", allowed)
    return False
