"""Load a run into a notebook and print a small table of its cells.

    python examples/load_a_run.py runs/quickstart-2026-11-22

Lines with ``# %%`` are cells for editors that run a script piece by piece (VS Code, Spyder,
Jupyter with jupytext). It needs nothing but Bakeoff.
"""

# %%
import sys

import bakeoff

# a run's directory, its name under runs/, or a results.json that somebody sent
try:
    run = bakeoff.load(*sys.argv[1:])
except bakeoff.BakeoffError as mistake:  # its text says what is wrong and what to do
    sys.exit(str(mistake))

# %%
for answer in run.answers:
    print(answer.answer)
print()

# %%
for cell in run.cells:
    if cell.rate is None:  # no trial gave a number that counts
        print(f"{cell.label:<40} {'–':>10}")
        continue
    within = cell.rate.interval
    interval = f"[{within.low:.1f}, {within.high:.1f}]" if within else ""
    print(f"{cell.label:<40} {cell.rate.value:>10.1f} {cell.rate.unit}  {interval}")

# %%
# what every single trial gave, and what was found against those that do not count
for cell in run.cells:
    for trial in cell.trials:
        if not trial.counted:
            print(f"{cell.label}, block {trial.block}: {trial.outcome}, {trial.verdict}")
