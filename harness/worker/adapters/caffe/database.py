"""Show Caffe a data set as the database that its Data layer opens, in a folder of the trial's own.

The set is linked to: LMDB lays a lock beside it, and LevelDB writes a MANIFEST of its own as it is
opened, deletes the old one, and lets no second process in.
"""

from __future__ import annotations

import os
import shutil

from harness.worker.input.dataset import Dataset

BACKENDS = {"datum": "LMDB", "leveldb": "LEVELDB"}
"""What caffe.proto calls the databases that hold each format."""


def lay(dataset: Dataset, folder: str) -> str:
    """Link to the files of a set; give the folder where they lie together."""
    os.makedirs(folder, exist_ok=True)
    if dataset.format == "datum":
        (database,) = dataset.paths
        _link(database, os.path.join(folder, "data.mdb"))
        return folder
    for table in dataset.paths:
        _link(table, os.path.join(folder, os.path.basename(table)))
    there = os.path.dirname(dataset.paths[0])
    for name in ("CURRENT", *(one for one in os.listdir(there) if one.startswith("MANIFEST-"))):
        shutil.copyfile(os.path.join(there, name), os.path.join(folder, name))
    return folder


def _link(file: str, name: str) -> None:
    if not os.path.lexists(name):
        os.symlink(file, name)
