"""Data sets: users' own files, what describes them, checkpoints and tensors."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.data import contents, create, inspect, removal, sets, user_data
from harness.data.catalogue import CONTENTS
from harness.data.formats import leveldb
from harness.worker.checkpoints import checkpoint_files
from harness.worker.gate import tensors
from harness.worker.input import records
from harness.worker.input.dataset import KEYS, MANIFEST, VERSION, Dataset
from harness.worker.readers import npy, npz
from harness.worker.readers.leveldb import Table, key_of
from tests.gauntlet.parsers.parser import Examples, Parse, Parser, laid

_BY_RANKS = (
    *(ValueError, LookupError, TypeError, AttributeError, OSError, EOFError, RecursionError),
    OverflowError,
)
"""How a rank ends that reads what its own host wrote a moment before: its trial fails."""


def _records(_: Path) -> Sequence[bytes]:
    samples = (b"x" * 30, b"y" * 12, b"")
    parts = [records.head(len(one)) + one + struct.pack("<I", records.masked(0)) for one in samples]
    return [b"".join(parts), parts[0]]


def _lmdb(folder: Path) -> Sequence[bytes]:
    import lmdb

    place = folder / "seed.mdb"
    with lmdb.open(str(place), subdir=False, map_size=1 << 20) as map_, map_.begin(write=True) as t:
        for number in range(40):
            t.put(b"%08d" % number, bytes(100 * number))
    return [place.read_bytes()]


def _tables(folder: Path) -> Sequence[bytes]:
    made = [contents.sample(CONTENTS["tiny-pictures"], 1, number) for number in range(40)]
    leveldb.write(folder / "seed.ldb", made, 0, CONTENTS["tiny-pictures"])
    return [(folder / "seed.ldb").read_bytes()]


def _table(data: bytes, folder: Path) -> object:
    table = Table(str(laid(data, folder, "x.ldb")))
    return [table.value(key_of(number)) for number in (0, 20, 39)]


def _own_files(name: str) -> Parse:
    def parse(data: bytes, folder: Path) -> object:
        described = folder / "described"
        shutil.rmtree(described, ignore_errors=True)
        own = laid(data, folder, f"own/{name}")
        return user_data.adopt(own, described, doing=lambda _: None)

    return parse


def _adopted(folder: Path) -> Path:
    """Describe somebody's pictures, once; give the folder of the description."""
    described = folder / "adopted"
    if not described.exists():
        for number in range(3):
            laid(bytes(20 + number), folder, f"pictures/{'ab'[number % 2]}/{number}.jpg")
        user_data.adopt(folder / "pictures", described, doing=lambda _: None)
    return next(described.iterdir())


def _beside(name: str, damaged: Path, data: bytes) -> Path:
    """Lay a copy of a described set beside it, of which one file is damaged."""
    copy = damaged.parent.parent / "copied" / damaged.name
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(damaged, copy)
    (copy / name).write_bytes(data)
    return copy


def _manifest(data: bytes, folder: Path) -> object:
    """Read a set as the host does: to plan with it, to show, check and remove it."""
    place = _beside(MANIFEST, _adopted(folder), data)
    return (
        sets.is_finished(place),
        user_data.changed(place, folder / "pictures"),
        inspect.described(place),
        inspect.faults(place, doing=lambda _: None),
        removal.remove(place),
    )


def _manifest_by_ranks(data: bytes, folder: Path) -> object:
    place = _beside(MANIFEST, _adopted(folder), data)
    made = Dataset(str(place))
    return [made.place(0), made.targets(), made.shape, made.has_index, made.piece(0)]


def _of_tokens_by_ranks(data: bytes, folder: Path) -> object:
    place = _beside(MANIFEST, _tokens(folder), data)
    made = Dataset(str(place), 2)
    return [made.place(0), made.stretch(0), made.shape, made.has_index]


def _tokens(folder: Path) -> Path:
    """Describe somebody's tokens, once; give the folder of the description."""
    described = folder / "adopted-tokens"
    if not described.exists():
        user_data.adopt(laid(bytes(20), folder, "tokens.bin"), described, doing=lambda _: None)
    return next(described.iterdir())


def _keys(data: bytes, folder: Path) -> object:
    return Dataset(str(_beside(KEYS, _adopted(folder), data))).keys()


def _log(data: bytes, folder: Path) -> object:
    place = laid(data, folder, "unfinished/files.jsonl").parent
    laid(data, folder, f"unfinished/{sets.MADE}")
    return sets.began(place), create._logged(place), removal._recorded(place)


def _logs(_: Path) -> Sequence[bytes]:
    began = {
        "version": VERSION,
        "content": "cifar10",
        "format": "raw",
        "samples": 3,
        "seed": 1,
    }
    made = {"name": "a", "bytes": 3, "samples": 1, "sha256": "0" * 64, "imprints": [1]}
    return ["\n".join(map(json.dumps, (began, made, made))).encode() + b"\n"]


