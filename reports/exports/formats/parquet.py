"""Write a table as Parquet, with types that do not depend on which values are known."""

from __future__ import annotations

import tempfile
from pathlib import Path

from harness.analysis.tables import Table, flat
from harness.store.sql.queries import storable

_TYPES = {
    "number": "DOUBLE",
    "ratio": "DOUBLE",
    "seconds": "DOUBLE",
    "share": "DOUBLE",
    "interval": "DOUBLE",
    "count": "BIGINT",
    "bytes": "BIGINT",
    "flag": "BOOLEAN",
}


def of_table(table: Table) -> bytes:
    """Write raw values; unknown is null."""
    import duckdb

    heads, rows = flat(table)
    types: list[str] = []
    for column in table.columns:
        kind = _TYPES.get(column.kind, "VARCHAR")
        types += [kind, kind] if column.kind == "interval" else [kind]
    columns = ", ".join(
        f'"{head.replace(chr(34), chr(34) * 2)}" {kind}'
        for head, kind in zip(heads, types, strict=True)
    )
    texts = [
        [
            storable(str(v)) if kind == "VARCHAR" and v is not None else v
            for v, kind in zip(row, types, strict=True)
        ]
        for row in rows
    ]
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as made:
        place = Path(folder) / "table.parquet"
        made.execute(f"CREATE TABLE t ({columns})")
        if texts:
            marks = ", ".join("?" for _ in heads)
            made.executemany(f"INSERT INTO t VALUES ({marks})", texts)  # noqa: S608
        made.execute("COPY t TO ? (FORMAT parquet)", [str(place)])
        return place.read_bytes()
