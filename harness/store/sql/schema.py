"""State the tables that ``bakeoff sql`` offers: their columns, and their views over events.

Times are nanoseconds of the rank's monotonic clock, ``trial`` is a folder name such as trial-3:

    runs      run, title, study, directory, started_wall_ns, seed, platform, provenance
    cells     run, cell_key, label, workload, framework, environment, strategy, factors, unit,
              parameters, macs, epoch_samples, gate, gate_detail      what the gate said;
              in `bakeoff sql` also rate_unit, rate, rate_low, rate_high, n, ratio, ratio_low,
              ratio_high, answer
    trials    run, cell_key, trial, block, attempt, outcome, reason, origin, fingerprint, mixed,
              marks, position, started_wall_ns, ended_wall_ns, clock_bound_s, directory;
              in `bakeoff sql` also rate, p50_s, verdict, counted, and of its steady windows
              cpu_busy, gpu_busy, gpu_memory_busy, disk_busy (shares; of disks the busiest)
              and power_w
    ranks     run, cell_key, trial, rank, host, pid, exit_code, signal, cpu_s, max_rss_bytes,
              started_ns
    windows   run, cell_key, trial, block, attempt, rank, phase, first, steps, start_ns, end_ns,
              waited_ns, turn      of it for input, NULL where none is read; the number of the turn
              that it is a part of, where its trial takes turns
    epochs    run, cell_key, trial, block, attempt, rank, phase, number, first, steps, samples,
              bytes, calls, call_bytes, cache      whole passes over a data set's files
    checkpoints  run, cell_key, trial, block, attempt, rank, phase, step, start_ns, end_ns, saver,
              bytes      training stood still from start to end
    turns     run, cell_key, trial, block, attempt, rank, number, round, try, start_ns, end_ns,
              disturbed, foreign_cores, is_check      attempt is the trial's, try the turn's in its
              round; a check follows a turn of its own trial, and never counts
    units     run, cell_key, trial, block, attempt, rank, name, value      work per step
    values    run, cell_key, trial, block, attempt, rank, step, name, value
    phases    run, cell_key, trial, block, attempt, rank, phase, start_ns, end_ns      the first is
              start: the rank's container and interpreter, until it opens its framework
    facts     run, cell_key, trial, block, attempt, rank, name, value
    versions  run, cell_key, trial, block, attempt, rank, name, value
    samples   run, cell_key, trial, block, attempt, node, source, scope, channel, unit, kind, t_ns,
              half_width_ns, raw, value, gap       what the collector read; times as the events'
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.worker.redaction.names import SECRET_VARIABLE
from harness.worker.redaction.places import HIDDEN

NAMES = (
    "runs",
    "cells",
    "trials",
    "ranks",
    "windows",
    "epochs",
    "checkpoints",
    "turns",
    "units",
    "values",
    "phases",
    "facts",
    "versions",
    "samples",
)

# Always explicit: DuckDB would otherwise guess types from a sample of each file.
EVENTS: Mapping[str, str] = {
    "event": "VARCHAR",
    "phase": "VARCHAR",
    "name": "VARCHAR",
    "t": "BIGINT",
    "first": "BIGINT",
    "steps": "BIGINT",
    "start": "BIGINT",
    "end": "BIGINT",
    "step": "BIGINT",
    "turn": "BIGINT",
    "waited": "BIGINT",
    "samples": "BIGINT",
    "bytes": "BIGINT",
    "calls": "BIGINT",
    "call_bytes": "BIGINT",
    "cache": "VARCHAR",
    "saver": "VARCHAR",
    "number": "BIGINT",
    "round": "BIGINT",
    "attempt": "BIGINT",
    "disturbed": "VARCHAR",
    "foreign_cores": "DOUBLE",
    "check": "BOOLEAN",
    "values": "MAP(VARCHAR, DOUBLE)",
    "units": "MAP(VARCHAR, DOUBLE)",
    "facts": "MAP(VARCHAR, JSON)",
    "versions": "MAP(VARCHAR, VARCHAR)",
}
RUNS = {
    "run": "VARCHAR",
    "title": "VARCHAR",
    "study": "VARCHAR",
    "directory": "VARCHAR",
    "started_wall_ns": "BIGINT",
    "seed": "BIGINT",
    "platform": "JSON",
    "provenance": "JSON",
}
CELLS = {
    "run": "VARCHAR",
    "cell_key": "VARCHAR",
    "label": "VARCHAR",
    "workload": "VARCHAR",
    "framework": "VARCHAR",
    "environment": "VARCHAR",
    "strategy": "VARCHAR",
    "factors": "JSON",
    "unit": "VARCHAR",
    "parameters": "BIGINT",
    "macs": "BIGINT",
    "epoch_samples": "BIGINT",
    "gate": "VARCHAR",
    "gate_detail": "VARCHAR",
}
TRIALS = {
    "run": "VARCHAR",
    "cell_key": "VARCHAR",
    "trial": "VARCHAR",
    "block": "BIGINT",
    "attempt": "BIGINT",
    "outcome": "VARCHAR",
    "reason": "VARCHAR",
    "origin": "VARCHAR",
    "fingerprint": "VARCHAR",
    "mixed": "BOOLEAN",
    "marks": "VARCHAR[]",
    "position": "BIGINT",
    "started_wall_ns": "BIGINT",
    "ended_wall_ns": "BIGINT",
    "clock_bound_s": "DOUBLE",
    "directory": "VARCHAR",
}
RANKS = {
    "run": "VARCHAR",
    "cell_key": "VARCHAR",
    "trial": "VARCHAR",
    "rank": "BIGINT",
    "host": "VARCHAR",
    "pid": "BIGINT",
    "exit_code": "BIGINT",
    "signal": "BIGINT",
    "cpu_s": "DOUBLE",
    "max_rss_bytes": "BIGINT",
    "started_ns": "BIGINT",
}
EVENT_FILES = {
    "file": "VARCHAR",
    "run": "VARCHAR",
    "cell_key": "VARCHAR",
    "trial": "VARCHAR",
    "block": "BIGINT",
    "attempt": "BIGINT",
    "rank": "BIGINT",
}
_PLAIN_VIEWS = """
CREATE VIEW windows AS SELECT f.* EXCLUDE file, e.phase, e."first", e.steps,
    e."start" AS start_ns, e."end" AS end_ns, e.waited AS waited_ns, e.turn
    FROM events e JOIN event_files f ON f.file = e.filename WHERE e.event = 'window'
    AND e.phase IS NOT NULL AND e."first" IS NOT NULL AND e.steps IS NOT NULL
    AND e."start" IS NOT NULL AND e."end" IS NOT NULL;