def _checkpoint(data: bytes, folder: Path) -> object:
    place = folder / "saved"
    laid(data, folder, "saved/step-5/manifest.json")
    return [checkpoint_files.is_true(kept) for kept in checkpoint_files.complete(str(place))]


def _checkpoints(folder: Path) -> Sequence[bytes]:
    laid(b"state", folder, "saved/step-5/rank.0")
    size_and_digest = vars(checkpoint_files.digest(str(folder / "saved/step-5/rank.0")))
    return [json.dumps({"version": 1, "step": 5, "files": {"rank.0": size_and_digest}}).encode()]


def _array(save: Callable[..., None]) -> Examples:
    def example(folder: Path) -> Sequence[bytes]:
        import numpy as np

        with (folder / "array").open("wb") as file:
            save(np, file, np.zeros((3, 4), dtype="<f4"))
        return [(folder / "array").read_bytes()]

    return example


def _tensors(data: bytes, folder: Path) -> object:
    place = laid(data, folder, f"tensors/{tensors.INDEX}").parent
    laid(bytes(96), folder, "tensors/0.bin")
    return [one.items() for one in tensors.read(str(place)).tensors.values()]


def _index(_: Path) -> Sequence[bytes]:
    entry = {"file": "0.bin", "shape": [3, 4], "dtype": "float64"}
    about = {"loss": 0.5}
    return [
        json.dumps({"version": tensors.VERSION, "tensors": {"w": entry}, "about": about}).encode()
    ]


def _manifests(folder: Path) -> Sequence[bytes]:
    return [(_adopted(folder) / MANIFEST).read_bytes()]


PARSERS = (
    Parser(
        "TFRecord files",
        _records,
        _own_files("x.tfrecord"),
        ("harness/worker/input/records", "harness/data/user_files", "harness/data/user_data"),
        share=0.1,
    ),
    Parser(
        "LMDBs",
        _lmdb,
        _own_files("data.mdb"),
        ("harness/data/lmdb_keys", "harness/worker/input/lmdb_pages"),
        share=0.02,
    ),
    Parser(
        "tables of LevelDBs",
        _tables,
        _table,
        ("harness/worker/readers/leveldb",),
        refuses=_BY_RANKS,
        share=0.1,
    ),
    Parser(
        "files of tokens",
        lambda _: [bytes(range(40)), bytes(8)],
        _own_files("x.bin"),
        ("harness/data/token_files",),
        share=0.1,
    ),
    Parser(
        "manifests of tokens, by ranks",
        lambda folder: [(_tokens(folder) / MANIFEST).read_bytes()],
        _of_tokens_by_ranks,
        ("harness/worker/input/dataset",),
        is_json=True,
        refuses=_BY_RANKS,
        share=0.05,
    ),
    Parser(
        "manifests of data sets",
        _manifests,
        _manifest,
        (
            *("harness/data/sets", "harness/data/user_data", "harness/data/inspect"),
            *("harness/data/removal", "harness/data/sidecars"),
        ),
        is_json=True,
        share=0.05,
    ),
    Parser(
        "manifests of data sets, by ranks",
        _manifests,
        _manifest_by_ranks,
        ("harness/worker/input/dataset",),
        is_json=True,
        refuses=_BY_RANKS,
        share=0.05,
    ),
    Parser(
        "keys of data sets",
        lambda _: [b"".join(len(one).to_bytes(2, "little") + one for one in (b"a", b"bc" * 9))],
        _keys,
        ("harness/worker/input/dataset",),
        refuses=_BY_RANKS,
        share=0.05,
    ),
    Parser(
        "logs of data sets in the making",
        _logs,
        _log,
        ("harness/data/sets", "harness/data/create"),
        is_json=True,
        share=0.3,
    ),
    Parser(
        "checkpoints' manifests",
        _checkpoints,
        _checkpoint,
        ("harness/worker/checkpoints/checkpoint_files",),
        is_json=True,
        share=0.3,
    ),
    Parser(
        "npy headers",
        _array(lambda numpy, file, array: numpy.save(file, array)),
        lambda data, _: npy.header(data),
        ("harness/worker/readers/npy",),
        refuses=(ValueError,),
    ),
    Parser(
        "npz headers",
        _array(lambda numpy, file, array: numpy.savez(file, array)),
        lambda data, _: npz.entry(data, "x.npz"),
        ("harness/worker/readers/npz",),
        refuses=(ValueError,),
    ),
    Parser(
        "tensors of a proof",
        _index,
        _tensors,
        ("harness/worker/gate/tensors",),
        is_json=True,
        refuses=_BY_RANKS,
        share=0.3,
    ),
)
