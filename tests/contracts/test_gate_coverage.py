"""Hold the page's table of what the gate examines to the code that decides it."""

from __future__ import annotations

from tests.contracts import gate_coverage


def test_the_page_says_what_is_examined_of_each_network_in_each_framework() -> None:
    page = gate_coverage.PAGE.read_text(encoding="utf-8")
    _, rest = page.split(gate_coverage.BEGIN)
    told, _ = rest.split(gate_coverage.END)
    again = "`python -m tests.contracts.gate_coverage` writes it"
    assert told.strip() == gate_coverage.text().strip(), again
