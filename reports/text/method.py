"""What the page says about its method, and its glossary."""

from __future__ import annotations

TRIALS = """A trial is one fresh execution of a cell, in its own processes. All cells run once per
block, in random order, so that a machine that drifts drifts for all of them; cells are compared
within blocks."""

STEADY = """Every step window of a trial is kept. The start, where compilers, caches and clocks
settle, is found from the window times themselves and left out of the rate, by one rule for all
frameworks."""

RATES = """A cell's rate is the median over its trials. The interval is exact and assumes no
distribution: its ends are trials that were measured. With six trials they are the slowest and the
fastest, which holds in 96.9 % of cases."""

COMPARISONS = """Each cell is compared with one reference by the ratio within each block. Faster,
slower and same are said only if they hold for all cells of the study together; otherwise the
answer is “cannot tell”, with the number of blocks that would probably do. Fewer than six blocks
never tell."""

LEFT_OUT = """A trial that another program, a thermal limit or a stall disturbed is rejected, shown
as a cross with the evidence, and run again within a budget. A cell that computes something else
than the others is greyed out and not ranked."""

SIMULATED = "Simulated: a model said all this. No machine was measured."

METHOD: tuple[tuple[str, str], ...] = (
    ("Trials and blocks", TRIALS),
    ("Steady state", STEADY),
    ("Rates and intervals", RATES),
    ("Comparisons", COMPARISONS),
    ("What is left out", LEFT_OUT),
)

GLOSSARY: tuple[tuple[str, str], ...] = (
    ("block", "one pass over all cells, in random order"),
    ("cannot tell", "the data allow faster as well as slower; more blocks would be needed"),
    ("cell", "one point of the study: workload, framework, strategy and settings on a machine"),
    ("counted", "the trial stands behind the numbers of its cell"),
    ("equivalent", "same outputs, loss, gradients and updates as the reference"),
    ("interval", "where the true value plausibly lies; its level is given beside it"),
    ("n", "how many trials stand behind a number"),
    ("not checked", "nobody has proved yet that this cell computes the same as the others"),
    ("origin", "measured, simulated, stand-in or replayed; only measured trials are ranked"),
    ("p50, p95, p99", "half, 95 % and 99 % of the step windows were faster than this"),
    ("reference", "the cell that all others of its workload are compared with"),
    ("same", "the ratio lies, with its whole interval, within the band agreed beforehand"),
    ("trial", "one fresh execution of a cell; the unit of repetition"),
    ("verdict", "may this trial be believed: valid, noisy, unsteady, contended, throttled …"),
    ("× reference", "rate of the cell divided by the rate of the reference, within blocks"),
)
