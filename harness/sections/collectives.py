"""The section of what communication costs: gradients in a step, and messages by themselves."""

from __future__ import annotations

from collections.abc import Iterator

from harness.analysis import numbers
from harness.analysis.evidence import Evidence
from harness.analysis.results import Results
from harness.analysis.scaling.gradient_exchange import communication, exchange_pairs
from harness.analysis.scaling.messages import collectives
from harness.sections.contract.blocks import Block, Gist, Group, Note, Sheet
from harness.sections.contract.section import Section


def _blocks(results: Results, evidence: Evidence) -> Iterator[Block]:
    gradients = Note(
        "A step, the same step of ranks that keep their gradients, and the difference, block by "
        "block: what of the exchange does not hide behind computing. Cells without exchange train "
        "something else and are not ranked. By hooks: what the untimed probe saw of it from "
        "inside, where a framework lets it: from the moment no gradient is left to compute until "
        "all are averaged, medians over the steps of its first rank, which hooks make slower. What "
        "a step is made of has the exchange of a few traced steps, while nothing else ran; the "
        "difference here is of all trials, and has what exchanging slows beside it, too."
    )
    messages = Note(
        "Algorithm bandwidth is the message over the time; bus bandwidth is what each link must "
        "then have carried, whatever the number of ranks. “Over” names the interfaces whose TCP "
        "connections carried the bytes, as the kernel counted them."
    )
    pairs = exchange_pairs(results)
    if pairs:
        most = max(pairs, key=lambda one: one.exposed_s / one.whole_s)
        yield Gist(f"up to {numbers.share(most.exposed_s / most.whole_s)} of a step, {most.name}")
    yield Group((gradients, Sheet(communication(results))))
    yield Group((messages, Sheet(collectives(results))))


SECTION = Section("What communication costs", 600, _blocks, contents="Communication")