CREATE VIEW epochs AS SELECT f.* EXCLUDE file, e.phase, e.number, e."first", e.steps, e.samples,
    e.bytes, e.calls, e.call_bytes, e.cache
    FROM events e JOIN event_files f ON f.file = e.filename WHERE e.event = 'epoch'
    AND e.number IS NOT NULL;
CREATE VIEW checkpoints AS SELECT f.* EXCLUDE file, e.phase, e.step, e."start" AS start_ns,
    e."end" AS end_ns, e.saver, e.bytes
    FROM events e JOIN event_files f ON f.file = e.filename WHERE e.event = 'checkpoint'
    AND e."start" IS NOT NULL AND e."end" IS NOT NULL;
CREATE VIEW turns AS SELECT f.* EXCLUDE file, e.number, e.round, e.attempt AS try,
    e."start" AS start_ns, e."end" AS end_ns, e.disturbed, e.foreign_cores,
    coalesce(e."check", false) AS is_check
    FROM events e JOIN event_files f ON f.file = e.filename WHERE e.event = 'turn'
    AND e.number IS NOT NULL AND e.round IS NOT NULL AND e."start" IS NOT NULL;
CREATE VIEW phases AS SELECT f.* EXCLUDE file, e.name AS phase, e.t AS start_ns,
    lead(e.t) OVER (PARTITION BY e.filename ORDER BY e.t, e.event DESC) AS end_ns
    FROM events e JOIN event_files f ON f.file = e.filename
    WHERE e.event IN ('phase', 'finished') AND e.t IS NOT NULL QUALIFY e.event = 'phase'
    UNION ALL SELECT f.* EXCLUDE file, 'start', r.started_ns, min(e.t)
    FROM events e JOIN event_files f ON f.file = e.filename
    JOIN ranks r USING (run, cell_key, trial, rank)
    WHERE e.event = 'phase' AND r.started_ns IS NOT NULL GROUP BY ALL;
CREATE VIEW "values" AS SELECT * EXCLUDE entry, entry.key AS name, entry.value AS value FROM (
    SELECT f.* EXCLUDE file, e.step, unnest(map_entries(e."values")) AS entry
    FROM events e JOIN event_files f ON f.file = e.filename WHERE e.event = 'values');
"""
_PAIRS = """
CREATE VIEW {name} AS SELECT * EXCLUDE entry, entry.key AS name, {value} AS value FROM (
    SELECT f.* EXCLUDE file, unnest(map_entries(e.{name})) AS entry
    FROM events e JOIN event_files f ON f.file = e.filename WHERE e.event = '{name}');
"""
_SHOWN = (
    f"CASE WHEN regexp_matches(entry.key, '{SECRET_VARIABLE.pattern}', 'i') "
    "AND try_cast(entry.value AS DOUBLE) IS NULL THEN {hidden} ELSE entry.value END"
)
"""As of variables; a number is no secret."""
VIEWS = _PLAIN_VIEWS + "".join(
    _PAIRS.format(name=name, value=value)
    for name, value in (
        ("units", "entry.value"),
        ("facts", _SHOWN.format(hidden=f"to_json('{HIDDEN}')")),
        ("versions", _SHOWN.format(hidden=f"'{HIDDEN}'")),
    )
)
"""Over the events of files."""
